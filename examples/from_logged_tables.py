"""From a table of logged episodes to an agent, and to what its policy is worth before it is played.

The log is a trial in which treatments were drawn at random. Here it is simulated, so that the estimates can be compared
with the exact value; of your own log you need only the table.
"""

from typing import Any

import numpy as np
import pandas

import omg_cmdp as omg
import omg_lab
from omg_cmdp.agents import Greedy
from omg_cmdp.logs import Estimate, doubly_robust, importance_sampling, read_table, warm_start

FEATURES = ["age", "weight", "kidneys", "heart"]


def trial(world: omg.ContextualMDP, patients: int) -> pandas.DataFrame:
    """Return a table with a row for every visit; treatments are drawn uniformly among the admissible ones."""
    rng, space = np.random.default_rng(0), world.space
    uniform = np.tile(space.admissible / space.admissible.sum(axis=1, keepdims=True), (space.horizon, 1, 1))
    log = omg.Log(space)
    for _ in range(patients):
        context = rng.uniform(-1.0, 1.0, size=len(FEATURES))
        log.add(world.sample(context, uniform, rng))
    return log.table().rename(columns={f"context_{place}": name for place, name in enumerate(FEATURES)})


def say(name: str, estimate: Estimate) -> None:
    """Print an estimate."""
    size, error = estimate.effective_sample_size, estimate.standard_error
    print(f"  {name:20s} {estimate.value:.3f} ± {error:.3f}   (as good as {size:.0f} patients of its own)")


def main() -> None:
    """Learn from the first half of the trial, and judge by the second."""
    world = omg_lab.worlds.TreatmentTrial(horizon=3)
    table = trial(world, patients=2000)
    print(table.head(3).round(2).to_string(), "\n")

    log = read_table(table, space=world.space, context=FEATURES)
    first, second = log[:1000], log[1000:]
    sizes: dict[str, Any] = {"states": 5, "actions": 3, "dimension": 4, "horizon": 3, "feature_norm": 2.0}
    agent = warm_start(
        Greedy(world.space, omg.oracles.LinearRewards(**sizes), omg.oracles.SoftmaxDynamics(**sizes)), first
    )

    exact = np.mean([omg.policy_value(world.mdp(context), agent.policy(context)) for context in second.contexts])
    print("What the learned policy is worth, from patients who were treated at random:")
    say("importance sampling", importance_sampling(second, agent.policy))
    say("the same, weighted", importance_sampling(second, agent.policy, weighted=True))
    robust = doubly_robust(second, agent.policy, agent.model)
    say("doubly robust", robust)
    print(f"  exact                {exact:.3f}; the trial's own policy earned {second.returns.mean():.3f}")
    near = abs(robust.value - exact) <= 2.0 * robust.standard_error
    print(f"The exact value is {'within' if near else 'more than'} two standard errors of the estimate.")


if __name__ == "__main__":
    main()
