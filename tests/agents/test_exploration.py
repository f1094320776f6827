"""The exploration rules: γ by hand, the weights that they promise, and the arguments that are refused."""

import math

import numpy as np
import pytest

from omg_cmdp import OMG, Space, occupancy_measure, oracles
from omg_cmdp.agents import Anytime, ExplorationRule, Greedy, Power, Schedule, Situation, Theory, UncertaintyWeighted
from omg_cmdp.agents.kernels import exploration as compiled
from omg_cmdp.mdp.bellman import value_ranges
from omg_cmdp.planning.plan import plan
from omg_cmdp.theory.constants import most_tuples
from tests.agents.catalogue import HORIZON, KERNELS, LABELS, MASK, ORACLES, REWARDS, SIZE, SPACES, build
from tests.oracles.catalogue import known_dynamics, known_rewards
from tests.random_mdps import random_mdps, random_policy

S, A, H = SIZE["states"], SIZE["actions"], SIZE["horizon"]


def finite():
    return ORACLES["finite"][1]()


def situation(agent, context=LABELS[0], episode=1):
    return Situation(
        episode=episode,
        context=context,
        model=agent.model(context),
        reward_oracle=agent.reward_oracle,
        dynamics_oracle=agent.dynamics_oracle,
        tuples=most_tuples(agent.space),
        tolerance=1e-6,
    )


def after(agent, episodes):
    agent.episodes_seen = episodes
    return agent


def test_theory_by_hand():
    """S = 2, A = 3, H = 2, T = 1000, δ = 0.1, |F| = 4, |P| = 8, proven rates: R_sq = ln 4, R_log = 2·ln 8."""
    space = Space(states=2, actions=3, horizon=2)
    rewards = oracles.FiniteRewards(lambda _: np.full((4, 2, 3), 0.5), horizon=2, rate="proven")
    dynamics = oracles.FiniteDynamics(lambda _: np.full((8, 2, 3, 2), 0.5), horizon=2, rate="proven")
    agent = OMG(space, rewards, dynamics, "theory", episodes=1000, delta=0.1)
    errors = 2.0 * math.log(4.0) + 2.0 * math.log(8.0) + 36.0 * math.log(40.0)
    assert agent.decide("c").gamma == pytest.approx(math.sqrt(6000.0 / (62.0 * 8.0 * errors)))
    exact = Theory(1000, 0.1, exact=True).decide(situation(agent, "c"))
    assert exact.gamma == pytest.approx(math.sqrt(6000.0 / (31.0 * 8.0 * errors)))
    assert exact.weights is None


def test_theory_is_the_same_in_every_episode():
    _, agent = build("theory")
    assert len({after(agent, t).decide(LABELS[0]).gamma for t in (0, 1, 10, 999)}) == 1


def test_theory_grows_like_the_root_of_the_episodes():
    """The bounds of finite classes do not depend on T (those of smoothed ones do)."""
    rewards, dynamics = oracles.FiniteRewards(REWARDS, horizon=H), oracles.FiniteDynamics(KERNELS, horizon=H)
    made = (OMG(SPACES["plain"], rewards, dynamics, "theory", episodes=t) for t in (1000, 4000))
    one, four = (agent.decide("a").gamma for agent in made)
    assert four == pytest.approx(2.0 * one)


def test_anytime_by_hand():
    """n counts the first layer's start states, then all: 2 + 3·5 under the mask, from state 0."""
    agent = OMG(SPACES["restricted"], *finite(), "anytime", delta=0.1)
    assert MASK.sum() == 5
    agent.model("a")
    squares, logs = agent.reward_oracle.regret_bound(7, H), agent.dynamics_oracle.regret_bound(7, H)
    rewards = 2.0 * squares + 16.0 * H * math.log(2.0 / 0.1)
    dynamics = logs + 2.0 * H * math.log(2.0 * H / 0.1)
    expected = math.sqrt(17 * 7 / (1.36 * rewards + (4.42 * H**2 + 6.12 * H**4) * dynamics))
    assert after(agent, 6).decide("a").gamma == pytest.approx(expected)


@pytest.mark.parametrize("oracle", ["finite", "counts"])
def test_anytime_increases(oracle):
    contexts, agent = build("anytime", oracle)
    gammas = [after(agent, t).decide(contexts[0]).gamma for t in range(50)]
    assert (np.diff(gammas) > 0.0).all()


@pytest.mark.parametrize(("space", "count"), [("plain", 3 + 27), ("spread start", 6 + 27), ("restricted", 2 + 15)])
def test_tuples_bound_what_can_be_reached(space, count):
    _, agent = build("float", space=space)
    assert situation(agent).tuples == count
    assert np.count_nonzero(agent.decide("a").occupancy) <= count


def test_fixed_and_callable():
    assert build("float")[1].decide("a").gamma == 50.0
    assert after(build("callable")[1], 8).decide("a").gamma == 30.0
    asked = []
    agent = OMG(SPACES["plain"], *finite(), lambda t: asked.append(t) or 5.0)
    agent.policy("a")
    agent.episodes_seen = 3
    agent.policy("a")
    assert asked == [1, 4]


def test_a_rule_of_your_own():
    class Weighted(ExplorationRule):
        def decide(self, situation):
            return situation.plan(7.0, np.full((H, S, A), 2.0))

    own = OMG(SPACES["plain"], *finite(), Weighted()).decide("a")
    assert own.gamma == 7.0
    plain = OMG(SPACES["plain"], *finite(), 3.5, episodes=10**9).decide("a")
    precise = OMG(SPACES["plain"], *finite(), Weighted(), episodes=10**9).decide("a")
    np.testing.assert_allclose(precise.policy, plain.policy, atol=1e-5)


@pytest.mark.parametrize("oracle", list(ORACLES))
def test_adaptive_weights_are_positive_and_above_the_floor(oracle):
    contexts, agent = build("uncertainty weighted", oracle)
    for t in (1, 10, 100):
        decision = after(agent, t - 1).decide(contexts[0])
        weights = decision.weights / decision.gamma
        tuples = situation(agent, contexts[0], t).tuples
        assert (weights >= 0.01 / math.sqrt(tuples * t) * (1.0 - 1e-12)).all()
        np.testing.assert_allclose(decision.weights.mean(), 1.0)


def test_adaptive_explores_nothing_but_the_floor_where_all_is_known():
    contexts, agent = build("uncertainty weighted", "known by step")
    decision = agent.decide(contexts[0])
    np.testing.assert_allclose(decision.weights, 1.0)
    assert 1.0 / decision.gamma == pytest.approx(0.01 / math.sqrt(situation(agent, contexts[0]).tuples))


@pytest.mark.parametrize("oracle", ["finite", "counts", "linear and softmax"])
def test_adaptive_weights_are_those_of_the_root_program(oracle):
    """m = ½·√(q·u) + floor, with a q that maximises ⟨q, f̂⟩ + Σ √(u·q): no other q is better by more than the gap."""
    contexts, agent = build("uncertainty weighted", oracle)
    this = situation(after(agent, 5), contexts[0], 6)
    decision = agent.gamma.decide(this)
    after_step = value_ranges(this.model)[:, None, None]
    dynamics = this.dynamics_oracle.uncertainty(this.context)
    unsure = (this.reward_oracle.uncertainty(this.context) + after_step**2 * dynamics) / H  # κ = 1
    roots = 2.0 * (decision.weights / decision.gamma - 0.01 / math.sqrt(this.tuples * 6))
    occupancy = roots**2 / unsure
    assert occupancy.sum(axis=(1, 2)) == pytest.approx(np.ones(H), abs=1e-6)
    best = plan(this.model, uncertainty=np.maximum(unsure, 1e-12), tolerance=1e-6)
    objective = [(q * this.model.rewards).sum() + np.sqrt(unsure * q).sum() for q in (occupancy, best.occupancy)]
    assert objective[0] >= objective[1] - 1e-3
    assert (H * roots[-1] ** 2 <= this.reward_oracle.uncertainty(this.context) * (1.0 + 1e-9)).all()  # no step follows


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"gamma": -1}, "gamma"),
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": math.nan}, "gamma"),
        ({"gamma": math.inf}, "gamma"),
        ({"gamma": "foo"}, "gamma"),
        ({"gamma": None}, "gamma"),
        ({"gamma": [1.0, 2.0]}, "gamma"),
        pytest.param({"gamma": np.array([1.0, 2.0])}, "gamma", id="gamma-array"),
        ({"gamma": "theory"}, "episodes"),
        ({"gamma": "theory", "episodes": 0}, "episodes"),
        ({"gamma": 5.0, "episodes": 2.5}, "episodes"),
        *(({"gamma": kind, "episodes": 9, "delta": d}, "delta") for kind in ("theory", "anytime") for d in (0, 2, 1.0)),
        ({"reward_range": (1.0, 0.0)}, "reward_range"),
        ({"reward_range": (1.0, 1.0)}, "reward_range"),
        ({"reward_range": (0.0, math.nan)}, "reward_range"),
        ({"reward_range": (0.0, math.inf)}, "reward_range"),
        pytest.param({"reward_range": (0.0,)}, "reward_range", id="reward_range-single"),
        pytest.param({"reward_range": ("low", "high")}, "reward_range", id="reward_range-text"),
        pytest.param({"reward_range": None}, "reward_range", id="reward_range-none"),
        pytest.param({"gamma": "adaptive", "delta": 2}, "delta", id="delta-unused"),
    ],
)
def test_arguments_that_are_refused_by_name(arguments, named):
    with pytest.raises(ValueError, match=f"`{named}` must"):
        OMG(SPACES["plain"], *finite(), **arguments)


@pytest.mark.parametrize("kind", [OMG, Greedy])
def test_oracles_that_are_refused_by_name(kind):
    rewards, dynamics = finite()
    with pytest.raises(ValueError, match="`reward_oracle` must be a RewardOracle"):
        kind(SPACES["plain"], dynamics, rewards)
    with pytest.raises(ValueError, match="`dynamics_oracle` must be a DynamicsOracle"):
        kind(SPACES["plain"], rewards, rewards)
    with pytest.raises(ValueError, match="`reward_oracle` must have horizon 4, got 5"):
        kind(SPACES["plain"], known_rewards(HORIZON + 1), dynamics)
    with pytest.raises(ValueError, match="`dynamics_oracle` must have horizon 4, got 5"):
        kind(SPACES["plain"], rewards, known_dynamics(HORIZON + 1))


@pytest.mark.parametrize("value", [-1.0, math.nan, 0.0, "x"])
def test_a_function_that_returns_nonsense_is_named(value):
    agent = OMG(SPACES["plain"], *finite(), lambda t: value)
    with pytest.raises(ValueError, match=r"`gamma\(t\)` must"):
        agent.policy("a")


@pytest.mark.parametrize("gamma", ["theory", "anytime"])
def test_a_bound_is_needed_where_the_theorem_needs_it(gamma):
    rewards = oracles.FiniteRewards(REWARDS, horizon=H, rate="realizable")
    dynamics = oracles.FiniteDynamics(KERNELS, horizon=H)
    with pytest.raises(ValueError, match="`reward_oracle` must have a finite `regret_bound`"):
        OMG(SPACES["plain"], rewards, dynamics, gamma, episodes=10).policy("a")


@pytest.mark.parametrize(
    ("rule", "named"),
    [(lambda: UncertaintyWeighted(kappa=0.0), "kappa"), (lambda: UncertaintyWeighted(floor=-1.0), "floor")],
)
def test_adaptive_arguments(rule, named):
    with pytest.raises(ValueError, match=f"`{named}` must"):
        rule()


def test_settings_of_rules_tell_them_apart():
    class Two(ExplorationRule):
        def __init__(self, inner):
            self.inner = inner

        def decide(self, situation):
            return situation.plan(1.0)

    same = str(Two(lambda t: t)), str(Two(lambda t: 2.0 * t))
    assert same[0] == same[1] == "Two(inner=a function)"
    assert str(Two(Power(1.0, 0.5))) != str(Two(Power(2.0, 0.5)))
    assert str(UncertaintyWeighted()) == "UncertaintyWeighted(kappa=0.15, floor=0.0001)"


def test_rules_by_name():
    made = {name: type(OMG(SPACES["plain"], *finite(), name, episodes=5).gamma) for name in ("theory", "anytime")}
    assert made == {"theory": Theory, "anytime": Anytime}
    assert type(OMG(SPACES["plain"], *finite()).gamma) is UncertaintyWeighted
    assert type(OMG(SPACES["plain"], *finite(), 3).gamma) is Schedule


@pytest.mark.parametrize("by_steps", [(False, False), (True, False), (False, True), (True, True)])
def test_errors_of_a_backup_and_the_weights_of_their_roots(by_steps, rng):
    for mdp in random_mdps(rng, 10):
        shape = (mdp.horizon, mdp.states, mdp.actions)
        ofs = [rng.random((mdp.horizon if by_step else 1, *shape[1:])) for by_step in by_steps]
        errors, weights = np.empty(shape), np.empty(shape)
        ranges = value_ranges(mdp)
        compiled.backup_errors(ranges, *ofs, 0.3, errors)
        np.testing.assert_allclose(errors, 0.3 * (ofs[0] + ranges[:, None, None] ** 2 * ofs[1]), rtol=1e-13)
        occupancy = occupancy_measure(mdp, random_policy(rng, mdp))
        gamma = compiled.root_weights(occupancy, errors, 0.02, weights)
        np.testing.assert_allclose(weights / gamma, 0.5 * np.sqrt(occupancy * errors) + 0.02, rtol=1e-13)
        assert weights.mean() == pytest.approx(1.0, rel=1e-13)
