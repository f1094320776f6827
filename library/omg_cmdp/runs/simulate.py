"""The protocol: a context is chosen, the agent answers with a policy, an episode is played, the agent learns."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.adversaries.base import Adversary
from omg_cmdp.agents.agent import Agent
from omg_cmdp.contexts import Context, Keyed, keyed, unchanging
from omg_cmdp.delays import AnyDelay, Fixed, as_delay
from omg_cmdp.environments.base import ContextualMDP
from omg_cmdp.mdp.episode import Episode
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.persistence import (
    State,
    Stateful,
    check_settings,
    joint_state,
    load_parts,
    part_of,
    read_arrays,
    read_state,
    write_state,
)
from omg_cmdp.planning.decision import Decision, state_policy
from omg_cmdp.progress import Bar, say_stopped
from omg_cmdp.runs.ceilings import ceiling_for
from omg_cmdp.runs.ledger import Ledger, row_of
from omg_cmdp.runs.matching import check_parts
from omg_cmdp.runs.pending import Pending, read_stream, stream_text
from omg_cmdp.theory.ceiling.ceiling import RegretCeiling
from omg_cmdp.theory.rounds import Round, account
from omg_cmdp.transactions import interrupts_held
from omg_cmdp.validation import UNEXPECTED, FloatArray, file_path, function, positive_integer, seed_number

_KIND, _VERSION = "saved run", 7


def simulate(
    environment: ContextualMDP,
    adversary: Adversary,
    agent: Agent,
    episodes: int,
    *,
    seed: int = 0,
    delay: AnyDelay = 0,
    observe: Callable[[Round], None] | None = None,
    ceiling: bool | RegretCeiling = False,
    progress: bool | None = None,
) -> Ledger:
    """Play some episodes and return the ledger.

    Before each episode the adversary chooses a context; the agent answers with a policy, an episode is played, and the
    agent learns from it. What is under way at the end is not learned. Ctrl-C stops after the episode that is being
    played: the ledger of all until then is returned, and its `interrupted` is True. A second Ctrl-C does not wait.

    Parameters
    ----------
    environment : ContextualMDP
        The world, whose true MDPs give the exact regret.
    adversary : Adversary
        Chooses the contexts; it may look at the policies.
    agent : Agent
        Answers with policies and learns, made for the environment's space.
    episodes : int
        The number of episodes T.
    seed : int, default 0
        Spawns one stream for the world's noise, one for the adversary and one for the delays.
    delay : int, callable or Delay, default 0
        How many episodes later the agent learns from each: a number, a function of the episode, or one of
        `omg_cmdp.delays`.
    observe : callable, optional
        Called with the `Round` of each episode; audits are such functions.
    ceiling : bool or RegretCeiling, default False
        Whether the ledger says what each episode has cost at most, given all that was known before it, and how much is
        settled. A run takes 1.6 to 2 times as long with it.
    progress : bool, optional
        Whether to show a bar, with the time left. By default it appears after two seconds in a terminal or notebook.

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> class Coins(omg.ContextualMDP):
    ...     space = omg.Space(states=1, actions=2, horizon=1)
    ...     def mdp(self, context):
    ...         return self.space.mdp(transitions=np.ones((1, 2, 1)), rewards=[[context, 1.0 - context]])
    >>> sizes = {"states": 1, "actions": 2, "horizon": 1, "contexts": (0.2, 0.9)}
    >>> oracles = omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)
    >>> agent = omg.OMG(Coins.space, *oracles)
    >>> ledger = simulate(Coins(), omg.adversaries.IID([0.2, 0.9]), agent, episodes=50)
    >>> len(ledger), bool((ledger.regret >= 0.0).all())
    (50, True)
    """
    run = Run(environment, adversary, agent, seed=seed, delay=delay, observe=observe, ceiling=ceiling)
    try:
        run.advance(episodes, progress=progress)
    except KeyboardInterrupt:
        if not run.between_episodes:
            raise
        run.ledger.interrupted = True
        say_stopped("simulate", len(run.ledger), episodes, "the ledger has them")
    return run.ledger


class Run:
    """A simulation that can be stopped, saved, and continued bit for bit in another process.

    Worlds have seeds of their own for their structure, and agents for their draws.

    Parameters
    ----------
    environment : ContextualMDP
        The world, whose true MDPs give the exact regret.
    adversary : Adversary
        Chooses the contexts; it may look at the policies.
    agent : Agent
        Answers with policies and learns, made for the environment's space.
    seed : int, default 0
        Spawns one stream for the world's noise, one for the adversary and one for the delays.
    delay : int, callable or Delay, default 0
        How many episodes later the agent learns from each: a number, a function of the episode, or one of
        `omg_cmdp.delays`.
    observe : callable, optional
        Called with the `Round` of each episode; audits are such functions.
    ceiling : bool or RegretCeiling, default False
        Whether the ledger says what each episode has cost at most, given all that was known before it, and how much is
        settled. A run takes 1.6 to 2 times as long with it.

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> lake = omg.environments.from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate", horizon=5)
    >>> sizes = {"states": 17, "actions": 4, "horizon": 5}
    >>> agent = omg.OMG(lake.space, omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    >>> run = Run(lake, omg.adversaries.IID([0.4, 0.9]), agent)
    >>> run.advance(3)
    >>> run.advance(4)
    >>> run.ledger.episodes
    7
    """

    _plays: type = ContextualMDP

    def __init__(
        self,
        environment: ContextualMDP,
        adversary: Adversary,
        agent: Agent,
        *,
        seed: int = 0,
        delay: AnyDelay = 0,
        observe: Callable[[Round], None] | None = None,
        ceiling: bool | RegretCeiling = False,
    ) -> None:
        check_parts(environment, adversary, agent, self._plays)
        if observe is not None:
            function("observe", observe)
        self.environment, self.adversary, self.agent = environment, adversary, agent
        self.ledger, self.between_episodes = Ledger(agent.misfit), True
        self._observe = observe
        self.ceiling = ceiling_for(environment, agent, ceiling)
        """The ceiling on what has been lost; None if it was not asked for."""
        if self.ceiling is not None:
            self.ledger.delta = self.ceiling.delta
        self._asked: dict[Hashable | None, Decision] = {}
        self._oracles = agent.reward_oracle, agent.dynamics_oracle
        streams = np.random.SeedSequence(seed_number(seed)).spawn(3)
        self._noise, self._choice, lateness = map(np.random.default_rng, streams)
        self.pending = Pending(as_delay(delay), lateness)
        """The episodes whose feedback is under way."""

    def policy(self, context: Context) -> FloatArray:
        """Return what the agent would play now; of a mixture, the draw is not shown."""
        known = keyed(context)
        decision = self._decide(known)
        if known.key is not None:
            self._asked[known.key] = decision
        # A copy: the agent plays its own, whatever the adversary does to this one.
        return state_policy(self.environment.truth(known).mdp, decision).copy()

    def model(self, context: Context) -> TabularMDP | None:
        """Return what the agent believes now."""
        return self.agent.model(context)

    def _decide(self, known: Keyed) -> Decision:
        """Return the agent's decision; what the adversary asked for since the last episode is not computed again."""
        asked = self._asked.get(known.key)
        return self.agent.decide(known.to(self.agent)) if asked is None else asked

    def advance(self, episodes: int, *, progress: bool | None = False) -> None:
        """Play some more episodes, with a bar if `progress` is True, or None and somebody may be looking."""
        with Bar("simulate", positive_integer("episodes", episodes), show=progress) as bar:
            for _ in range(episodes):
                # Between an episode and its row in the ledger no interrupt may fall, or the run would not continue.
                with interrupts_held():
                    self.between_episodes = False
                    self._episode()
                    self.between_episodes = True
                bar.update()

    def _episode(self) -> None:
        number = self.ledger.episodes + 1
        known = keyed(unchanging(self.adversary.context(number - 1, self, self._choice)))

        began = time.perf_counter()
        decision = self._decide(known)
        decided = time.perf_counter()
        episode = self.environment.sample(known.to(self.environment), np.array(decision.policy), self._noise)
        played = time.perf_counter()
        this = self._account(number, decision, episode)  # before the agent learns, and perhaps reuses its arrays
        accounted = time.perf_counter()
        late = self.pending.add(number, episode)
        losses = self._losses()
        arrived = []
        for each, feedback in self.pending.arrived(number):
            self.agent.update(feedback)
            arrived.append(each)
        self._asked.clear()
        learned = time.perf_counter()

        total = self._losses()
        charged = total[0] - losses[0], total[1] - losses[1]
        seconds = decided - began, played - decided, learned - accounted, accounted - played
        row = row_of(this, charged, late, seconds, None if self.ceiling is None else self.ceiling(this))
        self.ledger.add(known.context, row)
        if self._observe is not None:
            self._observe(this._replace(oracles=self._oracles, charged=charged, arrived=tuple(arrived)))

    def _account(self, number: int, decision: Decision, episode: Episode) -> Any:
        """Return the round: what is known of an episode."""
        return account(number, self.environment.truth(episode.known), decision, episode)

    def _losses(self) -> tuple[float, float]:
        """Return the losses of the agent's oracles so far; nan for an agent without oracles."""
        rewards, dynamics = self._oracles
        return np.nan if rewards is None else rewards.loss, np.nan if dynamics is None else dynamics.loss

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything needed to continue: agent, adversary, streams, ledger, and what is under way."""
        streams = {"noise": stream_text(self._noise), "choice": stream_text(self._choice)}
        return {"settings": np.array(self._settings), **joint_state(self._parts()), **streams}

    @functools.cached_property
    def _settings(self) -> str:
        """The world and the adversary; the other parts have settings of their own."""
        world = self.environment.fingerprint(self.adversary.contexts)
        return f"Run, world {world}, adversary {self.adversary.fingerprint}"

    def _parts(self) -> dict[str, Stateful]:
        parts: dict[str, Stateful] = {"agent": self.agent, "adversary": self.adversary, "ledger": self.ledger}
        parts |= {} if self.ceiling is None else {"ceiling": self.ceiling}
        parts |= {} if self.agent.recent is None else {"recent": self.agent.recent}
        return parts if self.pending.delay == Fixed(0) else {**parts, "pending": self.pending}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `state()` to `path`, whole or not at all."""
        write_state(file_path(path), self.state(), kind=_KIND, version=_VERSION)

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Continue a run with the same settings."""
        self.load_state(read_arrays(file_path(path), kind=_KIND, version=_VERSION))

    def load_state(self, state: State) -> None:
        """Load a state saved by a run with the same settings; it continues bit for bit."""
        try:
            state = read_state(state)
            check_settings(state, self._settings)
            noise, choice = read_stream(state["noise"]), read_stream(state["choice"])
            for name, what in (("pending", "episodes under way"), ("ceiling", "a regret ceiling")):
                if name not in self._parts() and part_of(state, name):
                    raise ValueError(f"{what}, which this run has not")
            load_parts(state, self._parts())
        except (*UNEXPECTED, ValueError) as error:
            raise ValueError(f"`state` must come from a run with the same settings, got {error!r}") from error
        self._noise, self._choice = noise, choice
        self._asked.clear()
