"""Advice as a text of a few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from omg_cmdp.contexts import Context
from omg_cmdp.records import plain

if TYPE_CHECKING:
    from omg_cmdp.runs.advice import Advice

LINES = 3
"""The most rows of an advice in a text."""


def context_in_words(context: Context) -> str:
    """Return a context as a short text."""
    context = tuple(map(plain, context)) if isinstance(context, tuple) else context
    return f"{context.round(2) if isinstance(context, np.ndarray) and context.dtype.kind == 'f' else context!r:.60}"


def advice_text(advice: Advice) -> str:
    """Return the choices of the places visited most, one on each line."""
    table = advice.table()
    if advice.visits is not None:
        table = table.sort_values("visits", ascending=False, kind="stable")
    lines = [f"Advice for context {context_in_words(advice.context)}"]
    for row in table.head(LINES).to_dict("records"):
        best = f"step {row['step']}, state {row['state']}: action {row['action']} with {row['probability']:.0%}"
        lead = "" if advice.lead is None else f", worth {row['lead']:.2g} more than action {row['runner_up']}"
        lines.append(best + lead + ("" if advice.sure is None else f", {row['sure']:.0%} sure"))
    if len(table) > LINES:
        lines.append(f"and {len(table) - LINES} more places, which `table()` lists")
    if advice.prices is not None:
        worth = " and ".join(f"{price:.2g}" for price in advice.prices)
        several = "the budget" if len(advice.prices) == 1 else "each budget"
        lines.append(f"one unit more of {several} would be worth {worth} in rewards")
    return "\n  ".join([*lines, *([] if advice.misfit is None else [advice.misfit])])
