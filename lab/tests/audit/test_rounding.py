"""Certificates at large horizons and γ: honest ones are not accused of rounding, and false ones of that size are."""

import functools

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.audit.rounds import planned, played, random_pair, random_weights
from omg_cmdp.planning import certificate
from omg_lab.audit import Audit, claims
from omg_lab.audit.quantities import ModelComparison
from omg_lab.worlds import LinearWorld, SoftmaxWorld

mpmath = pytest.importorskip("mpmath")
DIGITS = 60
GAMMA, HORIZON, EPISODES = 1e6, 100, 30


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(DIGITS):
        yield


def exact(array):
    """Return an array of floats with 60 digits each."""
    return np.vectorize(mpmath.mpf, otypes=[object])(array)


def exact_occupancy(mdp, policy):
    """Return the occupancy measure (H, S, A) of a policy, whose rows are made to sum to 1."""
    policy, rows, marginal = exact(policy), exact(mdp.transition_steps), exact(mdp.start)
    found = []
    for h in range(mdp.horizon):
        found.append(marginal[:, None] * policy[h] / policy[h].sum(axis=1)[:, None])
        marginal = np.tensordot(found[-1], rows[h % len(rows)], 2)
    return np.array(found)


def exact_objective(mdp, policy, gamma, weights, held):
    """Return γ·L(q): γ·⟨q, f̂⟩ + Σ w·log q."""
    q = exact_occupancy(mdp, policy)
    logs = sum(w * mpmath.log(each) for w, each in zip(exact(weights), q[held], strict=True))
    return mpmath.mpf(gamma) * (q * exact(np.broadcast_to(mdp.reward_steps, q.shape))).sum() + logs


def exact_certificate(mdp, policy, values, gamma, held):
    """Return Σ x - 1 - ln x, x = γ·q·z, which bounds the gap of a plain barrier from above."""
    q, v = exact_occupancy(mdp, policy), exact(values)
    after = np.concatenate([v[1:], np.zeros((1, mdp.states))])
    ahead = np.array(
        [exact(mdp.transition_steps[h % len(mdp.transition_steps)]) @ after[h] for h in range(mdp.horizon)]
    )
    x = mpmath.mpf(gamma) * q * (v[:, :, None] - exact(mdp.reward_steps) - ahead)
    return sum(each - 1 - mpmath.log(each) for each in x[held])


@functools.cache
def rounds_of(world, seed):
    """Return the rounds of an honest agent, and the row of its certificates."""
    world = world(horizon=HORIZON, seed=seed)
    oracles = (
        omg.oracles.FiniteRewards(world.reward_functions, horizon=HORIZON),
        omg.oracles.FiniteDynamics(world.transition_functions, horizon=HORIZON),
    )
    audit, rounds = Audit(), []

    def observe(this):
        rounds.append(this)
        audit(this)

    agent = omg.OMG(world.space, *oracles, GAMMA)
    omg.simulate(world, omg.adversaries.IID(world.contexts), agent, EPISODES, seed=seed, observe=observe)
    return rounds, audit.rows()


def compared(this):
    """Return what an audit knows of a round: the comparison, the barrier and the closer plan."""
    model = this.decision.model
    c = ModelComparison(this, model)
    b = claims.barrier(this.decision, c, claims.reachable(model))
    return c, b, claims.closer_plan(c, b)


@pytest.mark.parametrize("world", [SoftmaxWorld, LinearWorld])
def test_an_honest_plan_is_not_accused_of_rounding(world):
    """In plain doubles the closer plan seems to be better by more than the certificate; with 60 digits it is not."""
    rounds, rows = rounds_of(world, 0)
    assert [row.name for row in rows if not row.holds] == []
    accused = 0
    for this in rounds:
        c, b, closer = compared(this)
        plain = GAMMA * c.estimate(closer.occupancy - c.believed) + np.log(closer.occupancy[b.held] / b.q).sum()
        claimed = this.decision.certificate
        if plain - 4.0 * np.finfo(float).eps * GAMMA * HORIZON > claimed:
            accused += 1
            assert exact_certificate(c.model, this.decision.policy, this.decision.values, GAMMA, b.held) <= claimed
    assert accused > 0


@pytest.mark.parametrize("world", [SoftmaxWorld, LinearWorld])
def test_a_false_certificate_of_the_size_of_rounding_is_red(world):
    """Plain doubles are wrong by 1e-7 here; a gap of that size, of which a tenth is claimed, is found."""
    precise = [this for this in rounds_of(world, 0)[0] if this.decision.certificate < 1e-9]
    assert len(precise) > 3
    for this in precise[::3]:
        decision = this.decision
        model, uniform = decision.model, np.full(decision.policy.shape, 1.0 / decision.policy.shape[2])
        for share in 10.0 ** np.arange(-15.0, 0.0, 0.25):
            policy = (1.0 - share) * decision.policy + share * uniform
            gap = certificate(model, policy, decision.values, gamma=GAMMA)
            if gap > 5e-8:
                break
        assert gap < 1e-6
        audit = Audit()
        lie = decision._replace(policy=policy, occupancy=omg.occupancy_measure(model, policy), certificate=0.1 * gap)
        audit(played(this.truth.mdp, lie))
        assert {row.name: row.verdict for row in audit.rows()}["certificate"] == "violated"


def test_the_gap_lies_where_it_is_said_to_lie_whatever_gamma_is(rng):
    """Against 60 digits; the interval is as narrow at γ = 1e9 as at γ = 1."""
    for _ in range(15):
        truth, model = random_pair(rng, states=3, actions=2, horizon=int(rng.choice([1, 4, 12])), masked=False)
        weights, gamma = random_weights(rng, model), 10.0 ** rng.uniform(-3, 9)
        this = played(truth, planned(rng, model, gamma, weights, loosened=10.0 ** rng.uniform(-9, -1)))
        c, b, closer = compared(this)
        low, high = claims.gap_between(c, b, closer)
        gap = exact_objective(model, closer.policy, gamma, b.w, b.held)
        gap -= exact_objective(model, this.decision.policy, gamma, b.w, b.held)
        assert low <= gap <= high
        assert high - low <= 1e-11 * (float(b.w.sum()) + abs(high))
