"""`python -m lab.benchmarks.first`: the first plan and the first decision with an empty cache of compiled code.

Each is made in a process of its own with a cache of its own, and then again by a second process. Seconds of processor
and wall time are those of the whole process, imports included.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time

PLAN = """
import numpy as np, omg_cmdp as omg
tables = np.random.default_rng(0)
mdp = omg.TabularMDP(transitions=tables.dirichlet(np.ones(5), (5, 3)), rewards=tables.random((5, 3)), horizon=5)
assert omg.plan(mdp, 1000.0).status is omg.Status.SOLVED
"""
DECISION = """
import omg_cmdp as omg
sizes = {"states": 5, "actions": 3, "horizon": 5}
omg.OMG(omg.Space(**sizes), omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)).policy("any")
"""
COMMANDS = {
    "a plan": (["-c", PLAN], 20.0, 15.0),
    "a decision of the default rule, counts": (["-c", DECISION], 26.0, None),
    "python -m omg_cmdp warm-up": (["-m", "omg_cmdp", "warm-up"], None, None),
}
"""Arguments of Python, and the most seconds of processor and of wall time that it may take."""


def main() -> None:
    """Print the seconds of each command."""
    for name, (arguments, processor, wall) in COMMANDS.items():
        with tempfile.TemporaryDirectory() as folder:
            for which, most in (("first", (processor, wall)), ("second", (1.0, 1.0) if processor else (None, None))):
                before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
                environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
                subprocess.run([sys.executable, *arguments], env=environment, check=True, capture_output=True)
                taken = time.perf_counter() - began
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                goals = [f" (at most {each:g})" if each else "" for each in most]
                print(f"{name}, {which} process: {used:.1f} s of the processor{goals[0]}, {taken:.1f} s{goals[1]}")


if __name__ == "__main__":
    main()
