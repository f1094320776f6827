"""What is believed: intervals that cover, estimates without support that say so, one sentence at the end."""

import numpy as np
import pytest

from library.tests.logs.tables import SPACE, changed, mdps, policies
from library.tests.logs.test_marginal import both_contexts, cut_off
from omg_cmdp import ContextualMDP, Episode, Space, policy_value
from omg_cmdp.logs import Log, Support, evaluate, fitted_q, importance_sampling, marginal_sampling
from omg_cmdp.logs.off_policy.estimate import estimated


class Chain(ContextualMDP):
    """A small random MDP, whatever the context."""

    def __init__(self, rng, horizon=8):
        self.space = Space(states=3, actions=2, horizon=horizon)
        self.tables = {"transitions": rng.dirichlet(np.ones(3), (3, 2)), "rewards": rng.random((3, 2))}

    def mdp(self, context):
        return self.space.mdp(**self.tables)


def chain_log(rng, behaviour, count=100):
    """Return an MDP, and a function that draws logs of it."""
    chain = Chain(rng)
    return chain.mdp("c"), lambda: Log(chain.space, [chain.sample("c", behaviour, rng) for _ in range(count)])


def test_intervals_cover_the_exact_value(rng):
    """Nominally 95 %."""
    behaviour, target = np.full((8, 3, 2), 0.5), np.tile([0.7, 0.3], (8, 3, 1))
    truth, draw = chain_log(rng, behaviour)
    exact, covered = policy_value(truth, target), []
    for log in (draw() for _ in range(30)):
        intervals = [estimate(log, lambda c: target).interval() for estimate in (marginal_sampling, fitted_q)]
        covered.append([low <= exact <= high and high - low < 4.0 for low, high in intervals])
    assert np.mean(covered, axis=0).min() >= 0.8


def test_a_policy_that_was_hardly_played_is_flagged(rng):
    """Always the same of two actions, eight times, in a log that draws them: a product of ratios is 2⁸ or 0."""
    never = np.tile([1.0, 0.0], (8, 3, 1))
    truth, draw = chain_log(rng, np.full((8, 3, 2), 0.5))
    log = draw()
    plain = importance_sampling(log, lambda c: never)
    assert plain.support is Support.FEW
    assert plain.interval() == (0.0, 8.0)
    made = evaluate(log, lambda c: never)
    assert made.table().loc["importance sampling", "support"] == Support.FEW.value
    low, high = made.intervals["fitted Q"]
    assert low <= policy_value(truth, never) <= high
    assert made.advice.startswith("Believe fitted Q")


def skewed(rng, support_of=400):
    contributions = rng.exponential(size=support_of)
    return estimated(float(contributions.mean()), contributions, np.ones((support_of, 1)), (0.0, 50.0))


def test_an_interval_follows_the_skewness(rng):
    estimate = skewed(rng)
    low, high = estimate.interval()
    assert high - estimate.value > estimate.value - low > 1.9 * estimate.standard_error


def test_intervals_are_deterministic_and_nested(rng):
    estimate = skewed(rng)
    assert estimate.interval(seed=1) == estimate.interval(seed=1) != estimate.interval(seed=2)
    (a, b), (c, d) = estimate.interval(0.5), estimate.interval(0.99)
    assert 0.0 <= c < a < estimate.value < b < d
    for level in (0.0, 1.0, 95):
        with pytest.raises(ValueError, match="`level` must"):
            estimate.interval(level)


def test_equal_episodes_leave_a_point():
    ones = estimated(1.0, np.full(50, 1.0), np.ones((50, 1)), (0.0, 2.0))
    assert ones.interval() == (1.0, 1.0)


def test_wrong_propensities_are_seen(rng):
    """Halved, they double every weight."""
    behaviour = np.full((8, 3, 2), 0.5)
    _, draw = chain_log(rng, behaviour)
    log = draw()
    wrong = Log(log.space, [changed(e, propensities=np.append(0.25, e.propensities[1:])) for e in log.episodes])
    assert importance_sampling(log, lambda c: behaviour).support is Support.GOOD
    assert importance_sampling(wrong, lambda c: behaviour).support is Support.UNBALANCED


def test_what_contradicts_is_not_believed(rng):
    """Rewards that depend on the step: fitted Q takes them for stationary, and the weights say otherwise."""
    space, early = Space(states=1, actions=2, horizon=2), np.array([[[0.9, 0.1]], [[0.1, 0.9]]])
    log = Log(space)
    for _ in range(2000):
        actions = rng.integers(2, size=2)
        rewards = [1.0 - actions[0], float(actions[1])]
        log.add(Episode(context="c", states=[0, 0, 0], actions=actions, rewards=rewards, propensities=[0.5, 0.5]))
    made = evaluate(log, lambda c: early)
    assert "fitted Q" in made.contradiction
    assert made.advice.startswith("Believe none of them: ")
    assert "contradict" in made.advice


def test_a_model_that_the_log_refutes_is_named(rng):
    target = policies(rng)
    log = Log(SPACE, [changed(episode, propensities=None) for episode in both_contexts(rng).episodes])
    zeros = {c: SPACE.mdp(transitions=m.transitions, rewards=0 * m.rewards) for c, m in mdps(rng).items()}
    made = evaluate(log, target.get, model=zeros.get)
    assert made.estimates["the model's own"].value == 0.0
    assert "The model's own value, 0, is outside: do not believe it." in made.advice
    assert made.supported[0] in str(made)


def test_with_features_the_doubly_robust_one_comes_first(rng):
    """Of those that take something for linear; one that does not comes before."""
    target = np.tile([0.7, 0.3], (8, 3, 1))
    truth, draw = chain_log(rng, np.full((8, 3, 2), 0.5), count=300)
    made = evaluate(draw(), lambda c: target, model=lambda c: truth, features=lambda c: [1.0])
    linear = [name for name in made.supported if name in made.linear]
    assert linear[0] == "marginal doubly robust"
    assert made.supported[-len(linear) :] == linear
    assert made.estimates[linear[0]].effective_sample_size < made.estimates["fitted Q"].effective_sample_size


def test_arguments_of_the_wrong_kind_are_refused(rng):
    log, target = both_contexts(rng), policies(rng)
    for wrong, name in (
        ({"log": [1]}, "log"),
        ({"policy": 3}, "policy"),
        ({"model": 3}, "model"),
        ({"features": 3}, "features"),
    ):
        with pytest.raises(ValueError, match=f"`{name}` must be a "):
            evaluate(**{"log": log, "policy": target.get} | wrong)
    with pytest.raises(ValueError, match="`policy` must be a function, got NoneType"):
        evaluate(log, None)
    with pytest.raises(ValueError, match="`seed` must be an integer"):
        evaluate(log, target.get, seed=-1)


def test_what_cannot_be_used_says_why(rng):
    log, target, model = cut_off(both_contexts(rng)), policies(rng), mdps(rng)
    made = evaluate(log, target.get, model=model.get)
    assert set(made.estimates) == {"fitted Q", "the model's own"}
    assert all("cut off after 1 of 3 steps" in reason for reason in made.refused.values())
    table = made.table()
    assert len(table) == 8
    assert table.loc["doubly robust"].drop("support").isna().all()
    assert "linear in the features" in evaluate(log, target.get, features=lambda c: [float(c == "mild")]).advice
