"""Is a policy better than what was done, by how much, and with which interval?

The score of an episode is doubly robust (Jiang and Li, 2016), with V̂ and Q̂ of the policy fitted backwards to *other*
episodes, linear in features of the context for every state and action, with an offset for every step:

    Γ = V̂_0(s_0) + Σ_h ρ_{0:h}·[r_h + V̂_{h+1}(s_{h+1}) - Q̂_h(s_h, a_h)],      improvement = mean(Γ) - mean(return),

so that each episode is compared with itself: what helps or harms both sides alike cancels. If fewer than 30 episodes
count under the products ρ_{0:h}, they are replaced by w_h(c, s_h)·ρ_h with weights of states, how much more often the
policy is there than the log, which obey a recursion (Xie et al., 2019):

    w_0 = 1,      w_{h+1}(c, s') = E[w_h(c, s_h)·ρ_h | c, s_{h+1} = s'].

They do not multiply, and are fitted like Q̂, linear in features: the error is of the order of theirs times that of Q̂
(Kallus and Uehara, 2020). Which other episodes:

- propensities that are estimates (`estimate_propensities`): all folds but the episode's own. The error is of the order
  of the product of the errors of propensities and of Q̂ (Chernozhukov et al., 2018);
- propensities that were logged: only earlier episodes. Then Γ less its mean is a martingale difference whatever
  played the log, agents that learned from it among them, and Q̂ may be as wrong as it likes (Hadad et al., 2021). The
  first episodes have nothing before them, and only serve to fit.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from omg_cmdp.logs.log import Log
from omg_cmdp.logs.off_policy.design import Features, context_rows
from omg_cmdp.logs.off_policy.estimate import FEWEST_EPISODES, Estimate, Support, estimated
from omg_cmdp.logs.off_policy.regression import CellRegression
from omg_cmdp.logs.off_policy.steps import LoggedSteps, Policy, UnfitLogError
from omg_cmdp.validation import BoolArray, FloatArray, seed_number

FOLDS = 5
BLOCKS = 8
"""The number of blocks of time; the values of a block are fitted to the episodes before it."""

FEWEST_MARGINAL = 15
"""The smallest effective sample size for weights of states, which have no rare products."""

MOST_UNSEEN = 0.05
"""The largest share of a policy's steps that may take actions that nobody took in their state."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Improvement(Estimate):
    """An estimate of the gain of a policy over what was done, per episode. `improvement` makes it.

    Parameters
    ----------
    value, contributions, effective_sample_size, mean_weights, support, return_range
        As for an `Estimate`: of the policy's value less the mean return of the log.
    policy_value : float
        The policy's value.
    logged_value : float
        The mean return of the log.
    estimated : bool
        Whether the propensities are estimates.

    Examples
    --------
    >>> from omg_cmdp import Episode, Space
    >>> arms = {"context": "c", "states": [0, 0], "propensities": [0.5]}
    >>> episodes = [Episode(**arms, actions=[t * t // 7 % 2], rewards=[t * t // 7 % 2 * 0.6]) for t in range(400)]
    >>> found = improvement(Log(Space(states=1, actions=2, horizon=1), episodes), lambda context: [[[0.0, 1.0]]])
    >>> round(found.value, 1), found.interval(0.95)[0] > 0.2
    (0.3, True)
    """

    policy_value: float
    logged_value: float
    estimated: bool

    def __str__(self) -> str:
        low, high = self.interval()
        verdict = "better than" if low > 0.0 else "worse than" if high < 0.0 else "not shown to differ from"
        count = f"{self.effective_sample_size:.0f} of {len(self.contributions)} episodes count"
        said = (
            f"The policy is {verdict} what was done: {self.policy_value:.3g} against {self.logged_value:.3g} an "
            f"episode, a difference of {self.value:+.3g}, between {low:+.3g} and {high:+.3g} at 95 %; {count}."
        )
        return (
            f"{said} It assumes that the estimated propensities miss nothing that mattered." if self.estimated else said
        )


def improvement(log: Log, policy: Policy, *, features: Features | None = None, seed: int = 0) -> Improvement:
    """Return how much more a policy earns in an episode than what was done, with an interval.

    Where the log does not support an answer, it raises `UnfitLogError` with the reason: too few episodes do what the
    policy does, it takes actions that were never taken, or weights are not 1 on average.

    Parameters
    ----------
    log : Log
        Whole episodes with propensities, logged or estimated (`estimate_propensities`). The policy must not have
        learned from them.
    policy : callable
        context -> (H, S, A), such as `agent.best_policy`.
    features : callable, optional
        context -> (d,), numbers of the size of 1 without a constant, in which values are fitted linearly. By default
        vectors are standardised, and records and labels encoded, gaps and categories included.
    seed : int, default 0
        The seed of the division into folds.

    Returns
    -------
    Improvement
        With `.value` and `.interval(level)`; `str` is a sentence.

    Examples
    --------
    >>> from omg_cmdp import Episode, Space
    >>> arms = {"context": "c", "states": [0, 0], "propensities": [0.5]}
    >>> episodes = [Episode(**arms, actions=[t % 2], rewards=[t % 2]) for t in range(400)]
    >>> log = Log(Space(states=1, actions=2, horizon=1), episodes)
    >>> print(improvement(log, lambda context: [[[0.5, 0.5]]]).policy_value)
    0.5

    References
    ----------
    N. Jiang and L. Li, *Doubly robust off-policy value evaluation for reinforcement learning*, ICML 2016. V. Hadad et
    al., *Confidence intervals for policy evaluation in adaptive experiments*, PNAS 118, 2021. T. Xie, Y. Ma and
    Y.-X. Wang, *Towards optimal off-policy evaluation for reinforcement learning with marginalized importance
    sampling*, NeurIPS 2019. N. Kallus and M. Uehara, *Double reinforcement learning for efficient off-policy
    evaluation*, JMLR 2020.
    """
    seed, steps = seed_number(seed), LoggedSteps(log, policy)
    ratios, rows = steps.ratios(), context_rows(steps.contexts, features)
    products: FloatArray = np.cumprod(ratios, axis=1, dtype=np.float64)
    _require_examples(log, steps, products)
    guessed = log.overlap is not None
    first, gains, weights = np.zeros(len(log)), np.zeros(ratios.shape), np.zeros(ratios.shape)
    used = np.zeros(len(log), dtype=np.bool_)
    for judged, learned in _parts(len(log), not guessed, seed):
        values, advantages = _advantages(steps, rows, learned)
        first[judged], gains[judged] = values[judged], advantages[judged]
        weights[judged] = (weights_of_states(steps, rows, ratios, learned) * ratios)[judged]
        used |= judged
    returns, most = log.returns, steps.return_range[1] - steps.return_range[0]
    for each, fewest in ((products, FEWEST_EPISODES), (weights, FEWEST_MARGINAL)):
        scores = first + (each * gains).sum(axis=1)
        value = float(scores[used].mean())
        # Episodes that only served to fit still tell what was done.
        contributions = np.where(used, len(log) / used.sum() * (scores - value), 0.0) + value - returns
        found = estimated(value - returns.mean(), contributions, each[used], (-most, most), fewest=fewest)
        if found.support is Support.GOOD:
            earned = float(returns.mean())
            return Improvement(**vars(found), policy_value=value, logged_value=earned, estimated=guessed)
    few = f"{found.effective_sample_size:.0f} episodes count: the log hardly ever does what the policy does"
    reason = few if found.support is Support.FEW else found.support.value
    raise UnfitLogError(f"the log does not say what `policy` is worth: {reason}")


def _parts(count: int, by_time: bool, seed: int) -> list[tuple[BoolArray, BoolArray]]:
    """Return which episodes are judged and which learned from: a fold and the others, or a block and those before."""
    if not by_time:
        parts = np.random.default_rng(seed).permutation(np.arange(count) % FOLDS)
        return [(parts == part, parts != part) for part in range(FOLDS)]
    parts = np.arange(count) * BLOCKS // count
    return [(parts == part, parts < part) for part in range(1, BLOCKS) if (parts < part).any()]


def weights_of_states(steps: LoggedSteps, rows: FloatArray, ratios: FloatArray, learned: BoolArray) -> FloatArray:
    """Return w_h(c, s_h), (n, H): how much more often the policy is there than the log, fitted to some episodes."""
    features, weights = rows[steps.owners], np.ones(ratios.shape)
    for h in range(1, ratios.shape[1]):
        here = steps.places[:, h]
        cells = steps.states[here]
        fit = CellRegression(cells[learned], features[here[learned]], steps.space.states)
        found = fit.fit((weights[:, h - 1] * ratios[:, h - 1])[learned])
        # A linear fit may be negative; a ratio of probabilities is not.
        weights[:, h] = np.maximum(fit.predict(found, cells, features[here]), 0.0)
    return weights


def _advantages(steps: LoggedSteps, rows: FloatArray, learned: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Return V̂_0(s_0), (n,), and r_h + V̂_{h+1}(s_{h+1}) - Q̂_h(s_h, a_h), (n, H), fitted to some of the episodes."""
    (count, horizon), actions = steps.actions.shape, steps.space.actions
    owners, when = np.nonzero(np.broadcast_to(learned[:, None], (count, horizon)))
    here, there = steps.places[owners, when], steps.places[owners, when + 1]
    moments = np.eye(horizon)[:, 1:]  # an offset for every step but the first
    features = rows[steps.owners]
    regression = CellRegression(
        steps.states[here] * actions + steps.actions[owners, when],
        np.hstack([features[here], moments[when]]),
        steps.space.states * actions,
    )
    queries = (steps.states[:, None] * actions + np.arange(actions)).reshape(-1)
    low, high = steps.reward_range
    values = np.zeros((horizon + 1, len(steps.states)))
    gains = np.empty((count, horizon))
    for h in reversed(range(horizon)):
        fit = regression.fit(steps.rewards[owners, when] + values[h + 1, there])
        asked = np.hstack([features, np.broadcast_to(moments[h], (len(features), horizon - 1))])
        found = regression.predict(fit, queries, np.repeat(asked, actions, axis=0)).reshape(-1, actions)
        found = np.clip(found, (horizon - h) * low, (horizon - h) * high)
        values[h] = (steps.policy[h] * found).sum(axis=1)
        gains[:, h] = steps.rewards[:, h] + values[h + 1, steps.places[:, h + 1]]
        gains[:, h] -= found[steps.places[:, h], steps.actions[:, h]]
    return values[0, steps.places[:, 0]], gains


def _require_examples(log: Log, steps: LoggedSteps, weights: FloatArray) -> None:
    """Raise if the policy takes actions too often that the log never took in their state."""
    space, tried = steps.space, np.zeros((steps.space.states, steps.space.actions), dtype=np.bool_)
    visited = steps.states[steps.places[:, :-1]]
    tried[visited, steps.actions] = True
    before = np.hstack([np.ones((len(weights), 1)), weights[:, :-1]])
    wanted = steps.policy[np.arange(space.horizon), steps.places[:, :-1]] * before[:, :, None]
    lacking = np.zeros((space.states, space.actions))
    np.add.at(lacking, visited, wanted * ~tried[visited])
    share = lacking.sum() / max(wanted.sum(), np.finfo(float).tiny)
    if share > MOST_UNSEEN:
        state, action = np.unravel_index(int(lacking.argmax()), lacking.shape)
        raise UnfitLogError(
            f"the log does not say what `policy` is worth: {share:.0%} of its steps take actions that nobody took in "
            f"their state, such as {log.action_names[action]!r} in {log.state_names[state]!r}"
        )
