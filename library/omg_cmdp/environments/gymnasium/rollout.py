"""Episodes of a policy in a Gymnasium environment, step by step, with the probability of every action.

An episode has H steps. One that terminates earlier stays in one more state, S, for the rest of them and earns nothing
there: a finite-horizon problem with the same returns. One that is *truncated* earlier has the steps that were seen, and
no more: what would have followed is unknown. One that would last longer is left after H steps. Where `info["cost"]`
says what a step cost, the episode has `costs`; a step that does not say so cost nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.environments.gymnasium.contextual_env import ContextualEnv, Numbering
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.space import Space
from omg_cmdp.sampling import draw_index
from omg_cmdp.validation import FloatArray, interval

if TYPE_CHECKING:
    import gymnasium

_UNHARMED = "nothing is learned from this episode, and the next one can be played"


@final
class EnvironmentPlayer:
    """Plays policies for `space` in an environment, with rewards in `reward_range`."""

    def __init__(self, env: ContextualEnv, space: Space, reward_range: tuple[float, float]) -> None:
        self.env, self.space, self.reward_range = env, space, checked_range(reward_range)
        self._numbered: gymnasium.Env[Any, Any] | None = None

    def play(self, context: Context, policy: FloatArray, seed: tuple[int, ...]) -> Episode:
        """Play `policy` (H, S + 1, A) for one episode; `seed` determines the environment's noise and the actions."""
        policy, (for_env, for_actions) = self.space.checked_policy(policy), np.random.SeedSequence(seed).spawn(2)
        self._number(self.env.open(context))  # refuses an environment of another size before it is reset
        env, observation, _ = self.env.reset(context, int(for_env.generate_state(1)[0]))
        # A stream of its own: the environment's noise does not depend on how many actions were drawn.
        uniforms = np.random.default_rng(for_actions).random(self.space.horizon)
        steps, costs, state = [], [], self._observations.number(observation)
        # An agent plans from the start of its space, and its plan says nothing about other states.
        if not self.space.start[state]:
            raise ValueError(
                f"`env` must begin in a state to which the space gives a positive probability, got {state}: give "
                f"such a `start` to the space or world, because agents plan from it; {_UNHARMED}"
            )
        for h, uniform in enumerate(uniforms):
            probabilities = policy[h, state]
            action = draw_index(probabilities, uniform)
            observation, reward, terminated, truncated, info = env.step(self._actions.element(action))
            steps.append((state, action, self._checked(reward, h), probabilities[action]))
            costs.append(_cost(info, h))
            # The observation after the end need not be one of the space.
            last = None if terminated else self._observations.number(observation)
            if last is None or truncated:
                break
            state = last
        paid = None if np.isnan(costs).all() else np.nan_to_num(np.array([costs]))
        states, actions, rewards, chances = map(np.array, zip(*steps, strict=True))
        return Episode.of_steps(self.space, context, (states, actions, rewards), chances, last=last, costs=paid)

    def _number(self, env: gymnasium.Env[Any, Any]) -> None:
        """Number the observations and actions of `env`; raise unless the space has the same sizes."""
        if env is self._numbered:
            return
        observations = Numbering("observation", env.observation_space)
        actions, space = Numbering("action", env.action_space), self.space
        if (observations.size + 1, actions.size) != (space.states, space.actions):
            wanted = f"{observations.size} + 1 states (the last for ended episodes) and {actions.size} actions"
            advice = "`environments.gymnasium_space(env)` makes such a space"
            raise ValueError(f"`agent` must be made for {wanted}, got {space.states} and {space.actions}: {advice}")
        self._observations, self._actions, self._numbered = observations, actions, env

    def _checked(self, reward: Any, step: int) -> float:
        low, high = self.reward_range
        try:
            number = float(reward)
        except (TypeError, ValueError):
            raise ValueError(
                f"`env` must pay rewards that are numbers, got {reward!r:.60} at step {step}: wrap it with "
                f"`gymnasium.wrappers.TransformReward`, which makes one number of it; {_UNHARMED}"
            ) from None
        if not low <= number <= high:
            raise ValueError(
                f"`env` must pay rewards in the declared range [{low:g}, {high:g}], got {number} at step {step}: make "
                f"the agent with a wider `reward_range`; {_UNHARMED}"
            )
        return number


def _cost(info: Any, step: int) -> float:
    """Return what a step cost, `info["cost"]` as in Safety-Gymnasium; nan if the environment does not say."""
    cost = info.get("cost", math.nan)
    try:
        number = float(cost)
    except (TypeError, ValueError):
        number = math.inf
    if math.isinf(number):
        raise ValueError(f'`info["cost"]` must be a finite number, got {cost!r:.60} at step {step}; {_UNHARMED}')
    return number


def checked_range(reward_range: Any) -> tuple[float, float]:
    """Return (low, high), low <= 0 <= high."""
    low, high = interval("reward_range", reward_range)
    if not low <= 0.0 <= high:
        rule = "be an interval (low, high) of finite numbers that contains 0, what ended episodes earn"
        raise ValueError(f"`reward_range` must {rule}, got {reward_range!r}")
    return low, high
