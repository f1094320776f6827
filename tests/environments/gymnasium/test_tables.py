"""Gymnasium's tables become exact contextual MDPs: the same values, policies and regrets, up to the stated map."""

import enum
import functools
import pickle
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv, generate_random_map
from gymnasium.spaces import Discrete

import omg_cmdp as omg
from omg_cmdp.environments import TableWorld, from_gymnasium
from omg_cmdp.environments.gymnasium.rollout import EnvironmentPlayer
from omg_cmdp.oracles import CountDynamics, CountRewards


class Weather(enum.Enum):
    WET, DRY = 0, 1


@functools.cache
def lake(reward_range=None):
    settings = {"arguments": "success_rate", "horizon": 30, "reward_range": reward_range}
    return from_gymnasium("FrozenLake-v1", [0.4, 0.6, 0.9], **settings)


def drawn(bits):
    """Return the arguments of a 4x4 lake with holes where the 16 bits of the context say so."""
    cells = "".join("FH"[bit] for bit in bits)
    return {"desc": [f"S{cells[1:4]}", cells[4:8], cells[8:12], f"{cells[12:15]}G"], "success_rate": 0.8}


@functools.cache
def random_maps():
    maps = ["".join(generate_random_map(size=4, p=0.7, seed=seed)) for seed in range(6)]
    contexts = [tuple(int(cell == "H") for cell in cells) for cells in maps]
    return from_gymnasium("FrozenLake-v1", contexts, arguments=drawn, horizon=25)


@functools.cache
def taxi():
    rain = {"arguments": lambda p: {"is_rainy": True, "rainy_probability": p}, "horizon": 12}
    return from_gymnasium("Taxi-v4", [0.5, 0.9], **rain)


@functools.cache
def cliff():
    return from_gymnasium("CliffWalking-v1", [False, True], arguments="is_slippery", horizon=25)


def half_best(world, context):
    """Return the mean of the best policy and the uniform one: it goes everywhere, and earns something."""
    uniform = world.space.admissible / world.space.admissible.sum(axis=1, keepdims=True)
    return 0.5 * world.truth(context).best[0] + 0.5 * uniform


WORLDS = {"lake": lake, "random maps": random_maps, "taxi": taxi, "cliff": cliff}


@pytest.fixture(scope="module", params=WORLDS)
def world(request):
    return WORLDS[request.param]()


def own_value(table, start, horizon, choose):
    """Return the value of a policy in Gymnasium's units, straight from `P`: nothing comes after a terminated step."""
    after = np.zeros(len(table))
    for h in reversed(range(horizon)):
        before = np.empty(len(table))
        for s, rows in table.items():
            gains = [sum(p * (r + (0.0 if end else after[t])) for p, t, r, end in rows[a]) for a in sorted(rows)]
            before[s] = choose(h, s, np.array(gains))
        after = before
    return float(start @ after)


def test_optimal_values_are_those_of_the_original_problem(world):
    for context in world.contexts[:2]:
        env = world.env.open(context).unwrapped
        own = own_value(env.P, env.initial_state_distrib, world.space.horizon, lambda h, s, gains: gains.max())
        assert world.original_value(world.optimal_value(context)) == pytest.approx(own, abs=1e-8)


def test_every_policy_keeps_its_place(world, rng):
    """A value here is affine in the value there, by one map for all policies: so are regrets, up to the scale."""
    context, space = world.contexts[0], world.space
    env = world.env.open(context).unwrapped
    low, high = world.reward_range
    truth, best = world.truth(context), world.original_value(world.optimal_value(context))
    for _ in range(2):
        policy = rng.dirichlet(np.ones(space.actions), size=(space.horizon, space.states))
        policy[:, -1] = np.eye(space.actions)[0]
        table = policy  # bound now, for the function below
        own = own_value(env.P, env.initial_state_distrib, space.horizon, lambda h, s, gains: table[h, s] @ gains)  # noqa: B023
        assert world.original_value(truth.value(policy)) == pytest.approx(own, abs=1e-8)
        assert (high - low) * truth.regret(policy) == pytest.approx(best - own, abs=1e-7)


def test_the_environment_itself_earns_what_the_tables_say(world):
    """Two policies played through Gymnasium: mean returns within five standard errors."""
    player = EnvironmentPlayer(world.env, world.space, world.reward_range)
    context = world.contexts[-1]
    for policy in (world.truth(context).best[0], half_best(world, context)):
        returns = [player.play(context, policy, (0, k)).rewards.sum() for k in range(150)]
        error = 5.0 * np.std(returns) / np.sqrt(len(returns)) + 1e-9
        assert np.mean(returns) == pytest.approx(world.original_value(world.truth(context).value(policy)), abs=error)


def test_samples_have_the_right_means(world, rng):
    """Drawn without Gymnasium: the mean of returns is the value."""
    context = world.contexts[-1]
    policy = half_best(world, context)
    returns = [world.sample(context, policy, rng).rewards.sum() for _ in range(300)]
    error = 5.0 * np.std(returns) / np.sqrt(len(returns)) + 1e-9
    assert np.mean(returns) == pytest.approx(world.truth(context).value(policy), abs=error)


def test_samples_are_episodes_that_gymnasium_could_play(world, rng):
    """Rewards have their distribution given the next state: a goal pays where it is reached, and nowhere else."""
    low, high = world.reward_range
    for context in world.contexts:
        policy = half_best(world, context)
        path = world.sample(context, policy, rng)
        original = omg.Trajectory(
            context=context, states=path.states, actions=path.actions, rewards=low + (high - low) * path.rewards
        )
        assert world.outcomes(context).first_impossible_step(original) is None
        np.testing.assert_array_equal(
            path.propensities, policy[np.arange(len(path.actions)), path.states[:-1], path.actions]
        )


def test_one_next_state_may_pay_differently():
    """Slipping off the cliff and staying at the start both lead to the start: -100 or -1."""
    outcomes, cells = cliff().outcomes(True), 20_000
    step = omg.Trajectory(context=True, states=[36] * (cells + 1), actions=[0] * cells, rewards=[0.0] * cells)
    drawn = outcomes.draw(step, np.random.default_rng(0).random(cells))
    assert set(drawn) == {-1.0, -100.0}  # up: left stays, right falls, each with probability ⅓
    assert np.mean(drawn == -100.0) == pytest.approx(0.5, abs=0.02)
    assert outcomes.transitions()[36, 0, 36] == pytest.approx(2 / 3)
    assert outcomes.mean_rewards()[36, 0] == pytest.approx(-34.0)


def test_frozen_lake_is_affine_in_its_success_rate():
    world = lake()
    ends = [world.mdp(rate) for rate in (0.2, 0.8)]
    middle = world.mdp(0.5)
    for name in ("transitions", "rewards"):
        mean = 0.5 * (getattr(ends[0], name) + getattr(ends[1], name))
        np.testing.assert_allclose(getattr(middle, name), mean, atol=1e-12)


def test_ended_episodes_wait_in_one_more_state_and_earn_nothing(world):
    low, high = world.reward_range
    states = world.env.open(world.contexts[0]).observation_space.n
    assert world.space.states == states + 1
    np.testing.assert_array_equal(world.space.admissible.sum(axis=1), [world.space.actions] * states + [1])
    for context in world.contexts:
        mdp = world.mdp(context)
        assert mdp.transitions[-1, 0, -1] == 1.0
        assert low + (high - low) * mdp.rewards[-1, 0] == pytest.approx(0.0, abs=1e-12)
        table = world.env.open(context).unwrapped.P
        ending = [[sum(p for p, _, _, end in table[s][a] if end) for a in table[s]] for s in range(states)]
        np.testing.assert_allclose(mdp.transitions[:-1, :, -1], ending, atol=1e-12)


def test_a_wider_range_changes_the_units_and_nothing_else():
    narrow, wide = lake(), lake(reward_range=(-1.0, 3.0))
    for rate in narrow.contexts:
        best, policy = narrow.optimal_value(rate), narrow.truth(0.6).best[0]
        assert wide.original_value(wide.optimal_value(rate)) == pytest.approx(best)
        assert 4.0 * wide.truth(rate).regret(policy) == pytest.approx(narrow.truth(rate).regret(policy))


def test_no_policy_suits_all_maps():
    maps = random_maps()
    policies = [maps.truth(context).best[0] for context in maps.contexts]
    single = max(np.mean([maps.truth(c).value(policy) for c in maps.contexts]) for policy in policies)
    assert np.mean([maps.optimal_value(c) for c in maps.contexts]) > single + 0.2


def test_any_context_of_the_kind_has_an_mdp_and_no_other():
    world = lake()
    assert world.optimal_value(0.75) > world.optimal_value(0.6)
    for wrong in ((0.4, 0.5), "slippery", [0.4], [[0.4], [0.5, 0.6]]):
        with pytest.raises(ValueError, match="`context` must all be numbers of shape"):
            world.mdp(wrong)


def test_agents_and_simulations_take_such_a_world(seed):
    world, sizes = lake(), {"states": 17, "actions": 4, "horizon": 30}
    agent = omg.OMG(world.space, CountRewards(**sizes), CountDynamics(**sizes))
    ledger = omg.simulate(world, omg.adversaries.IID(world.contexts), agent, episodes=3, seed=seed)
    assert (ledger.regret > -1e-12).all()


def test_a_world_travels_to_another_process():
    world = lake()
    again = pickle.loads(pickle.dumps(world))
    np.testing.assert_array_equal(again.mdp(0.7).transitions, world.mdp(0.7).transitions)


def test_the_time_limit_is_the_horizon():
    world = from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate")
    assert world.space.horizon == 100
    with pytest.raises(ValueError, match="`horizon` must be at most the environment's time limit 100, got 101"):
        from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate", horizon=101)
    with pytest.raises(ValueError, match="`horizon` must be given"):
        from_gymnasium("CliffWalking-v1", [False, True], arguments="is_slippery")
    limited = gymnasium.wrappers.TimeLimit
    short = from_gymnasium(lambda **kwargs: limited(FrozenLakeEnv(**kwargs), 7), [0.4, 0.9], arguments="success_rate")
    assert short.space.horizon == 7


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
    with pytest.raises(ValueError, match="of one size that start alike"):
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
    with pytest.raises(ValueError, match="start alike"):
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
            "`make` must make environments of one size that start alike.*add a first state",
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
        ("CartPole-v1", {"contexts": [0.4, 0.9]}, "`env` must have discrete observations.*Discretised"),
    ],
)
def test_what_cannot_be_shown_is_refused(make, settings, message):
    with pytest.raises(ValueError, match=message):
        from_gymnasium(make, **settings)


def test_without_gymnasium_one_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(ImportError, match=r"pip install 'omg-cmdp\[gymnasium\]'"):
        from_gymnasium("FrozenLake-v1", [0.4, 0.9], arguments="success_rate")
    for name, module in (("Discretised", "discretise"), ("register_gymnasium", "registered")):
        monkeypatch.delitem(sys.modules, f"omg_cmdp.environments.gymnasium.{module}", raising=False)
        with pytest.raises(ImportError, match=r"pip install 'omg-cmdp\[gymnasium\]'"):
            getattr(omg.environments, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        omg.environments.nothing  # noqa: B018


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
