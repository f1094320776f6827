"""Environments without tables: proven contexts, honest estimates against the best policy known; cells as states."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import omg_cmdp as omg
from omg_cmdp.environments import (
    SampledWorld,
    from_gymnasium,
    gymnasium_space,
)
from omg_cmdp.oracles import CountDynamics, CountRewards


def lake(tables):
    return from_gymnasium(
        "FrozenLake-v1", [0.5, 0.9], arguments="success_rate", horizon=15, reward_range=(0, 1), tables=tables
    )


class Dice(gymnasium.Env):
    """Throws once; pays what the die shows, more or less often as the context says. Terminates, if one lets it."""

    metadata = {"render_modes": []}  # noqa: RUF012
    observation_space, action_space = Discrete(6), Discrete(2)

    def __init__(self, seeded=True, listens=True, reports=False):
        self._seeded, self._listens, self._reports = seeded, listens, reports

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed if self._seeded else None)
        self._bias = options["context"] if self._listens else 0.5
        return int(self.np_random.integers(6)), {"context": options["context"]} if self._reports else {}

    def step(self, action):
        return 0, float(self.np_random.random() < self._bias), True, False, {}


class Seldom(Dice):
    """Starts in any of so many states."""

    def __init__(self, states):
        super().__init__()
        self.observation_space = Discrete(states)

    def reset(self, *, seed=None, options=None):
        _, info = super().reset(seed=seed, options=options)
        return int(self.np_random.integers(self.observation_space.n)), info


class Tossed(Dice):
    """A die whose context is a vector, its bias first."""

    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed, options={"context": options["context"][0]})[0], {"context": options["context"]}


def test_blackjack_is_sampled():
    world = from_gymnasium(
        "Blackjack-v1",
        [False, True],
        arguments=lambda natural: {"natural": natural, "sab": False},
        horizon=10,
        reward_range=(-1.0, 1.5),
    )
    assert isinstance(world, SampledWorld)
    assert world.space.states == 32 * 11 * 2 + 1
    assert world.space.start.sum() == pytest.approx(1.0)
    policy = np.zeros((10, 705, 2))
    policy[:, :, 0] = 1.0  # always stick
    plain, natural = (world.returns(context, policy, 300) for context in world.contexts)
    assert (natural >= plain).all()  # the same cards under the same seeds
    assert natural.sum() > plain.sum()


def test_the_shortfall_is_the_regret_where_the_best_policy_is_known():
    """On the lake, sampled: against the optimal policies, the interval holds the exact mean regret."""
    world, exact = lake(False), lake(True)
    sizes = {"states": 17, "actions": 4, "horizon": 15}
    agent = omg.agents.Greedy(world.space, CountRewards(**sizes), CountDynamics(**sizes))
    contexts, regrets, log = [0.5, 0.9] * 40, [], omg.Log(world.space)
    for context in contexts:
        regrets.append(exact.truth(context).regret(agent.policy(context)))
        omg.play(world, agent, [context], log=log)
    known = {"greedy": agent.policy, "optimal": lambda context: exact.truth(context).best[0]}
    table = omg.shortfall(world, log, known, rollouts=300, confidence=0.999)
    assert table["context"].tolist() == [0.5, 0.9, None]
    assert table["episodes"].tolist() == [40, 40, 80]
    overall = table.iloc[-1]
    assert overall["low"] <= np.mean(regrets) <= overall["high"]
    assert overall["high"] - overall["low"] < 0.5
    for context in (0.5, 0.9):
        row = table[table["context"] == context].iloc[0]
        assert row["best_known"] == "optimal"
        assert row["best_known_value"] == pytest.approx(exact.optimal_value(context), abs=0.2)


def test_without_a_better_policy_nobody_stays_behind():
    """The only policy known is the one that was played: the interval holds 0."""
    world = lake(False)
    agent = omg.agents.Uniform(world.space)
    log = omg.play(world, agent, [0.5, 0.9] * 30)
    overall = omg.shortfall(world, log, {"uniform": agent.policy}, rollouts=200, confidence=0.999).iloc[-1]
    assert overall["low"] <= 0.0 <= overall["high"]
    for bad in ({"rollouts": 3}, {"rollouts": 0}, {"confidence": 1.0}):
        with pytest.raises(ValueError, match=r"`rollouts` must|`confidence` must"):
            omg.shortfall(world, log, {"uniform": agent.policy}, **bad)
    with pytest.raises(ValueError, match="at least one policy"):
        omg.shortfall(world, log, {})
    with pytest.raises(ValueError, match=r"`world` must be a SampledWorld, got TableWorld: .*exact regret"):
        omg.shortfall(lake(True), log, {"uniform": agent.policy})
    with pytest.raises(ValueError, match=r"got SampledWorld, .*use `omg_cmdp\.play`"):
        omg.simulate(world, omg.adversaries.IID([0.5, 0.9]), agent, episodes=1)


def test_the_noise_of_one_context_is_not_that_of_another():
    """Ten fair coins: the interval of all of them has its nominal coverage, which shared noise would ruin."""
    coins = [np.array([0.5, coin]) for coin in range(10)]
    world = from_gymnasium(Tossed, coins, horizon=1, reward_range=(0, 1))
    agent = omg.agents.Uniform(world.space)
    held = []
    for seed in range(60):
        log = omg.play(world, agent, coins * 2, seed=seed)
        overall = omg.shortfall(world, log, {"uniform": agent.policy}, rollouts=12, seed=seed).iloc[-1]
        held.append(overall["low"] <= 0.0 <= overall["high"])
    assert np.mean(held) > 0.85


def test_contexts_without_a_key_are_not_thrown_together():
    world = from_gymnasium(lambda: Dice(listens=False, reports=True), [b"one", b"two"], horizon=1, reward_range=(0, 1))
    agent = omg.agents.Uniform(world.space)
    table = omg.shortfall(world, omg.play(world, agent, [b"one", b"two"]), {"uniform": agent.policy}, rollouts=4)
    assert table["episodes"].tolist() == [1, 1, 2]


class Kept(gymnasium.Env):
    """Pays what stands in the array that it was made with."""

    metadata = {"render_modes": []}  # noqa: RUF012
    observation_space, action_space = Discrete(1), Discrete(1)

    def __init__(self, share):
        self._share = share

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, float(self._share[0]), True, False, {}


def test_a_context_that_the_user_writes_over_does_not_change_an_environment():
    world = from_gymnasium(Kept, [np.array([0.1]), np.array([0.9])], arguments="share", horizon=1, reward_range=(0, 1))
    policy, context = np.ones((1, 2, 1)), np.array([0.3])
    assert world.returns(context, policy, 1) == [0.3]
    context[0] = 0.7
    assert world.returns(np.array([0.3]), policy, 1) == [0.3]


def test_a_sampled_world_refuses_a_context_of_another_shape():
    world = from_gymnasium(Dice, [0.2, 0.8], horizon=1, reward_range=(0, 1))
    with pytest.raises(ValueError, match="`context` must all be numbers of shape"):
        world.returns(np.array([0.2, 0.8]), np.full((1, 7, 2), 0.5), 1)


def test_starts_are_counted():
    settings = {"horizon": 1, "reward_range": (0, 1)}
    world = from_gymnasium(Dice, [0.2, 0.8], **settings)
    np.testing.assert_allclose(world.space.start[:-1], 1 / 6, atol=0.15)
    assert world.space.start[-1] == 0.0
    assert lake(False).space.start.tolist() == [1.0] + [0.0] * 16  # always the same corner
    rare = from_gymnasium(lambda: Seldom(400), [0.2, 0.8], **settings)
    assert (rare.space.start[:-1] > 0.0).all()  # a state that 200 resets did not see may still come
    loaded = [0.5, 0.1, 0.1, 0.1, 0.1, 0.1]
    assert from_gymnasium(Dice, [0.2, 0.8], start=loaded, **settings).space.start.tolist() == [*loaded, 0.0]


def test_a_start_that_excludes_where_episodes_begin_is_refused():
    rule = r"must begin in a state .* positive probability, got \d: give such a `start` .*next one can be played"
    with pytest.raises(ValueError, match=rule):
        from_gymnasium(Dice, [0.2, 0.8], horizon=1, reward_range=(0, 1), start=[0.5, 0.5, 0, 0, 0, 0])


def test_returns_outside_their_range_are_refused():
    settings = {"arguments": "success_rate", "horizon": 15, "reward_range": (0, 1), "tables": False}
    right, wrong = (
        from_gymnasium("FrozenLake-v1", [0.5, 0.9], return_range=given, **settings) for given in ((0, 1), (0, 0.5))
    )
    policy = from_gymnasium("FrozenLake-v1", [0.5, 0.9], **settings | {"tables": True}).truth(0.9).best[0]
    assert right.return_range == (0.0, 1.0)
    assert right.returns(0.9, policy, 20).max() == 1.0
    with pytest.raises(ValueError, match=r"`return_range` must hold .* got \[0, 0.5\] and an episode that earned 1"):
        wrong.returns(0.9, policy, 20)


def test_contexts_that_do_not_reach_the_environment_are_found():
    settings = {"contexts": [0.2, 0.8], "horizon": 1, "reward_range": (0, 1)}
    with pytest.raises(ValueError, match=r"`contexts` must reach the environment, got the same episodes.*arguments="):
        from_gymnasium(lambda: Dice(listens=False), **settings)
    with pytest.raises(ValueError, match=r"different episodes after `reset` with the same seed.*np_random"):
        from_gymnasium(lambda: Dice(seeded=False), **settings)
    with pytest.raises(ValueError, match="`reward_range` must be given"):
        from_gymnasium(Dice, [0.2, 0.8], horizon=1)
    with pytest.raises(ValueError, match="in the declared range"):
        from_gymnasium(Dice, [0.2, 0.8], horizon=1, reward_range=(-1, 0.5))
    assert isinstance(from_gymnasium(lambda: Dice(listens=False, reports=True), **settings), SampledWorld)


# Continuous observations, made discrete.


class Taker(gymnasium.Env):
    """Empties the record, and writes over the vector and the list, that tell it how much to pay."""

    metadata = {"render_modes": []}  # noqa: RUF012
    observation_space, action_space = Discrete(1), Discrete(1)

    def __init__(self, told=None):
        self.told = told

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        told = options["context"] if self.told is None else self.told
        self.pay = float(told["pay"] if isinstance(told, dict) else told[0])
        if options and isinstance(told, dict):
            told["marks"].append("been here")
            told.clear()
        elif options:
            told[0] = -1.0
        return 0, {"context": self.pay}

    def step(self, action):
        return 0, self.pay, True, False, {}


@pytest.mark.parametrize(
    "make",
    [lambda pay: {"pay": pay, "marks": []}, lambda pay: np.array([pay]), lambda pay: [pay, "a"]],
    ids=["record", "vector", "list"],
)
def test_an_environment_cannot_change_what_an_agent_learns(make):
    told = [make(pay) for pay in (0.1, 0.9)]
    space = gymnasium_space(Taker(), horizon=1)
    learned = []

    class Notes(omg.Agent):
        reward_range = (0.0, 1.0)

        def policy(self, context):
            return np.ones((1, 2, 1))

        def update(self, trajectory):
            learned.append(repr(trajectory.context))

    agent = Notes()
    agent.space = space
    log = omg.play(Taker(), agent, told)
    assert learned == [repr(make(0.1)), repr(make(0.9))] == [repr(each.context) for each in log.episodes]
    assert repr(told) == repr([make(0.1), make(0.9)])
    world = from_gymnasium(Taker, told, horizon=1, reward_range=(0, 1))
    told[0] = None
    assert repr(world.contexts[0]) == repr(make(0.1))


def test_the_contexts_of_a_world_are_its_own():
    told = [{"pay": 0.1, "marks": []}, {"pay": 0.9, "marks": []}]
    world = from_gymnasium(Taker, told, horizon=1, reward_range=(0, 1))
    told[0]["pay"] = 0.5
    assert world.contexts[0]["pay"] == 0.1
