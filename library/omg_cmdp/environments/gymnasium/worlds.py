"""The two kinds of worlds that `from_gymnasium` makes: with tables they are exact, without they can be played."""

from __future__ import annotations

import math
import operator
from typing import NamedTuple, final

import numpy as np

from omg_cmdp.contexts import KEPT_BYTES, Context, ContextCache, check_same_kind
from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.environments.gymnasium.contextual_env import ContextualEnv, Numbering
from omg_cmdp.environments.gymnasium.rollout import EnvironmentPlayer
from omg_cmdp.environments.gymnasium.tables import Outcomes
from omg_cmdp.mdp.bellman import scaled_returns
from omg_cmdp.mdp.environment import Environment
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import ROUNDING
from omg_cmdp.validation import FloatArray, instance_of, positive_integer, real_number, seed_number, unit_scaled


class Parts(NamedTuple):
    """The parts of either kind of world, checked by `from_gymnasium`; ranges are in the environment's units."""

    env: ContextualEnv
    contexts: tuple[Context, ...]
    space: Space
    reward_range: tuple[float, float]
    return_range: tuple[float, float] | None


@final
class TableWorld(ContextualMDP):
    """A Gymnasium environment whose tables are known, as an exact contextual MDP: `from_gymnasium` makes it.

    Any context of the same kind as those listed has an MDP. Ended episodes stay in state S. Values and regrets are in
    units of rewards rescaled to [0, 1]; see `original_value`. Sampled rewards have their true distribution given state,
    action and next state.

    Parameters
    ----------
    parts : Parts
        The environment, the listed contexts, the space and the ranges of rewards and returns.

    Examples
    --------
    >>> from omg_cmdp.environments import from_gymnasium
    >>> lake = from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate", horizon=30)
    >>> lake.space.states, lake.reward_range
    (17, (0.0, 1.0))
    """

    def __init__(self, parts: Parts) -> None:
        self.env, self.contexts, self.space, self.reward_range, self.return_range = parts
        self._outcomes: ContextCache[Outcomes] = ContextCache(KEPT_BYTES, size=operator.attrgetter("nbytes"))

    @property
    def paid_returns(self) -> tuple[float, float]:
        """`return_range` for rewards rescaled to [0, 1], as `simulate` pays them."""
        return scaled_returns(self.return_range, self.space.horizon, self.reward_range)

    def outcomes(self, context: Context) -> Outcomes:
        """Return the tables of `context` in the environment's units; those of recent contexts are kept."""
        return self._outcomes.get(context, self._read)

    def _read(self, context: Context) -> Outcomes:
        check_same_kind("context", context, self.contexts[0])
        common_start(self.env, (self.contexts[0], context))  # raises if it differs
        made = read_outcomes(self.env, context)
        low, high = self.reward_range
        if made.rewards.min() < low or made.rewards.max() > high:
            got = f"[{made.rewards.min():g}, {made.rewards.max():g}] for {context!r:.60}"
            raise ValueError(f"`reward_range` must hold all rewards, got {self.reward_range} and {got}")
        if self.return_range is not None:
            least, most = made.returns(self.space.horizon, self.space.start)
            # Backward induction adds H rewards, each with its rounding.
            slack = ROUNDING * self.space.horizon * max(-low, high)
            if least < self.return_range[0] - slack or most > self.return_range[1] + slack:
                got = f"{self.return_range} and [{least:g}, {most:g}] for {context!r:.60}"
                raise ValueError(f"`return_range` must hold what every episode earns, got {got}")
        return made

    def mdp(self, context: Context) -> TabularMDP:
        """Return the MDP of `context`, rewards rescaled."""
        outcomes = self.outcomes(context)
        rewards = unit_scaled(outcomes.mean_rewards(), self.reward_range)
        return self.space.mdp(transitions=outcomes.transitions(), rewards=rewards)

    def sample(self, context: Context, policy: FloatArray, generator: np.random.Generator) -> Episode:
        """Play `policy` for one episode; 4H + 1 random numbers are used."""
        e = super().sample(context, policy, generator)
        drawn = self.outcomes(context).draw(e, generator.random(self.space.horizon))
        return e.with_rewards(unit_scaled(drawn, self.reward_range))

    def original_value(self, value: float) -> float:
        """Return low·H + (high - low)·value: a value of this world in the environment's units.

        >>> from omg_cmdp.environments import from_gymnasium
        >>> cliff = from_gymnasium("CliffWalking-v1", [False, True], arguments="is_slippery", horizon=20)
        >>> round(cliff.original_value(cliff.optimal_value(False)), 9)  # 13 steps of -1
        -13.0
        """
        low, high = self.reward_range
        number = real_number(value)
        if not math.isfinite(number):
            raise ValueError(f"`value` must be a finite number, got {value!r:.60}")
        return low * self.space.horizon + (high - low) * number


@final
class SampledWorld(Environment):
    """A Gymnasium environment without tables, which can be played: `from_gymnasium` makes it. Its optimum is unknown.

    Parameters
    ----------
    parts : Parts
        The environment, the listed contexts, the space and the ranges of rewards and returns.

    Examples
    --------
    >>> from omg_cmdp.environments import from_gymnasium
    >>> rates, rewards = [0.4, 0.9], (0.0, 1.0)
    >>> lake = from_gymnasium("FrozenLake-v1", rates, arguments="success_rate", reward_range=rewards, tables=False)
    >>> shares = lake.space.admissible / lake.space.admissible.sum(axis=1, keepdims=True)
    >>> uniform = np.repeat(shares[None], lake.space.horizon, axis=0)
    >>> lake.returns(0.9, uniform, episodes=3).shape
    (3,)
    """

    def __init__(self, parts: Parts) -> None:
        self.env, self.contexts, self.space, self.reward_range, self.return_range = parts
        self._player = EnvironmentPlayer(self.env, self.space, self.reward_range)

    @property
    def paid_range(self) -> tuple[float, float]:
        """The range of rewards, which are paid in the environment's units."""
        return self.reward_range

    def sample(self, context: Context, policy: FloatArray, generator: np.random.Generator) -> Episode:
        """Play `policy` (H, S + 1, A) for one episode, rewards in the environment's units."""
        check_same_kind("context", context, self.contexts[0])
        instance_of("generator", generator, np.random.Generator)
        episode = self._player.play(context, policy, (int(generator.integers(2**63)),))
        episode.check(self.space, self.reward_range, self.return_range)
        return episode

    def returns(self, context: Context, policy: FloatArray, episodes: int, *, seed: int = 0) -> FloatArray:
        """Return the returns (n,) of `policy` (H, S + 1, A) in n `episodes`, in the environment's units."""
        check_same_kind("context", context, self.contexts[0])
        count, seed = positive_integer("episodes", episodes), seed_number(seed)
        played = [self._player.play(context, policy, (seed, k)) for k in range(count)]
        for episode in played:
            episode.check(self.space, self.reward_range, self.return_range)
            if len(episode.actions) < self.space.horizon:
                got = f"one truncated after {len(episode.actions)}"
                raise ValueError(f"`env` must run for {self.space.horizon} steps or terminate, got {got}")
        return np.array([episode.rewards.sum() for episode in played])


def read_outcomes(contextual: ContextualEnv, context: Context) -> Outcomes:
    """Return the tables of `context`, read after a reset, which may change them."""
    env, _, _ = contextual.reset(context, 0)
    states, actions = Numbering("observation", env.observation_space), Numbering("action", env.action_space)
    return Outcomes(env.unwrapped.P, states.size, actions.size)  # type: ignore[attr-defined]


def common_start(contextual: ContextualEnv, contexts: tuple[Context, ...]) -> FloatArray | None:
    """Return the distribution of the first state, which must be the same for all; None if there is no table of it."""
    found = [_start(contextual, context) for context in contexts]
    if len({None if each is None else each.tobytes() for each in found}) > 1:
        raise ValueError(
            "`make` must make environments of one size with one start for all contexts, got different initial "
            "distributions: add a first state from which each context moves to its own"
        )
    return found[0]


def _start(contextual: ContextualEnv, context: Context) -> FloatArray | None:
    found = getattr(contextual.reset(context, 0)[0].unwrapped, "initial_state_distrib", None)
    return None if found is None else np.array(found)  # a copy: the next reset may change it
