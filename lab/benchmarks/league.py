"""`python -m lab.benchmarks.league [finite] [learned]`: every agent in every cell, its constant tuned on other seeds.

*finite*: all agents have finite classes around the truth at the guarded rate (the product class on the lower-bound
instance), or offline fits of the same classes. *learned*: counts, regressions and bases of kernels, the same for all
agents. UCBVI and the GLMs have their own models: tables, and the features of contexts. The cells are in `cells.py`.

Feedback comes at once; or 10 or 100 episodes late, for agents that are within three times the best of a cell without
delay, in the geometric mean; constants are tuned without delay. Runs are kept in lab/benchmarks/results and not played
again. `--page` makes docs/league.md of them. `--summary` only prints the tables. `--quick` plays a tenth of the
episodes, one seed, one delay, i.i.d. contexts, and tunes nothing. `--only OMG greedy` plays these agents.
"""

from __future__ import annotations

import math
from argparse import Namespace
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from omg_cmdp.agents.exploration.named import RULES
from omg_cmdp.theory.constants import most_tuples
from omg_lab.studies.plan import Task
from omg_lab.studies.results import Results
from omg_lab.worlds import World

from .cells import LEAGUES, example
from .grid import finished, grid, parser, seeds
from .page import add
from .page import main as make_page
from .standings import NEARLY_NOTHING, at_the_end, standings, summary, table

TUNING_SEEDS = range(100, 102)
DELAYS, MOST_LATE_SEEDS, CONTENDERS = (10, 100), 2, 3.0
"""How many episodes later feedback comes; then so many seeds are played, by agents within so many times the best."""
KEPT = ["world", "adversary", "agent", "constant", "seed", "regret", "first", "mistakes", "horizon"]
KEPT += ["contexts", "µs", "µs early", "µs late"]
QUICK, QUICK_DELAYS = 0.1, DELAYS[:1]
"""The share of the episodes that `--quick` plays, and its delays: runs are too short for others."""


class Tuning(NamedTuple):
    """The constants of a league."""

    constants: dict[str, float | None]
    runs: int
    minutes: float


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


def _worth(constant: float) -> dict[str, Any]:
    """Return the schedule λ_t = constant·√t."""
    return {"worth": {"scale": constant, "exponent": 0.5}}


def _scale(constant: float) -> dict[str, Any]:
    return {"scale": constant}


def _radius(constant: float) -> dict[str, Any]:
    return {"radius": constant}


def _is_bandit(world: World) -> bool:
    return world.space.horizon == 1


def _is_small_bandit(world: World) -> bool:
    return _is_bandit(world) and _has_few_contexts(world)


def _has_vectors(world: World) -> bool:
    return isinstance(world.contexts[0], np.ndarray)


def _has_few_contexts(world: World) -> bool:
    return len(world.contexts) <= 30


def _has_few_tuples(world: World) -> bool:
    return most_tuples(world.space) <= 500


def _has_few_vectors(world: World) -> bool:
    return _has_vectors(world) and len(world.contexts) <= 200


def _is_enumerable(world: World) -> bool:
    return not world.product_class


def _has_few_functions(world: World) -> bool:
    functions = world.reward_functions, world.transition_functions
    return _is_enumerable(world) and math.prod(len(each(world.contexts[0])) for each in functions) <= 256


ROOTS = (10.0, 30.0, 100.0, 300.0, 1000.0)
BONUSES = (0.003, 0.01, 0.03, 0.1, 0.3)
SMALL_BONUSES = (0.001, 0.003, 0.01, 0.03, 0.1)
SHARES = (0.03, 0.1, 0.3, 1.0, 3.0)
RATES = (0.3, 1.0, 3.0, 10.0, 30.0)
VISITS = (1, 3, 10, 30, 100)
ALPHAS = (0.03, 0.1, 0.2, 0.3, 0.5)
MISFITS = (0.03, 0.1, 0.2, 0.4, 0.8)

BOTH: dict[str, Entry] = {
    "OMG": Entry("omg"),
    **({"OMG, uncertainty": Entry("omg", lambda c: {"gamma": "uncertainty"})} if "uncertainty" in RULES else {}),
    "OMG, root": Entry("omg", _root, ROOTS),
    "PC-IGW": Entry("pc_igw", _root, ROOTS),
    "UC3RL": Entry("uc3rl", _scale, SMALL_BONUSES, _has_few_contexts),  # a plan for each in an episode
    "RM-UCDD": Entry("rm_ucdd", _scale, SMALL_BONUSES, _has_few_contexts),
    "ERM reduction": Entry("erm_reduction", lambda c: {"samples": c}, (1, 2, 4, 8, 16), _has_few_tuples),
    "UCBVI, blind": Entry("ucbvi", lambda c: {"cover": "blind", "scale": c}, BONUSES),
    "UCBVI per context": Entry("ucbvi", lambda c: {"cover": "per_context", "scale": c}, BONUSES),
    "UCBVI per ball": Entry(
        "ucbvi",
        lambda c: {"cover": "per_ball", "radius": c, "scale": 0.03},
        (0.1, 0.2, 0.4, 0.8, 1.6),
        _has_few_vectors,
    ),
    "UCBVI by clusters": Entry("ucbvi", lambda c: {"cover": "clusters", "scale": c}, BONUSES, _has_few_vectors),
    "MVP": Entry("mvp", _scale, (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)),
    "UCBVI-BF": Entry("ucbvi_bf", _scale, (1e-4, 3e-4, 1e-3, 3e-3, 1e-2)),
    "RLSVI": Entry("rlsvi", _scale, (1e-6, 1e-5, 1e-4, 1e-3, 1e-2)),
    "VIDS": Entry("vids"),
    "regularised IDS": Entry("regularised_ids", _worth, (0.01, 0.03, 0.1, 0.3, 1.0)),
    "Rmax per context": Entry("cover_rmax", lambda c: {"cover": "per_context", "visits": c}, VISITS),
    "Cover-Rmax": Entry(
        "cover_rmax", lambda c: {"cover": "per_ball", "radius": 0.4, "visits": c}, VISITS, _has_few_vectors
    ),
    "posterior sampling": Entry("posterior_sampling"),
    "greedy": Entry("greedy"),
    "ε-greedy": Entry("epsilon_greedy", lambda c: {"epsilon": {"scale": c, "exponent": -1.0 / 3.0}}, SHARES),
    "Boltzmann": Entry("boltzmann", _root, (0.3, 1.0, 3.0, 10.0, 30.0)),
    "entropy": Entry("occupancy_entropy", _root, (0.3, 1.0, 3.0, 10.0, 30.0)),
    "SquareCB": Entry("square_cb", _root, ROOTS, _is_bandit),
    "FALCON": Entry("falcon", _root, ROOTS, _is_bandit),
    "FastCB": Entry("fast_cb", _root, ROOTS, _is_bandit),
    "AdaCB": Entry("ada_cb", _root, ROOTS, _is_bandit),
    "RegCB": Entry("reg_cb", _radius, SHARES, _is_bandit),
    "RegCB, elimination": Entry("reg_cb", lambda c: {"radius": c, "optimistic": False}, SHARES, _is_bandit),
    "Epoch-Greedy": Entry("epoch_greedy", _scale, RATES, _is_bandit),
    "LinMED": Entry("lin_med", _radius, SHARES, _is_bandit),
    "UCCB": Entry("uccb", _scale, SMALL_BONUSES, _is_small_bandit),  # an action for each context in an episode
    "uniform": Entry("uniform"),
}
# Learned tables ask for other constants in every cell: four, far apart.
LARGE = (30.0, 300.0, 3000.0, 30000.0)
TINY = (1e-5, 1e-4, 1e-3, 1e-2)
WIDE: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("OMG, root", "PC-IGW", "SquareCB", "FALCON", "FastCB", "AdaCB"), LARGE),
    **dict.fromkeys(("Boltzmann", "entropy"), (3.0, 30.0, 300.0, 3000.0)),
    **dict.fromkeys(("UC3RL", "RM-UCDD"), TINY),
    **dict.fromkeys(("UCBVI, blind", "UCBVI per context", "UCBVI by clusters"), (1e-4, 1e-3, 1e-2, 1e-1)),
    "ERM reduction": (1, 3, 10, 30),
    "UCBVI per ball": (0.2, 0.6, 2.0, 6.0),
    "MVP": (1e-6, 1e-5, 1e-4, 1e-3),
    "UCBVI-BF": (1e-5, 1e-4, 1e-3, 1e-2),
    "RLSVI": (1e-7, 1e-5, 1e-3, 1e-1),
    "regularised IDS": (0.001, 0.01, 0.1, 1.0),
    "ε-greedy": (0.003, 0.03, 0.3, 3.0),
    **dict.fromkeys(("RegCB", "RegCB, elimination", "LinMED"), (0.01, 0.1, 1.0, 10.0)),
    "Epoch-Greedy": (0.3, 1.0, 3.0, 10.0),
    "UCCB": TINY,
    **dict.fromkeys(("Rmax per context", "Cover-Rmax"), (1, 4, 16, 64)),
}
ENTRIES: dict[str, dict[str, Entry]] = {
    "finite": {
        **BOTH,
        "GLM-ORL": Entry("glm_orl", _scale, SMALL_BONUSES),
        "GLM-RLSVI": Entry("glm_rlsvi", _scale, (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)),
        "feel-good sampling": Entry("feel_good", lambda c: {"optimism": c}, SHARES, _is_enumerable),
        "KWIK-Rmax": Entry("kwik_rmax", lambda c: {"threshold": c}, ALPHAS),
        "OLIVE": Entry("olive", lambda c: {"threshold": c}, MISFITS, _is_enumerable),
        "witness rank": Entry("witness", lambda c: {"threshold": c}, MISFITS, _has_few_functions),
        "greedy, offline": Entry("greedy", lambda c: {"oracles": "offline"}),
        "ILTCB": Entry("iltcb", lambda c: {"scale": 0.1, "psi": c}, (0.1, 1.0, 10.0, 100.0), _is_small_bandit),
        "Regressor Elimination": Entry("regressor_elimination", _radius, SHARES, _is_small_bandit),
    },
    "learned": {
        **{name: entry._replace(constants=WIDE.get(name, ())) for name, entry in BOTH.items()},
        "GLM-ORL": Entry("glm_orl", _scale, TINY, _has_vectors),
        "GLM-RLSVI": Entry("glm_rlsvi", _scale, (1e-7, 1e-6, 1e-5, 1e-4), _has_vectors),
        "KWIK-Rmax": Entry("kwik_rmax", lambda c: {"threshold": c}, ALPHAS[1:], _has_vectors),
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


def tune(name: str, entries: dict[str, Entry], share: float, seeds: range, workers: int, *, run: bool) -> Tuning:
    """Return the constants that are best on the tuning seeds, without delay, and what finding them took."""
    league, no_constants = LEAGUES[name], dict.fromkeys(entries)
    agents = dict(_named(each, entry, c) for each, entry in entries.items() for c in entry.constants)
    if not agents:
        return Tuning(no_constants, 0, 0.0)
    content = league.content(league.tuning_share * share)
    plan = grid(content, agents, seeds=seeds, episodes=content["episodes"])
    plays = players(name, seeds.start, league.tuning_adversaries)
    results = finished(plan, f"league-{name}-tuning", workers=workers, plays=plays, run=run)
    return Tuning(tuned(results, entries), len(results.runs), results.runs["seconds"].sum() / 60.0)


def season(
    name: str, entries: dict[str, Entry], tuning: Tuning, share: float, seeds: range, delay: int, asked: Namespace
) -> pd.DataFrame:
    """Return the runs of a league in which feedback comes `delay` episodes late, with what the tables need."""
    league = LEAGUES[name]
    agents = {each: _named(each, entry, tuning.constants[each])[1] for each, entry in entries.items()}
    unsorted = tuple(each for each in league.adversaries if each != "sorted")
    adversaries = ("iid",) if asked.quick else unsorted if delay else tuple(league.adversaries)
    content = {**league.content(share), **({"delay": delay} if delay else {})}
    plan = grid(content, agents, seeds=seeds, episodes=content["episodes"])
    results = finished(
        plan,
        f"league-{name}" + (f"-delay-{delay}" if delay else ""),
        workers=asked.workers,
        plays=players(name, seeds.start, adversaries),
        run=not asked.summary,
    )
    runs = table(results, tuning.constants)
    worlds = {world: example(name, world) for world in runs["world"].unique()}
    sizes = {
        "horizon": runs["world"].map(lambda world: worlds[world].space.horizon),
        "contexts": runs["world"].map(lambda world: len(worlds[world].contexts)),
    }
    return runs.assign(adversary=runs["adversary"].replace("worst_regret", "adaptive"), **sizes)


def contenders(runs: pd.DataFrame) -> list[str]:
    """Return the agents that play with late feedback: those that are not far behind without."""
    ratios = standings(runs)["ratio, geometric mean"]
    return [str(agent) for agent in ratios.index[ratios <= CONTENDERS]]


def main() -> None:
    """Tune, run and summarise."""
    command = parser("league", __doc__, episodes=None)
    command.set_defaults(seeds=None)
    command.add_argument("league", nargs="*", metavar="finite|learned", help="both, if nothing is named")
    command.add_argument("--quick", action="store_true", help="a tenth of the episodes, one seed and delay, i.i.d.")
    command.add_argument("--only", nargs="+", metavar="AGENT", help="these agents, with names as in the table")
    command.add_argument("--delay", type=int, nargs="+", metavar="D", help=f"beside 0, instead of {DELAYS}")
    command.add_argument("--page", action="store_true", help="keep the runs in docs/league.csv, and make the page")
    asked = command.parse_args()
    if unknown := set(asked.league) - set(LEAGUES):
        command.error(f"leagues are {' and '.join(LEAGUES)}, got {', '.join(sorted(unknown))}")
    for name in asked.league or LEAGUES:
        entries = {each: entry for each, entry in ENTRIES[name].items() if not asked.only or each in asked.only}
        if unknown := set(asked.only or ()) - set(entries):
            command.error(f"--only must name agents of the {name} league, got {', '.join(sorted(unknown))}")
        _play(name, entries, asked)
    if asked.page:
        make_page()


def _play(name: str, entries: dict[str, Entry], asked: Namespace) -> None:
    league = LEAGUES[name]
    share = QUICK if asked.quick else (asked.episodes or league.episodes) / league.episodes
    to_play = range(1) if asked.quick else seeds(asked.seeds or [league.seeds])
    if missing := league.missing():
        print(f"Left out, because their world is not in the catalogue: {', '.join(missing)}.\n")
    if asked.quick:
        middle = {each: entry.constants[1] if entry.constants else None for each, entry in entries.items()}
        tuning = Tuning(middle, 0, 0.0)
    else:
        tuning = tune(name, entries, min(share, 1.0), TUNING_SEEDS, asked.workers, run=not asked.summary)
        print(f"{name}, constants: {tuning.runs} runs, {tuning.minutes:.0f} minutes of one core\n")
        grids = {each: entry.constants for each, entry in entries.items() if entry.constants}
        print(f"At the end of their grid: {at_the_end(grids, tuning.constants)}.\n", flush=True)
    for delay in (0, *(asked.delay or (QUICK_DELAYS if asked.quick else DELAYS))):
        chosen = to_play[:MOST_LATE_SEEDS] if delay else to_play
        runs = season(name, entries, tuning, share, chosen, delay, asked)
        minutes = runs["seconds"].sum() / 60.0
        print(f"{name}, delay {delay}: {len(chosen)} seeds; {len(runs)} runs, {minutes:.0f} minutes of one core\n")
        print(summary(runs), flush=True)
        if asked.page:
            add(runs[KEPT], name, delay, asked.only)
        if not delay:
            entries = {each: entries[each] for each in contenders(runs)}


if __name__ == "__main__":
    main()
