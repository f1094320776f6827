"""The ledger of a run: one row per episode, exact."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omg_cmdp.contexts import Context, context_from_json, context_to_json
from omg_cmdp.misfit.judgement import Misfit, sentence
from omg_cmdp.persistence import State, read_state
from omg_cmdp.runs.ceilings import ceiling_line
from omg_cmdp.runs.pictures import draw_ledger
from omg_cmdp.theory.ceiling.ceiling import DELTA
from omg_cmdp.theory.ceiling.largest import Loss
from omg_cmdp.theory.rounds import Round
from omg_cmdp.validation import UNEXPECTED, FloatArray, instance_of, one_of

if TYPE_CHECKING:
    import pandas


class Row(NamedTuple):
    """The exact numbers of one episode; nan where an agent has no such thing."""

    regret: float
    value: float
    optimal_value: float
    return_: float
    gamma: float
    tuples: float
    certificate: float
    iterations: float
    optimum_error: float
    plan_gap: float
    policy_error: float
    exploration: float
    best_policy_regret: float
    reward_error: float
    dynamics_error: float
    reward_loss: float
    dynamics_loss: float
    delay: float
    ceiling: float
    settled: float
    cost: float
    budget: float
    violation: float
    price: float
    seconds_deciding: float
    seconds_playing: float
    seconds_learning: float
    seconds_accounting: float


COLUMNS = tuple(name.rstrip("_") for name in Row._fields)  # `return` is a keyword


def row_of(
    this: Round, charged: tuple[float, float], late: int, seconds: tuple[float, float, float, float], lost: Loss | None
) -> Row:
    """Return the row of a round: with what its oracles were charged, its delay, the time it took, and its ceiling."""
    decision, optimum = this.decision, this.optimal_value
    return Row(
        optimum - this.value,
        this.value,
        optimum,
        sum(this.played.rewards.tolist()),
        decision.gamma,
        np.nan if decision.occupancy is None else float(np.count_nonzero(decision.occupancy)),
        decision.certificate,
        decision.iterations,
        *this.differences,
        this.exploration,
        this.best_policy_regret,
        *this.errors,
        *charged,
        float(late),
        *((math.nan, math.nan) if lost is None else lost[:2]),
        *_spending(this),
        *seconds,
    )


def _spending(this: Round) -> tuple[float, float, float, float]:
    """Return cost, budget, violation and price of a round; nan without budgets."""
    prices = this.decision.prices
    if not this.budgets.size:
        return math.nan, math.nan, math.nan, math.nan if prices is None else float(prices.max())
    excess = this.costs - this.budgets
    worst = int(excess.argmax())
    price = math.nan if prices is None else float(prices[worst])
    return float(this.costs[worst]), float(this.budgets[worst]), max(float(excess[worst]), 0.0), price


class Ledger:
    """The record of a run by episodes. `regret` is V*(c) - V^π(c) of the policy played, computed, not estimated.

    `optimum_error`, `plan_gap` and `policy_error` are the three value differences that sum to the regret;
    `reward_error` and `dynamics_error` are Σ q·(f̂ - f*)² and Σ q·D²(P̂, P*) under the true occupancy q.

    `delay` is the number of episodes after which the agent learns from this one: in a ledger of T episodes, those with
    episode + delay > T are still under way. `reward_loss` and `dynamics_loss` are what the oracles were charged for all
    feedback that arrived after this episode, in the order in which it arrived.

    Is it time to stop exploring? With π̂ the optimum of the agent's model (`Agent.best_policy`), V̂ values in that model:

        exploration         V̂^π̂ - V̂^π >= 0  how far below its own model's best the agent plays
        best_policy_regret  V* - V^π̂ >= 0   what π̂ would lose: what is not known yet

    The rest of the regret, V^π̂ - V^π, is the price of exploring; negative if the model errs in favour of π̂. `print`
    says this of a ledger in words.

    Parameters
    ----------
    judge : callable, optional
        The agent's `misfit`, which is called when the ledger is printed.

    `ceiling` is what the episode has cost at most, given all that was known before it, with confidence 1 - δ for all
    episodes at once (`RegretCeiling`); `settled` is the share of its decisions on which all plausible models agree.
    Both are nan unless `simulate` was asked for them.

    In a world that declares `costs` and `budgets`, regret is that against the best policy that keeps them, and below 0
    only where a policy does not. `cost` is the exact expected cost of the policy played, `budget` what it may cost,
    `violation` by how much it exceeds that, and `price` the agent's λ; of several budgets, those of the one that is
    exceeded most, or least below. The first three are nan in a world without budgets, `price` for an agent without.

    Examples
    --------
    >>> print(Ledger())  # `simulate` returns one with episodes
    no episodes
    """

    def __init__(self, judge: Callable[[], Misfit | None] | None = None) -> None:
        self.contexts: list[Context] = []
        self._rows: list[Row] = []
        self._forgotten = 0
        self.interrupted = False
        """Whether Ctrl-C ended the simulation before its last episode."""
        self.delta = DELTA
        """The probability with which the column `ceiling` may fail."""
        self._judge = judge

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def episodes(self) -> int:
        """The number of episodes so far, including those that were drained."""
        return self._forgotten + len(self._rows)

    def drain(self) -> Ledger:
        """Return all rows as a ledger of their own and forget them, so that a long run needs no more memory."""
        drained = copy.copy(self)
        self._forgotten = self.episodes
        self._rows, self.contexts = [], []
        return drained

    def add(self, context: Context, row: Row) -> None:
        """Append one episode."""
        instance_of("row", row, Row)
        self._rows.append(row)
        self.contexts.append(context)

    def column(self, name: str) -> FloatArray:
        """Return one column, (T,)."""
        one_of("name", name, COLUMNS)
        place = COLUMNS.index(name)
        return np.array([row[place] for row in self._rows], dtype=np.float64)

    @property
    def regret(self) -> FloatArray:
        """The exact regret of every episode, (T,)."""
        return self.column("regret")

    def __str__(self) -> str:
        """Return what was lost, how much of it for exploring, and how far below its model's best the agent plays."""
        if not self._rows:
            return "no episodes"
        # Rounded, so that sums of differences that are zero are shown as zero.
        regret, unknown = (round(self.column(name).sum(), 9) for name in ("regret", "best_policy_regret"))
        text = f"{len(self)} episodes{', then interrupted,' * self.interrupted} lost {regret:.3g}"
        most = ceiling_line(self.column("ceiling"), self.column("settled"), self.delta) + self._budget_line()
        if unknown != unknown:
            return f"{text}; the agent has no model{'.' * bool(most)}{most}"
        misfit = None if self._judge is None else sentence(self._judge())
        last = -(-len(self) // 10)
        below = round(self.column("exploration")[-last:].mean(), 9)
        return (
            f"{text}: {unknown:.3g} for what is not known yet, which `best_policy` would have lost too, and "
            f"{regret - unknown:.3g} for exploring. In the last {last} the agent played {below:.2g} an episode below "
            f"the best policy of its own model.{most}{'' if misfit is None else f' {misfit}'}"
        )

    def _budget_line(self) -> str:
        """Return what episodes cost, and by how much budgets were exceeded, as a sentence; empty without budgets."""
        cost, budget, excess, price = (self.column(name) for name in ("cost", "budget", "violation", "price"))
        if not np.isfinite(cost).any():
            against = " The world declares no budgets, so regret is against policies that need not keep the agent's."
            return against if np.isfinite(price).any() else ""
        above = np.count_nonzero(excess > 1e-6 * np.abs(budget).max())
        spent = f"{cost.mean():.3g} an episode, of a budget of {budget.mean():.3g}"
        return f" Policies cost {spent}; {above} exceeded it, by {excess.sum():.3g} in all."

    def __repr__(self) -> str:
        return f"Ledger: {self}"

    def plot(self) -> Any:
        """Return a figure of matplotlib: cumulative regret, and what episodes earned beside the best possible."""
        return draw_ledger(self)

    def table(self) -> pandas.DataFrame:
        """Return a data frame with a row per episode, indexed by the episode, counted from 1."""
        import pandas

        index = pandas.RangeIndex(self._forgotten + 1, self.episodes + 1, name="episode")
        return pandas.DataFrame(self.rows(), columns=list(COLUMNS), index=index)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything, for a checkpoint."""
        contexts = np.array([context_to_json(context) for context in self.contexts], dtype=np.str_)
        return {"rows": self.rows(), "contexts": contexts, "forgotten": np.array(self._forgotten)}

    def rows(self) -> FloatArray:
        """Return a row per episode, (T, columns)."""
        return np.array(self._rows, dtype=np.float64).reshape(-1, len(COLUMNS))

    def load_state(self, state: State) -> None:
        """Load what `state` returned."""
        arrays = read_state(state)
        try:
            rows = [Row(*row) for row in arrays["rows"].tolist()]
            contexts = [context_from_json(text) for text in arrays["contexts"].tolist()]
            forgotten = int(arrays["forgotten"])
        except (*UNEXPECTED, ValueError) as error:
            raise ValueError(f"`state` must be that of a ledger, got {error!r}") from error
        self._rows, self.contexts, self._forgotten = rows, contexts, forgotten
