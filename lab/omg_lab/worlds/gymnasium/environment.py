"""A world of this package as a Gymnasium environment, so that other people's agents can play it.

An observation is a dictionary of the state, the step and the context. A context comes with
`reset(options={"context": …})`, or else one of the world's is drawn; the info of `reset` has it, and its optimal value
V*. An episode terminates after H steps: the horizon belongs to the problem, and nothing is cut off. An inadmissible
action is played as the first admissible one of the state; `info["action_mask"]` says which are admissible.
"""

from __future__ import annotations

from typing import Any, final

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.sampling import draw_index
from omg_cmdp.validation import FloatArray, instance_of, seed_number
from omg_lab.worlds.base import World

try:
    import gymnasium
    from gymnasium.spaces import Box, Dict, Discrete
except ImportError as error:
    raise ImportError("this needs Gymnasium: pip install gymnasium") from error

Observation = dict[str, Any]


@final
class WorldEnv(gymnasium.Env[Observation, np.int64]):
    """A world as an environment.

    Parameters
    ----------
    world : World
        The world.

    >>> from omg_lab.worlds import CombinationLock
    >>> env = WorldEnv(CombinationLock())
    >>> observation, info = env.reset(seed=0, options={"context": 3})
    >>> int(observation["state"]), int(info["context"]), round(info["optimal_value"], 3)
    (0, 3, 0.815)
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    def __init__(self, world: World) -> None:
        instance_of("world", world, World)
        self.world = world
        self.return_range: tuple[float, float] | None = world.return_range
        """What an episode can earn, if the world says so; rewards lie in [0, 1]."""
        space, contexts = world.space, world.contexts
        labels = isinstance(contexts[0], int)
        widest = 1.0 if labels else max(1.0, float(np.abs(contexts).max()))
        self.observation_space = Dict(
            state=Discrete(space.states),
            step=Discrete(space.horizon + 1),
            context=Discrete(len(contexts)) if labels else Box(-widest, widest, np.shape(contexts[0]), np.float64),
        )
        self.action_space = Discrete(space.actions)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode of `options["context"]`, or of one of the world's contexts, drawn uniformly."""
        if options is not None:
            instance_of("options", options, dict)
        super().reset(seed=None if seed is None else seed_number(seed))
        drawn = int(self.np_random.integers(len(self.world.contexts)))
        context = (options or {}).get("context", self.world.contexts[drawn])
        self._truth = self.world.truth(context)
        self._context = self._observed(context)
        self._state, self._step = self._drawn(self.world.space.start), 0
        return self._observation(), {**self._info(), "optimal_value": self._truth.best[1]}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action; the last step terminates the episode."""
        if not self.action_space.contains(action):
            raise ValueError(f"`action` must be in {self.action_space}, got {action!r:.60}")
        mdp, admissible = self._truth.mdp, self.world.space.admissible[self._state]
        place = (self._state, int(action) if admissible[int(action)] else int(admissible.argmax()))
        mean = mdp.reward_steps[self._step % len(mdp.reward_steps)][place]
        reward = self.world.draw_reward(float(mean), self.np_random.random())
        self._state = self._drawn(mdp.transition_steps[self._step % len(mdp.transition_steps)][place])
        self._step += 1
        return self._observation(), reward, self._step == self.world.space.horizon, False, self._info()

    def _observed(self, context: Context) -> Any:
        if isinstance(self.observation_space["context"], Discrete):  # type: ignore[index]
            return np.int64(context)
        return np.array(context, dtype=np.float64)

    def _drawn(self, distribution: FloatArray) -> np.int64:
        return np.int64(draw_index(distribution, self.np_random.random()))

    def _observation(self) -> Observation:
        return {"state": self._state, "step": np.int64(self._step), "context": self._context.copy()}

    def _info(self) -> dict[str, Any]:
        mask = self.world.space.admissible[self._state].astype(np.int8)
        return {"context": self._context.copy(), "action_mask": mask}
