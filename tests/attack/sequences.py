"""Outcomes chosen against oracles: the regret is within `regret_bound` after every episode, whatever happens.

Classes may be deterministic or sparse, so that what happens is often excluded by some of their functions, or by all.
Each class of oracles with a finite bound takes its turn; the opponent changes its mind between episodes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from library.tests.oracles.games import MAKERS, Game, Size
from omg_cmdp.oracles.losses import SMALLEST_PROBABILITY, SQUARE, loss_of
from tests.attack.outcome import Outcome

SEQUENCES = 10_000
KINDS = ("against", "excluded", "alternating", "anything", "member")
"""How an episode's outcomes are chosen: see `Opponent`."""


def attack(effort: float, seed: int) -> Outcome:
    """Play `effort` times 10 000 sequences, each class in its turn."""
    outcome = Outcome()
    for number in range(max(len(MAKERS), round(effort * SEQUENCES))):
        make = MAKERS[number % len(MAKERS)]
        rng = np.random.default_rng([seed, number])
        size = Size(*(int(rng.integers(low, high)) for low, high in ((2, 5), (1, 3), (1, 6), (1, 3))))
        outcome.tried += 1
        broken = play(make(rng, size), size, Opponent(rng, size))
        if broken:
            outcome.broken.append(f"{make.__name__}, seed {seed}, sequence {number}, {size}: {broken}")
    return outcome


def play(game: Game, size: Size, opponent: Opponent) -> str:
    """Return what broke first in one sequence; nothing if all held."""
    oracle, rng, loss, losses = game.oracle, opponent.rng, 0.0, np.array(math.nan)
    judge = squares if loss_of(oracle) is SQUARE else logs
    axes = 2 if judge is squares else 3
    for t in range(int(rng.choice([10, 25, 100], p=[0.6, 0.3, 0.1]))):
        number = int(rng.integers(size.contexts))
        context = game.contexts[number]
        table = with_steps(oracle.predict(context)[None], axes)
        members = table if game.members is None else with_steps(game.members[number], axes)
        episode = opponent.episode(t, table[0], members[rng.integers(len(members))], rewards=judge is squares)
        try:
            oracle.check_steps(*episode)
        except ValueError:
            continue  # a transition that its support excludes
        oracle.update(context, *episode)
        loss += judge(table, *episode).item()
        if game.members is not None:
            losses = np.nan_to_num(losses) + judge(members, *episode)
        regret = loss - np.nanmin([oracle.best_loss(), losses.min()])
        bound = oracle.regret_bound(t + 1, size.horizon)
        if not math.isclose(oracle.loss, loss, rel_tol=1e-9, abs_tol=1e-9):
            return f"`loss` {oracle.loss}, measured {loss}"
        if not regret <= bound + 1e-9 + 1e-12 * loss or bound == math.inf:
            return f"regret {regret:.6g}, bound {bound:.6g} after {t + 1} episodes, {opponent.kinds}"
    stored = [array for array in oracle.state().values() if array.dtype.kind == "f"]
    return "" if all(np.isfinite(array).all() for array in stored) else "a state that is not finite"


def with_steps(tables: Any, axes: int) -> Any:
    """Return tables (N, steps, S, A[, S]) of some without steps, or with."""
    return tables if tables.ndim == axes + 2 else tables[:, None]


def seen(tables: Any, *places: Any) -> Any:
    """Return (N, H): the entries of `tables` (N, steps, ...) at the places of an episode."""
    return tables[:, np.arange(len(places[0])) % tables.shape[1], *places]


def squares(tables: Any, states: Any, actions: Any, rewards: Any) -> Any:
    """Return (N,): Σ (f - r)²."""
    return ((seen(tables, states, actions) - rewards) ** 2).sum(axis=1)


def logs(tables: Any, states: Any, actions: Any, next_states: Any) -> Any:
    """Return (N,): -Σ log(P + ε)."""
    return -np.log(seen(tables, states, actions, next_states) + SMALLEST_PROBABILITY).sum(axis=1)


class Opponent:
    """Chooses what happens: an episode is of one of a few `kinds`, and visits one pair, any pairs, or a path.

    On a path the next state is where the episode goes on; it may end early, and then stays where it is.
    """

    def __init__(self, rng: np.random.Generator, size: Size) -> None:
        self.rng, self.size = rng, size
        self.kinds = rng.choice(KINDS, rng.integers(1, 4), replace=False).tolist()
        self.visits = rng.choice(["one pair", "any pairs", "a path"])

    def episode(self, t: int, table: Any, member: Any, *, rewards: bool) -> tuple[Any, Any, Any]:
        """Return states, actions and outcomes against `table` (steps, S, A[, S]), perhaps as `member` says."""
        kind, coin, state = self.rng.choice(self.kinds), self.rng.random(), 0
        ends = self.rng.integers(1, self.size.horizon + 1) if self.visits == "a path" else self.size.horizon
        steps = []
        for h in range(self.size.horizon):
            if self.visits == "any pairs":
                state = int(self.rng.integers(self.size.states))
            action = 0 if self.visits == "one pair" else int(self.rng.integers(self.size.actions))
            forecast, fact = table[h % len(table), state, action], member[h % len(member), state, action]
            choose = self.reward if rewards else self.next_state
            outcome = choose(kind, forecast, fact, t, coin) if h < ends else 0 if rewards else state
            steps.append((state, action, outcome))
            if self.visits == "a path":
                state = int(self.rng.integers(self.size.states)) if rewards else outcome
        seen_until = int(self.rng.integers(1, len(steps) + 1)) if self.rng.random() < 0.3 else len(steps)  # a drop-out
        states, actions, outcomes = map(np.array, zip(*steps[:seen_until], strict=True))
        return states, actions, outcomes

    def reward(self, kind: str, forecast: float, fact: float, t: int, coin: float) -> float:
        """Return a reward; `coin` is one draw for the whole episode."""
        return float(
            {
                "against": forecast < 0.5,
                "excluded": coin < 0.5,
                "alternating": t % 2,
                "anything": self.rng.random(),
                "member": fact,
            }[kind]
        )

    def next_state(self, kind: str, forecast: Any, fact: Any, t: int, coin: float) -> int:
        """Return a next state: the least likely of those not excluded, of all, ..., or a draw from a member's row."""
        possible = np.flatnonzero(forecast > 0.0)
        return int(
            {
                "against": possible[np.argmin(forecast[possible])],
                "excluded": np.argmin(forecast),
                "alternating": possible[t % len(possible)],
                "anything": self.rng.integers(self.size.states) if coin < 0.5 else coin * self.size.states,
                "member": self.rng.choice(len(fact), p=fact / fact.sum()),
            }[kind]
        )
