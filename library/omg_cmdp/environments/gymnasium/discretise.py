"""Environments with continuous observations, played in the cells of an encoder; `encoders.base` has the limits."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any, final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.environments.encoders.base import Encoder
from omg_cmdp.environments.encoders.steps import Steps
from omg_cmdp.environments.gymnasium.contextual_env import ContextualEnv, Numbering
from omg_cmdp.records import context_rows
from omg_cmdp.validation import instance_of, listed, positive_integer, positive_number, seed_number

try:
    import gymnasium
    from gymnasium.spaces import Box, Discrete, flatten
except ImportError as error:
    raise ImportError("this needs Gymnasium: pip install gymnasium") from error


@final
class Discretised(gymnasium.ObservationWrapper[np.int64, Any, Any]):
    """An environment whose observations are the cells of a fitted encoder.

    Parameters
    ----------
    env : gymnasium.Env
        An environment with observations that can be flattened to numbers.
    encoder : Encoder
        Fitted to steps of `env`. It is copied: if yours is fitted again, its cells mean something else.

    Examples
    --------
    >>> from omg_cmdp.environments import Bins
    >>> pole = gymnasium.make("CartPole-v1")
    >>> env = Discretised(pole, Bins(3).fit(random_steps(pole, 500)))
    >>> env.observation_space, env.reset(seed=0)[0] in env.observation_space
    (Discrete(81), True)
    """

    def __init__(self, env: gymnasium.Env[Any, Any], encoder: Encoder) -> None:
        instance_of("env", env, gymnasium.Env)
        instance_of("encoder", encoder, Encoder)
        super().__init__(env)
        self.encoder = copy.deepcopy(encoder)
        """A copy of the encoder as it was given."""
        self.observation(env.observation_space.sample())  # raises now rather than in the first episode
        self.observation_space = Discrete(encoder.cells)

    def observation(self, observation: Any) -> np.int64:
        """Return the cell that `observation` lies in."""
        return np.int64(self.encoder.encode(_flat(self.env, observation)[None])[0])


def random_steps(
    env: gymnasium.Env[Any, Any], count: int, *, contexts: Iterable[Context] = (), hold: float = 1.0, seed: int = 0
) -> Steps:
    """Return steps of random actions, to fit an encoder to. Observations are flattened.

    Parameters
    ----------
    env : gymnasium.Env
        An environment with discrete actions.
    count : int
        The number of steps.
    contexts : iterable of contexts, default ()
        The contexts that `reset` gets in turn, if there are any. The report on encoders counts for each of them apart,
        so list a few that are typical.
    hold : float, default 1.0
        The number of steps for which a random action is held on average: pushing for a while gets farther than
        trembling.
    seed : int, default 0
        The seed of resets and actions.

    Examples
    --------
    >>> steps = random_steps(gymnasium.make("CartPole-v1"), 30)
    >>> steps.observations.shape, len(set(steps.actions.tolist()))
    ((30, 4), 2)
    """
    instance_of("env", env, gymnasium.Env)
    count, hold = positive_integer("count", count), positive_number("hold", hold)
    if hold < 1.0:
        raise ValueError(f"`hold` must be at least 1, got {hold}")
    contexts = listed("contexts", context_rows("contexts", contexts))
    generator, actions = np.random.default_rng(seed_number(seed)), Numbering("action", env.action_space)
    contextual, rows, episode = ContextualEnv(env), [], -1
    over = True
    for _ in range(count):
        if over:
            episode += 1
            number, begin = episode % max(len(contexts), 1), int(generator.integers(2**31))
            first = contextual.reset(contexts[number], begin)[1] if contexts else env.reset(seed=begin)[0]
            before, action = _flat(env, first), int(generator.integers(actions.size))
        elif generator.random() * hold < 1.0:
            action = int(generator.integers(actions.size))
        observation, reward, terminated, truncated, _ = env.step(actions.element(action))
        after, over = _flat(env, observation), bool(terminated or truncated)
        rows.append((before, action, reward, after, bool(terminated), episode, number))
        before = after
    names = ("observations", "actions", "rewards", "next_observations", "terminated", "episodes", "contexts")
    return Steps(**{name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)})


def _flat(env: gymnasium.Env[Any, Any], observation: Any) -> Any:
    space = env.observation_space
    try:
        if isinstance(space, Box):
            # As it was observed: a box of 32 bits, which many declare without a thought, would round it.
            return np.array(observation, dtype=np.float64).reshape(space.shape).reshape(-1)
        return np.asarray(flatten(space, observation), dtype=np.float64)
    except Exception as error:  # whatever a foreign object raises
        rule = f"be one of {env.observation_space}"
        raise ValueError(f"`observation` must {rule}, got {observation!r:.60}") from error
