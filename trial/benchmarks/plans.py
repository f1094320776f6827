"""`python -m trial.benchmarks.plans [TREE ...]`: what a fresh plan takes of a decision, with 10 states and 10 steps.

A trial of three actions learns 200 episodes, and then plans for 200 contexts. With other trees, to which this module is
copied, all take turns: `git worktree add --detach TREE dd3ec565` is the one before draws that last. Processor time.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from omg_cmdp import Trajectory
from omg_cmdp.contexts import context_to_json
from omg_trial.decisions import make_plan
from omg_trial.trial_file.trial import Trial

STATES, HORIZON, EPISODES, ROUNDS = 10, 10, 200, 3
TRIAL = f"""
[trial]
name = "plans"
horizon = {HORIZON}
[states]
names = {json.dumps([f"state {s}" for s in range(STATES)])}
[actions]
names = ["nothing", "reminder", "call"]
fallback = {{ nothing = 0.5, reminder = 0.3, call = 0.2 }}
[context.columns]
age = {{ low = 20, high = 90 }}
lives = {{ labels = ["alone", "with others"] }}
[rewards]
[dynamics]
[exploration]
floor = 0.1
"""
HERE = Path(__file__).resolve()


def measure() -> list[float]:
    """Return the microseconds of each plan."""
    trial, generator = Trial.parse(TRIAL), np.random.default_rng(0)
    agent, moves = trial.agent(), generator.dirichlet(np.full(STATES, 0.3), (STATES, 3))
    means, times = generator.random((STATES, 3)), []
    for number in range(2 * EPISODES):
        context = context_to_json({"age": int(generator.integers(20, 90)), "lives": "alone"})
        if number < EPISODES:
            states, actions = [0], generator.integers(0, 3, HORIZON)
            for action in actions:
                states.append(int(generator.choice(STATES, p=moves[states[-1], action])))
            rewards = 1.0 * (generator.random(HORIZON) < means[states[:-1], actions])
            known = trial.context(context)
            agent.update(Trajectory(context=known, states=states, actions=actions, rewards=rewards))
        began = time.process_time()
        make_plan(trial, agent, context)
        if number >= EPISODES:
            times.append(1e6 * (time.process_time() - began))
    return times


def main(trees: list[str]) -> None:
    """Print the median of each tree, this one first."""
    if trees == ["-"]:
        print(json.dumps(measure()))
        return
    found: dict[Path, list[float]] = {tree: [] for tree in (HERE.parents[2], *(Path(tree).resolve() for tree in trees))}
    for tree in [*found] * ROUNDS:
        if tree != HERE.parents[2]:
            shutil.copy(HERE, tree / "trial/benchmarks/plans.py")
        paths = {**os.environ, "PYTHONPATH": os.pathsep.join(str(tree / each) for each in ("library", "lab", "trial"))}
        command = [sys.executable, "-m", "trial.benchmarks.plans", "-"]
        found[tree] += json.loads(subprocess.check_output(command, cwd=tree, env=paths, text=True))
    for tree, times in found.items():
        print(f"{tree}: {np.median(times):.0f} µs a plan, 99 in 100 within {np.quantile(times, 0.99):.0f}")


if __name__ == "__main__":
    main(sys.argv[1:])
