"""`python -m benchmarks.league [finite|learned]`: every agent in every cell, its constant tuned on other seeds.

*finite*: all agents have finite classes around the truth at the guarded rate (the product class on the lower-bound
instance), or offline fits of the same classes. *learned*: counts, regressions and bases of kernels, the same for all
agents. UCBVI and the GLMs have their own models: tables, and the features of contexts. The cells are in `cells.py`.

Runs are kept in benchmarks/results and not played again. `--summary` only prints the tables. `--quick` plays a tenth of
the episodes, one seed, and no sorted contexts. `--only OMG greedy` plays these agents. With `--delay D` every agent
learns from an episode D episodes later; constants are tuned without delay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cells import LEAGUES, example
from benchmarks.grid import Parts, finished, grid, parser, seeds
from benchmarks.standings import NEARLY_NOTHING, at_the_end, summary, table
from omg_cmdp.agents.exploration import RULES
from omg_cmdp.environments import World
from omg_cmdp.studies.plan import Task
from omg_cmdp.studies.results import Results

TUNING_SEEDS = range(100, 102)
QUICK = 0.1
"""The share of the episodes that `--quick` plays."""


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


def _has_few_contexts(world: World) -> bool:
    return len(world.contexts) <= 30


def _has_few_vectors(world: World) -> bool:
    return _has_vectors(world) and len(world.contexts) <= 200


ROOTS = (10.0, 30.0, 100.0, 300.0, 1000.0)
BONUSES = (0.003, 0.01, 0.03, 0.1, 0.3)
SMALL_BONUSES = (0.001, 0.003, 0.01, 0.03, 0.1)
SHARES = (0.03, 0.1, 0.3, 1.0, 3.0)

BOTH: dict[str, Entry] = {
    "OMG": Entry("omg"),
    **({"OMG, uncertainty": Entry("omg", lambda c: {"gamma": "uncertainty"})} if "uncertainty" in RULES else {}),
    "OMG, root": Entry("omg", _root, ROOTS),
    "OMG by epochs": Entry("epoch_omg", _scale, ROOTS),
    "PC-IGW": Entry("pc_igw", _root, ROOTS),
    "PC-IGW by epochs": Entry("epoch_pc_igw", _scale, ROOTS),
    "UC3RL": Entry("uc3rl", _scale, SMALL_BONUSES, _has_few_contexts),  # a plan for each in an episode
    "RM-UCDD": Entry("uc3rl", lambda c: {"counts": "policy", "scale": c}, SMALL_BONUSES, _has_few_contexts),
    "UCBVI, blind": Entry("ucbvi", lambda c: {"cover": "blind", "scale": c}, BONUSES),
    "UCBVI per context": Entry("ucbvi", lambda c: {"cover": "per_context", "scale": c}, BONUSES),
    "UCBVI per ball": Entry(
        "ucbvi",
        lambda c: {"cover": "per_ball", "radius": c, "scale": 0.03},
        (0.1, 0.2, 0.4, 0.8, 1.6),
        _has_few_vectors,
    ),
    "UCBVI by clusters": Entry("ucbvi", lambda c: {"cover": "clusters", "scale": c}, BONUSES, _has_few_vectors),
    "posterior sampling": Entry("posterior_sampling"),
    "greedy": Entry("greedy"),
    "ε-greedy": Entry("epsilon_greedy", lambda c: {"epsilon": {"scale": c, "exponent": -1.0 / 3.0}}, SHARES),
    "Boltzmann": Entry("boltzmann", _root, (0.3, 1.0, 3.0, 10.0, 30.0)),
    "local IGW": Entry("local_igw", _root, (3.0, 10.0, 30.0, 100.0, 300.0)),
    "entropy": Entry("occupancy_entropy", _root, (0.3, 1.0, 3.0, 10.0, 30.0)),
    "SquareCB": Entry("square_cb", _root, ROOTS, _is_bandit),
    "FALCON": Entry("falcon", _root, ROOTS, _is_bandit),
    "FastCB": Entry("fast_cb", _root, ROOTS, _is_bandit),
    "uniform": Entry("uniform"),
}
# Learned tables ask for other constants in every cell: four, far apart.
LARGE = (30.0, 300.0, 3000.0, 30000.0)
TINY = (1e-5, 1e-4, 1e-3, 1e-2)
WIDE: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(
        ("OMG, root", "OMG by epochs", "PC-IGW", "PC-IGW by epochs", "SquareCB", "FALCON", "FastCB"), LARGE
    ),
    **dict.fromkeys(("Boltzmann", "entropy"), (3.0, 30.0, 300.0, 3000.0)),
    "local IGW": (10.0, 100.0, 1000.0, 10000.0),
    **dict.fromkeys(("UC3RL", "RM-UCDD"), TINY),
    **dict.fromkeys(("UCBVI, blind", "UCBVI per context", "UCBVI by clusters"), (1e-4, 1e-3, 1e-2, 1e-1)),
    "UCBVI per ball": (0.2, 0.6, 2.0, 6.0),
    "ε-greedy": (0.003, 0.03, 0.3, 3.0),
}
ENTRIES: dict[str, dict[str, Entry]] = {
    "finite": {
        **BOTH,
        "GLM-ORL": Entry("glm_orl", _scale, SMALL_BONUSES),
        "GLM-RLSVI": Entry("glm_rlsvi", _scale, (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)),
        "feel-good sampling": Entry(
            "feel_good", lambda c: {"optimism": c}, SHARES, lambda world: not world.product_class
        ),
        "greedy, offline": Entry("greedy", lambda c: {"oracles": "offline"}),
    },
    "learned": {
        **{name: entry._replace(constants=WIDE.get(name, ())) for name, entry in BOTH.items()},
        "GLM-ORL": Entry("glm_orl", _scale, TINY, _has_vectors),
        "GLM-RLSVI": Entry("glm_rlsvi", _scale, (1e-7, 1e-6, 1e-5, 1e-4), _has_vectors),
    },
}


def _named(name: str, entry: Entry, constant: float | None) -> tuple[str, dict[str, Any]]:
    """Return the name of an entry with its constant, and what a study file says of it."""
    options = entry.options(float("nan") if constant is None else constant)
    return name if constant is None else f"{name} {constant:g}", {"kind": entry.kind, **options}


def tuned(results: Results, entries: dict[str, Entry]) -> dict[str, float | None]:
    """Return the constant of each entry: the one with the smallest geometric mean of regrets over the tuning runs."""
    logs = np.log(results.runs.set_index("agent")["regret"] + NEARLY_NOTHING).groupby("agent").mean()
    return {
        name: min(entry.constants, key=lambda constant: logs[_named(name, entry, constant)[0]])
        if entry.constants
        else None
        for name, entry in entries.items()
    }


def players(league: str, first_seed: int, adversaries: tuple[str, ...]) -> Callable[[Task], bool]:
    """Return which runs are played: those of agents that can and may, under the adversaries of the cell."""
    cells, entries = LEAGUES[league].cells, ENTRIES[league]
    owners = {
        _named(name, entry, constant)[0]: name
        for name, entry in entries.items()
        for constant in (None, *entry.constants)
    }

    def plays(task: Task) -> bool:
        cell, owner = cells[task.world.name], owners[task.agent.name]
        if task.adversary.name not in cell.adversaries or task.adversary.name not in adversaries:
            return False
        if owner in cell.without or task.seed - first_seed >= cell.most_seeds:
            return False
        return entries[owner].plays(example(league, task.world.name))

    return plays


def main() -> None:
    """Tune, run and summarise."""
    command = parser("league", __doc__, episodes=None)
    command.add_argument("league", nargs="?", choices=tuple(LEAGUES), default="finite")
    command.add_argument("--quick", action="store_true", help="a tenth of the episodes, one seed, no sorted contexts")
    command.add_argument("--only", nargs="+", metavar="AGENT", help="these agents, with names as in the table")
    command.add_argument("--delay", type=int, default=0, metavar="D", help="feedback comes D episodes later")
    asked = command.parse_args()
    name, league = asked.league, LEAGUES[asked.league]
    entries = {each: entry for each, entry in ENTRIES[name].items() if not asked.only or each in asked.only}
    if unknown := set(asked.only or ()) - set(entries):
        command.error(f"--only must name agents of the {name} league, got {', '.join(sorted(unknown))}")
    share = QUICK if asked.quick else (asked.episodes or league.episodes) / league.episodes
    step, to_play = (2, range(1)) if asked.quick else (1, seeds(asked.seeds))
    folder = "league" if name == "finite" else f"league-{name}"
    if missing := league.missing():
        print(f"Left out, because their world is not in the catalogue: {', '.join(missing)}.\n")

    def finish(
        agents: Parts, chosen: range, share: float, folder: str, adversaries: tuple[str, ...], delay: int = 0
    ) -> Results:
        content, plays = {**league.content(share), "delay": delay}, players(name, chosen.start, adversaries)
        plan = grid(content, agents, seeds=chosen, episodes=content["episodes"])
        return finished(plan, folder, workers=asked.workers, plays=plays, run=not asked.summary)

    to_tune = dict(_named(each, entry, c) for each, entry in entries.items() for c in entry.constants[::step])
    few = {each: entry._replace(constants=entry.constants[::step]) for each, entry in entries.items()}
    constants: dict[str, float | None] = dict.fromkeys(entries)
    minutes, played = 0.0, 0
    if to_tune:
        tuning = finish(
            to_tune,
            TUNING_SEEDS[: len(to_play)],
            league.tuning_share * min(share, 1.0),
            f"{folder}-tuning",
            league.tuning_adversaries,
        )
        constants = tuned(tuning, few)
        minutes, played = tuning.runs["seconds"].sum() / 60.0, len(tuning.runs)
    chosen = {each: _named(each, entry, constants[each])[1] for each, entry in entries.items()}
    adversaries = tuple(name for name in league.adversaries if not (asked.quick and name == "sorted"))
    final = finish(
        chosen, to_play, share, folder + (f"-delay-{asked.delay}" if asked.delay else ""), adversaries, asked.delay
    )
    minutes, played = minutes + final.runs["seconds"].sum() / 60.0, played + len(final.runs)
    print(f"{name}: {len(to_play)} seeds; {played} runs, {minutes:.0f} minutes of one core\n")
    print(summary(table(final, constants)))
    grids = {each: entry.constants for each, entry in few.items() if entry.constants}
    if grids and not asked.quick:  # where grids have hardly more than their ends
        print(f"\nAt the end of their grid: {at_the_end(grids, constants)}.")


if __name__ == "__main__":
    main()
