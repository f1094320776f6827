"""Budgets: OMG, untuned, against agents that keep budgets in other ways, in three worlds.

    python -m lab.benchmarks.budgets [--episodes 200] [--seeds 20 30] [--oracles counts finite] [--cautious 100]

Each agent knows costs and budgets, and has the same oracles where it takes any: counts, and the world's finite classes.
The scales of the rivals were chosen on the seeds 100 and 101. Figures are exact expectations of the policies played:

    regret      V* - V^π, V* that of the best policy within the budgets; negative where a policy exceeds them
    violation   what the policy costs above the budget; of two budgets, the larger excess
    charged     regret + Σ_j λ*_j·(excess over b_j)₊, with the true prices λ*: never negative

With `--cautious N`, N short runs of `OMG(cautious=True)` in each world: in how many the budget was ever exceeded.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import omg_cmdp as omg
from omg_cmdp.mdp.budgets import best_within
from omg_cmdp.theory.rounds import Round
from omg_lab import rivals
from omg_lab.reports.statistics import mean_interval
from omg_lab.studies.agents import Setting, make_agent
from omg_lab.worlds import Maintenance, Reminders, SideEffects, World

WORLDS = (Reminders, SideEffects, Maintenance)
WITH_ORACLES: Mapping[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "OMG": (omg.OMG, {}),
    "posterior sampling": (omg.agents.PosteriorSampling, {}),
    "greedy": (omg.agents.Greedy, {}),
    "clipped after planning": (rivals.Clipped, {}),
    "Lagrangian greedy": (rivals.LagrangianGreedy, {"step": {"scale": 0.3, "exponent": -0.5}}),
}
ON_COUNTS: Mapping[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "OptCMDP": (rivals.OptCMDP, {"scale": 0.003}),
    "OptPess": (rivals.OptPess, {"scale": 0.003}),
    "OptPrimalDual": (
        rivals.OptPrimalDual,
        {"scale": 0.003, "policy_step": 1.0, "price_step": {"scale": 0.3, "exponent": -0.5}},
    ),
}


def play(world: World, make: Callable[..., Any], options: dict[str, Any], episodes: int, seed: int) -> np.ndarray:
    """Return regret, violation and what is charged, (episodes, 3)."""
    agent, rows = make_agent(make, options, Setting(world=world, seed=seed, episodes=episodes)), []

    @functools.cache
    def prices(context: Any) -> np.ndarray:
        truth = world.truth(world.contexts[context])
        assert truth.limits is not None  # these worlds have budgets
        return best_within(truth.mdp, truth.limits).prices / truth.limits.scales

    places = {str(context): place for place, context in enumerate(world.contexts)}

    def observe(this: Round) -> None:
        excess = np.maximum(this.costs - this.budgets, 0.0)
        rows.append([this.regret, excess.max(), this.regret + prices(places[str(this.played.context)]) @ excess])

    omg.simulate(
        world, omg.adversaries.IID(world.contexts), agent, episodes, seed=seed, observe=observe, progress=False
    )
    return np.array(rows)


def table(oracles: str, episodes: int, seeds: range) -> None:
    """Print a table of all agents in all worlds."""
    print(f"\n{oracles}, {episodes} episodes, {len(seeds)} seeds: totals, mean ± half a 95 % interval\n")
    print("| world | agent | regret | violation | charged | violation an episode, last half | exceeds by > 5 % |")
    print("|---|---|---|---|---|---|---|")
    for kind in WORLDS:
        for name, (make, options) in {**WITH_ORACLES, **(ON_COUNTS if oracles == "counts" else {})}.items():
            given = {"oracles": oracles, **options} if name in WITH_ORACLES else options
            runs = np.array([play(world := kind(seed=seed), make, dict(given), episodes, seed) for seed in seeds])
            sums = [mean_interval(runs[:, :, column].sum(axis=1)) for column in range(3)]
            shown = [f"{each.mean:.1f} ± {each.high - each.mean:.1f}" for each in sums]
            late = runs[:, episodes // 2 :, 1]
            often = np.mean(late > 0.05 * world.budgets.min())
            print(f"| {kind.__name__} | {name} | {' | '.join(shown)} | {late.mean():.3f} | {often:.0%} |", flush=True)


def caution(runs: int, episodes: int) -> None:
    """Print in how many runs a budget was ever exceeded, with caution and without, and what both lost."""
    print(f"\nfinite, runs of {episodes} episodes, δ = 0.05\n")
    print("| world | OMG | runs that exceed the budget | total violation | regret |\n|---|---|---|---|---|")
    for kind in WORLDS:
        for cautious, many in ((False, runs // 5), (True, runs)):
            options = {"oracles": "finite", "cautious": cautious}
            found = [play(kind(seed=seed), omg.OMG, dict(options), episodes, seed) for seed in range(200, 200 + many)]
            total = np.array(found).sum(axis=1)
            over = sum(bool((each[:, 1] > 1e-9).any()) for each in found)
            name = "cautious" if cautious else "default"
            lost, spent = total[:, 0].mean(), total[:, 1].mean()
            print(f"| {kind.__name__} | {name} | {over} of {many} | {spent:.2f} | {lost:.1f} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs=2, default=(20, 30))
    parser.add_argument("--oracles", nargs="*", default=("counts", "finite"))
    parser.add_argument("--cautious", type=int, default=0)
    given = parser.parse_args()
    for oracles in given.oracles:
        table(oracles, given.episodes, range(*given.seeds))
    if given.cautious:
        caution(given.cautious, 20)


if __name__ == "__main__":
    main()
