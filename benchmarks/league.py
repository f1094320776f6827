"""`python -m benchmarks.league`: every agent on every world and adversary, each with its constant tuned on other seeds.

Runs are kept in benchmarks/results and not played again. `--summary` only prints the tables.

All agents have finite classes around the truth at the guarded rate (the product class on the lower-bound instance), or
offline fits of the same classes. UCBVI and the GLMs have their own models: tables, and the features of contexts.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks.grid import Agents, arguments, finished, grid, markdown
from omg_cmdp.environments import World
from omg_cmdp.studies.catalogue import build_world
from omg_cmdp.studies.plan import Task
from omg_cmdp.studies.results import Results

TUNING_SEEDS, TUNING_EPISODES = range(100, 102), 1000
OWN_SECONDS = ["seconds_deciding", "seconds_learning"]
NEARLY_NOTHING = 1.0
"""Added to both sides of a ratio of regrets: below it, differences are luck."""


class Entry(NamedTuple):
    """A kind of agent, its options with a constant, and the constants to choose from; none if nothing is tuned."""

    kind: str
    options: Callable[[float], dict[str, Any]] = lambda constant: {}
    constants: tuple[float, ...] = ()
    plays: Callable[[World], bool] = lambda world: True
    """In which worlds."""


def _root(constant: float) -> dict[str, Any]:
    """Return the schedule γ_t = constant·√t."""
    return {"gamma": {"scale": constant, "exponent": 0.5}}


def _scale(constant: float) -> dict[str, Any]:
    return {"scale": constant}


def _is_bandit(world: World) -> bool:
    return world.space.horizon == 1


def _has_vectors(world: World) -> bool:
    return isinstance(world.contexts[0], np.ndarray)


ROOTS = (10.0, 30.0, 100.0, 300.0, 1000.0)
BONUSES = (0.003, 0.01, 0.03, 0.1, 0.3)
SMALL_BONUSES = (0.001, 0.003, 0.01, 0.03, 0.1)
SHARES = (0.03, 0.1, 0.3, 1.0, 3.0)

ENTRIES: dict[str, Entry] = {
    "OMG": Entry("omg"),
    "OMG, root": Entry("omg", _root, ROOTS),
    "OMG by epochs": Entry("epoch_omg", _scale, ROOTS),
    "PC-IGW": Entry("pc_igw", _root, ROOTS),
    "PC-IGW by epochs": Entry("epoch_pc_igw", _scale, ROOTS),
    "UC3RL": Entry("uc3rl", _scale, SMALL_BONUSES),
    "RM-UCDD": Entry("uc3rl", lambda c: {"counts": "policy", "scale": c}, SMALL_BONUSES),
    "GLM-ORL": Entry("glm_orl", _scale, SMALL_BONUSES),
    "GLM-RLSVI": Entry("glm_rlsvi", _scale, (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)),
    "UCBVI, blind": Entry("ucbvi", lambda c: {"cover": "blind", "scale": c}, BONUSES),
    "UCBVI per context": Entry("ucbvi", lambda c: {"cover": "per_context", "scale": c}, BONUSES),
    "UCBVI per ball": Entry(
        "ucbvi", lambda c: {"cover": "per_ball", "radius": c, "scale": 0.03}, (0.1, 0.2, 0.4, 0.8, 1.6), _has_vectors
    ),
    "UCBVI by clusters": Entry("ucbvi", lambda c: {"cover": "clusters", "scale": c}, BONUSES, _has_vectors),
    "posterior sampling": Entry("posterior_sampling"),
    "feel-good sampling": Entry("feel_good", lambda c: {"optimism": c}, SHARES, lambda world: not world.product_class),
    "greedy": Entry("greedy"),
    "greedy, offline": Entry("greedy", lambda c: {"oracles": "offline"}),
    "ε-greedy": Entry("epsilon_greedy", lambda c: {"epsilon": {"scale": c, "exponent": -1.0 / 3.0}}, SHARES),
    "Boltzmann": Entry("boltzmann", _root, (0.3, 1.0, 3.0, 10.0, 30.0)),
    "local IGW": Entry("local_igw", _root, (3.0, 10.0, 30.0, 100.0, 300.0)),
    "entropy": Entry("occupancy_entropy", _root, (0.3, 1.0, 3.0, 10.0, 30.0)),
    "SquareCB": Entry("square_cb", _root, ROOTS, _is_bandit),
    "FALCON": Entry("falcon", _root, ROOTS, _is_bandit),
    "FastCB": Entry("fast_cb", _root, ROOTS, _is_bandit),
    "uniform": Entry("uniform"),
}


def _named(entry: str, constant: float | None) -> tuple[str, dict[str, Any]]:
    """Return the name of an entry with its constant, and what a study file says of it."""
    kind, options, *_ = ENTRIES[entry]
    name = entry if constant is None else f"{entry} {constant:g}"
    return name, {"kind": kind, **options(float("nan") if constant is None else constant)}


def _plays(task: Task) -> bool:
    names = ({_named(entry, constant)[0] for constant in (None, *ENTRIES[entry].constants)} for entry in ENTRIES)
    owner = next(entry for entry, known in zip(ENTRIES, names, strict=True) if task.agent.name in known)
    return ENTRIES[owner].plays(_world(task.world.kind))


@functools.cache
def _world(kind: str) -> World:
    return build_world(kind, {}, seed=0, episodes=TUNING_EPISODES)


def tuned(results: Results) -> dict[str, float | None]:
    """Return the constant of each entry: the one with the smallest geometric mean of regrets over the tuning runs."""
    logs = np.log(results.runs.set_index("agent")["regret"] + NEARLY_NOTHING).groupby("agent").mean()
    return {
        entry: min(constants, key=lambda constant: logs[_named(entry, constant)[0]]) if constants else None
        for entry, (_, _, constants, _) in ENTRIES.items()
    }


def table(results: Results, constants: dict[str, float | None]) -> pd.DataFrame:
    """Return the runs, with the constant of the agent and its own microseconds: all episodes, early and late ones."""
    rows = []
    for run in results.runs.to_dict("records"):
        own = 1e6 * results.log_of(run["run"], columns=OWN_SECONDS).sum(axis=1).to_numpy()
        tenths = np.array_split(own, 10)
        times = zip(("µs", "µs early", "µs late"), (own, tenths[1], tenths[-1]), strict=True)
        constant = constants[run["agent"]]
        medians = {name: float(np.median(part)) for name, part in times}
        rows.append({**run, **medians, "constant": "" if constant is None else f"{constant:g}"})
    return pd.DataFrame(rows)


def summary(runs: pd.DataFrame) -> str:
    """Return the league table, and the mean regret by world and adversary."""
    regret = runs.pivot_table(index=["world", "adversary"], columns="agent", values="regret", sort=False)
    ratio = (regret + NEARLY_NOTHING).div(regret.min(axis=1) + NEARLY_NOTHING, axis=0)
    league = pd.DataFrame(
        {
            "constant": runs.groupby("agent")["constant"].first(),
            "ratio, geometric mean": np.exp(np.log(ratio).mean()).round(2),
            "worst ratio": ratio.max().round(1),
            "mean rank": regret.rank(axis=1).mean().round(1),
            "mean regret": regret.mean().round(1),
            **{name: runs.groupby("agent")[name].mean().round() for name in ("µs", "µs early", "µs late")},
            "scenarios": regret.count(),
        }
    ).sort_values("ratio, geometric mean")
    return markdown(league.reset_index()) + "\n\n" + markdown(regret[league.index].round(1).reset_index())


def main() -> None:
    """Tune, run and summarise."""
    asked = arguments("league", __doc__)
    how: dict[str, Any] = {"workers": asked.workers, "plays": _plays, "run": not asked.summary}
    to_tune: Agents = dict(_named(name, constant) for name, entry in ENTRIES.items() for constant in entry.constants)
    tuning = finished(grid("league", to_tune, seeds=TUNING_SEEDS, episodes=TUNING_EPISODES), "league-tuning", **how)
    constants = tuned(tuning)
    chosen: Agents = {entry: _named(entry, constant)[1] for entry, constant in constants.items()}
    final = finished(grid("league", chosen, seeds=asked.seeds, episodes=asked.episodes), "league", **how)
    seconds = pd.concat([tuning.runs["seconds"], final.runs["seconds"]])
    seeds, minutes = final.runs["seed"].nunique(), seconds.sum() / 60.0
    print(f"{seeds} seeds, T = {asked.episodes}; {len(seconds)} runs, {minutes:.0f} minutes of one core\n")
    print(summary(table(final, constants)))


if __name__ == "__main__":
    main()
