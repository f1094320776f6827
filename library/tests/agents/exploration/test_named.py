"""The rules by name, what tells them apart, and the arguments that are refused."""

import math

import numpy as np
import pytest

from library.tests.agents.catalogue import HORIZON, SPACES
from library.tests.agents.exploration.situations import finite
from library.tests.oracles.catalogue import known_dynamics, known_rewards
from omg_cmdp import OMG
from omg_cmdp.agents import (
    Accounted,
    Anytime,
    ExplorationRule,
    GainWeighted,
    Greedy,
    Power,
    Schedule,
    Theory,
    UncertaintyWeighted,
)
from omg_cmdp.agents.exploration.named import RULES


def test_rules_by_name():
    made = {name: type(OMG(SPACES["plain"], *finite(), name, episodes=5).gamma) for name in RULES}
    assert made == {
        "adaptive": Accounted,
        "uncertainty": UncertaintyWeighted,
        "theory": Theory,
        "anytime": Anytime,
    }
    assert type(OMG(SPACES["plain"], *finite()).gamma) is Accounted
    assert type(OMG(SPACES["plain"], *finite(), 3).gamma) is Schedule


def test_the_seed_of_the_agent_is_that_of_its_rule():
    assert OMG(SPACES["plain"], *finite(), seed=7).gamma.rule.seed == 7
    own = GainWeighted(seed=3)
    assert OMG(SPACES["plain"], *finite(), own, seed=7).gamma is own


def test_settings_of_rules_tell_them_apart():
    class Two(ExplorationRule):
        def __init__(self, inner):
            self.inner = inner

        def decide(self, situation):
            return situation.plan(1.0)

    same = str(Two(lambda t: t)), str(Two(lambda t: 2.0 * t))
    assert same[0] == same[1]  # functions cannot be told apart, and say so
    assert same[0].endswith("?)")
    by_value = [
        str(Schedule(f)) for f in (lambda t: t, lambda t: 1.0 * t, lambda t: 2.0 * t, lambda t: t if t < 99 else 9)
    ]
    assert len(set(by_value)) == 3
    assert by_value[0] == by_value[1]
    assert str(Two(Power(1.0, 0.5))) != str(Two(Power(2.0, 0.5)))
    assert str(UncertaintyWeighted()) == "UncertaintyWeighted(kappa=0.15, floor=0.0001)"
    assert str(GainWeighted(seed=3)) == "GainWeighted(draws=32, floor=0.0001, seed=3)"


@pytest.mark.parametrize(
    ("rule", "arguments", "named"),
    [
        (UncertaintyWeighted, {"kappa": 0.0}, "kappa"),
        (UncertaintyWeighted, {"floor": -1.0}, "floor"),
        (GainWeighted, {"draws": 0}, "draws"),
        (GainWeighted, {"draws": 1}, "draws"),
        (GainWeighted, {"draws": 2.5}, "draws"),
        (GainWeighted, {"floor": 0.0}, "floor"),
        (GainWeighted, {"floor": math.nan}, "floor"),
        (GainWeighted, {"seed": -1}, "seed"),
        (GainWeighted, {"seed": "x"}, "seed"),
    ],
)
def test_arguments_of_rules_that_are_refused_by_name(rule, arguments, named):
    with pytest.raises(ValueError, match=f"`{named}` must"):
        rule(**arguments)


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
        ({"seed": -1}, "seed"),
        ({"gamma": 5.0, "seed": 1.5}, "seed"),
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
