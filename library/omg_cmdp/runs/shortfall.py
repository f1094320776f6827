"""How far an agent fell short of the best policy known, where the optimum is unknown.

This is not regret: an untried policy may be better. It is an estimate, with an interval, of

    (1/n)·Σ_t [V^best(c_t) - V^{π_t}(c_t)]

over the n episodes of a log, where best is, for each context, the policy with the largest mean return among those
given. Half of the rollouts choose it and the other half value it, so that the luckiest is not mistaken for the best.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from omg_cmdp.contexts import Context, alike
from omg_cmdp.environments.gymnasium.worlds import SampledWorld
from omg_cmdp.logs.log import Log
from omg_cmdp.validation import FloatArray, function, instance_of, integer, probability, seed_number

if TYPE_CHECKING:
    import pandas


def shortfall(
    world: SampledWorld,
    log: Log,
    policies: Mapping[str, Callable[[Context], FloatArray]],
    *,
    rollouts: int = 400,
    confidence: float = 0.95,
    seed: int = 0,
) -> pandas.DataFrame:
    """Return the shortfall of the episodes in `log` against the best of `policies`, for each context and for all.

    Parameters
    ----------
    world : SampledWorld
        An environment without tables, of `environments.from_gymnasium`.
    log : Log
        The episodes that were played there. None may be cut off, as what it would have earned is not known:
        `log.whole()` leaves such episodes out, which is fair only if they are not special.
    policies : mapping of str to callable
        Functions context -> policy by name, such as `agent.policy` of several agents.
    rollouts : int, default 400
        Number of episodes that each policy plays in each context of the log, at least 4.
    confidence : float, default 0.95
        The level of the intervals.
    seed : int, default 0
        The seed of the rollouts.

    Returns
    -------
    pandas.DataFrame
        Columns: the context (None for all of them), its number of episodes, their mean return (`played`), the name of
        the best policy known, its value, the shortfall and its interval, in the environment's units per episode.

    Examples
    --------
    >>> import omg_cmdp as omg
    >>> options = {"arguments": "success_rate", "horizon": 8, "reward_range": (0.0, 1.0), "tables": False}
    >>> lake = omg.environments.from_gymnasium("FrozenLake-v1", [0.5, 0.9], **options)
    >>> sizes = {"states": lake.space.states, "actions": lake.space.actions, "horizon": 8}
    >>> agent = omg.agents.Greedy(lake.space, omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))
    >>> log = omg.play(lake, agent, [0.5, 0.9, 0.5])
    >>> shortfall(lake, log, {"greedy": agent.policy}, rollouts=4)["episodes"].tolist()
    [2, 1, 3]
    """
    import pandas

    if not isinstance(world, SampledWorld):
        advice = "where there are tables, `omg_cmdp.simulate` has the exact regret"
        raise ValueError(f"`world` must be a SampledWorld, got {type(world).__name__}: {advice}")
    instance_of("log", log, Log)
    if not isinstance(policies, Mapping):
        raise ValueError(f"`policies` must be a mapping of names to functions, got {type(policies).__name__}")
    for policy in policies.values():
        function("policies", policy)
    if not policies or not len(log):
        got = f"{len(policies)} and {len(log)}"
        raise ValueError(f"`policies` and `log` must hold at least one policy and one episode, got {got}")
    log.require_whole()
    contexts, totals = log.contexts, log.returns
    half = integer("rollouts", rollouts, 4) // 2
    wide = statistics.NormalDist().inv_cdf(0.5 + 0.5 * probability("confidence", confidence))
    rows, variances = [], []
    for number, places in enumerate(alike(contexts)):
        context, returns = contexts[places[0]], totals[places]
        # Noise independent of that of other contexts and of the episodes played.
        own = int(np.random.SeedSequence((seed_number(seed), number)).generate_state(1, np.uint64)[0])
        earned = {
            name: world.returns(context, policy(context), 2 * half, seed=own) for name, policy in policies.items()
        }
        best = max(earned, key=lambda name: float(earned[name][:half].mean()))
        judged = earned[best][half:]
        spread = returns.var(ddof=1) if len(returns) > 1 else np.inf  # one episode says nothing about its noise
        variances.append(judged.var(ddof=1) / half + spread / len(returns))
        rows.append((context, len(returns), returns.mean(), best, judged.mean()))
    counts = np.array([count for _, count, *_ in rows])
    shares = counts / counts.sum()
    played, value = (float(shares @ [row[place] for row in rows]) for place in (2, 4))
    rows.append((None, int(counts.sum()), played, "", value))
    names = ("context", "episodes", "played", "best_known", "best_known_value")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    table = pandas.DataFrame({**columns, "context": pandas.Series(columns["context"], dtype=object)})
    table["shortfall"] = table["best_known_value"] - table["played"]
    error = wide * np.sqrt([*variances, math.fsum(shares**2 * variances)])
    return table.assign(low=table["shortfall"] - error, high=table["shortfall"] + error)
