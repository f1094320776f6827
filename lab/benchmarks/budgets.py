"""Budgets: OMG, untuned, against agents that keep budgets in other ways, in three worlds.

    python -m lab.benchmarks.budgets [--episodes 200 500 1000] [--seeds 400 410] [--oracles counts finite]
        [--cautious 100] [--workers 2]

Each agent knows costs and budgets, and has the same oracles where it takes any: counts, and the world's finite classes.
OptCMDP, OptPess and OptPrimalDual have counts only: their bonuses are functions of how often a cell was seen. Shorter
plays are the beginnings of the longest one. The scales of the rivals were chosen on the seeds 100 and 101. Figures are
exact expectations of the policies played:

    regret      V* - V^π, V* that of the best policy within the budgets; negative where a policy exceeds them
    violation   what the policy costs above the budget; of two budgets, the larger excess
    charged     regret + Σ_j λ*_j·(excess over b_j)₊, with the true prices λ*: never negative

With `--cautious N`, N short runs of `OMG(cautious=True)` in each world, and as many without caution: in how many the
budget was ever exceeded.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
from collections.abc import Callable, Mapping, Sequence
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


def play(kind: Callable[..., World], name: str, options: dict[str, Any], episodes: int, seed: int) -> np.ndarray:
    """Return regret, violation and what is charged, (episodes, 3), of one run."""
    make, own = {**WITH_ORACLES, **ON_COUNTS}[name]
    world = kind(seed=seed)
    setting, rows = Setting(world=world, seed=seed, episodes=episodes), []
    agent = make_agent(make, {**own, **options}, setting)

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


def table(pool: concurrent.futures.Executor, oracles: str, lengths: Sequence[int], seeds: range) -> None:
    """Print a table of all agents in all worlds: totals after each of the `lengths`."""
    print(f"\n{oracles}, {len(seeds)} seeds: totals after {' / '.join(map(str, lengths))} episodes")
    print("charged: mean ± half a 95 % interval; late: the last half\n")
    print("| world | agent | regret | violation | charged | violation an episode, late | late excess of 5 % |")
    print("|---|---|---|---|---|---|---|")
    told = {"oracles": oracles}
    agents = {
        **dict.fromkeys(WITH_ORACLES, told),
        **({name: {} for name in ON_COUNTS} if oracles == "counts" else {}),
    }
    cells = [(kind, name) for kind in WORLDS for name in agents]
    found = {
        (kind, name): [pool.submit(play, kind, name, agents[name], max(lengths), seed) for seed in seeds]
        for kind, name in cells
    }
    for kind, name in cells:
        runs = np.array([each.result() for each in found[kind, name]])
        totals = runs.cumsum(axis=1)[:, np.array(lengths) - 1]
        means = totals.mean(axis=0)
        intervals = [mean_interval(column) for column in totals[:, :, 2].T]
        late = runs[:, max(lengths) // 2 :, 1]
        shown = [
            " / ".join(f"{total:.1f}" for total in means[:, 0]),
            " / ".join(f"{total:.1f}" for total in means[:, 1]),
            " / ".join(f"{each.mean:.1f} ± {each.high - each.mean:.1f}" for each in intervals),
            f"{late.mean():.3f}",
            f"{np.mean(late > 0.05 * kind().budgets.min()):.0%}",
        ]
        print(f"| {kind.__name__} | {name} | {' | '.join(shown)} |", flush=True)


def caution(pool: concurrent.futures.Executor, oracles: str, runs: int, episodes: int) -> None:
    """Print in how many runs a budget was ever exceeded, with caution and without, and what both lost."""
    print(f"\n{oracles}, {runs} runs of {episodes} episodes, δ = 0.05\n")
    print("| world | OMG | runs that exceed the budget | violation of a run | regret of a run |\n|---|---|---|---|---|")
    for kind in WORLDS:
        for cautious in (False, True):
            options = {"oracles": oracles, "cautious": cautious}
            plays = [pool.submit(play, kind, "OMG", options, episodes, 1000 + number) for number in range(runs)]
            found = np.array([each.result() for each in plays])
            over = sum(bool((each[:, 1] > 1e-9).any()) for each in found)
            lost, spent = mean_interval(found.sum(axis=1)[:, 0]), found.sum(axis=1)[:, 1].mean()
            name = "cautious" if cautious else "default"
            shown = f"{spent:.2f} | {lost.mean:.1f} ± {lost.high - lost.mean:.1f}"
            print(f"| {kind.__name__} | {name} | {over} of {runs} | {shown} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, nargs="+", default=(200, 500, 1000))
    parser.add_argument("--seeds", type=int, nargs=2, default=(400, 410))
    parser.add_argument("--oracles", nargs="*", default=("counts", "finite"))
    parser.add_argument("--cautious", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    with concurrent.futures.ProcessPoolExecutor(given.workers) as pool:
        for oracles in given.oracles:
            table(pool, oracles, given.episodes, range(*given.seeds))
            if given.cautious:
                caution(pool, oracles, given.cautious, 20)


if __name__ == "__main__":
    main()
