"""`python -m trial.benchmarks.rehearsals --repetitions 40`: do the intervals of the final analysis cover the truth?

Every repetition plays a whole trial of its own, with people who react by a model of their own: 120 people, 40 days,
twice a day, with a weekly budget of reminders, people who are not available, a control group, two time zones,
drop-outs, late and missing outcomes, two frauds, outages of network and store, an upgrade and an erasure. Each estimate
has an interval of 95 %. Prints how often each has the truth in it, and ends with exit code 1 if, over all of them, that
is below 0.92.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import functools
import time

import numpy as np

from omg_trial.rehearsal.findings import Estimated, analyse
from omg_trial.rehearsal.player import FlakyDatabase, Player
from omg_trial.rehearsal.reactions import simple_model
from omg_trial.rehearsal.script import TROUBLE
from omg_trial.trial_file import Trial

LEAST = 0.92
TRIAL = """
[trial]
name = "twice a day"
horizon = 2
time_zone = "Europe/Berlin"

[states]
names = ["took it", "missed it"]
start = { "took it" = 0.6, "missed it" = 0.4 }

[actions]
names = ["nothing", "reminder"]
fallback = { nothing = 0.6, reminder = 0.4 }
unavailable = "nothing"
mean_per_week = { reminder = 8.4 }   # of 14: the fixed probabilities need 5.6, a learned policy may want 11.2
decisions_per_week = 14

[context.columns]
age = { low = 20, high = 90 }
lives = { labels = ["alone", "with others"] }

[rewards]
[dynamics]

[exploration]
floor = 0.2

[learning]
after_episodes = 0   # every evening

[people]
control = 0.3
"""


def repetition(seed: int, people: int, days: int) -> tuple[float, list[Estimated]]:
    """Play and analyse one trial; return its seconds of CPU, and its estimates."""
    began, trial = time.process_time(), Trial.parse(TRIAL)
    model = simple_model(trial, seed)
    player = Player(trial, FlakyDatabase(":memory:"), model, TROUBLE, people=people, days=days, seed=seed)
    player.play()
    found = analyse(player)
    return time.process_time() - began, found


def main() -> None:
    """Play all repetitions, and print a row for each estimate."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in {"repetitions": 40, "people": 120, "days": 40, "first-seed": 1000, "processes": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    seeds = range(asked.first_seed, asked.first_seed + asked.repetitions)
    play = functools.partial(repetition, people=asked.people, days=asked.days)
    by_name: dict[str, list[Estimated]] = collections.defaultdict(list)
    seconds = []
    with concurrent.futures.ProcessPoolExecutor(asked.processes) as pool:
        for seed, (used, found) in zip(seeds, pool.map(play, seeds), strict=True):
            seconds.append(used)
            print(f"seed {seed}: {sum(each.covered for each in found)} of {len(found)} cover", flush=True)
            for each in found:
                by_name[each.name].append(each)
    print(f"{'estimate':34} {'covered':>9} {'bias':>8} {'error':>7} {'stated':>7}")
    for name, rows in by_name.items():
        off = np.array([each.value - each.truth for each in rows])
        stated = np.mean([(each.high - each.low) / 2 / 1.98 for each in rows])
        covered = f"{sum(each.covered for each in rows)}/{len(rows)}"
        print(f"{name:34} {covered:>9} {off.mean():8.4f} {off.std():7.4f} {stated:7.4f}")
    every = [each.covered for rows in by_name.values() for each in rows]
    share = sum(every) / len(every)
    print(f"{sum(every)} of {len(every)} intervals ({share:.3f}) cover, in {len(seconds)} rehearsals.")
    print(f"A rehearsal took {np.median(seconds):.1f} s of CPU (at most {max(seconds):.1f}).")
    raise SystemExit(share < LEAST)


if __name__ == "__main__":
    main()
