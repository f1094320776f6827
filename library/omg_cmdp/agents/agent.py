"""The contract of an agent: it answers a context with a policy, and learns from the episode that was played."""

from __future__ import annotations

import abc
import os
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from omg_cmdp.agents.building import build_for
from omg_cmdp.contexts import Context
from omg_cmdp.mdp.bellman import optimal_policy
from omg_cmdp.mdp.environment import Environment
from omg_cmdp.mdp.space import Space
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.mdp.trajectory import Trajectory
from omg_cmdp.misfit.judgement import Misfit
from omg_cmdp.misfit.recent import Recent
from omg_cmdp.oracles.base import Oracle
from omg_cmdp.persistence import AGENT_FILE, State, read_arrays, write_state
from omg_cmdp.planning.decision import Decision
from omg_cmdp.recipes.files import pack_recipe, without_recipe
from omg_cmdp.recipes.recipe import Made, kept
from omg_cmdp.validation import FloatArray, file_path


class Agent(Made, abc.ABC):
    """An agent for a known `space`. An agent of your own needs `space`, `policy` and `update`.

    Everything else has a default: `decide` wraps `policy`, `model` is None, and an agent that is not to be saved needs
    no state. `omg_cmdp.checks.check_agent` says what an agent breaks of this contract.

    Examples
    --------
    >>> import numpy as np
    >>> from omg_cmdp import Agent, Space
    >>> class First(Agent):
    ...     space = Space(states=1, actions=2, horizon=1)
    ...     def policy(self, context):
    ...         return np.array([[[1.0, 0.0]]])
    ...     def update(self, trajectory):
    ...         pass
    >>> First().decide("a patient").policy
    array([[[1., 0.]]])
    """

    space: Space
    reward_range: tuple[float, float] | None = None
    """Between which numbers the rewards lie that `update` is told; None: (0, 1), or as the environment says."""
    return_range: tuple[float, float] | None = None
    """Between which numbers their sum over an episode lies; None: H times `reward_range`."""
    reward_oracle: Oracle | None = None
    """The oracle of rewards, for agents with oracles: ledgers and audits read its losses."""
    dynamics_oracle: Oracle | None = None
    """The oracle of dynamics."""
    cost_oracles: Sequence[Oracle] = ()
    """The oracles of costs, for agents that learn what decisions cost: `update` is then told `costs`."""
    cost_range: tuple[float, float] = (0.0, 1.0)
    """Between which numbers these costs lie."""
    recent: Recent | None = None
    """The last episodes that it was taught, for agents with oracles; saved with a run, and not with the agent."""
    takes_keyed: ClassVar[bool] = False
    """Whether `decide` takes a context with its key: for agents that hand it on to `model` and oracles alone."""

    @classmethod
    def for_world(cls, world: Environment, **options: Any) -> Self:
        """Return an agent for `world`, such as `OMG.for_world(world, reward_oracle=…, dynamics_oracle=…, seed=1)`.

        The constructor gets `options` and, where it takes them, the world's space, contexts and range of rewards,
        `seed`, `episodes` and, unless they are given, oracles of the world's class of functions, if it has one. An
        agent that needs more of a world overrides this.
        """
        return build_for(cls, world, **options)

    @abc.abstractmethod
    def policy(self, context: Context) -> FloatArray:
        """Return the policy (H, S, A) for the next episode. Pure: asking twice changes nothing."""

    @abc.abstractmethod
    def update(self, trajectory: Trajectory) -> None:
        """Learn from an episode. Several episodes may be under way, and updates may come in any order."""

    def decide(self, context: Context) -> Decision:
        """Return the policy, and what led to it."""
        return Decision(policy=self.policy(context))

    def model(self, context: Context) -> TabularMDP | None:
        """Return the agent's model of `context`; None if it has none."""
        return None

    def best_policy(self, context: Context) -> FloatArray:
        """Return an optimal policy (H, S, A) of the agent's model: no exploration."""
        model = self.model(context)
        if model is None:
            raise NotImplementedError(f"{type(self).__name__} has no model")
        return optimal_policy(model)[0]

    def misfit(self, episodes: Iterable[Trajectory] | None = None) -> Misfit | None:
        """Return whether the data contradict the class of an oracle, and what to try; None if there are no oracles.

        In a class that holds the truth, something is found with a probability of at most 0.01 for each oracle, however
        often one asks (`omg_cmdp.misfit.evidence`).

        Parameters
        ----------
        episodes : iterable of Trajectory, optional
            Episodes that the agent has learned, such as `log.episodes`; by default the last that it was taught.
        """
        return None

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that was learned, as arrays of numbers and text."""
        raise NotImplementedError(f"{type(self).__name__} cannot be saved")

    def load_state(self, state: State) -> None:
        """Load a state saved by an agent with the same settings; the run continues bit for bit."""
        raise NotImplementedError(f"{type(self).__name__} cannot load a state")

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `state()`, and how the agent was made, to a file, whole or not at all; `omg_cmdp.load` reads it."""
        write_state(file_path(path), {**self.state(), **pack_recipe(kept(self))}, **AGENT_FILE)

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Load a file saved by an agent with the same settings."""
        self.load_state(without_recipe(read_arrays(file_path(path), **AGENT_FILE)))
