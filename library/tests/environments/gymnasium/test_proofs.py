"""What must be shown of an environment before it is a world; what cannot be shown is refused."""

import enum
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
from gymnasium.spaces import Discrete

from library.tests.environments.gymnasium.tables import lake
from omg_cmdp.environments import TableWorld, from_gymnasium


class Weather(enum.Enum):
    WET, DRY = 0, 1


class Coin(gymnasium.Env):
    """Two states; action 0 pays with the probability that came as context. Tables change at every reset."""

    metadata = {"render_modes": []}  # noqa: RUF012
    observation_space, action_space = Discrete(2), Discrete(2)

    def __init__(self, first=(1.0, 0.0), listens=True):
        self.initial_state_distrib, self._listens = np.array(first), listens

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        bias = (options or {}).get("context", 0.5) if self._listens else 0.5
        self.P = {
            s: {0: [(bias, 0, 1.0, False), (1.0 - bias, 1, 0.0, False)], 1: [(1.0, s, 0.0, True)]} for s in (0, 1)
        }
        self._state = 0
        return 0, {}

    def step(self, action):
        outcomes = self.P[self._state][int(action)]
        chosen = outcomes[0] if self.np_random.random() < outcomes[0][0] else outcomes[-1]
        _, self._state, reward, over = chosen
        return self._state, reward, over, False, {}


class Elsewhere(Coin):
    """Starts in state 1 with the probability in the context; says so, or not."""

    def __init__(self, tells):
        super().__init__()
        self._tells = tells

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        chance = options["context"]
        self.initial_state_distrib = np.array([1.0 - chance, chance]) if self._tells else None
        self._state = int(self.np_random.random() < chance)
        return self._state, {}


class Wide(gymnasium.Env):
    """A quarter of 400 states ends the episode and pays the context; all of them are where it may start."""

    metadata = {"render_modes": []}  # noqa: RUF012
    observation_space, action_space = Discrete(400), Discrete(1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.P = {s: {0: [(1.0, s, options["context"] * (s % 4 == 0), True)]} for s in range(400)}
        self._state = int(self.np_random.integers(400))
        return self._state, {}

    def step(self, action):
        _, state, reward, over = self.P[self._state][0][0]
        return state, reward, over, False, {}


def test_a_start_that_is_not_that_of_the_episodes_is_refused():
    """Regret would be called exact, and be that of another problem."""
    with pytest.raises(ValueError, match="of one size with one start"):
        from_gymnasium(lambda: Elsewhere(True), [0.25, 0.75], horizon=4)
    with pytest.raises(ValueError, match=r"`env` must begin in a state .*, got 1: give such a `start`"):
        from_gymnasium(lambda: Elsewhere(False), [0.25, 0.75], horizon=4, start=0)
    with pytest.raises(ValueError, match="`env` must begin in a state"):
        from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate", horizon=9, start=14)
    with pytest.raises(ValueError, match="`start` must be given for tables without `initial_state_distrib`"):
        from_gymnasium(Wide, [0.5, 1.0], horizon=1)
    world = from_gymnasium(Wide, [0.5, 1.0], horizon=1, start=np.full(400, 1 / 400))
    assert world.optimal_value(0.5) == pytest.approx(0.125)


def test_a_new_context_that_starts_elsewhere_is_refused():
    def pond(rate):
        return {"desc": ["SF", "FG"] if rate < 0.6 else ["FS", "GF"], "success_rate": rate}

    world = from_gymnasium("FrozenLake-v1", [0.3, 0.5], arguments=pond, horizon=5)
    with pytest.raises(ValueError, match="with one start"):
        world.optimal_value(0.7)
    assert world.optimal_value(0.4) > 0.0


@pytest.mark.parametrize("outcome", [(1.0, 2, 0.0, False), (1.0, -1, 0.0, False), (1.0, 0, np.nan, False)])
def test_tables_that_lead_nowhere_are_refused(outcome):
    class Torn(Coin):
        def reset(self, *, seed=None, options=None):
            answer = super().reset(seed=seed, options=options)
            self.P[1][1] = [outcome]
            return answer

    with pytest.raises(ValueError, match=r"`P` of the environment must list .* in P\[1\]\[1\].*tables=False"):
        from_gymnasium(Torn, [0.25, 0.75], horizon=4)


def test_labels_may_be_anything_immutable():
    rates = {Weather.WET: 0.4, Weather.DRY: 0.9}
    world = from_gymnasium(
        "FrozenLake-v1", list(Weather), arguments=lambda weather: {"success_rate": rates[weather]}, horizon=30
    )
    assert world.optimal_value(Weather.DRY) == lake().optimal_value(0.9)


def test_reset_may_take_the_context():
    world = from_gymnasium(Coin, [0.25, 0.75], horizon=4)
    assert isinstance(world, TableWorld)
    assert [world.optimal_value(bias) for bias in (0.25, 0.5, 0.75)] == pytest.approx([1.0, 2.0, 3.0])
    assert [world.optimal_value(bias) for bias in (0.25, 0.75)] == pytest.approx([1.0, 3.0])


class Scaled(gymnasium.RewardWrapper):
    def reward(self, reward):
        return 2.0 * reward


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        ("FrozenLake-v1", {"contexts": [0.4, 0.9]}, "`contexts` must reach the environment, got the same tables"),
        (lambda: Coin(listens=False), {"contexts": [0.4, 0.9], "horizon": 4}, "`contexts` must reach the environment"),
        ("FrozenLake-v1", {"contexts": [0.4], "arguments": "success_rate"}, "`contexts` must list at least two"),
        ("FrozenLake-v1", {"contexts": [0.4, 0.4], "arguments": "success_rate"}, "`contexts` must list at least two"),
        (
            "FrozenLake-v1",
            {"contexts": [0.4, (0.9, 0.1)], "arguments": "success_rate"},
            "`contexts` must all be numbers",
        ),
        ("FrozenLake-v1", {"contexts": [1, 2], "arguments": lambda _: {"map_name": None}}, "`make` must make the same"),
        (
            lambda **kwargs: Scaled(FrozenLakeEnv(**kwargs)),
            {"contexts": [0.8, 0.9], "arguments": "success_rate", "horizon": 60},
            "`P` of the environment must say what it does.*tables=False",
        ),
        (
            "Taxi-v4",
            {"contexts": [0.1, 0.9], "arguments": lambda p: {"fickle_passenger": True, "is_rainy": p > 0.5}},
            "`P` of the environment must say what it does",
        ),
        (
            lambda place: Coin(first=np.eye(2)[place]),
            {"contexts": [0, 1], "arguments": "place", "horizon": 4},
            "`make` must make environments of one size with one start.*add a first state",
        ),
        (
            "FrozenLake-v1",
            {"contexts": [0.4, 0.9], "arguments": "success_rate", "reward_range": (0.5, 1)},
            "contains 0",
        ),
        ("FrozenLake-v1", {"contexts": [0.4, 0.9], "arguments": "success_rate", "reward_range": (0, 0.5)}, "hold all"),
        ("FrozenLake-v1", {"contexts": [0.4, 0.9], "arguments": "success_rate", "reward_range": 1}, "an interval"),
        (
            "FrozenLake-v1",
            {"contexts": [0.4, 0.9], "arguments": "success_rate", "reward_range": (0, np.inf)},
            "an interval .* of finite numbers",
        ),
        (FrozenLakeEnv(), {"contexts": [0.4, 0.9], "arguments": "success_rate"}, "`make` must be an id or a function"),
        ("FrozenLake-v1", {"contexts": [0.4, 0.9], "arguments": 7}, "`arguments` must be a name"),
        (7, {"contexts": [0.4, 0.9]}, "`make` must be the id"),
        (lambda: "no environment", {"contexts": [0.4, 0.9]}, "`make` must return a gymnasium.Env"),
        ("CartPole-v1", {"contexts": [0.4, 0.9]}, "`env` must have discrete observations.*TransformObservation"),
    ],
)
def test_what_cannot_be_shown_is_refused(make, settings, message):
    with pytest.raises(ValueError, match=message):
        from_gymnasium(make, **settings)


def test_without_gymnasium_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"pip install gymnasium"):
        from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate")


def test_a_reward_outside_its_range_is_refused_when_its_context_comes():
    class Sale(Coin):
        def reset(self, *, seed=None, options=None):
            answer = super().reset(seed=seed, options=options)
            bias = (options or {}).get("context", 0.5)
            self.P[1][0] = [(1.0, 1, 2.0 * bias, False)]
            return answer

    world = from_gymnasium(Sale, [0.25, 0.5], horizon=4)
    assert world.reward_range == (0.0, 1.0)
    with pytest.raises(ValueError, match="`reward_range` must hold all rewards"):
        world.mdp(0.9)
    assert world.optimal_value(0.5) > 0.0
