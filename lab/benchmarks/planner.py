"""The planner side by side with cvxpy and Clarabel, with targets for each size."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from library.tests.planning.peer import solve_by_peer
from omg_cmdp import Status, TabularMDP, plan

from .report import Report, Row
from .timing import GAMMA, TOLERANCE, Measurement, clock, interleave, medians, random_mdp


@dataclasses.dataclass(frozen=True)
class Case:
    """A size, and how many times faster than the peer and than Clarabel's own solve time a plan has to be."""

    horizon: int
    states: int
    actions: int
    than_peer: float
    than_clarabel: float

    @property
    def name(self) -> str:
        """The size as (H,S,A)."""
        return f"({self.horizon},{self.states},{self.actions})"


CASES = (
    Case(5, 5, 3, 600, 35),
    Case(10, 10, 4, 120, 25),
    Case(10, 30, 4, 50, 25),
    Case(20, 50, 5, 100, 20),
    Case(20, 100, 5, 80, 75),
)


def against_peer(*, quick: bool) -> Report:
    """Measure every case; a ratio is the ratio of two medians over all rounds and instances."""
    rows, details = [], []
    for case in CASES:
        small = case.states < 50
        rounds = (3 if small else 1) if quick else (7 if small else 3)
        instances = 5 if small and not quick else 1
        measured = [_measure_beside_peer(case, seed, rounds) for seed in range(instances)]
        pooled = {key: [t for one in measured for t in one["seconds"][key]] for key in measured[0]["seconds"]}
        time = medians(pooled)
        rows += [
            Row(f"{case.name} a plan", 1e6 * time["plan"], "µs"),
            Row(f"{case.name} faster than cvxpy + Clarabel", time["peer"] / time["plan"], at_least=case.than_peer),
            Row(
                f"{case.name} faster than Clarabel alone", time["clarabel"] / time["plan"], at_least=case.than_clarabel
            ),
            Row(f"{case.name} faster than cvxpy + Clarabel, tuned", time["tuned peer"] / time["plan"]),
            Row(f"{case.name} faster than Clarabel alone, tuned", time["tuned clarabel"] / time["plan"]),
            Row(f"{case.name} largest certificate", max(one["certificate"] for one in measured), at_most=TOLERANCE),
        ]
        details.append({"case": dataclasses.asdict(case), "median": time, "instances": measured})
    return Report(title="Planner beside cvxpy + Clarabel (γ = 1e3, T = 1e6)", rows=rows, details=details)


def within_budgets(*, quick: bool) -> Report:
    """Measure plans with one budget that binds, beside the same without: the middle of the least cost and its own."""
    rows, details = [], []
    for case in (CASES[0], CASES[1], CASES[3]):
        small = case.states < 50
        found = [
            _measure_within(case, seed, rounds=5 if small else 2) for seed in range(5 if quick or not small else 30)
        ]
        ratios = sorted(one["seconds"]["within"] / one["seconds"]["without"] for one in found)
        rows += [
            Row(f"{case.name} median over instances", ratios[len(ratios) // 2], at_most=3.0),
            Row(f"{case.name} worst instance", ratios[-1]),
        ]
        details.append({"case": dataclasses.asdict(case), "instances": found})
    return Report(
        title="A plan within one budget that binds, over the plan without (J = 1)", rows=rows, details=details
    )


def _measure_within(case: Case, seed: int, rounds: int) -> dict[str, Any]:
    mdp = random_mdp(case.horizon, case.states, case.actions, seed)
    costs = np.random.default_rng([1, seed]).random((1, case.states, case.actions))
    free = plan(mdp, GAMMA, tolerance=TOLERANCE)
    paid = float((free.occupancy * costs).sum())
    least = plan(mdp, GAMMA, costs=costs, budgets=[-1.0]).least_costs
    budgets = [0.5 * (float(least[0]) + paid)]
    within = clock("within", lambda: plan(mdp, GAMMA, tolerance=TOLERANCE, costs=costs, budgets=budgets))
    without = clock("without", lambda: plan(mdp, GAMMA, tolerance=TOLERANCE))
    seconds = {name: min(times) for name, times in interleave(rounds, within, without).items()}
    solution = plan(mdp, GAMMA, tolerance=TOLERANCE, costs=costs, budgets=budgets)
    return {"seed": seed, "seconds": seconds, "certificate": solution.certificate, "status": solution.status.name}


def _measure_beside_peer(case: Case, seed: int, rounds: int) -> dict[str, Any]:
    mdp = random_mdp(case.horizon, case.states, case.actions, seed)
    ours = clock("plan", lambda: plan(mdp, GAMMA, tolerance=TOLERANCE))
    # Building the tables is left out on both sides; its time is recorded, because an agent needs it every episode.
    tables = clock("tables", lambda: TabularMDP(transitions=mdp.transitions, rewards=mdp.rewards, horizon=mdp.horizon))
    times = interleave(rounds, ours, _peer(mdp), ours, _tuned_peer(mdp), tables)
    solution, peer = plan(mdp, GAMMA, tolerance=TOLERANCE), solve_by_peer(mdp, GAMMA)
    return {
        "seed": seed,
        "seconds": times,
        "iterations": solution.iterations,
        "certificate": solution.certificate,
        "solved": solution.status is Status.SOLVED,
        "peer status": peer.status,
        "peer iterations": peer.iterations,
        "largest difference of policies": float(np.abs(solution.policy - peer.policy).max()),
    }


def _peer(mdp: TabularMDP) -> Measurement:
    def measure() -> dict[str, float]:
        solution = solve_by_peer(mdp, GAMMA)
        return {"peer": solution.total, "clarabel": solution.solve}

    return measure


def _tuned_peer(mdp: TabularMDP) -> Measurement:
    """Return the peer as an expert in both tools would run it; there is no target for it, but readers will ask.

    All steps are one sparse equation, which cvxpy compiles faster. Clarabel uses its single-threaded factorisation: the
    threaded one, its own choice for large problems, is several times slower on two busy cores.
    """

    def measure() -> dict[str, float]:
        solution = solve_by_peer(mdp, GAMMA, stacked=True, direct_solve_method="qdldl")
        return {"tuned peer": solution.total, "tuned clarabel": solution.solve}

    return measure
