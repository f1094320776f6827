"""Pictures of ledgers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from omg_cmdp.drawing import COLOURS, INK, picture
from omg_cmdp.validation import FloatArray

if TYPE_CHECKING:
    from omg_cmdp.runs.ledger import Ledger

BLOCKS, POINTS = 40, 1000
"""The number of blocks of episodes whose means are drawn, and of points of a cumulative curve."""


def draw_ledger(ledger: Ledger) -> Any:
    """Return a figure: what was lost in all, and what was earned in an episode, as the agent learned."""
    if not len(ledger):
        raise ValueError("the ledger has no episodes yet; `simulate` returns one that has")
    last = np.arange(ledger.episodes - len(ledger) + 1, ledger.episodes + 1)
    exact = bool(np.isfinite(ledger.regret).all())
    with picture(1 + exact) as (drawn, (*first, second)):
        if exact:
            _draw_regret(first[0], ledger, last)
        _draw_earnings(second, ledger, last, exact)
    return drawn


def _draw_regret(axes: Any, ledger: Ledger, episodes: Any) -> None:
    shown = np.unique(np.linspace(0, len(episodes) - 1, min(POINTS, len(episodes))).round().astype(int))
    total, unknown = (np.cumsum(ledger.column(name))[shown] for name in ("regret", "best_policy_regret"))
    axes.plot(episodes[shown], total, color=COLOURS[0], label="regret")
    if np.isfinite(unknown).all():
        axes.plot(
            episodes[shown], unknown, color=COLOURS[1], linestyle=(0, (5, 1.5)), label="for what is not known yet"
        )
        above = total >= unknown
        axes.fill_between(episodes[shown], unknown, total, where=above, color=COLOURS[0], alpha=0.12, linewidth=0.0)
    axes.set(xlabel="episode", ylabel="cumulative regret, in rewards", title="Lost in all", xlim=(0, episodes[-1]))
    axes.set_ylim(0.0, None)
    axes.legend(loc="best")


def _draw_earnings(axes: Any, ledger: Ledger, episodes: Any, exact: bool) -> None:
    edges = np.array_split(np.arange(len(episodes)), min(BLOCKS, len(episodes)))
    at = [episodes[block].mean() for block in edges]

    def means(name: str) -> FloatArray:
        column = ledger.column(name)
        return np.array([column[block].mean() for block in edges])

    mark = {"marker": "o", "markersize": 3.0} if len(at) < BLOCKS else {}
    if exact:
        best, played = means("optimal_value"), means("value")
        axes.plot(at, best, color=INK, linestyle=(0, (1, 1.5)), label="the best possible")
        axes.plot(at, played, color=COLOURS[0], label="what was played", **mark)
        axes.fill_between(at, played, best, color=COLOURS[0], alpha=0.12, linewidth=0.0)
        axes.legend(loc="best")
    else:  # where the truth is unknown
        axes.plot(at, means("return"), color=COLOURS[0], **mark)
    title = f"{'Expected' if exact else 'Earned'} in an episode"
    title += f", means of {len(edges[0])}" if len(edges[0]) > 1 else ""
    axes.set(xlabel="episode", ylabel="sum of rewards", title=title, xlim=(0, episodes[-1]))
