"""What a policy would be worth, estimated from episodes played by another one.

With ρ_h = π_h(a_h|s_h)/p_h the ratio of the policy's probability to the logged one, and ρ_{0:h} = ρ_0·…·ρ_h:

    per-decision importance sampling   v = Σ_h ρ_{0:h}·r_h                                        (Precup et al., 2000)
    doubly robust                      v = V̂_0(s_0) + Σ_h ρ_{0:h}·[r_h + V̂_{h+1}(s_{h+1}) - Q̂_h(s_h, a_h)]

The second is the recursion v_h = V̂_h(s_h) + ρ_h·(r_h + v_{h+1} - Q̂_h(s_h, a_h)) of Jiang and Li (2016), written out; Q̂
and V̂ are those of the policy in a model; with a model of zeros it is the first. The estimate is the mean of v over the
episodes. `weighted` divides the ρ_{0:h} of each step by their mean (Thomas and Brunskill, 2016): a little bias, of the
order 1/n, for less variance.

Unweighted, both are unbiased for the mean of V^π(c) over the contexts of the log, whatever the model, if

- the propensities are true; they may depend on everything before, earlier episodes included;
- whatever the policy may do had a positive probability in the log. A policy is refused where this certainly fails: the
  log took an action with probability 1 and the policy would also take others. For the rest look at `mean_weights`,
  which have expectation 1;
- neither policy nor model learned from the same episodes: train on `log[:n]`, estimate on `log[n:]`. Otherwise a policy
  that was lucky in the log looks too good, and the model adds a little bias.

Standard errors treat episodes as independent and contexts as drawn: for fixed contexts they are too large. Where the
effective sample size is small they are too small: large weights are rare, and mostly missing from the log.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from omg_cmdp.contexts import alike
from omg_cmdp.logs.log import Log
from omg_cmdp.mdp.bellman import policy_values
from omg_cmdp.mdp.tabular import TabularMDP
from omg_cmdp.validation import ROW_SUM_TOLERANCE, FloatArray, first_index, function, instance_of

Policy = Callable[[Any], FloatArray]
"""context -> (H, S, A), such as `agent.policy`."""

Model = Callable[[Any], TabularMDP | None]
"""context -> MDP with rewards in [0, 1], such as `agent.model`."""


class Estimate(NamedTuple):
    """An estimate of the mean of V^π(c) over the contexts of a log."""

    value: float
    standard_error: float
    """Of `value`; nan for a single episode, and if no episode does what the policy may do."""
    effective_sample_size: float
    """(Σ ρ)²/Σ ρ² over episodes, at the step where it is smallest: as good as that many of the policy's own."""
    mean_weights: FloatArray
    """The means of ρ_{0:h}, (H,). Far from 1, the policy does what the log never did, or propensities are wrong."""


def importance_sampling(log: Log, policy: Policy, *, weighted: bool = False) -> Estimate:
    """Return the per-decision importance sampling estimate of the value of `policy`.

    >>> from omg_cmdp import Episode, Space
    >>> arms = {"context": "c", "states": [0, 0], "propensities": [0.5]}
    >>> episodes = [Episode(**arms, actions=[a], rewards=[a]) for a in (0, 1, 0, 1)]
    >>> log = Log(Space(states=1, actions=2, horizon=1), episodes)
    >>> importance_sampling(log, lambda context: np.array([[[0.2, 0.8]]])).value  # action 1 pays 1
    0.8
    """
    return _estimate(log, policy, None, weighted)


def doubly_robust(log: Log, policy: Policy, model: Model, *, weighted: bool = False) -> Estimate:
    """Return the doubly robust estimate of the value of `policy`, with `model` as the control variate."""
    function("model", model)
    return _estimate(log, policy, model, weighted)


def _estimate(log: Log, policy: Policy, model: Model | None, weighted: bool) -> Estimate:
    instance_of("log", log, Log)
    function("policy", policy)
    instance_of("weighted", weighted, bool)
    propensities = log.propensities
    if propensities is None:
        raise ValueError("`log` must hold propensities, the probabilities with which its actions were taken, got none")
    if not len(log):
        raise ValueError("`log` must hold at least one episode, got none")
    if len(log.whole()) < len(log):
        rule = (
            "hold whole episodes with all rewards (`log.whole()` has them; if who drops out depends on what would have "
        )
        raise ValueError(
            f"`log` must {rule}followed, they are no fair sample), got {len(log) - len(log.whole())} others"
        )
    states, actions, gains = log.states, log.actions, log.rewards
    chosen, first, steps = np.empty(actions.shape), np.zeros(len(log)), np.arange(log.space.horizon)
    contexts, (low, high) = log.contexts, log.reward_range
    for places in alike(contexts):
        context = contexts[places[0]]
        table = log.space.checked_policy(policy(context))
        chosen[places] = table[steps, states[places, :-1], actions[places]]
        if model is not None:
            believed = _checked_model(log, model(context))
            values, action_values = policy_values(believed, table, low + (high - low) * believed.reward_steps)
            first[places] = values[0, states[places, 0]]
            # Observed: r + V̂_{h+1}; expected: Q̂_h.
            gains[places] += (
                values[steps + 1, states[places, 1:]] - action_values[steps, states[places, :-1], actions[places]]
            )
    return _mean(first, _weights(chosen, propensities), gains, weighted)


def _mean(first: FloatArray, weights: FloatArray, gains: FloatArray, weighted: bool) -> Estimate:
    """Return the mean of first + Σ_h weights_h·gains_h; `weights` and `gains` are (n, H), `first` is (n,)."""
    count, means = len(weights), weights.mean(axis=0)
    if weighted:
        if not means.all():
            rule = "`log` must hold an episode that does what `policy` may do"
            raise ValueError(f"{rule}, got none at step {int(np.argmin(means))}")
        weights = weights / means
    totals = (weights * gains).mean(axis=0)
    # To first order, a ratio of two means varies like the mean of the deviations from it.
    episodes = first + (weights * (gains - totals if weighted else gains)).sum(axis=1)
    squares = (weights**2).sum(axis=0)
    sizes = np.divide(weights.sum(axis=0) ** 2, squares, out=np.zeros(len(squares)), where=squares > 0.0)
    return Estimate(
        value=float(first.mean() + totals.sum()),
        standard_error=float(episodes.std(ddof=1) / np.sqrt(count)) if count > 1 and means.all() else float("nan"),
        effective_sample_size=float(sizes.min()),
        mean_weights=means,
    )


def _weights(chosen: FloatArray, propensities: FloatArray) -> FloatArray:
    """Return ρ_{0:h}, (n, H), for the probabilities with which the policy chooses the logged actions."""
    weights = np.cumprod(chosen / propensities, axis=1)
    before, nearly = np.hstack([np.ones((len(chosen), 1)), weights[:, :-1]]), 1.0 - ROW_SUM_TOLERANCE
    lacking = (before > 0.0) & (propensities > nearly) & (chosen < nearly)
    if lacking.any():
        episode, step = first_index(lacking)
        got = f"an action of probability {chosen[episode, step]:g} that the log took with probability 1"
        raise ValueError(
            f"`policy` must do only what had a chance in the log, got {got} at step {step} of episode {episode}"
        )
    return np.asarray(weights)


def _checked_model(log: Log, model: TabularMDP | None) -> TabularMDP:
    if not isinstance(model, TabularMDP):
        raise ValueError(f"`model` must return a TabularMDP, got {type(model).__name__}")
    sizes, got = ((each.states, each.actions, each.horizon) for each in (log.space, model))
    if sizes != got:
        raise ValueError(f"`model` must return an MDP of the log's states, actions and horizon {sizes}, got {got}")
    return model
