"""`python -m lab.benchmarks.over_greedy [CELL ...]`: an episode of the default beside one of greedy, by cell.

Both play blocks of episodes in turns, i.i.d. contexts, each in a run of its own. Processor time, because the machine
may be shared; the ratio of medians over the blocks.
"""

from __future__ import annotations

import math
import statistics
import sys
import time

from .cells import CELLS, content
from .grid import grid

SEED, BLOCKS, BLOCK = 300, 8, 15
WARM = 5
"""Episodes before the clock runs."""


def main(wanted: list[str]) -> None:
    """Print the ratio of every cell, and the geometric mean."""
    ratios = []
    for name in CELLS:
        study = content(name)
        plan = grid(study, {each: {"kind": each} for each in ("omg", "greedy")}, seeds=[SEED], episodes=1000)
        tasks = {(task.world.name, task.agent.name): task for task in plan.tasks() if task.adversary.name == "iid"}
        for cell in study["worlds"]:
            if wanted and cell not in wanted:
                continue
            runs = {agent: tasks[cell, agent].start() for agent in ("omg", "greedy")}
            times: dict[str, list[float]] = {agent: [] for agent in runs}
            for block in range(BLOCKS + 1):
                for agent, run in runs.items():
                    began = time.process_time()
                    run.advance(BLOCK if block else WARM)
                    if block:
                        times[agent].append((time.process_time() - began) / BLOCK)
            ours, theirs = (statistics.median(times[agent]) for agent in runs)
            ratios.append(ours / theirs)
            print(f"{name:8} {cell:28} {1e3 * ours:8.2f} ms, {ratios[-1]:6.1f} times greedy", flush=True)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean {mean:.1f} (at most 5), largest {max(ratios):.1f} (at most 20)")


if __name__ == "__main__":
    main(sys.argv[1:])
