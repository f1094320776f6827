"""`python -m trial.tests.disaster [TOOL] [--seed S] [--years N] [--count N] [--minutes M]`: test it like a database.

`make disaster` runs `simulate` beside `storage`, which is all others, in at most fifteen minutes on two cores. Every
failure is printed with its seed.
"""

import argparse
import contextlib
import gc
import importlib
import itertools
import sys
import time

from trial.tests.disaster import compound, cuts, nth, planted, simulation, zombies

CUTS = 250
"""Power cuts of one recorded workload."""


def simulate(asked):
    """Simulate trial-years, and shrink the first script that fails."""
    broken = played = 0
    gc.freeze()
    gc.disable()  # a fifth of the time; once a year is enough
    for seed in range(asked.seed, asked.seed + asked.years):
        if asked.late():
            break
        wrong, world = simulation.play(seed)
        broken += bool(wrong)
        shown = f"{len(world.attempts)} calls, {world.events} events, {world.starts} starts, {world.faults} faults"
        print(f"simulate: seed {seed}: {shown}, {len(wrong)} wrong", flush=True)
        for each in wrong[:5]:
            print(f"  {each}")
        if wrong and asked.shrink:
            script = simulation.shrink(seed, world.script)
            print(f"  shrunk from {len(world.script)} events to {len(script)}:", *script, sep="\n    ")
        played += 1
        gc.collect()
        gc.freeze()
    gc.enable()
    print(f"simulate: {played} trial-years from seed {asked.seed}, {broken} wrong", flush=True)
    return broken


def cut(asked):
    """Cut the power: of each recorded workload `CUTS` times."""
    broken, done, seen, seed, began = 0, 0, set(), asked.seed, time.monotonic()
    while done < asked.count and not asked.late():
        for kind in cuts.RECORDS:
            wrong = cuts.power_cuts(kind, seed, CUTS, seen=seen)
            done, broken = done + CUTS, broken + len(wrong)
            for line in wrong[:5]:
                print(f"  {line}", flush=True)
        seed += 1
    shown = f"{done} power cuts ({len(seen)} different) from seed {asked.seed} to {seed - 1}"
    print(f"cuts: {shown}, {broken} broken, {time.monotonic() - began:.0f} s", flush=True)
    return broken


def fail(asked):
    """Fail at the n-th operation of every path."""
    broken = failures = 0
    paths = asked.path or [*nth.CALLS, *nth.TASKS, *nth.STARTS, *nth.FILE_ACTS]
    kinds = asked.kind or nth.KINDS  # memory, the longest, comes last
    for kind, path, for_good in itertools.product(kinds, paths, (False, True)):
        if asked.late():
            print(f"nth: stopped before {path}, {kind}, as time was up")
            break
        number, wrong = nth.every_failure(path, kind, for_good=for_good, most=asked.most, stride=asked.stride)
        failures, broken = failures + number, broken + len(wrong)
        print(
            f"nth: {path}, {kind}, {'for good' if for_good else 'once'}: {number} failures, {len(wrong)} wrong",
            flush=True,
        )
        for line in wrong[:3]:
            print(f"  {line}")
    print(f"nth: {failures} failures, {broken} wrong", flush=True)
    return broken


def strike(asked):
    """Strike twice."""
    broken = 0
    for name in ("found", *compound.ACTS):
        if asked.late():
            print(f"compound: stopped before {name}, as time was up")
            break
        strikes, wrong = compound.struck_twice(name)
        broken += len(wrong)
        print(f"compound: {name}: {strikes} strikes, {len(wrong)} wrong", *wrong[:3], sep="\n  ", flush=True)
    for name, scene in compound.FAULTS.items():
        wrong = scene()
        broken += len(wrong)
        print(f"compound: {name}: {len(wrong)} wrong", *wrong[:3], sep="\n  ", flush=True)
    return broken


def wake(asked):
    """Let a process that was stopped wake up beside another one."""
    broken = 0
    for name, scene in zombies.SCENES.items():
        wrong = scene()
        broken += 0 if isinstance(wrong, str) else len(wrong)
        print(f"zombies: {name}: {wrong if isinstance(wrong, str) else f'{len(wrong)} wrong'}", flush=True)
    return broken


TOOLS = {"simulate": simulate, "cuts": cut, "nth": fail, "compound": strike, "zombies": wake}


def main():
    """Run a tool, or all of them; the exit code is 1 if anything is wrong."""
    command = argparse.ArgumentParser(prog="python -m trial.tests.disaster", description=__doc__)
    command.add_argument("tool", choices=[*TOOLS, "storage", "planted", "all"], nargs="?", default="all")
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--years", type=int, default=20)
    command.add_argument("--count", type=int, default=10_000)
    command.add_argument("--most", type=int, default=100_000, help="the largest n of the n-th failure")
    command.add_argument("--path", action="append", default=[], help="a path of the n-th failure, such as open")
    command.add_argument("--kind", action="append", default=[], choices=nth.KINDS, help="a kind of failure")
    command.add_argument("--stride", type=int, default=1, help="try every STRIDE-th n only")
    command.add_argument("--minutes", type=float, default=float("inf"), help="for each tool")
    command.add_argument("--shrink", action="store_true", help="shrink the scripts that fail")
    command.add_argument("--bug", action="append", default=[], help="the name of a planted bug")
    asked = command.parse_args()
    with contextlib.suppress(ModuleNotFoundError):  # the lab is not installed
        importlib.import_module("tests.disaster.study")
    if asked.tool == "planted":
        return min(planted.table(asked.bug), 1)
    broken = 0
    several = {"all": [*TOOLS], "storage": [name for name in TOOLS if name != "simulate"]}
    for name in several.get(asked.tool, [asked.tool]):
        end = time.monotonic() + 60.0 * asked.minutes
        asked.late = lambda end=end: time.monotonic() > end
        broken += TOOLS[name](asked)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
