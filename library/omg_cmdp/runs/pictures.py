"""Pictures of ledgers and advice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from omg_cmdp.drawing import COLOURS, INK, picture
from omg_cmdp.runs.display import context_in_words
from omg_cmdp.validation import FloatArray

if TYPE_CHECKING:
    from omg_cmdp.runs.advice import Advice
    from omg_cmdp.runs.ledger import Ledger

BLOCKS, POINTS = 40, 1000
"""The number of blocks of episodes whose means are drawn, and of points of a cumulative curve."""
MOST_STEPS, MOST_STATES = 12, 6


def draw_ledger(ledger: Ledger) -> Any:
    """Return a figure: what was lost in all, and what was earned in an episode, as the agent learned."""
    if not len(ledger):
        raise ValueError("the ledger has no episodes yet; `simulate` returns one that has")
    last = np.arange(ledger.episodes - len(ledger) + 1, ledger.episodes + 1)
    exact = bool(np.isfinite(ledger.regret).all())
    with picture(columns=1 + exact, width=3.6 * (1 + exact), height=2.9) as (drawn, ((*first, second),)):
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


def draw_advice(advice: Advice, state_names: Sequence[str] = (), action_names: Sequence[str] = ()) -> Any:
    """Return a figure: how likely each action is, by step and state, and how sure the agent is of the best one."""
    table = advice.table(state_names, action_names)  # refuses names that do not fit
    visits = np.zeros(len(advice.states)) if advice.visits is None else advice.visits.sum(axis=0)
    rows = np.sort(np.argsort(-visits, kind="stable")[:MOST_STATES])
    steps = advice.steps[:MOST_STEPS]
    names = table["state"].to_numpy().reshape(len(advice.steps), len(advice.states))[0]
    actions = [str(name) for name in action_names] or [f"action {a}" for a in range(advice.policy.shape[2])]
    width, height = max(4.0, 1.8 + 0.55 * len(steps)), 1.2 + 0.85 * len(rows) + 0.2 * (len(actions) // 4)
    with picture(max(len(rows), 1), width=width, height=height, sharex=True) as (drawn, grid):
        for (axes,), row in zip(grid, rows, strict=True):
            _draw_state(axes, advice, row, len(steps), actions)
            name = names[row] if state_names else f"state {names[row]}"
            axes.set_ylabel(name, rotation=0, ha="right", va="center")
        grid[-1, 0].set(xlabel="step", xticks=range(len(steps)), xticklabels=steps)
        drawn.suptitle(_title(advice), x=0.02, ha="left", fontsize=9.5)
        handles, labels = grid[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower left", ncols=4)
    return drawn


def _draw_state(axes: Any, advice: Advice, row: int, steps: int, actions: Sequence[str]) -> None:
    below = np.zeros(steps)
    for action, name in enumerate(actions[: advice.policy.shape[2]]):
        height = advice.policy[:steps, row, action]
        axes.bar(range(steps), height, 0.8, below, color=COLOURS[action % len(COLOURS)], alpha=0.8, label=name)
        below += height
    for step in range(steps if advice.sure is not None else 0):
        axes.text(step, 1.04, f"{advice.sure[step, row]:.0%}", ha="center", va="bottom", fontsize=8.5)  # type: ignore
    axes.set(ylim=(0, 1.25), yticks=[0, 1], xlim=(-0.6, steps - 0.4))
    axes.grid(visible=False)


def _title(advice: Advice) -> str:
    sure = "; above, how sure the agent is" if advice.sure is not None else ""
    return f"Probabilities of actions{sure}\ncontext {context_in_words(advice.context)}"
