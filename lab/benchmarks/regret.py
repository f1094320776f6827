"""`python -m lab.benchmarks.regret TREE`: regret of the default rule here over that in another tree, by cell.

`git worktree add --detach TREE dd3ec565` is the tree before draws that last and plans that mix policies. Both play the
same worlds with the same noise, each with its own package, and without the constant of linear and softmax oracles,
which older trees do not have.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from omg_lab.studies.config import unchecked_plan
from omg_lab.studies.oracles import oracle_arguments, oracle_names
from omg_lab.studies.plan import world_digest

HERE = Path(__file__).resolve()
ORDERS: dict[str, dict[str, Any]] = {"iid": {}, "sorted": {}, "adaptive": {"kind": "worst_regret", "look": 2}}
CELL = ["part", "world", "order"]
LEAST = 1.0
"""Cells in which either tree loses less are shown, and left out of the mean."""


def main() -> None:
    """Play both trees, and print the ratio of every cell and the geometric mean."""
    from .cells import CELLS, content
    from .grid import markdown

    command = argparse.ArgumentParser(prog="python -m lab.benchmarks.regret", description=__doc__)
    command.add_argument("tree", type=Path, help="the other tree")
    command.add_argument("--cells", nargs="+", default=[cell for part in CELLS.values() for cell in part])
    command.add_argument("--orders", nargs="+", default=list(ORDERS), choices=list(ORDERS))
    command.add_argument("--seeds", nargs="+", type=int, default=list(range(1000, 1006)))
    asked = command.parse_args()
    studies = []
    for part in CELLS:
        study = content(part)
        worlds = {name: options for name, options in study["worlds"].items() if name in asked.cells}
        orders = {name: ORDERS[name] for name in asked.orders}
        study |= {"worlds": worlds, "adversaries": orders, "agents": {"omg": {}}, "seeds": asked.seeds}
        studies += [study] if worlds else []
    found = []
    for tree in (asked.tree.resolve(), HERE.parents[2]):
        paths = {**os.environ, "PYTHONPATH": os.pathsep.join(str(tree / each) for each in ("library", "lab"))}
        worker = [sys.executable, "-P", str(HERE)]
        rows = json.loads(subprocess.check_output(worker, input=json.dumps(studies), env=paths, text=True))
        found.append(pd.DataFrame(rows, columns=[*CELL, "seed", "tables", "regret"]))
    cells = _compared(found[0].merge(found[1], on=[*CELL, "seed", "tables"], validate="1:1"))
    counted = cells[cells[["before", "now"]].min(axis=1) >= LEAST]
    mean, error = np.exp(np.log(counted["ratio"]).mean()), np.sqrt((counted["error"] ** 2).sum()) / len(counted)
    print(markdown(cells.round(3)))
    print(f"geometric mean over {len(counted)} cells: {mean:.3f} ± {mean * error:.3f} (at most 1.02)")


def _play(studies: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return a row for each run, with a digest of the world's tables."""
    rows = []
    for study in studies:
        study["worlds"] = {name: _without_constant(world) for name, world in study["worlds"].items()}
        for task in unchecked_plan(study).tasks():
            run = task.start()
            run.advance(task.episodes)
            tables, lost = world_digest(run.environment), float(run.ledger.regret.sum())
            rows.append((study["name"], task.world.name, task.adversary.name, task.seed, tables, lost))
            print(*rows[-1][:4], f"{lost:.1f}", file=sys.stderr, flush=True)
    return rows


def _without_constant(world: dict[str, Any]) -> dict[str, Any]:
    if "oracles" not in world or "intercept" not in oracle_arguments("rewards", "linear"):
        return world
    names = zip(("rewards", "dynamics"), oracle_names(world["oracles"]), strict=True)
    bare = {part: {"kind": each, "intercept": False} if each in ("linear", "softmax") else each for part, each in names}
    return {**world, "oracles": bare}


def _compared(runs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each cell: mean regrets, their ratio and its standard error, runs paired by their seeds."""
    rows = []
    for cell, each in runs.groupby(CELL, sort=False):
        before, now = each["regret_x"], each["regret_y"]
        error = (now / now.mean() - before / before.mean()).std() / np.sqrt(len(each))
        rows.append((*cell, len(each), before.mean(), now.mean(), now.mean() / before.mean(), error))
    return pd.DataFrame(rows, columns=[*CELL, "seeds", "before", "now", "ratio", "error"])


if __name__ == "__main__":
    main() if __package__ else print(json.dumps(_play(json.load(sys.stdin))))
