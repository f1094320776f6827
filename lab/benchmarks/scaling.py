"""Time against S, A and H, one varied at a time, for the planner and the peer: fitted exponents and a figure."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from typing import Any

import numpy as np

from library.tests.planning.peer import solve_by_peer
from omg_cmdp import plan

from .figure import draw
from .report import RESULTS, Report, Row
from .timing import GAMMA, TOLERANCE, clock, interleave, random_mdp

BASE = {"H": 10, "S": 20, "A": 4}
SWEEPS = {
    "S": (5, 7, 10, 14, 20, 28, 40, 56, 80, 100),
    "A": (2, 3, 4, 6, 8, 11, 16),
    "H": (2, 4, 8, 16, 32, 64),
}
PEER_UNKNOWNS = 6000
"""The peer is measured up to this many H·S·A; beyond that, one of its solves takes minutes."""


def scaling(*, quick: bool) -> Report:
    """Measure all sweeps, fit exponents over the upper half of each range, and draw the figure unless `quick`."""
    sweeps = {axis: [_point(axis, size, quick=quick) for size in sizes] for axis, sizes in SWEEPS.items()}
    rows, details = [], {}
    for axis, points in sweeps.items():
        fits = {side: _fit(axis, points, side) for side in ("plan", "iteration", "peer")}
        details[axis] = {"points": points, "fits": fits}
        rows += [Row(f"{side}: time ~ {axis}^", fit["exponent"]) for side, fit in fits.items()]
    if not quick:
        draw(details, BASE, RESULTS)
    others = ", ".join(f"{axis} = {value}" for axis, value in BASE.items())
    title = f"Exponents, fitted over the upper half of each range (the others at {others})"
    return Report(title=title, rows=rows, details=details)


def _point(axis: str, size: int, *, quick: bool) -> dict[str, Any]:
    """Return the median time over several instances; a single one would mostly show its own number of iterations."""
    at = BASE | {axis: size}
    plans, iterations, peers = [], [], []
    for seed in range(2 if quick else 7):
        mdp = random_mdp(at["H"], at["S"], at["A"], seed)
        ours = clock("plan", functools.partial(plan, mdp, GAMMA, tolerance=TOLERANCE))
        plans.append(statistics.median(interleave(3, ours)["plan"]))
        iterations.append(plan(mdp, GAMMA, tolerance=TOLERANCE).iterations)
        # The same factorisation at every size; Clarabel's own choice changes with the size, and bends the curve.
        if at["H"] * at["S"] * at["A"] <= PEER_UNKNOWNS and seed < (1 if quick else 3):
            peers.append(solve_by_peer(mdp, GAMMA, direct_solve_method="qdldl").total)
    return {
        axis: size,
        "plan": statistics.median(plans),
        "iteration": statistics.median(t / n for t, n in zip(plans, iterations, strict=True)),
        "peer": statistics.median(peers) if peers else None,
        "iterations": iterations,
    }


def _fit(axis: str, points: Sequence[dict[str, Any]], side: str) -> dict[str, Any]:
    """Return the power law fitted to the upper half of the points that exist (least squares in logarithms)."""
    known = [point for point in points if point[side] is not None]
    upper = known[len(known) // 2 :]
    sizes = np.array([point[axis] for point in upper], dtype=np.float64)
    exponent, offset = np.polyfit(np.log(sizes), np.log([point[side] for point in upper]), 1)
    times = np.exp(offset) * sizes**exponent
    return {"exponent": float(exponent), "sizes": sizes.tolist(), "times": times.tolist()}
