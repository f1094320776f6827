"""`python -m trial.benchmarks.budgets`: messages planned within a budget, or taken away afterwards, at the same burden.

Simulated trials of an app that may send a message a day: four groups of people, weeks of seven days, a new model every
week. Three kinds of people, each in trials of their own:

    tiring     a message helps in a receptive moment, a little in a busy one, and tires, so that the next helps less
    rested     the same, but nobody tires: what a message does depends on its moment alone
    steady     nobody tires, and all moments are alike: there is nothing to plan

Each trial is played by three arms:

    limit      plans without a budget; the weekly limit of the trial file (`mean_per_week`) lowers their probabilities
    clipped    plans without a budget; then all messages are made less likely, until the model expects the budget
    planned    `[budgets]` in the trial file, with what the limited and the clipped arm of the same trial have spent

Prints what a week earns and how many messages it has, and the difference between the arms, each with a 95 % interval
over the trials.
"""

from __future__ import annotations

import argparse
import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omg_cmdp import TabularMDP, Trajectory, occupancy_measure
from omg_cmdp.sampling import draw_index
from omg_trial.decisions import make_plan
from omg_trial.people.participants import WeekAccount
from omg_trial.rules import apply_rules
from omg_trial.trial_file import Trial

Array = NDArray[Any]
FILE = """
[trial]
name = "messages"
horizon = 7
[states]
names = ["fresh, busy", "fresh, receptive", "tired, busy", "tired, receptive", "annoyed, busy", "annoyed, receptive"]
[actions]
names = ["nothing", "message"]
fallback = { nothing = 0.8, message = 0.2 }
LIMIT
[context]
labels = ["a", "b", "c", "d"]
[rewards]
[dynamics]
[exploration]
floor = 0.05
"""
LIMIT = "decisions_per_week = 7\nmean_per_week = { message = 2 }"
BUDGET = "[budgets.messages]\nmost = {most}\ncosts = {{ message = 1 }}\n"
NOON = datetime.datetime(2026, 11, 2, 12, tzinfo=datetime.UTC)


def people(trial: Trial, kind: str, rng: np.random.Generator) -> dict[str, TabularMDP]:
    """Return the truth of every group: what messages do, and how people tire of them."""
    left = (1.0, 0.6, 0.2) if kind == "tiring" else (1.0, 1.0, 1.0)
    found = {}
    for label in trial.labels:
        busy, receptive = rng.uniform(0.0, 0.15), rng.uniform(0.25, 0.55)
        more, less, often = rng.uniform(0.2, 0.5), rng.uniform(0.3, 0.6), rng.uniform(0.25, 0.5)
        if kind == "steady":
            busy = receptive = 0.5 * (busy + receptive)
        rewards, transitions = np.full((6, 2), 0.2), np.zeros((6, 2, 6))
        for state in range(6):
            fatigue, moment = divmod(state, 2)
            rewards[state, 1] += left[fatigue] * (busy, receptive)[moment]
            for action, (then, chance) in enumerate(((max(fatigue - 1, 0), less), (min(fatigue + 1, 2), more))):
                for after, weight in ((fatigue, 1.0 - chance), (then, chance)):
                    transitions[state, action, 2 * after : 2 * after + 2] += weight * np.array([1.0 - often, often])
        found[label] = trial.space.mdp(transitions=transitions, rewards=rewards)
    return found


def clip(trial: Trial, agent: Any, label: str, policy: Array, most: float) -> Array:
    """Return the policy with messages made less likely, down to the floor, until the model expects `most` of them."""
    rewards, dynamics = (each.oracle.predict(label) for each in (agent.reward_oracle, agent.dynamics_oracle))
    model = trial.space.mdp(transitions=dynamics, rewards=rewards)
    never = np.tile([0.95, 0.05], (*policy.shape[:2], 1))
    low, high = 0.0, 1.0
    for _ in range(30):
        share = 0.5 * (low + high)
        fits = occupancy_measure(model, (1.0 - share) * policy + share * never)[..., 1].sum() <= most
        low, high = (low, share) if fits else (share, high)
    return (1.0 - high) * policy + high * never


def play(text: str, arm: str, most: float, kind: str, seed: int, weeks: int, each: int) -> tuple[float, float]:
    """Return the mean reward and the mean number of messages of a week, after the first one."""
    trial = Trial.parse(text)
    truth, rng = people(trial, kind, np.random.default_rng((seed, 0))), np.random.default_rng((seed, 1))
    agent, kept = trial.agent(), []
    for week in range(weeks):
        policies = {label: make_plan(trial, agent, f'"{label}"').policy for label in trial.labels}
        if arm == "clipped":
            policies = {label: clip(trial, agent, label, policy, most) for label, policy in policies.items()}
        episodes = []
        for label in [label for label in trial.labels for _ in range(each)]:
            mdp, account, states, actions, rewards = truth[label], WeekAccount("w"), [0], [], []
            for step in range(7):
                row = policies[label][step, states[-1]]
                chances = apply_rules(trial, row, states[-1], NOON, account, {}).chances
                action = draw_index(chances, rng.random())
                account = account.after(action, chances.tolist())
                actions.append(action)
                rewards.append(float(rng.random() < mdp.rewards[states[-1], action]))
                states.append(draw_index(mdp.transitions[states[-1], action], rng.random()))
            episodes.append(Trajectory(context=label, states=states, actions=actions, rewards=rewards))
        for episode in episodes:
            agent.update(episode)
        kept += [(sum(e.rewards), sum(e.actions)) for e in episodes] if week else []
    earned, sent = np.mean(kept, axis=0)
    return float(earned), float(sent)


def shown(values: Array) -> str:
    """Return a mean and its 95 % interval (normal, over the trials)."""
    mean, reach = values.mean(), 1.96 * values.std(ddof=1) / len(values) ** 0.5
    return f"{mean:.3f} ({mean - reach:.3f} to {mean + reach:.3f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--weeks", type=int, default=8)
    parser.add_argument("--each", type=int, default=10, help="people in each of the four groups")
    parser.add_argument("--people", nargs="*", default=("tiring", "rested", "steady"))
    given = parser.parse_args()
    print(f"{given.trials} trials of each kind of people, {4 * given.each} people, {given.weeks} weeks")
    for kind in given.people:
        report(kind, given.trials, given.weeks, given.each)


def report(kind: str, trials: int, weeks: int, each: int) -> None:
    """Print the table of one kind of people."""
    plain, found = FILE.replace("LIMIT", ""), []
    for seed in range(trials):
        sizes = (kind, seed, weeks, each)
        limited = play(FILE.replace("LIMIT", LIMIT), "limit", 2.0, *sizes)
        clipped = play(plain, "clipped", 2.0, *sizes)
        beside = [play(plain + BUDGET.format(most=spent), "planned", spent, *sizes) for _, spent in (limited, clipped)]
        found.append([limited, beside[0], clipped, beside[1]])
    table = np.array(found)
    print(f"\n| {kind} people | earned in a week | messages in a week |\n|---|---|---|")
    names = ("weekly limit", "planned, same burden", "clipped in the model", "planned, same burden")
    for place, name in enumerate(names):
        print(f"| {name} | {shown(table[:, place, 0])} | {shown(table[:, place, 1])} |")
    for place, name in ((0, "the weekly limit"), (2, "clipping")):
        earned, sent = (table[:, place + 1] - table[:, place]).T
        print(f"planned less {name}: {shown(earned)} earned, {shown(sent)} messages", flush=True)


if __name__ == "__main__":
    main()
