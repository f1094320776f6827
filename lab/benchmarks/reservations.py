"""What is known to be unfair in the league, for the top of its page; what can be computed comes from the table."""

from __future__ import annotations

import numpy as np
import pandas as pd

from .standings import NEARLY_NOTHING

EQUALLY_TOLD = ("river swim", "deep sea", "noisy room", "corridor", "treatment", "cliff", "arms 10", "arms 50")
"""The worlds of learned tables in which OMG's oracles know no more than an agent that counts."""
COUNTING = ("UCBVI-BF", "UCBVI per context", "MVP")
CLOSE = ("greedy", "OMG, root", "entropy", "Boltzmann", "PC-IGW", "UC3RL", "regularised IDS")
TUNED, AT_AN_END = 35, 21
"""How many agents have a constant, and for how many the choice is an end of a grid; `test_league.py` counts them."""
BOX = """\
**What is known to be unfair in this league.** It is to be played anew. Until then no first place on this page stands,
neither OMG's nor any other.

- **Unequal information.** Agents that count for themselves (UCBVI, UCBVI-BF, MVP, RLSVI, Rmax) were not told what
  OMG's oracles were told: known rewards, known dynamics, features. On the eight worlds where all are told the same
  ({worlds}) OMG loses {told} times what {counting} lose. Over all worlds the table of learned tables prints {printed}.
- **Grids that are too narrow.** {ends} of {tuned} tuned agents have a constant at an end of a grid. One step beyond
  it, UCCB loses 19 where it lost 202 (measured apart).
- **Constants that were never used.** The tuning runs of OLIVE and witness rank were over before their constant
  mattered. With one that was tried in whole runs OLIVE loses 133 in place of 815, and 78 in place of 460 on the lock
  (measured apart).
- **VIDS with few draws.** Nearly every drawn model has a best policy of its own, so that what it calls information is
  plain variance.
- **Unequal tuning.** The constants of OMG's default (the share of exploration, the estimator, pairs, plans) were chosen
  on these worlds at full length; a rival's constant on two seeds and a quarter of the episodes.
- **A test of too little.** For bold, every seed of a world counts as if it were a world of its own. With worlds as the
  units, nothing separates OMG from these on learned tables: {close}.
- **Agents that left.** The runs of [ten agents](rivals.md) were taken out; some of them had been the best of a cell.
- **Another default.** OMG was played with version 3 of its rule, and linear and softmax oracles without a constant;
  [version 4](exploration.md) draws and divides otherwise."""


def reservations(rows: pd.DataFrame) -> str:
    """Return the box, for rows as the table has them."""
    runs = rows[(rows["league"] == "learned") & (rows["delay"] == 0)]
    logs = log_ratios(runs)
    there, equal = [each for each in COUNTING if each in logs], logs[logs.index.isin(EQUALLY_TOLD)]
    text = BOX.format(
        worlds=", ".join(EQUALLY_TOLD),
        told=_listed([f"{np.exp(equal[each].mean()):.2f}" for each in there]),
        counting=_listed(there),
        printed=_listed([f"{np.exp(logs[each].mean()):.2f}" for each in there]),
        ends=AT_AN_END,
        tuned=TUNED,
        close=", ".join(f"{each} ({_compared(logs[each].dropna())})" for each in CLOSE if each in logs),
    )
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())


def log_ratios(runs: pd.DataFrame, ours: str = "OMG") -> pd.DataFrame:
    """Return the mean of log (R of OMG + 1)/(R of a rival + 1) in each world: a row for each world."""
    regret = runs.pivot_table(index=["world", "adversary", "seed"], columns="agent", values="regret")
    logs = np.log(regret + NEARLY_NOTHING)
    return logs.rsub(logs[ours], axis=0).drop(columns=ours).groupby("world").mean()


def _compared(logs: pd.Series[float]) -> str:
    """Return the ratio, and the p-value of a sign-flip test with worlds as the units."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (20_000, len(logs)))
    p = float((np.abs(signs @ logs) >= abs(logs.sum()) - 1e-9).mean())
    return f"{np.exp(logs.mean()):.2f}, p = {p:.2f}"


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), *words[-1:]] if len(words) > 1 else words)
