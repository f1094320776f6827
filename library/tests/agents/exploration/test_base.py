"""What a rule knows, and `plan_roots`: the barrier plan of its own weights, from one solve if that is enough."""

import math

import numpy as np
import pytest

from library.tests.agents.catalogue import SIZE, SPACES, build
from library.tests.agents.exploration.draws import estimate, pooled, random_draws, seen_by
from library.tests.agents.exploration.situations import finite, model_alone, situation
from library.tests.random_mdps import random_mdp, random_mdps
from omg_cmdp import OMG, TabularMDP, certificate, plan
from omg_cmdp.agents import ExplorationRule
from omg_cmdp.agents.exploration import base, compiled
from omg_cmdp.mdp.bellman import value_bounds
from omg_cmdp.planning.certificate import slacks

S, A, H = SIZE["states"], SIZE["actions"], SIZE["horizon"]


@pytest.mark.parametrize(("space", "count"), [("plain", 3 + 27), ("spread start", 6 + 27), ("restricted", 2 + 15)])
def test_tuples_bound_what_can_be_reached(space, count):
    _, agent = build("float", space=space)
    assert situation(agent).tuples == count
    assert np.count_nonzero(agent.decide("a").occupancy) <= count


def test_a_rule_of_your_own():
    class Weighted(ExplorationRule):
        def decide(self, situation):
            return situation.plan(7.0, np.full((H, S, A), 2.0))

    own = OMG(SPACES["plain"], *finite(), Weighted()).decide("a")
    assert own.gamma == 7.0
    plain = OMG(SPACES["plain"], *finite(), 3.5, episodes=10**9).decide("a")
    precise = OMG(SPACES["plain"], *finite(), Weighted(), episodes=10**9).decide("a")
    np.testing.assert_allclose(precise.policy, plain.policy, atol=1e-5)


def random_u(rng, model):
    """Return u (H, S, A): of one size, of many sizes, or zero in most places."""
    u = 10.0 ** rng.uniform(-8.0, 0.5) * rng.random((model.horizon, model.states, model.actions))
    kind = rng.integers(3)
    if kind == 1:
        u = 10.0 ** rng.uniform(-16.0, 1.0, size=u.shape)
    if kind == 2:
        u[rng.random(u.shape) < 0.8] = 0.0
    return u


@pytest.fixture
def solved(monkeypatch):
    """Return a list of what is solved: solutions, and by which arguments."""
    known = []

    def solve(*arguments, **named):
        known.append((plan(*arguments, **named), named))
        return known[-1][0]

    monkeypatch.setattr(base, "plan", solve)
    return known


def rounding(model, decision):
    """Slacks m/q̂ are differences of values of size H: their last bits make x = q̂·z/m uncertain by so much."""
    return decision.weights.size * (1e-14 + (np.finfo(float).eps * model.horizon * decision.gamma) ** 2)


def certified(model, decision, tolerance):
    """Assert that the decision is the barrier plan of its weights, within the certificate."""
    gamma, weights = decision.gamma, decision.weights
    assert weights.mean() == pytest.approx(1.0, rel=1e-12)
    again = certificate(model, decision.policy, decision.values, gamma=gamma, weights=weights)
    assert again <= decision.certificate + rounding(model, decision)
    assert decision.certificate <= tolerance + rounding(model, decision)


def proves(model, decision, u, floor, tolerance, solved):
    """Assert that the weights are those of the first plan, and the decision their barrier plan.

    If one plan was enough, then the weights are its own, and its certificate is the joint program's.
    """
    (first, _), *rest = solved
    gamma, weights = decision.gamma, decision.weights
    np.testing.assert_allclose(weights / gamma, 0.5 * np.sqrt(first.occupancy * u) + floor, rtol=1e-12)
    certified(model, decision, tolerance)
    assert [named["start"] for _, named in rest] in ([], [first])
    if not rest:
        assert decision.occupancy is first.occupancy
        joint = gamma * certificate(model, decision.policy, decision.values, uncertainty=u, floor=floor)
        assert decision.certificate == pytest.approx(joint, abs=rounding(model, decision))


def test_the_decision_is_the_plan_of_its_weights(rng, solved):
    once = 0
    for model in random_mdps(rng, 60):
        u, floor, tolerance = random_u(rng, model), 10.0 ** rng.uniform(-6, -2), 10.0 ** rng.uniform(-8, -1)
        solved.clear()
        decision = model_alone(model, tolerance).plan_roots(u, floor)
        proves(model, decision, u, floor, tolerance, solved)
        assert decision.model is model
        once += len(solved) == 1
    assert once > 50


def test_at_the_optimum_every_tuple_pays_its_weight(rng):
    """q̂·z = m: as Σ w·(x - 1 - log x) <= c with x = q̂z/m, each |x - 1| <= c/w + √((c/w)² + 2c/w)."""
    for model in random_mdps(rng, 30):
        u, floor = random_u(rng, model), 10.0 ** rng.uniform(-5, -2)
        decision = model_alone(model, 1e-9).plan_roots(u, floor)
        held = decision.occupancy > 0.0
        w = decision.weights[held]
        x = decision.occupancy[held] * slacks(model, decision.values)[held] * decision.gamma / w
        relative = (decision.certificate + 1e-14 * w.size) / w
        assert (np.abs(x - 1.0) <= relative + np.sqrt(relative**2 + 2.0 * relative)).all()


def test_the_decision_is_as_near_to_the_barrier_plan_as_its_certificate_says(rng):
    """Σ w·(r - 1 - log r) <= c for r = q̂/q̃, q̃ the exact plan of `plan(gamma=γ, weights=w)`."""
    for model in random_mdps(rng, 30):
        u, floor, tolerance = random_u(rng, model), 10.0 ** rng.uniform(-4, -2), 10.0 ** rng.uniform(-6, -2)
        decision = model_alone(model, tolerance).plan_roots(u, floor)
        exact = plan(model, decision.gamma, weights=decision.weights, tolerance=1e-11)
        held = decision.occupancy > 0.0
        ratio = decision.occupancy[held] / exact.occupancy[held]
        apart = float((decision.weights[held] * (ratio - 1.0 - np.log(ratio))).sum())
        assert apart <= decision.certificate + 1e-7


def test_a_plan_that_is_not_close_enough_for_its_own_weights_is_continued(rng, solved, monkeypatch):
    """Its weights turn out smaller than expected, so the certificate in their units is larger.

    Then the barrier of the weights that it has is solved on from there.
    """
    monkeypatch.setattr(base, "likely_weight", lambda u, floor: 1e6)  # far too much
    again = 0
    for model in random_mdps(rng, 20, states=4, actions=3):
        u = rng.random((model.horizon, model.states, model.actions))
        solved.clear()
        decision = model_alone(model, 1e-6).plan_roots(u, 1e-3)
        proves(model, decision, u, 1e-3, 1e-6, solved)
        again += len(solved) > 1
    assert again > 10


def test_without_uncertainty_the_floor_is_the_barrier(rng):
    for model in random_mdps(rng, 20):
        u = np.zeros((model.horizon, model.states, model.actions))
        decision = model_alone(model, 1e-10).plan_roots(u, 0.01)
        np.testing.assert_allclose(decision.weights, 1.0, rtol=1e-12)
        assert decision.gamma == pytest.approx(100.0)
        np.testing.assert_allclose(decision.occupancy, plan(model, 100.0, tolerance=1e-12).occupancy, atol=1e-6)


def test_without_a_floor_worth_naming_it_is_the_root_program(rng):
    """The floor changes its value by at most m₀·Σ (1 - q*/q̂) < n·m₀."""
    for model in random_mdps(rng, 10):
        u, floor = 0.01 + rng.random((model.horizon, model.states, model.actions)), 1e-9
        decision = model_alone(model, 1e-9).plan_roots(u, floor)
        root = plan(model, uncertainty=u, tolerance=1e-10)
        objective = [
            float((q * model.reward_steps).sum() + np.sqrt(u * q).sum()) for q in (decision.occupancy, root.occupancy)
        ]
        assert objective[0] == pytest.approx(objective[1], abs=1e-8 + u.size * floor)


def long(rng):
    return random_mdp(rng, 1, 4, 100)


def wide(rng):
    return random_mdp(rng, 60, 3, 8, kernel="sparse", masked=False)


def small(rng):
    return random_mdp(rng, 5, 3, 5)


def unreached(rng):
    """Half of the states are never visited: their tuples have the floor for a weight."""
    kernel = np.zeros((6, 2, 6))
    kernel[..., :3] = rng.dirichlet(np.ones(3), (6, 2))
    return TabularMDP(transitions=kernel, rewards=rng.random((6, 2)), horizon=4)


SCALES = {
    "nothing": lambda rng, shape: np.zeros(shape),
    "one tuple": lambda rng, shape: np.eye(1, math.prod(shape), math.prod(shape) // 2).reshape(shape),
    "tiny": lambda rng, shape: 1e-30 * rng.random(shape),
    "small": lambda rng, shape: 1e-8 * rng.random(shape),
    "large": lambda rng, shape: 1e4 * rng.random(shape),
    "every size": lambda rng, shape: 10.0 ** rng.uniform(-30.0, 4.0, size=shape),
}


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("make", [small, long, wide, unreached], ids=lambda make: make.__name__)
@pytest.mark.parametrize("episode", [1, 1000, 10**6])
def test_extremes_are_certified_too(make, scale, episode, rng, solved):
    """The agent's own floor and tolerance, 1e-4/√(nt) and 1/(16t²)."""
    model, tolerance = make(rng), 1.0 / (16.0 * episode**2)
    this = model_alone(model, tolerance)
    u, floor = SCALES[scale](rng, (model.horizon, model.states, model.actions)), 1e-4 / math.sqrt(this.tuples * episode)
    proves(model, this.plan_roots(u, floor), u, floor, tolerance, solved)


# One root for all steps


def shared(model, u, occupancy):
    """Return ⟨q, f̂⟩ + Σ √(u·Σ_h q_h)."""
    return float((occupancy * model.reward_steps).sum() + np.sqrt(u * occupancy.sum(axis=0)).sum())


def divided(model, u, visits):
    """Return how the rule divides u (S, A) among the steps."""
    parts, (transitions, rewards, _, admissible) = visits.copy(), model.raw
    compiled.divide(transitions, rewards, admissible, *value_bounds(model.horizon), u, parts)
    return parts


def test_one_plan_explores_where_it_costs_less(rng):
    """Than in equal parts, summed over models: ⟨q, f̂⟩ + Σ √(u·Σ_h q_h) is larger."""
    won = 0.0
    for model in random_mdps(rng, 20):
        this, draws = model_alone(model, 1e-8), seen_by(model, random_draws(rng, model, 8))
        u, visits = estimate(pooled(draws))[0], draws.occupancies.sum(axis=0)
        equal = this.plan_roots(np.repeat(u[None] / model.horizon, model.horizon, axis=0), 1e-8)
        ours = this.plan_roots(divided(model, u, visits), 1e-8)
        won += shared(model, u, ours.occupancy) - shared(model, u, equal.occupancy)
    assert won > 0.01


def test_what_can_be_tried_late_is_not_tried_early():
    """Staying pays ½ in every step, leaving pays nothing and ends it: what leaving is like costs least at the end."""
    kernel = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]]])
    model = TabularMDP(transitions=kernel, rewards=np.array([[0.5, 0.0], [0.0, 0.0]]), horizon=5)
    u, visits = np.array([[0.0, 1e-3], [0.0, 0.0]]), np.zeros((5, 2, 2))
    visits[:, 0, 1] = 0.2
    leaving = model_alone(model, 1e-9).plan_roots(divided(model, u, visits), 1e-9).occupancy[:, 0, 1]
    by_step = model_alone(model, 1e-9).plan_roots(np.repeat(u[None], 5, axis=0), 1e-9).occupancy[:, 0, 1]
    assert leaving[-1] > 0.9 * leaving.sum()
    assert by_step[-1] < 0.8 * by_step.sum()


@pytest.mark.parametrize("shape", [(S,), (S, A), (1, S, A), (H + 1, S, A)])
def test_roots_of_another_shape_are_refused(shape):
    _, agent = build("adaptive")
    with pytest.raises(ValueError, match=r"`u` must have shape .*, got"):
        situation(agent).plan_roots(np.ones(shape), 0.1)
