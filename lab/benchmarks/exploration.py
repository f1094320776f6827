"""`python -m lab.benchmarks.exploration`: γ on every world and adversary, against the best fixed γ.

Runs are kept in benchmarks/results and not played again. `--summary` only prints the tables. `--worlds lock` plays only
there: more seeds of a cell tell chance from a difference.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from .grid import Parts, finished, grid, markdown, parser, preset, seeds

FIXED = {f"γ = {10.0**k:.0e}": 10.0**k for k in range(3, 9)}
AGENTS: Parts = {
    "OMG": {"kind": "omg"},
    "greedy": {"kind": "greedy"},
    "posterior sampling": {"kind": "posterior_sampling"},
    **{name: {"kind": "omg", "gamma": gamma} for name, gamma in FIXED.items()},
}

HARD = ("lock", "decoy")


def summary(runs: pd.DataFrame) -> str:
    """Return the mean regret by world and adversary, and the ratios to the best fixed γ and to posterior sampling."""
    place = ["world", "adversary"]
    regret = runs.pivot_table(index=place, columns="agent", values="regret", sort=False)[list(AGENTS)]
    own = runs[runs["agent"] == "OMG"].groupby(place, sort=False)
    best = regret[list(FIXED)].min(axis=1)
    means = (
        regret[["OMG", "greedy", "posterior sampling"]]
        .round(1)
        .assign(
            **{
                "best fixed γ": best.round(1).astype(str) + " (" + regret[list(FIXED)].idxmin(axis=1) + ")",
                "last half of OMG": (own["regret_last_half"].sum() / own["regret"].sum().clip(1e-12)).map(
                    "{:.0%}".format
                ),
            }
        )
    )
    ratios = {
        "best fixed γ": regret.div(best, axis=0),
        "posterior sampling": regret.div(regret["posterior sampling"], axis=0),
    }
    columns = {}
    for name, ratio in ratios.items():
        columns[f"over {name}: geometric mean"] = np.exp(np.log(ratio).mean()).round(2)
        columns[f"worst over {name}"] = ratio.max().round(2)
    return markdown(means.reset_index()) + "\n\n" + markdown(pd.DataFrame(columns).reset_index())


def over_greedy(runs: pd.DataFrame) -> str:
    """Return OMG's regret over greedy's where greedy never finds out, under each adversary."""
    regret = runs.pivot_table(index=["world", "adversary"], columns="agent", values="regret", sort=False)
    ratio = (regret["OMG"] / regret["greedy"]).unstack("adversary")
    return markdown(ratio.loc[[world for world in HARD if world in ratio.index]].round(4).reset_index())


def main() -> None:
    """Run and summarise."""
    content = preset("exploration")
    command = parser("exploration", __doc__)
    command.add_argument("--worlds", nargs="+", choices=tuple(content["worlds"]), default=list(content["worlds"]))
    asked = command.parse_args()
    plan = grid(content, AGENTS, seeds=seeds(asked.seeds), episodes=asked.episodes)
    runs = finished(
        plan,
        "exploration",
        workers=asked.workers,
        plays=lambda task: task.world.name in asked.worlds,
        run=not asked.summary,
    ).runs
    print(f"Mean regret of {runs['seed'].nunique()} seeds, T = {asked.episodes}\n\n{summary(runs)}")
    print(f"\nOMG over greedy:\n\n{over_greedy(runs)}")


if __name__ == "__main__":
    main()
