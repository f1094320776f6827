"""Direct methods: no weights, only what a fit or a model says of the policy.

Fitted Q evaluation goes backwards from the last step,

    Q̂_h(c, s, a) = E[r + V̂_{h+1}(c, s') | c, s, a],   V̂_h(c, s) = Σ_a π_h(a|c, s)·Q̂_h(c, s, a),   v = mean V̂_0(c, s_0),

with means over the log by context, state and action: the value of the policy in the empirical model. It needs no
propensities. Assumed:

- the next state and reward depend on the context, the state and the action, and not on the step;
- the log's policy did not learn from the log. An agent that learns tries again what was lucky and leaves what was not,
  so that means over its episodes are too low, and their intervals too narrow. Weights by true propensities correct
  this. Where propensities show that the policy changed, the estimate is not supported;
- contexts come again, or Q is linear in `features` of the context for every state and action, which a contextual MDP
  whose transitions depend on the context is only approximately;
- episodes that were cut off were so for reasons that do not depend on what came next, given context and state.

Where the policy does what no logged episode did, the mean of all is taken; `mean_weights` is the share of the policy
that has an example. The estimate is a weighted sum of logged rewards, and the effective sample size is that of its
weights.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from omg_cmdp.logs.log import Log
from omg_cmdp.logs.off_policy.estimate import Estimate, Support, estimated
from omg_cmdp.logs.off_policy.regression import CellRegression, Features, Places
from omg_cmdp.logs.off_policy.steps import LoggedSteps, Model, Policy
from omg_cmdp.validation import function


def fitted_q(log: Log, policy: Policy, *, features: Features | None = None) -> Estimate:
    """Return the estimate of a policy's value by fitted Q evaluation, which needs no propensities.

    Parameters
    ----------
    log : Log
        Episodes from which the policy did not learn, and whose own policy did not learn either; truncated ones may be
        among them.
    policy : callable
        context -> (H, S, A), such as `agent.policy`.
    features : callable, optional
        context -> (d,), in which Q is linear for every state and action. By default contexts must come again.

    Examples
    --------
    >>> from omg_cmdp import Episode, Space
    >>> episodes = [Episode(context="c", states=[0, 0], actions=[a], rewards=[a]) for a in (0, 1, 0, 1)]
    >>> log = Log(Space(states=1, actions=2, horizon=1), episodes)
    >>> round(fitted_q(log, lambda context: np.array([[[0.2, 0.8]]])).value, 6)  # action 1 pays 1
    0.8
    """
    return fitted(LoggedSteps(log, policy), features)


def model_value(log: Log, policy: Policy, model: Model) -> Estimate:
    """Return what a model says of a policy, for the contexts and first states of a log.

    The log does not support it, so that its interval is everything; `marginal_doubly_robust` corrects it by the log.

    Parameters
    ----------
    log : Log
        Episodes, whose contexts and first states are used.
    policy : callable
        context -> (H, S, A), such as `agent.policy`.
    model : callable
        context -> TabularMDP, such as `agent.model`; its [0, 1] stands for the log's `reward_range`.

    Examples
    --------
    >>> from omg_cmdp import Episode, Space
    >>> space = Space(states=1, actions=2, horizon=1)
    >>> log = Log(space, [Episode(context="c", states=[0, 0], actions=[0], rewards=[0.0])])
    >>> believed = space.mdp(transitions=np.ones((1, 2, 1)), rewards=np.array([[0.0, 0.5]]))
    >>> model_value(log, lambda context: np.array([[[0.2, 0.8]]]), lambda context: believed).value
    0.4
    """
    function("model", model)
    return modelled(LoggedSteps(log, policy, model))


def modelled(steps: LoggedSteps) -> Estimate:
    """Return the mean of V̂_0(s_0)."""
    return Estimate(
        value=float(steps.first.mean()),
        contributions=steps.first,
        effective_sample_size=float("nan"),
        mean_weights=np.full(steps.space.horizon, np.nan),
        support=Support.NONE,
        return_range=steps.return_range,
    )


def fitted(steps: LoggedSteps, features: Features | None) -> Estimate:
    """Return the mean of V̂_0(s_0), fitted backwards; its weights follow forwards."""
    (count, horizon), actions, places = steps.actions.shape, steps.space.actions, Places(steps, features)
    episodes, here, there = np.nonzero(steps.seen)[0], steps.places[:, :-1][steps.seen], steps.places[:, 1:][steps.seen]
    rewards, cells = steps.rewards[steps.seen], places.cells[here] * actions + steps.actions[steps.seen]
    # Every place with every action is a query; an example is one of them.
    queries = (places.cells[:, None] * actions + np.arange(actions)).reshape(-1)
    query_features = np.repeat(places.features, actions, axis=0)
    regression = CellRegression(cells, places.features[here], episodes, places.count * actions)

    low, high = steps.reward_range
    values, errors = np.zeros(len(places.cells)), np.empty((horizon, len(rewards)))
    for h in reversed(range(horizon)):
        targets = rewards + values[there]
        fit = regression.fit(targets)
        # Residuals of the fit, as if each episode had been left out of it: contributions need them.
        errors[h] = (targets - regression.predict(fit, cells, places.features[here])) * regression.left_out
        found = regression.predict(fit, queries, query_features)
        # No policy earns more: a regression outside its data may say so.
        found = np.clip(found, (horizon - h) * low, (horizon - h) * high)
        values = (steps.policy[h] * found.reshape(-1, actions)).sum(axis=1)

    first = values[steps.places[:, 0]]
    reached, contributions = np.bincount(steps.places[:, 0], minlength=len(values)) / count, first.copy()
    masses = np.empty((count, horizon))
    for h in range(horizon):
        wanted = (reached[:, None] * steps.policy[h]).reshape(-1)
        # The fit is linear in the rewards: going forwards gives the weight that each of them has in the value.
        weights = regression.pull_back(queries, query_features, wanted)
        masses[:, h] = count * np.bincount(episodes, weights, minlength=count)
        contributions += count * np.bincount(episodes, weights * errors[h], minlength=count)
        reached = np.bincount(there, weights, minlength=len(values))
    # Weights of queries without an example are lost: that share of the policy is not covered.
    unseen = 1.0 - float(masses.mean(axis=0).min())
    made = estimated(first.mean(), contributions, masses, steps.return_range, unseen=unseen)
    learned = made.support is Support.GOOD and steps.policy_changed()
    return dataclasses.replace(made, support=Support.LEARNED) if learned else made
