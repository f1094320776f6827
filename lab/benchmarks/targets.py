"""`python -m lab.benchmarks.targets`: three small worlds in which an exploration rule shows what it pays for.

A noisy room whose rewards are known (nothing is worth exploring), a decoy whose errors add over 100 steps, and ten arms
with a fixed gap, where four times the episodes should cost little more. Mean regret over seeds of the default,
posterior sampling and greedy, with counts. Runs are kept in benchmarks/results and not played again.
"""

from __future__ import annotations

import pandas as pd

from .cells import BANDIT, LEARNED
from .grid import Parts, finished, grid, markdown, parser, seeds

AGENTS: Parts = {"OMG": {"kind": "omg"}, "posterior sampling": {}, "greedy": {}}
ARMS = {"kind": "arms", "actions": 10, "context_count": 1, "oracles": BANDIT}
SHORT, LONG = "ten arms, T = 1000", "ten arms, T = 4000"
WORLDS: Parts = {
    "noisy room, known rewards, T = 400": {**LEARNED["noisy room, known rewards"].world, "episodes": 400},
    "long decoy, H = 100, T = 400": {**LEARNED["long decoy 100"].world, "episodes": 400},
    SHORT: {**ARMS, "episodes": 1000},
    LONG: {**ARMS, "episodes": 4000},
}


def summary(runs: pd.DataFrame) -> str:
    """Return the mean regret, and what four times the episodes cost on the arms."""
    regret = runs.pivot_table(index="world", columns="agent", values="regret", sort=False)[list(AGENTS)]
    regret.loc["ten arms, four times the episodes"] = regret.loc[LONG] / regret.loc[SHORT]
    return markdown(regret.round(2).reset_index())


def main() -> None:
    """Run and print the table."""
    asked = parser("targets", __doc__, episodes=4000).parse_args()
    agents = {name: {"kind": name.replace(" ", "_"), **table} for name, table in AGENTS.items()}
    content = {"name": "targets", "worlds": WORLDS}
    plan = grid(content, agents, seeds=seeds(asked.seeds), episodes=asked.episodes)
    runs = finished(plan, "targets", workers=asked.workers, run=not asked.summary).runs
    print(f"Mean regret of {runs['seed'].nunique()} seeds\n\n{summary(runs)}")


if __name__ == "__main__":
    main()
