"""Ledgers and advice as texts of a few lines, and as HTML for notebooks."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.records import plain

if TYPE_CHECKING:
    from omg_cmdp.runs.advice import Advice
    from omg_cmdp.runs.ledger import Ledger

LINES, ROWS = 3, 12
"""The most rows of an advice in a text, and in HTML."""
SUMMARY = ("regret", "value", "optimal_value", "return", "exploration")
"""The columns of a ledger whose means HTML shows."""


def context_in_words(context: Context) -> str:
    """Return a context as a short text."""
    context = tuple(map(plain, context)) if isinstance(context, tuple) else context
    return f"{context.round(2) if isinstance(context, np.ndarray) and context.dtype.kind == 'f' else context!r:.60}"


def advice_text(advice: Advice) -> str:
    """Return the choices of the places visited most, one on each line."""
    table = _table(advice)
    lines = [f"Advice for context {context_in_words(advice.context)}"]
    for row in table.head(LINES).to_dict("records"):
        best = f"step {row['step']}, state {row['state']}: action {row['action']} with {row['probability']:.0%}"
        lead = "" if advice.lead is None else f", worth {row['lead']:.2g} more than action {row['runner_up']}"
        lines.append(best + lead + ("" if advice.sure is None else f", {row['sure']:.0%} sure"))
    if len(table) > LINES:
        lines.append(f"and {len(table) - LINES} more places, which `table()` lists and `plot()` draws")
    if advice.prices is not None:
        worth = " and ".join(f"{price:.2g}" for price in advice.prices)
        several = "the budget" if len(advice.prices) == 1 else "each budget"
        lines.append(f"one unit more of {several} would be worth {worth} in rewards")
    return "\n  ".join([*lines, *([] if advice.misfit is None else [advice.misfit])])


def advice_html(advice: Advice) -> str:
    """Return a table of the places visited most."""
    table = _table(advice)
    rest = len(table) - ROWS
    below = f"<p>and {rest} more places, which <code>table()</code> lists</p>" if rest > 0 else ""
    misfit = "" if advice.misfit is None else f"<p>{html.escape(advice.misfit)}</p>"
    above = f"<p>Advice for context {html.escape(context_in_words(advice.context))}</p>"
    return above + str(table.head(ROWS).to_html(index=False, float_format="{:.3g}".format, na_rep="")) + below + misfit


def _table(advice: Advice) -> Any:
    table = advice.table().dropna(axis="columns", how="all")
    return table if advice.visits is None else table.sort_values("visits", ascending=False, kind="stable")


def ledger_html(ledger: Ledger) -> str:
    """Return the sentence of a ledger, and a table of means over its first and last tenth, and over all episodes."""
    above = f"<p>{html.escape(str(ledger))}</p>"
    if not len(ledger):
        return above
    table, tenth = ledger.table()[list(SUMMARY)].dropna(axis="columns", how="all"), -(-len(ledger) // 10)
    parts = {f"first {tenth}": table.head(tenth), f"last {tenth}": table.tail(tenth), f"all {len(table)}": table}
    means = type(table)({name: part.mean() for name, part in parts.items()}).T
    return above + str(means.rename_axis(columns="mean of episodes").to_html(float_format="{:.4g}".format))
