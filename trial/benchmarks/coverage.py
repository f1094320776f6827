"""`python -m trial.benchmarks.coverage`: how often intervals of 95 % cover, over thousands of plain simulated trials.

A rehearsal plays the whole service, and takes half a minute. Here a trial is a few arrays: people with two steps a day,
two states, two groups of contexts, a control group, a floor of 0.2, and a policy that is learned every evening from
everybody and takes what looks better, as hard as the floor allows. The analysis is that of `omg_trial.analysis`. Each
trial has a world of its own. Prints a row for every shape of a trial, and a column for every estimate: the share of
intervals with the truth in them. The truth is that of the people who were there, as in `omg_trial.rehearsal.findings`.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas
from numpy.typing import NDArray

from omg_trial.analysis import arm_difference, earned, treatment_effect
from omg_trial.trial_file import EXAMPLE, Trial

REMIND, FLOOR, AWAY, CONTROL = 0.4, 0.2, 0.1, 0.3
"""The fixed probability of a reminder, the floor, and the shares of decisions not available and of control people."""
TRIAL = Trial.parse(EXAMPLE.replace("nothing = 0.5, reminder = 0.5", "nothing = 0.6, reminder = 0.4"))
Array = NDArray[Any]
TOGETHER = 250
"""Trials that are simulated side by side."""


@dataclasses.dataclass(frozen=True)
class Shape:
    """What a trial is like."""

    people: int = 50
    days: int = 10
    effect: float = 0.1
    slope: float = 0.15
    """How much the effect differs between groups, at most."""
    spread: float = 0.05
    """Standard deviation of a person's own level."""
    own: float = 0.0
    """Standard deviation of a person's own effect."""
    leave: float = 0.004
    scale: float = 1.0
    """The mean reward is about half of it."""
    heavy: bool = False
    """Rewards are lognormal, with a standard deviation of three times their mean; else 0 or 1."""


SHAPES = {
    "as rehearsed": Shape(),
    "larger": Shape(people=120, days=20),
    "no effect": Shape(effect=0.0, slope=0.0),
    "few people": Shape(people=14),
    "people differ": Shape(spread=0.2, own=0.1),
    "most leave": Shape(days=20, leave=0.15),
    "rewards 1 in 20": Shape(days=20, scale=0.1),
    "rewards 1 in 40": Shape(scale=0.05),
    "heavy tails": Shape(heavy=True),
}


class Worlds:
    """Some trials of one shape, side by side: arrays begin with (trials, people)."""

    def __init__(self, shape: Shape, seed: int, trials: int = TOGETHER) -> None:
        self.shape, self.draw = shape, np.random.default_rng(seed)
        draw, size = self.draw, (trials, shape.people)
        self.trial = np.arange(trials)[:, None]
        self.group, self.control = draw.integers(0, 2, size), draw.random(size) < CONTROL
        self.level = shape.spread * np.clip(draw.normal(size=size), -2.0, 2.0)
        effects = shape.effect + draw.uniform(-shape.slope, shape.slope, (trials, 2))
        self.effect = effects[self.trial, self.group] + shape.own * draw.normal(size=size)
        self.base = draw.uniform(-0.1, 0.1, (trials, 2))
        self.after = draw.dirichlet([2.0, 2.0], (trials, 2, 2))
        self.count = np.ones((trials, 2, 2, 2))  # of group, state and action; the prior mean is a half
        self.total = 0.5 * shape.scale * self.count
        self.moves = np.ones((trials, 2, 2, 2))

    def mean(self, state: Array | int, action: Array | int) -> Array:
        """Return the expected reward of everybody."""
        share = 0.5 + self.base[self.trial, state] + self.level + action * self.effect
        return np.asarray(self.shape.scale * np.clip(share, 0.02, 0.98))

    def policy(self) -> list[Array]:
        """Return the probability of a reminder by trial, group and state, for each of two steps."""
        rewards = self.total / self.count
        chances = self.moves / self.moves.sum(axis=-1, keepdims=True)
        first = rewards + np.einsum("tsan,tgn->tgsa", chances, rewards.max(axis=-1))
        return [np.where(each[..., 1] > each[..., 0], 1.0 - FLOOR, FLOOR) for each in (first, rewards)]

    def play(self) -> dict[str, Array]:
        """Play all days; return the columns of the table and the truths, (trials, people, days, steps)."""
        shape, draw, size = self.shape, self.draw, self.group.shape
        here = np.ones(size, dtype=bool)
        columns: dict[str, list[Array]] = collections.defaultdict(list)
        for _ in range(shape.days):
            here = here & (draw.random(size) >= shape.leave)
            known, state = self.policy(), (draw.random(size) >= 0.6).astype(int)
            arms = [np.where(self.control[..., None], REMIND, each[self.trial, self.group]) for each in known]
            fixed = [np.full((*size, 2), REMIND)] * 2
            lessons = []
            for step, (truth, other) in enumerate(
                zip(self.values(arms, state), self.values(fixed, state), strict=True)
            ):
                chance = np.take_along_axis(arms[step], state[..., None], -1)[..., 0]
                available = draw.random(size) >= AWAY
                action = (available & (draw.random(size) < chance)).astype(int)
                mean = self.mean(state, action)
                noise = np.exp(1.5 * draw.normal(size=size) - 1.125) if shape.heavy else draw.random(size) < mean
                reward = mean * noise if shape.heavy else noise.astype(float)
                seen = draw.random(size) >= 0.04
                row = {"here": here, "state": state, "action": action, "available": available, "chance": chance}
                row |= {"reward": np.where(seen, reward, np.nan), "played": truth, "fixed": other}
                row |= {"gain": self.mean(state, 1) - self.mean(state, 0)}
                for name, each in row.items():
                    columns[name].append(each)
                after = (draw.random(size) < self.after[self.trial, state, action, 1]).astype(int)
                lessons.append((state, action, after, reward, here & seen & ~self.control))
                state = after
            self.learn(lessons)
        return {name: np.stack(each, -1).reshape(*size, shape.days, 2) for name, each in columns.items()}

    def values(self, policy: list[Array], state: Array) -> Iterator[Array]:
        """Yield the expected reward of each step, given the first state of the episode."""
        here = np.eye(2)[state]
        for chances in policy:
            reward, after = np.zeros(state.shape), np.zeros((*state.shape, 2))
            for each in range(2):
                drawn = (1.0 - AWAY) * chances[..., each]
                for action, chance in enumerate((1.0 - drawn, drawn)):
                    reward += here[..., each] * chance * self.mean(each, action)
                    after += (here[..., each] * chance)[..., None] * self.after[self.trial, each, action]
            yield reward
            here = after

    def learn(self, lessons: Sequence[tuple[Array, ...]]) -> None:
        """Learn a day of everybody who is not in the control group."""
        for state, action, after, reward, counts in lessons:
            trial = np.broadcast_to(self.trial, state.shape)
            np.add.at(self.count, (trial, self.group, state, action), counts)
            np.add.at(self.total, (trial, self.group, state, action), counts * reward)
            np.add.at(self.moves, (trial, state, action, after), counts)


def covered(shape: Shape, seed: int, trials: int = TOGETHER) -> dict[str, list[bool]]:
    """Return for every estimate whether the interval of each trial covers."""
    worlds, trial = Worlds(shape, seed, trials), TRIAL
    played = worlds.play()
    found: dict[str, list[bool]] = collections.defaultdict(list)
    for number in range(trials):
        person, day, step = places = np.nonzero(played["here"][number])
        told = {name: each[number][places] for name, each in played.items()}
        drawn, arm = told["available"].astype(bool), np.where(worlds.control[number], "control", "learning")[person]
        chance = np.where(drawn, told["chance"], np.nan)
        table = pandas.DataFrame(
            {
                "person": person,
                "episode": person * shape.days + day,
                "step": step,
                "arm": arm,
                "state": np.array(trial.states)[told["state"]],
                "drawn": np.where(drawn, np.array(trial.actions, dtype=object)[told["action"]], None),
                "probability_nothing": 1.0 - chance,
                "probability_reminder": chance,
                "reward": told["reward"],
                "withdrawn": False,
            }
        )
        learning = arm == "learning"
        if not 1 < len(set(person[~learning])) < worlds.group.shape[1] - 2:
            continue  # one arm alone
        gain = (told["played"] - told["fixed"])[learning].mean()
        estimates = {
            treatment_effect(trial, table, "reminder"): [told["gain"][drawn].mean()],
            earned(trial, table): [told["fixed"][learning].mean(), gain],
            arm_difference(trial, table): [told["fixed"].mean(), gain],
        }
        for estimate, truths in estimates.items():
            for name, (low, high), truth in zip(estimate.names, estimate.interval(), truths, strict=True):
                found[name].append(bool(low - 1e-12 <= truth <= high + 1e-12))
    return found


def main() -> None:
    """Print a row for each shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--shape", choices=list(SHAPES), action="append")
    asked = parser.parse_args()
    for place, name in enumerate(asked.shape or SHAPES):
        found: dict[str, list[bool]] = collections.defaultdict(list)
        for first in range(0, asked.repetitions, TOGETHER):
            for estimate, each in covered(SHAPES[name], first, min(TOGETHER, asked.repetitions - first)).items():
                found[estimate] += each
        if not place:
            print(f"{'':16}", "".join(f"{estimate:>31}" for estimate in found))
        print(f"{name:16}", "".join(f"{np.mean(each):31.3f}" for each in found.values()), flush=True)


if __name__ == "__main__":
    main()
