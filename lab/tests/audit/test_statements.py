"""Every statement on random pairs of a truth and a model, most of them far apart: no run would visit such cases."""

import dataclasses
import math

import numpy as np
import pytest

from lab.tests.audit.rounds import planned, played, random_pair, random_weights, unplanned
from library.tests.random_mdps import by_step, random_mdp, random_policy, with_tables
from omg_cmdp.mdp import TabularMDP, occupancy_measure, optimal_policy, policy_value, squared_hellinger
from omg_cmdp.planning import plan
from omg_cmdp.planning.decision import Decision
from omg_cmdp.theory import bounds, errors
from omg_lab.audit import Audit, claims, lemmas
from omg_lab.audit.quantities import ModelComparison
from omg_lab.audit.statements import STATEMENTS

OF_ROUNDS = {"optimum", "model", *claims.OF_BARRIERS, *lemmas.OF_MODELS, *lemmas.OF_BARRIERS, *lemmas.OF_PLAIN_BARRIERS}
OF_RUNS = {"policy errors, sum", "regret, from errors"}


def random_decision(rng, model):
    loosened = 0.0 if rng.random() < 0.5 else 10.0 ** rng.uniform(-7, -0.3)
    return planned(rng, model, 10.0 ** rng.uniform(-1, 5), random_weights(rng, model), loosened=loosened)


@pytest.mark.parametrize("known_dynamics", [False, True])
def test_every_statement_holds_on_random_mdps(rng, known_dynamics):
    audit = Audit()
    for episode in range(250):
        truth, model = random_pair(rng, known_dynamics=known_dynamics)
        audit(played(truth, random_decision(rng, model), episode))
    rows = {row.name: row for row in audit.rows() if row.failure == 0.0}
    # Some of these plans are honest and coarse.
    assert {row.name: row.verdict for row in rows.values() if not row.holds} == {
        "precision": "violated",
        "approximate plan": "not proven",
    }
    # One state alone is enough to know the dynamics.
    assert set(rows) == OF_ROUNDS | OF_RUNS | {"Theorem A", "known dynamics"}


def test_statements_about_the_model_hold_for_any_policy(rng):
    audit = Audit()
    for episode in range(100):
        truth, model = random_pair(rng)
        audit(played(truth, unplanned(random_policy(rng, truth), model), episode))
    assert all(row.holds for row in audit.rows() if row.failure == 0.0)


def test_known_dynamics_are_attained_by_one_step(rng):
    # H = 1, one state: with f* = f̂ + (2/γ)·(d - q̂)/q̂ both sides are equal, up to d² <= d, which is tight too.
    attained = 0
    for _ in range(50):
        actions = int(rng.integers(2, 5))
        gamma = 10.0 ** rng.uniform(1.5, 4)
        model = random_mdp(rng, 1, actions, 1, rewards="uniform", masked=False)
        model = with_tables(model, rewards=0.4 + 0.2 * model.rewards)
        q = plan(model, gamma, tolerance=1e-13).occupancy
        best = np.eye(actions)[int(rng.integers(actions))]
        rewards = model.rewards + (2.0 / gamma) * (best - q[0]) / q[0]
        if rewards.min() < 0.0 or rewards.max() > 1.0:
            continue
        truth = with_tables(model, rewards=rewards)
        error = float((q * (truth.reward_steps - model.reward_steps) ** 2).sum())
        limit = bounds.known_dynamics_round(tuples=actions, horizon=1, gamma=gamma, squared_error=error)
        regret = float((best * rewards).sum()) - policy_value(truth, plan(model, gamma, tolerance=1e-13).policy)
        assert regret == pytest.approx(limit, rel=1e-6)
        attained += 1
    assert attained > 5


def test_certified_plans_pay_by_the_tuple(rng):
    """The closed form of docs/theory.md: Σ m(1+τ) + Σ m(1-τ)(q̂-2d) + ¼·Σ q̂·err²/(m(1-τ)) + third term."""
    checked = 0
    for _ in range(300):
        truth, model = random_pair(rng)
        decision = random_decision(rng, model)
        c = ModelComparison(played(truth, decision), model)
        b = claims.barrier(decision, c, claims.reachable(model))
        if not decision.certificate < np.inf:
            continue
        tau = np.array([errors.iterates_bound(decision.certificate / w) for w in b.w])
        if tau.max() >= 1.0:
            continue
        checked += 1
        kept = b.m * (1.0 - tau)
        estimation = 0.25 * float((b.q * c.errors[b.held] ** 2 / kept).sum())
        right = float((b.m * (1.0 + tau) + kept * (b.q - 2.0 * b.d)).sum()) + estimation + c.third_term
        assert c.best - c.value <= right + 1e-9 * (1.0 + abs(right))
    assert checked > 100


def test_the_third_term_is_bounded_by_hellinger_distances(rng):
    for _ in range(100):
        truth, model = random_pair(rng)
        c = ModelComparison(played(truth, unplanned(random_policy(rng, truth), model)), model)
        left_over = np.arange(truth.horizon - 1, -1, -1)[:, None, None]
        right = float((c.believed * left_over * np.sqrt(c.hellinger)).sum())
        assert abs(c.third_term) <= right + 1e-12


def test_squared_errors_split_into_rewards_and_dynamics(rng):
    for _ in range(100):
        truth, model = random_pair(rng)
        c = ModelComparison(played(truth, unplanned(random_policy(rng, truth), model)), model)
        split = 2.0 * c.reward_squares + 2.0 * truth.horizon**2 * c.hellinger
        assert (c.errors**2 <= np.broadcast_to(split, c.errors.shape) + 1e-12).all()
        estimation = errors.estimation(
            horizon=truth.horizon, reward_error=c.reward_error, dynamics_error=c.dynamics_error
        )
        assert 0.25 * float((c.believed * c.errors**2).sum()) <= estimation + 1e-12


def test_change_of_measure_for_any_reward(rng):
    for _ in range(200):
        truth, model = random_pair(rng)
        policy = random_policy(rng, truth)
        reward = rng.random((truth.states, truth.actions)) * (rng.random() < 0.5 or 10.0 ** rng.uniform(-4, 0))
        believed, true = (policy_value(with_tables(mdp, rewards=reward), policy) for mdp in (model, truth))
        distance = float(
            (occupancy_measure(truth, policy) * squared_hellinger(truth.transition_steps, model.transition_steps)).sum()
        )
        assert believed <= math.e * true + 2.25 * math.e * truth.horizon**2 * distance + 1e-12


def test_a_plan_covers_every_policy(rng):
    """q_h(s, a|π, P̂) <= q̂_h(s, a)·(n + γ·(V̂^q̂ - V̂^π))."""
    for _ in range(50):
        mdp = random_mdp(rng, 3, 2, 3)
        gamma = 10.0 ** rng.uniform(-1, 3)
        solution = plan(mdp, gamma, tolerance=1e-13)
        held = solution.occupancy > 0.0
        policy = random_policy(rng, mdp)
        other = occupancy_measure(mdp, policy)[held]
        spare = policy_value(mdp, solution.policy) - policy_value(mdp, policy)
        limit = solution.occupancy[held] * (held.sum() + gamma * spare)
        assert (other <= limit * (1.0 + 1e-4) + 1e-9).all()


def test_the_root_program_pays_for_its_uncertainty_only(rng):
    """V* - V^π <= 3/2·Σ √(q̂u) <= 3/2·√(n·Σ q̂u) if (f* - f̂)² <= u and the dynamics are known."""
    for _ in range(60):
        base = random_mdp(rng, 3, 2, 3, rewards="uniform", reward_steps=True)
        shape = (3, 3, 2)
        model = with_tables(base, rewards=0.3 + 0.4 * by_step(base)[1])
        u = np.where(rng.random(shape) < 0.2, 0.0, 0.09 * 10.0 ** rng.uniform(-4, 0, size=shape))
        signs = rng.choice([-1.0, 1.0], size=shape) * (rng.random(shape) < 0.8)
        truth = with_tables(model, rewards=np.clip(model.rewards + signs * np.sqrt(u), 0.0, 1.0))
        solution = plan(model, uncertainty=u, tolerance=1e-11)
        regret = optimal_policy(truth)[1] - policy_value(truth, solution.policy)
        spent = 1.5 * float(np.sqrt(solution.occupancy * u).sum())
        assert regret <= spent + 1e-4
        n = int((solution.occupancy > 0.0).sum())
        assert spent <= 1.5 * math.sqrt(n * float((solution.occupancy * u).sum())) + 1e-12


@pytest.mark.parametrize("scale", [0.15 / 3, 0.03, 1.0])
def test_weights_from_a_share_of_the_uncertainty_pay_its_inverse(rng, scale):
    """m = ½·√(q̂·scale·u): V* - V^π <= (½/√scale + √scale)·Σ √(q̂u); with κ/H, 1.29·√H + .39/√H at κ = .15."""
    for _ in range(40):
        base = random_mdp(rng, 3, 2, 3, rewards="uniform", reward_steps=True)
        shape = (3, 3, 2)
        model = with_tables(base, rewards=0.3 + 0.4 * by_step(base)[1])
        u = 0.09 * 10.0 ** rng.uniform(-2, 0, size=shape)
        solution = plan(model, uncertainty=scale * u, tolerance=1e-11)
        signs = rng.choice([-1.0, 1.0], size=shape)
        truth = with_tables(model, rewards=np.clip(model.rewards + signs * np.sqrt(u), 0.0, 1.0))
        regret = optimal_policy(truth)[1] - policy_value(truth, solution.policy)
        spent = float(np.sqrt(solution.occupancy * u).sum())
        assert regret <= (0.5 / math.sqrt(scale) + math.sqrt(scale)) * spent + 1e-4
    # Two arms that look like .5 and .4 and may be wrong by .2: with a hundredth of u, 3/2 of its roots are not enough.
    model, truth = (
        TabularMDP(transitions=np.ones((1, 2, 1)), rewards=[r], horizon=1) for r in ([0.5, 0.4], [0.3, 0.6])
    )
    solution = plan(model, uncertainty=np.full((1, 2), 0.01 * 0.04), tolerance=1e-11)
    assert 0.6 - policy_value(truth, solution.policy) > 1.5 * float(np.sqrt(0.01 * 0.04 * solution.occupancy).sum())
    assert 0.5 / math.sqrt(0.15) == pytest.approx(1.29, abs=0.002)
    assert math.sqrt(0.15) == pytest.approx(0.39, abs=0.003)


def test_without_the_third_term_theorem_a_fails_for_unknown_dynamics(rng):
    """The start leads to x for sure; the model says y, and x once in a million. Both are worth 1, x by one action only.

    All errors are 0, so the model is right about V*; but its plan, hardly ever in x, does not care what to do there.
    """
    rare, paid = 1e-6, np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    model, truth = (
        TabularMDP(
            transitions=np.stack([[row, row] for row in ([0.0, x, 1.0 - x], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])]),
            rewards=paid,
            horizon=2,
        )
        for x in (rare, 1.0)
    )
    decision = planned(rng, model, 1e4, None)
    c = ModelComparison(played(truth, decision), model)
    b = claims.barrier(decision, c, claims.reachable(model))
    assert np.abs(c.errors).max() < 1e-12
    theorem_a = float((b.m * (1.0 + b.q)).sum()) + b.defect
    regret = c.best - c.value
    assert regret > 0.49 > 0.01 > theorem_a
    assert regret <= theorem_a + c.third_term
    audit = Audit()
    audit(played(truth, decision))
    assert all(row.holds for row in audit.rows() if row.failure == 0.0)


@pytest.mark.parametrize("factor", [0.0, 1e-3])
def test_a_certificate_that_is_too_small_is_caught(rng, factor):
    audit = Audit()
    for episode in range(20):
        truth, model = random_pair(rng, states=3, actions=3, horizon=3)
        decision = planned(rng, model, 100.0, None, loosened=0.3)
        small = decision._replace(certificate=factor * decision.certificate)
        audit(played(truth, small, episode))
    broken = {row.name for row in audit.rows() if not row.holds}
    assert {"certificate", "optimality"} <= broken


@pytest.mark.parametrize("spoilt", ["policy", "gamma", "weights", "occupancy", "model"])
def test_a_decision_that_is_not_what_it_says_is_caught(rng, spoilt):
    audit = Audit()
    for episode in range(20):
        truth, model = random_pair(rng, states=3, actions=3, horizon=3, kernel="dense", masked=False)
        decision = planned(rng, model, 100.0, None)
        wrong = {
            "policy": random_policy(rng, model),
            "gamma": 3.0 * decision.gamma,
            "weights": rng.uniform(0.1, 10.0, size=decision.policy.shape),
            "occupancy": occupancy_measure(truth, decision.policy),
            "model": with_tables(model, rewards=1.0 - model.rewards),
        }
        audit(played(truth, decision._replace(**{spoilt: wrong[spoilt]}), episode))
    assert not all(row.holds for row in audit.rows() if row.failure == 0.0)


@pytest.mark.parametrize("unproven", [np.nan, np.inf])
def test_nothing_is_proven_of_a_plan_without_a_certificate(rng, unproven):
    truth, model = random_pair(rng, states=3, actions=3, horizon=3, masked=False)
    decision = planned(rng, model, 100.0, None, loosened=0.5)._replace(certificate=unproven)
    audit = Audit()
    audit(played(truth, decision))
    verdicts = {row.name: row.verdict for row in audit.rows()}
    assert verdicts["precision"] == "violated"
    for name in ("certificate", "optimality", "plan gap", "Theorem B", "approximate plan", "regret, from errors"):
        assert verdicts[name] == "not proven"
    assert "violated" not in {verdicts[name] for name in verdicts if name != "precision"}


def test_nothing_is_proven_of_a_plan_that_leaves_out_rare_states(rng):
    """One of three actions keeps you alive: after 63 steps uniform play has lost you, the best policy has not."""
    transitions = np.zeros((2, 3, 2))
    transitions[0, 0, 0] = transitions[0, 1:, 1] = transitions[1, :, 1] = 1.0
    mdp = TabularMDP(transitions=transitions, rewards=[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]], horizon=66)
    solution = plan(mdp, 1.0)
    audit = Audit()
    claims_of = {name: getattr(solution, name) for name in ("policy", "occupancy", "values", "certificate")}
    audit(played(mdp, Decision(model=mdp, gamma=1.0, **claims_of)))
    verdicts = {row.name: row.verdict for row in audit.rows()}
    assert solution.certificate == np.inf
    assert verdicts["support"] == verdicts["precision"] == "violated"
    for name in ("certificate", "optimality", "Theorem B", "regret, from errors"):
        assert verdicts[name] == "not proven"


def test_a_wrong_value_is_caught(rng):
    truth, model = random_pair(rng, states=3, actions=3, horizon=3)
    this = played(truth, planned(rng, model, 100.0, None))
    audit = Audit()
    audit(this._replace(value=this.value + 1e-3))
    assert {"policy error", "decomposition"} & {row.name for row in audit.rows() if not row.holds}


def test_every_statement_says_where_it_is_from():
    for name, statement in STATEMENTS.items():
        fields = dataclasses.asdict(statement)
        assert fields["name"] == name
        assert fields["claim"]
        assert fields["where"]
