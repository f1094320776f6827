"""Tables of counts, for all contexts together or one for each of a list: running means, and Krichevsky-Trofimov.

Forecasts of temper τ (1: textbook, H: proven), n the number of visits of a pair, docs/oracles.md, Theorems 2 and 3:

    rewards    ½ + Σ(r - ½)/(n + 2τ)       regret <= (H/4)·Σ [1 + log(1 + T')]
    dynamics   (n(s') + ατ)/(n + ατ·K)     regret <= H·Σ log[Γ(α)·Γ(T' + αK)/(Γ(αK)·Γ(T' + α))] if α >= ½

The sums run over all pairs (of all tables), and T' is T divided by their number. K is the number of next states that
the support admits.
"""

from __future__ import annotations

from collections.abc import Iterable

from omg_cmdp.contexts import Context, label_index, table_label
from omg_cmdp.oracles.forecasters import Forecasters
from omg_cmdp.oracles.rates import Rate
from omg_cmdp.records import context_rows
from omg_cmdp.validation import listed


class CountTables(Forecasters):
    """One table for all contexts, or one for each of those that are listed."""

    rate: Rate

    def __init__(self, contexts: Iterable[Context] | None, rate: Rate, *, count: int | None = None) -> None:
        super().__init__(rate.horizon, rate, count=count)
        known = () if contexts is None else listed("contexts", context_rows("contexts", contexts))
        # Vectors and records cannot be hashed: their keys stand for them inside, and they themselves in `contexts`.
        labels = [table_label(context) for context in known]
        self._index = None if contexts is None else label_index(labels)
        self.contexts = None if contexts is None else tuple(dict(zip(labels, known, strict=True)).values())
        self.settings = () if self._index is None else (f"contexts {list(self._index)}",)

    def prepare(self, context: Context) -> int:
        """Return the number of the context's table."""
        if self._index is None:
            return 0
        try:
            return self._index[table_label(context)]
        # TypeError: a label that cannot be hashed is none of the list either.
        except (KeyError, TypeError):
            raise ValueError(f"`context` must be one of the {len(self._index)} listed, got {context!r}") from None
