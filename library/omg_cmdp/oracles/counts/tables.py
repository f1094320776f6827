"""Tables of counts, for all contexts together or one for each of a list: running means, and Krichevsky-Trofimov.

Forecasts of temper τ (1: textbook, H: proven), n the number of visits of a pair, docs/oracles.md, Theorems 2 and 3:

    rewards    ½ + Σ(r - ½)/(n + 2τ)       regret <= (H/4)·Σ [1 + log(1 + T')]
    dynamics   (n(s') + ατ)/(n + ατ·K)     regret <= H·Σ log[Γ(α)·Γ(T' + αK)/(Γ(αK)·Γ(T' + α))] if α >= ½

The sums run over all pairs (of all tables), and T' is T divided by their number. K is the number of next states that
the support admits.
"""

from __future__ import annotations

from collections.abc import Iterable

from omg_cmdp.contexts import Context, Listing
from omg_cmdp.oracles.forecasters import Forecasters
from omg_cmdp.oracles.rates import Rate


class CountTables(Forecasters):
    """One table for all contexts, or one for each of those that are listed."""

    rate: Rate

    def __init__(self, contexts: Iterable[Context] | None, rate: Rate, *, count: int | None = None) -> None:
        super().__init__(rate.horizon, rate, count=count)
        self._listing = None if contexts is None else Listing(contexts)
        self.contexts = None if self._listing is None else self._listing.contexts
        self.settings = () if self._listing is None else (f"contexts {self._listing}",)

    def prepare(self, context: Context) -> int:
        """Return the number of the context's table."""
        return 0 if self._listing is None else self._listing.number(context)
