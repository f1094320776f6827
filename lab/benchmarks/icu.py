"""Real tables: ICU-Sepsis (Choudhary et al., 2024), 716 states, 25 actions, H = 10, γ = 1e3, T = 1e5.

`python -m lab.benchmarks.icu` plans several times, and prints what it measured as JSON. `icu_sepsis` starts it as
a process of its own, so that the peak memory is that of loading and planning, and of nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import threadpoolctl

from omg_cmdp import Status, TabularMDP, plan
from omg_lab.data.packaged import packaged_file

from .report import Report, Row
from .timing import GAMMA, interleave, medians, peak_memory

HORIZON = 10
TOLERANCE = 1 / (16 * 1e5)


def icu_sepsis(*, quick: bool) -> Report:
    """Measure in a process of its own and compare with the targets."""
    command = [sys.executable, "-m", "benchmarks.icu", "--rounds", "1" if quick else "3"]
    finished = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
    found: dict[str, Any] = json.loads(finished.stdout)
    rows = [
        Row("certificate", found["certificate"], at_most=TOLERANCE),
        Row("iterations", found["iterations"], at_most=15),
        Row("peak memory of the process", found["peak GiB"], "GiB", at_most=2),
        Row("a plan", found["median"]["plan"], "s"),
        Row("an iteration / nine dense products PᵀDP", found["ratio"], at_most=0.5),
    ]
    title = f"ICU-Sepsis (H = 10, S = 716, A = 25, γ = 1e3, T = 1e5): {found['status']}"
    return Report(title=title, rows=rows, details=found)


def load() -> TabularMDP:
    """Return the tables of the package `icu-sepsis`, read from its data file.

    The package is not imported: it would pull in the legacy `gym`. Its rewards depend on the next state, and become
    their expectation r(s, a) = Σ P(s'|s, a)·r(s, a, s'), in [0, 1]. All 25 actions are admissible, as in the file.
    """
    with np.load(packaged_file("icu-sepsis", "dynamics.npz", extra="bench"), allow_pickle=False) as tables:
        transitions = tables["tx_mat"]
        rewards = np.einsum("sat,sat->sa", transitions, tables["r_mat"])
        return TabularMDP(transitions=transitions, rewards=rewards, horizon=HORIZON, start=tables["d_0"])


def measure(rounds: int) -> dict[str, Any]:
    """Plan, note the memory, then time plans and dense products in turns, all on one thread."""
    mdp = load()
    solution = plan(mdp, GAMMA, tolerance=TOLERANCE)
    peak = peak_memory()
    rows = mdp.transitions.reshape(-1, mdp.states)
    scale = np.random.default_rng(0).random(len(rows))

    def plan_time() -> dict[str, float]:
        began = time.perf_counter()
        plan(mdp, GAMMA, tolerance=TOLERANCE)
        return {"plan": time.perf_counter() - began}

    def product_time() -> dict[str, float]:
        began = time.perf_counter()
        _ = rows.T @ (scale[:, None] * rows)
        return {"product": time.perf_counter() - began}

    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        product_time()  # warms up; the plan is warm already
        times = interleave(rounds, plan_time, *[product_time] * (HORIZON - 1))
    median = medians(times)
    return {
        "status": solution.status.name,
        "solved": solution.status is Status.SOLVED,
        "certificate": solution.certificate,
        "iterations": solution.iterations,
        "peak GiB": peak,
        "ratio": median["plan"] / solution.iterations / ((HORIZON - 1) * median["product"]),
        "median": median,
        "seconds": times,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    json.dump(measure(parser.parse_args().rounds), sys.stdout)
