"""`python -m lab.benchmarks.off_policy [--logs N]`: off-policy estimates against exact values, for H = 5, 14 and 30.

Each log is 400 episodes of contexts drawn at random, played by a mixture of the optimal and the uniform policy. Another
mixture is valued, once from every log. The model of the doubly robust estimates is wrong: the MDP of another context.
The exact value is the mean over all contexts of the world.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd

from omg_cmdp import Log, optimal_policy, policy_value
from omg_cmdp.contexts import Context, table_label
from omg_cmdp.logs import Support, evaluate
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import FloatArray
from omg_lab.worlds import RiverSwim, SoftmaxWorld, TreatmentTrial, World

from .grid import markdown

EPISODES = 400
ANY = "the one believed"


@dataclasses.dataclass(frozen=True)
class Case:
    """A world, and the shares of the uniform policy in what played and in what is valued."""

    world: World
    played: float
    valued: float

    def mixture(self, context: Context, share: float) -> FloatArray:
        """Return a mixture of the optimal and the uniform policy."""
        space = self.world.space
        uniform = space.admissible / space.admissible.sum(axis=1, keepdims=True)
        return np.asarray((1.0 - share) * optimal_policy(self.world.mdp(context))[0] + share * uniform)

    def target(self, context: Context) -> FloatArray:
        """Return the policy that is valued."""
        return self.mixture(context, self.valued)

    def wrong_model(self, context: Context) -> TabularMDP:
        """Return the MDP of the next context."""
        contexts = self.world.contexts
        place = [table_label(each) for each in contexts].index(table_label(context))
        return self.world.mdp(contexts[(place + 1) % len(contexts)])

    def log(self, seed: int) -> Log:
        """Return what was played."""
        generator, contexts = np.random.default_rng((self.world.space.horizon, seed)), self.world.contexts
        played, log = [self.mixture(context, self.played) for context in contexts], Log(self.world.space)
        for place in generator.integers(len(contexts), size=EPISODES):
            log.add(self.world.sample(contexts[place], played[place], generator))
        return log

    def exact(self) -> float:
        """Return the exact value."""
        values = [policy_value(self.world.mdp(context), self.target(context)) for context in self.world.contexts]
        return float(np.mean(values))


def cases() -> list[Case]:
    return [
        Case(SoftmaxWorld(seed=1), played=1.0, valued=0.5),
        Case(TreatmentTrial(horizon=14, context_count=8, seed=1), played=1.0, valued=0.5),
        Case(RiverSwim(horizon=30), played=0.6, valued=0.3),
    ]


def measure(case: Case, logs: int) -> pd.DataFrame:
    """Return a row for every estimator: bias, deviation, effective sample size, share supported and coverage."""
    exact, found = case.exact(), defaultdict(list)
    for seed in range(logs):
        made = evaluate(case.log(seed), case.target, model=case.wrong_model)
        believed = {ANY: made.supported[0]} if made.supported else {}
        for name, source in ({each: each for each in made.estimates} | believed).items():
            each, (low, high) = made.estimates[source], made.intervals[source]
            good = each.support is Support.GOOD
            found[name].append((each.value, each.effective_sample_size, good, low <= exact <= high, high - low))
    rows: list[dict[str, Any]] = []
    for name, numbers in found.items():
        values, sizes, good, covered, widths = np.array(numbers, dtype=float).T
        good = good > 0.0
        rows.append(
            {
                "H": case.world.space.horizon,
                "estimator": name,
                "bias": f"{values.mean() - exact:+.3f}",
                "deviation": f"{values.std():.3f}",
                "effective sample": "" if np.isnan(sizes).any() else f"{np.median(sizes):.0f}",
                "supported": f"{good.sum() / logs:.0%}",
                "covered": f"{covered[good].mean():.3f}" if good.any() else "",
                "half width": f"{widths[good].mean() / 2.0:.2f}" if good.any() else "",
            }
        )
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks.off_policy", description=__doc__)
    parser.add_argument("--logs", type=int, default=200)
    logs = parser.parse_args().logs
    for case in cases():
        print(f"{type(case.world).__name__}: the value is {case.exact():.3f}, {logs} logs of {EPISODES} episodes\n")
        print(markdown(measure(case, logs)), "\n", flush=True)


if __name__ == "__main__":
    main()
