"""Marginalised importance sampling: weights of states, which do not multiply with every step.

The weight w_h(c, s) = d^π_h(s|c)/d^log_h(s|c) is how much more often the policy is in state s at step h than the log.
It obeys a recursion, and the value is a mean under it (Xie, Ma and Wang, 2019):

    w_0 = 1,   w_{h+1}(c, s') = E[w_h(c, s_h)·ρ_h | c, s_{h+1} = s'],   v = Σ_h E[w_h·ρ_h·r_h].

The expectations are means over the log, by context and state: then it is their recursion on the marginals
d̂_{h+1}(s') = Σ_s d̂_h(s)·P̂^π_h(s'|s), context by context. The doubly robust version has r_h + V̂_{h+1}(s_{h+1}) -
Q̂_h(s_h, a_h) in the place of r_h, and V̂_0(s_0) before the sum (Kallus and Uehara, 2020): its error is of the order of
the product of those of weights and model. In both, the weights of each step are divided by their mean.

Assumed, besides what importance sampling assumes:

- the next state and reward depend on the context, the state and the action, and not on how the state was reached;
- contexts come again. One that came once has the weights of `importance_sampling(..., weighted=True)`: never wrong, and
  no gain. Contexts must not be pooled, not even under one policy: a state tells something about the context, and it
  tells something else under another policy. With `features` w_h(c, s) is fitted as a linear function of them in every
  state, which is an approximation.
"""

from __future__ import annotations

import numpy as np

from omg_cmdp.logs.log import Log
from omg_cmdp.logs.off_policy.estimate import Estimate, estimated
from omg_cmdp.logs.off_policy.regression import CellRegression, Features, Places
from omg_cmdp.logs.off_policy.steps import LoggedSteps, Model, Policy, require_weights
from omg_cmdp.validation import function


def marginal_sampling(log: Log, policy: Policy, *, features: Features | None = None) -> Estimate:
    """Return the marginalised importance sampling estimate of a policy's value.

    Parameters
    ----------
    log : Log
        Whole episodes with propensities, from which the policy did not learn.
    policy : callable
        context -> (H, S, A), such as `agent.policy`.
    features : callable, optional
        context -> (d,), in which the weights of every state are fitted linearly. By default contexts must come again.

    Examples
    --------
    >>> from omg_cmdp import Episode, Space
    >>> arms = {"context": "c", "states": [0, 0], "propensities": [0.5]}
    >>> episodes = [Episode(**arms, actions=[a], rewards=[a]) for a in (0, 1, 0, 1)]
    >>> log = Log(Space(states=1, actions=2, horizon=1), episodes)
    >>> round(marginal_sampling(log, lambda context: np.array([[[0.2, 0.8]]])).value, 6)
    0.8

    References
    ----------
    T. Xie, Y. Ma and Y.-X. Wang, *Towards optimal off-policy evaluation for reinforcement learning with marginalized
    importance sampling*, NeurIPS 2019.
    """
    return marginal(LoggedSteps(log, policy), features)


def marginal_doubly_robust(log: Log, policy: Policy, model: Model, *, features: Features | None = None) -> Estimate:
    """Return the marginalised doubly robust estimate of a policy's value, with a model as the control variate.

    Parameters
    ----------
    log : Log
        Whole episodes with propensities, from which neither policy nor model learned.
    policy : callable
        context -> (H, S, A), such as `agent.policy`.
    model : callable
        context -> TabularMDP, such as `agent.model`; its [0, 1] stands for the log's `reward_range`.
    features : callable, optional
        context -> (d,), in which the weights of every state are fitted linearly. By default contexts must come again.

    Examples
    --------
    >>> from omg_cmdp import Episode, Space
    >>> space, arms = Space(states=1, actions=2, horizon=1), {"context": "c", "states": [0, 0], "propensities": [0.5]}
    >>> log = Log(space, [Episode(**arms, actions=[a], rewards=[a]) for a in (0, 1, 0, 1)])
    >>> believed = space.mdp(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.0, 0.5]]))
    >>> round(marginal_doubly_robust(log, lambda context: np.array([[[0.2, 0.8]]]), lambda context: believed).value, 6)
    0.8

    References
    ----------
    N. Kallus and M. Uehara, *Double reinforcement learning for efficient off-policy evaluation*, JMLR 2020.
    """
    function("model", model)
    return marginal(LoggedSteps(log, policy, model), features)


def marginal(steps: LoggedSteps, features: Features | None) -> Estimate:
    """Return the mean of first + Σ_h w_h·ρ_h·gains_h.

    Its contributions are those of the recursion: with g the gains less their means,

        U_h(s) = E[ρ_h·(g_h + U_{h+1}(s_{h+1})) | s_h = s],
        ψ = U_0(s_0) + Σ_h w_h·[ρ_h·(g_h + U_{h+1}(s_{h+1})) - U_h(s_h)].
    """
    ratios, places = steps.ratios(), Places(steps, features)
    count, horizon = ratios.shape
    episodes = np.arange(count)
    fits = [CellRegression(places.cells[at], places.features[at], episodes, places.count) for at in steps.places.T]
    before, weights = np.ones((count, horizon)), np.empty((count, horizon))
    for h in range(horizon):
        weights[:, h] = before[:, h] * ratios[:, h]
        if h + 1 < horizon:
            # A linear fit may be negative; a ratio of probabilities is not.
            before[:, h + 1] = np.maximum(fits[h + 1].smooth(weights[:, h]), 0.0)
    means = weights.mean(axis=0)
    require_weights(means)
    totals = (weights * steps.gains).mean(axis=0) / means

    # Column 0 carries the value, column k + 1 the mean weight of step k.
    ahead, contributions = np.zeros((count, horizon + 1)), np.zeros((count, horizon + 1))
    for h in reversed(range(horizon)):
        ahead[:, 0] += (steps.gains[:, h] - totals[h]) / means[h]
        ahead[:, h + 1] = 1.0
        for column in (0, *range(h + 1, horizon + 1)):
            target = ratios[:, h] * ahead[:, column]
            ahead[:, column] = fits[h].smooth(target)
            contributions[:, column] += before[:, h] * fits[h].left_out * (target - ahead[:, column])
    contributions += ahead
    return estimated(
        steps.first.mean() + totals.sum(), steps.first + contributions[:, 0], contributions[:, 1:], steps.return_range
    )
