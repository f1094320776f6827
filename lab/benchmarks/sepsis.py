"""OMG on the contextual ICU-Sepsis at full size, H = 10: 100 episodes, every plan certified, exact regret and gap.

`python -m lab.benchmarks.sepsis [--episodes N]`. An episode takes two plans, one rough for the weights, one
certified. The context gap is V*(c) minus the value of a single policy, mean over contexts, for the best one among the
policies that are optimal in one of the contexts, or in their average.
"""

from __future__ import annotations

import argparse
import collections
import time

import numpy as np

from omg_cmdp import OMG, Status, optimal_policy, plan, simulate
from omg_cmdp.adversaries import IID
from omg_cmdp.oracles import FiniteDynamics, KnownRewards
from omg_cmdp.theory.rounds import Round
from omg_lab.data.icu_sepsis import ICUSepsis

from .report import Report, Row, show
from .timing import peak_memory

EPISODES, QUICK = 100, 5


def contextual_sepsis(*, quick: bool, episodes: int = EPISODES) -> Report:
    """Play, and report certificates, times, regret and what the context is worth."""
    episodes = QUICK if quick else episodes
    world, last = ICUSepsis(), collections.deque[Round](maxlen=1)  # a round holds a model of 100 MB
    horizon = world.space.horizon
    rewards = KnownRewards(world.reward_functions(world.contexts[0])[0], horizon=horizon)
    dynamics = FiniteDynamics(world.transition_functions, horizon=horizon)
    agent = OMG(world.space, rewards, dynamics, episodes=episodes)
    ledger = simulate(world, IID(world.contexts), agent, episodes, observe=last.append)
    tolerance = 1.0 / (16 * episodes)
    certificates, regret = ledger.column("certificate"), ledger.regret
    gap, optimum = context_gap(world)
    tenth = max(1, episodes // 10)
    rows = [
        Row("plans certified", float((certificates <= tolerance).sum()), at_least=episodes),
        Row("largest certificate / its tolerance", float(certificates.max() / tolerance), at_most=1),
        Row("iterations of a plan, most", float(ledger.column("iterations").max())),
        Row("a plan", plan_seconds(last[0], tolerance), "s"),
        Row("an episode", float(np.median(sum(ledger.column(f"seconds_{part}") for part in PARTS))), "s"),
        Row("V*, mean over contexts", optimum),
        Row("context gap, mean", gap),
        Row(f"regret, mean of the first {tenth}", float(regret[:tenth].mean())),
        Row(f"regret, mean of the last {tenth}", float(regret[-tenth:].mean())),
        Row("peak memory of the process", peak_memory(), "GiB"),
    ]
    sizes = f"H = {horizon}, S = 716, A = 25, {len(world.contexts)} contexts"
    title = f"Contextual ICU-Sepsis ({sizes}), {episodes} episodes of OMG"
    return Report(title=title, rows=rows, details={"certificates": certificates.tolist(), "regret": regret.tolist()})


PARTS = ("deciding", "playing", "learning", "accounting")


def context_gap(world: ICUSepsis) -> tuple[float, float]:
    """Return what a single policy loses against one for each context, and the mean optimum; both exact."""
    truths = [world.truth(context) for context in world.contexts]
    average = world.space.mdp(
        transitions=sum(truth.mdp.transitions for truth in truths) / len(truths), rewards=truths[0].mdp.rewards
    )
    singles = [optimal_policy(average)[0], *(truth.best[0] for truth in truths)]
    optimum = float(np.mean([truth.best[1] for truth in truths]))
    return optimum - max(float(np.mean([truth.value(policy) for truth in truths])) for policy in singles), optimum


def plan_seconds(played: Round, tolerance: float) -> float:
    """Return the time of the last episode's plan, solved once more."""
    decision = played.decision
    assert decision.model is not None
    began = time.perf_counter()
    again = plan(decision.model, decision.gamma, weights=decision.weights, tolerance=tolerance)
    assert again.status is Status.SOLVED
    return time.perf_counter() - began


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=EPISODES)
    show(contextual_sepsis(quick=False, episodes=parser.parse_args().episodes))
