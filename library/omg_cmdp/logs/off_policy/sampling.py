"""Importance sampling: each episode counts as much as the policy was more likely to do it than the log.

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
- neither policy nor model learned from the same episodes. Otherwise a policy that was lucky in the log looks too good,
  and the model adds a little bias.

Neither asks for Markov states or contexts that come again. The price is the product: its variance grows like a power
of the horizon. `improvement` is more precise, since it fits values to the log and can weigh states instead.
"""

from __future__ import annotations

import numpy as np

from omg_cmdp.logs.log import Log
from omg_cmdp.logs.off_policy.estimate import Estimate, estimated
from omg_cmdp.logs.off_policy.steps import LoggedSteps, Model, Policy, UnfitLogError
from omg_cmdp.validation import FloatArray, function, instance_of


def importance_sampling(log: Log, policy: Policy, *, weighted: bool = False) -> Estimate:
    """Return the per-decision importance sampling estimate of a policy's value.

    Parameters
    ----------
    log : Log
        Whole episodes with propensities, from which the policy did not learn.
    policy : callable
        context -> (H, S, A), such as `agent.policy`.
    weighted : bool, default False
        Whether to divide the weights of each step by their mean: a little bias, of the order 1/n, for less variance.

    Examples
    --------
    >>> from omg_cmdp import Episode, Space
    >>> arms = {"context": "c", "states": [0, 0], "propensities": [0.5]}
    >>> episodes = [Episode(**arms, actions=[a], rewards=[a]) for a in (0, 1, 0, 1)]
    >>> log = Log(Space(states=1, actions=2, horizon=1), episodes)
    >>> importance_sampling(log, lambda context: np.array([[[0.2, 0.8]]])).value  # action 1 pays 1
    0.8

    References
    ----------
    D. Precup, R. Sutton and S. Singh, *Eligibility traces for off-policy policy evaluation*, ICML 2000.
    """
    return sampled(LoggedSteps(log, policy), weighted=weighted)


def doubly_robust(log: Log, policy: Policy, model: Model, *, weighted: bool = False) -> Estimate:
    """Return the doubly robust estimate of a policy's value, with a model as the control variate.

    Parameters
    ----------
    log : Log
        Whole episodes with propensities, from which neither policy nor model learned.
    policy : callable
        context -> (H, S, A), such as `agent.policy`.
    model : callable
        context -> TabularMDP, such as `agent.model`; its [0, 1] stands for the log's `reward_range`.
    weighted : bool, default False
        Whether to divide the weights of each step by their mean: a little bias, of the order 1/n, for less variance.

    Examples
    --------
    >>> from omg_cmdp import Episode, Space
    >>> space, arms = Space(states=1, actions=2, horizon=1), {"context": "c", "states": [0, 0], "propensities": [0.5]}
    >>> log = Log(space, [Episode(**arms, actions=[a], rewards=[a]) for a in (0, 1, 0, 1)])
    >>> believed = space.mdp(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.0, 0.5]]))
    >>> round(doubly_robust(log, lambda context: np.array([[[0.2, 0.8]]]), lambda context: believed).value, 6)
    0.8

    References
    ----------
    N. Jiang and L. Li, *Doubly robust off-policy value evaluation for reinforcement learning*, ICML 2016.
    """
    function("model", model)
    return sampled(LoggedSteps(log, policy, model), weighted=weighted)


def sampled(steps: LoggedSteps, *, weighted: bool) -> Estimate:
    """Return the mean of first + Σ_h ρ_{0:h}·gains_h."""
    instance_of("weighted", weighted, bool)
    # ρ_{0:h}, the probability ratio of the whole past.
    weights: FloatArray = np.cumprod(steps.ratios(), axis=1, dtype=np.float64)
    means, shares, gains = weights.mean(axis=0), weights, steps.gains
    if weighted:
        if not means.all():
            step = int(np.argmin(means))
            raise UnfitLogError(
                f"no episode of `log` does what `policy` may do at step {step}: value one nearer to the log"
            )
        shares = weights / means
    totals = (shares * gains).mean(axis=0)
    if weighted:
        # To first order, a ratio of two means varies like the mean of the deviations from it. An episode draws the mean
        # to itself by its share of the weights: leaving it out would show a larger deviation.
        count = len(weights)
        gains = (gains - totals) * (1.0 - 1.0 / count) / np.maximum(1.0 - shares / count, 0.5)
    contributions = steps.first + (shares * gains).sum(axis=1)
    return estimated(steps.first.mean() + totals.sum(), contributions, weights, steps.return_range)
