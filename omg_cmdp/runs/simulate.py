"""The protocol: a context is chosen, the agent answers with a policy, an episode is played, the agent learns."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.adversaries.base import Adversary
from omg_cmdp.agents.base import Agent
from omg_cmdp.contexts import Context, context_key
from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.environments.gymnasium.worlds import SampledWorld
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.persistence import (
    State,
    Stateful,
    all_or_nothing,
    joint_state,
    part_of,
    read_arrays,
    read_state,
    write_arrays,
)
from omg_cmdp.planning.decision import Decision
from omg_cmdp.runs.accounting import Round, play_round, played_policy
from omg_cmdp.runs.ledger import Ledger
from omg_cmdp.validation import FloatArray, positive_integer

_KIND, _VERSION = "saved run", 2


def simulate(
    environment: ContextualMDP,
    adversary: Adversary,
    agent: Agent,
    episodes: int,
    *,
    seed: int = 0,
    propensities: bool = False,
    observe: Callable[[Round], None] | None = None,
) -> Ledger:
    """Play `episodes` episodes and return the ledger. `observe` is called with everything about each of them."""
    run = Run(environment, adversary, agent, seed=seed, propensities=propensities, observe=observe)
    run.advance(positive_integer("episodes", episodes))
    return run.ledger


class Run:
    """A simulation that can be stopped, saved, and continued to the bit in another process.

    Randomness has one owner: `seed` spawns one stream for the world's noise and one for the adversary. (Worlds have a
    seed of their own for their structure, agents for their draws.)
    """

    def __init__(
        self,
        environment: ContextualMDP,
        adversary: Adversary,
        agent: Agent,
        *,
        seed: int = 0,
        propensities: bool = False,
        observe: Callable[[Round], None] | None = None,
    ) -> None:
        for name, value, kind in (
            ("environment", environment, ContextualMDP),
            ("adversary", adversary, Adversary),
            ("agent", agent, Agent),
        ):
            if not isinstance(value, kind):
                advice = ": no tables, no regret; `omg_cmdp.play` plays it" if isinstance(value, SampledWorld) else ""
                raise ValueError(f"`{name}` must be a {kind.__name__}, got {type(value).__name__}{advice}")
        self.environment, self.adversary, self.agent = environment, adversary, agent
        self.ledger = Ledger()
        self._keep_propensities = propensities
        self._observe = observe
        self._asked: dict[Hashable | None, Decision] = {}
        self._oracles = tuple(getattr(agent, name, None) for name in ("reward_oracle", "dynamics_oracle"))
        noise, choice = np.random.SeedSequence(seed).spawn(2)
        self._noise, self._choice = np.random.default_rng(noise), np.random.default_rng(choice)
        self._check_sizes()

    # What an adversary may look at (adversaries.base.View).

    def policy(self, context: Context) -> FloatArray:
        """Return what the agent would play now; the draw from a mixture is not shown."""
        decision, key = self._decide(context), context_key(context)
        if key is not None:
            self._asked[key] = decision
        return played_policy(self.environment.truth(context).mdp, decision)

    def model(self, context: Context) -> TabularMDP | None:
        """Return what the agent believes now."""
        return self.agent.model(context)

    def _decide(self, context: Context) -> Decision:
        """Return the agent's decision; what the adversary has asked for since the last episode is not asked again."""
        asked = self._asked.get(context_key(context)) if self._asked else None
        return self.agent.decide(context) if asked is None else asked

    def advance(self, episodes: int) -> None:
        """Play some more episodes."""
        for _ in range(episodes):
            self._episode()

    def _episode(self) -> None:
        episode = self.ledger.episodes + 1
        context = self.adversary.context(episode - 1, self, self._choice)

        began = time.perf_counter()
        decision = self._decide(context)
        decided = time.perf_counter()
        draw = self.environment.sample(context, decision.policy, self._noise)
        played = time.perf_counter()
        losses = self._losses()
        self.agent.update(draw.trajectory)
        self._asked.clear()
        learned = time.perf_counter()

        truth = self.environment.truth(context)
        this = play_round(episode, context, truth, decision, draw)
        charged = self._losses()
        row = (
            this.regret,
            this.value,
            truth.best[1],
            sum(draw.trajectory.rewards.tolist()),
            decision.gamma,
            np.nan if decision.occupancy is None else float(np.count_nonzero(decision.occupancy)),
            decision.certificate,
            decision.iterations,
            *this.differences,
            *this.errors,
            charged[0] - losses[0],
            charged[1] - losses[1],
            decided - began,
            played - decided,
            learned - played,
            time.perf_counter() - learned,
        )
        self.ledger.add(context, row, draw.propensities if self._keep_propensities else None)
        if self._observe is not None:
            self._observe(this)

    def _losses(self) -> tuple[float, float]:
        """Return the losses of the agent's oracles so far; nan for agents without."""
        rewards, dynamics = self._oracles
        return getattr(rewards, "loss", np.nan), getattr(dynamics, "loss", np.nan)

    def _check_sizes(self) -> None:
        ours, theirs = self.environment.space, self.agent.space
        if (ours.states, ours.actions, ours.horizon) != (theirs.states, theirs.actions, theirs.horizon):
            sizes = f"{ours.states} states, {ours.actions} actions, horizon {ours.horizon}"
            got = f"{theirs.states}, {theirs.actions}, {theirs.horizon}"
            raise ValueError(f"`agent` must be made for the environment's {sizes}, got {got}")
        for name in ("start", "admissible"):
            if not np.array_equal(getattr(ours, name), getattr(theirs, name)):
                raise ValueError(f"`agent` must be made for the environment's `{name}`, got another one")
        if getattr(self.agent, "reward_range", (0.0, 1.0)) != (0.0, 1.0):
            raise ValueError("`agent` must have reward_range (0, 1), the range of every world's rewards")

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything needed to continue: agent, adversary, streams and ledger."""
        streams = {"noise": self._noise, "choice": self._choice}
        texts = {name: np.array(json.dumps(stream.bit_generator.state)) for name, stream in streams.items()}
        return {**joint_state(self._parts()), **texts}

    def _parts(self) -> dict[str, Stateful]:
        return {"agent": self.agent, "adversary": self.adversary, "ledger": self.ledger}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `state()` to `path`, whole or not at all."""
        write_arrays(path, self.state(), kind=_KIND, version=_VERSION)

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Continue a run with the same settings."""
        arrays = read_arrays(path, kind=_KIND, version=_VERSION)
        try:
            self.load_state(arrays)
        except ValueError as error:
            raise ValueError(f"`path` must be a run with the same settings, got {os.fspath(path)}: {error}") from error

    def load_state(self, state: State) -> None:
        """Load a state saved by a run with the same settings; it continues bit for bit."""
        try:
            state = read_state(state)
            streams = {name: json.loads(str(state[name])) for name in ("noise", "choice")}
            with all_or_nothing(*self._parts().values()):
                for name, part in self._parts().items():
                    part.load_state(part_of(state, name))
                self._noise.bit_generator.state, self._choice.bit_generator.state = streams.values()
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"`state` must come from a run with the same settings: {error}") from error
        self._asked.clear()
