import math

import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.worlds import SafeArm

EPISODES = 150


class Shifting(omg.ContextualMDP):
    """Two contexts, two states, two actions, with a class of eight models for each of both parts."""

    def __init__(self, seed=0, horizon=3):
        rng = np.random.default_rng(seed)
        self.space = omg.Space(states=2, actions=2, horizon=horizon)
        self.contexts = ("left", "right")
        self._rewards = {name: rng.random((8, 2, 2)) for name in self.contexts}
        self._transitions = {name: rng.dirichlet(np.ones(2), (8, 2, 2)) for name in self.contexts}

    def reward_functions(self, context):
        return self._rewards[context]

    def transition_functions(self, context):
        return self._transitions[context]

    def mdp(self, context):
        return self.space.mdp(transitions=self._transitions[context][0], rewards=self._rewards[context][0])


def finite(world):
    horizon = world.space.horizon
    return (
        omg.oracles.FiniteRewards(world.reward_functions, horizon=horizon),
        omg.oracles.FiniteDynamics(world.transition_functions, horizon=horizon),
    )


def counts(world):
    sizes = {name: getattr(world.space, name) for name in ("states", "actions", "horizon")}
    sizes["contexts"] = world.contexts
    return omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)


def run(world, agent, adversary=None, *, seed=0, delta=0.05, episodes=EPISODES, **oracles):
    ceiling = omg.RegretCeiling(agent, delta=delta, **oracles)
    chosen = adversary or omg.adversaries.IID(world.contexts)
    ledger = omg.simulate(world, chosen, agent, episodes=episodes, seed=seed, observe=ceiling)
    return ledger, ceiling


def aggregates(world):
    """Return oracles that do not know which of two classes holds the truth."""
    (means, rows), (counted, frequencies) = finite(world), counts(world)
    horizon = world.space.horizon
    return (
        omg.oracles.AggregateRewards([means, counted], horizon=horizon),
        omg.oracles.AggregateDynamics([omg.oracles.CopiesDynamics(rows, delay=0), frequencies], horizon=horizon),
    )


@pytest.mark.parametrize("oracles", [finite, counts, aggregates])
@pytest.mark.parametrize("kind", [omg.OMG, omg.agents.Greedy, omg.agents.PosteriorSampling])
def test_regret_stays_below_its_ceiling(seed, oracles, kind):
    world = Shifting(seed)
    adversary = omg.adversaries.WorstRegret(world.contexts, look=2)
    ledger, ceiling = run(world, kind(world.space, *oracles(world)), adversary, seed=seed)
    assert (np.cumsum(ledger.regret) <= np.cumsum(ceiling.episodes) + 1e-9).all()
    assert ceiling.total < EPISODES * world.space.horizon
    assert ceiling.reason == ""


def test_it_fails_in_a_share_delta_of_runs_at_most():
    """At δ = ½, over many short runs; a ceiling that never fails there would be a loose one, and it is not empty."""
    failed, ratios = 0, []
    for seed in range(60):
        world = Shifting(seed % 7, horizon=2)
        ledger, ceiling = run(world, omg.agents.Greedy(world.space, *finite(world)), seed=seed, delta=0.5, episodes=60)
        failed += bool((np.cumsum(ledger.regret) > np.cumsum(ceiling.episodes) + 1e-9).any())
        ratios.append(ceiling.total / max(ledger.regret.sum(), 0.1))
    assert failed <= 30
    assert np.median(ratios) < 20.0


def test_it_tells_who_plays_well_without_the_truth():
    """Greedy never tries the risky arms: its ceiling goes on growing, and OMG's does not."""
    world = SafeArm(contexts=4, functions=8, seed=1)
    _, brave = run(world, omg.OMG(world.space, *finite(world)))
    _, shy = run(world, omg.agents.Greedy(world.space, *finite(world)))
    assert brave.episodes[-30:].sum() < 0.2 * shy.episodes[-30:].sum()
    assert brave.settled[-1] > shy.settled[-1]


def test_it_does_not_depend_on_what_the_oracles_learned():
    """An agent that never learns is judged by the same data: the ceiling has version spaces of its own."""

    class Deaf(omg.agents.Greedy):
        def _learn(self, trajectory, rewards):
            pass

    world = Shifting(3)
    ledger, ceiling = run(world, Deaf(world.space, *finite(world)))
    assert (np.cumsum(ledger.regret) <= np.cumsum(ceiling.episodes) + 1e-9).all()
    assert ceiling.episodes[-20:].sum() == pytest.approx(ledger.regret[-20:].sum(), rel=0.5)


def test_a_mixture_is_charged_its_mean(rng):
    """A drawn policy is judged with the others that might have been drawn, as regret is."""

    class Mixed(omg.Agent):
        def __init__(self, space, policies):
            self.space, self._policies = space, policies

        def decide(self, context):
            mixture = omg.planning.decision.Mixture(self._policies, np.array([0.25, 0.75]))
            return omg.planning.decision.Decision(policy=self._policies[1], mixture=mixture)

        def policy(self, context):
            return self._policies[1]

        def update(self, trajectory):
            pass

    world = Shifting(4)
    policies = rng.dirichlet(np.ones(2), (2, 3, 2))
    rewards, dynamics = finite(world)
    ledger, ceiling = run(world, Mixed(world.space, policies), reward_oracle=rewards, dynamics_oracle=dynamics)
    assert (np.cumsum(ledger.regret) <= np.cumsum(ceiling.episodes) + 1e-9).all()
    assert ceiling.episodes[-1] == pytest.approx(ledger.regret[-1], abs=0.2)


def test_rewards_in_other_units_scale_the_ceiling():
    space = omg.Space(states=1, actions=2, horizon=2)
    sizes = {"states": 1, "actions": 2, "horizon": 2}
    totals = []
    for low, high in ((0.0, 1.0), (-10.0, 30.0)):
        oracles = omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)
        ceiling = omg.RegretCeiling(omg.OMG(space, *oracles, reward_range=(low, high)))
        for number in range(20):
            rewards = low + (high - low) * np.array([number % 2, 0.25])
            seen = omg.Trajectory(context="any", states=[0, 0, 0], actions=[number % 2, 1], rewards=rewards)
            ceiling.add("any", np.full((2, 1, 2), 0.5), seen)
        totals.append(ceiling.total)
    assert totals[1] == pytest.approx(40.0 * totals[0])


def test_rewards_that_are_not_told_teach_nothing_about_rewards():
    world = Shifting(5)
    ceiling, policy = omg.RegretCeiling(omg.OMG(world.space, *finite(world))), np.full((3, 2, 2), 0.5)
    for played in (world.sample("left", policy, np.random.default_rng(number)) for number in range(100)):
        untold = omg.Trajectory(
            context="left", states=played.states, actions=played.actions, rewards=[None] * len(played.actions)
        )
        ceiling.learn(untold)
    unknown_rewards = ceiling.loss("left", policy).most
    truth = world.mdp("left")
    values = [omg.optimal_policy(each)[1] - omg.policy_value(each, policy) for each in _with_rewards(world, truth)]
    assert unknown_rewards >= max(values) - 1e-9


def _with_rewards(world, truth):
    """Return the true transitions with all rewards of the class."""
    for rewards in world.reward_functions("left"):
        yield world.space.mdp(transitions=truth.transitions, rewards=rewards)


def test_a_log_teaches_without_costing():
    world = Shifting(5)
    ceiling, policy = omg.RegretCeiling(omg.OMG(world.space, *finite(world))), np.full((3, 2, 2), 0.5)
    before = ceiling.loss("left", policy)
    for number in range(200):
        ceiling.learn(world.sample("left", policy, np.random.default_rng(number)))
    after = ceiling.loss("left", policy)
    assert after.most == pytest.approx(world.truth("left").regret(policy), abs=1e-9)
    assert after.most < before.most
    assert after.settled == 1.0
    assert (ceiling.total, len(ceiling.episodes)) == (0.0, 0)


def test_without_a_set_of_plausible_models_it_is_infinite_and_says_why():
    sizes = {"states": 1, "actions": 2, "horizon": 1}
    space = omg.Space(**sizes)
    softmax = omg.oracles.SoftmaxDynamics(**sizes, dimension=2)
    agent = omg.OMG(space, omg.oracles.CountRewards(**sizes), softmax)
    ceiling = omg.RegretCeiling(agent)
    seen = omg.Trajectory(context=[0.5, 0.5], states=[0, 0], actions=[0], rewards=[1.0])
    assert ceiling.add([0.5, 0.5], np.full((1, 1, 2), 0.5), seen) == math.inf
    assert "SoftmaxDynamics" in ceiling.reason


def test_without_a_set_of_plausible_rewards_it_is_infinite_too():
    class Mine(omg.oracles.RewardOracle):
        def predict(self, context):
            return np.full((1, 2), 0.5)

        update = uncertainty = regret_bound = None

    space, sizes = omg.Space(states=1, actions=2, horizon=1), {"states": 1, "actions": 2, "horizon": 1}
    ceiling = omg.RegretCeiling(
        omg.OMG(space, omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)), reward_oracle=Mine()
    )
    seen = omg.Trajectory(context="any", states=[0, 0], actions=[0], rewards=[1.0])
    assert ceiling.add("any", np.full((1, 1, 2), 0.5), seen) == math.inf
    assert ceiling.reason == "no set of plausible models is known for Mine"


def test_it_says_how_much_of_the_last_context_is_settled():
    world = Shifting(5)
    ceiling, policy = omg.RegretCeiling(omg.OMG(world.space, *finite(world)), delta=0.1), np.full((3, 2, 2), 0.5)
    assert str(ceiling) == "no episodes"
    for number in range(100):
        ceiling.add("left", policy, world.sample("left", policy, np.random.default_rng(number)))
        said = f"{number + 1} episodes lost at most {ceiling.total:.3g}"
        settled = f"{ceiling.settled[-1]:.0%} of the decisions are settled"
        assert str(ceiling) == f"with 90% confidence {said}; in the last one's context {settled}"
    assert ceiling.settled[0] < ceiling.settled[-1]


def test_a_refuted_class_makes_it_infinite_and_says_so():
    class Switching(Shifting):
        def mdp(self, context):
            return self.space.mdp(transitions=np.full((2, 2, 2), 0.5), rewards=np.eye(2))

    world = Switching(6)
    _, ceiling = run(world, omg.OMG(world.space, *finite(world)), episodes=400)
    assert ceiling.total == math.inf
    assert ceiling.reason == "the data refute the oracle's class of rewards and of dynamics"
    assert str(ceiling).endswith(f"nothing can be said of what 400 episodes lost: {ceiling.reason}")


def test_an_agent_without_oracles_must_be_given_some():
    class First(omg.Agent):
        space = omg.Space(states=1, actions=2, horizon=1)

        def policy(self, context):
            return np.array([[[1.0, 0.0]]])

        def update(self, trajectory):
            pass

    with pytest.raises(ValueError, match="has no `reward_oracle`; pass `reward_oracle=`"):
        omg.RegretCeiling(First())
    _, dynamics = counts(Shifting())
    with pytest.raises(ValueError, match="`reward_oracle` must be a RewardOracle"):
        omg.RegretCeiling(First(), reward_oracle=dynamics, dynamics_oracle=dynamics)


def test_play_is_observed_too():
    """Where no tables are known: the lake is played, and its ceiling is that of the same episodes added by hand."""
    pytest.importorskip("gymnasium")
    lake = omg.environments.from_gymnasium("FrozenLake-v1", [0.5, 0.9], arguments="success_rate", horizon=8)
    sizes = {"states": lake.space.states, "actions": lake.space.actions, "horizon": 8, "contexts": [0.5, 0.9]}

    def agent():
        return omg.OMG(lake.space, omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes))

    player, twin = agent(), agent()
    seen, added = omg.RegretCeiling(player), omg.RegretCeiling(twin)
    for played in omg.play(lake, player, [0.5, 0.9, 0.5], observe=seen).episodes:
        added.add(played.context, twin.policy(played.context), played)
        twin.update(played)
    np.testing.assert_array_equal(seen.episodes, added.episodes)
    assert 0.0 < seen.total <= 3 * 8


@pytest.mark.parametrize("saved", [0, 15])
@pytest.mark.parametrize("oracles", [finite, counts, aggregates])
def test_a_saved_ceiling_continues_bit_for_bit(oracles, saved):
    world = Shifting(2)
    whole, half, rest = (omg.RegretCeiling(omg.OMG(world.space, *oracles(world))) for _ in range(3))
    policy, noise = np.full((3, 2, 2), 0.5), np.random.default_rng(0)
    played = [world.sample(world.contexts[number % 2], policy, noise) for number in range(30)]
    for ceiling, part in ((whole, played), (half, played[:saved])):
        for each in part:
            ceiling.add(each.context, policy, each)
    rest.load_state(half.state())
    for each in played[saved:]:
        rest.add(each.context, policy, each)
    np.testing.assert_array_equal(rest.episodes, whole.episodes)
    with pytest.raises(ValueError, match="RegretCeiling"):
        rest.load_state(omg.RegretCeiling(omg.OMG(world.space, *oracles(world)), delta=0.1).state())


def test_a_log_is_replayed_by_the_agent_that_played_it():
    pytest.importorskip("gymnasium")
    lake = omg.environments.from_gymnasium("FrozenLake-v1", [0.5, 0.9], arguments="success_rate", horizon=6)
    sizes = {"states": lake.space.states, "actions": lake.space.actions, "horizon": 6, "contexts": [0.5, 0.9]}

    def agent(**more):
        return omg.OMG(lake.space, omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes), **more)

    player = agent()
    seen, replayed = omg.RegretCeiling(player), omg.RegretCeiling(agent())
    log = omg.play(lake, player, [0.5, 0.9, 0.5], observe=seen)
    replayed.replay(log.episodes, agent())
    np.testing.assert_array_equal(seen.episodes, replayed.episodes)
    unlogged = omg.RegretCeiling(agent())
    told = ("context", "states", "actions", "rewards", "length")
    unlogged.replay([omg.Episode(**{name: getattr(each, name) for name in told}) for each in log.episodes], agent())
    np.testing.assert_array_equal(seen.episodes, unlogged.episodes)
    with pytest.raises(ValueError, match="must be the one that played: episode 1 "):
        omg.RegretCeiling(agent()).replay(log.episodes, agent(gamma=3.0))


def test_where_both_parts_are_known_the_ceiling_is_the_regret():
    """Nothing is left to doubt, whatever δ is."""
    world = Shifting(2)
    tables = {context: world.mdp(context) for context in world.contexts}
    known = {
        "reward_oracle": omg.oracles.KnownRewards(lambda context: tables[context].rewards, horizon=3),
        "dynamics_oracle": omg.oracles.KnownDynamics(lambda context: tables[context].transitions, horizon=3),
    }
    ledger, ceiling = run(world, omg.agents.Uniform(world.space), episodes=10, **known)
    np.testing.assert_allclose(ceiling.episodes, ledger.regret, atol=1e-12)
    assert (ceiling.settled == 1.0).all()


def test_a_part_that_is_known_spends_none_of_delta():
    """With one state there is one table of transitions: to learn it costs half of δ, and to know it nothing."""
    space, sizes = omg.Space(states=1, actions=2, horizon=2), {"states": 1, "actions": 2, "horizon": 2}
    found = []
    for delta, dynamics in (
        (0.1, omg.oracles.KnownDynamics(np.ones((1, 2, 1)), horizon=2)),
        (0.2, omg.oracles.CountDynamics(**sizes)),
    ):
        ceiling = omg.RegretCeiling(omg.OMG(space, omg.oracles.CountRewards(**sizes), dynamics), delta=delta)
        for number in range(20):
            seen = omg.Trajectory(context="any", states=[0, 0, 0], actions=[number % 2, 1], rewards=[0.5, 1.0])
            ceiling.add("any", np.full((2, 1, 2), 0.5), seen)
        found.append(ceiling.episodes)
    np.testing.assert_allclose(*found)


def test_classes_that_are_listed_are_listed_together():
    """Halves of a class, of which one holds the truth, are bounded as exactly as the whole that they make."""
    world, policy = Shifting(4), np.full((3, 2, 2), 0.5)
    whole = omg.RegretCeiling(omg.OMG(world.space, *finite(world)))
    _, dynamics = finite(world)
    halves = [
        omg.oracles.FiniteRewards(lambda context, part=part: world.reward_functions(context)[part], horizon=3)
        for part in (slice(None, 4), slice(4, None))
    ]
    agent = omg.OMG(world.space, omg.oracles.AggregateRewards(halves, horizon=3), dynamics)
    assert omg.RegretCeiling(agent).loss("left", policy).most == pytest.approx(whole.loss("left", policy).most)


def test_a_policy_that_cannot_have_been_played_is_refused():
    world = Shifting(1)
    ceiling = omg.RegretCeiling(omg.OMG(world.space, *finite(world)))
    first = np.zeros((3, 2, 2))
    first[..., 0] = 1.0
    played = omg.Trajectory(context="left", states=[0, 0], actions=[1], rewards=[1.0])
    with pytest.raises(ValueError, match="never plays these actions"):
        ceiling.add("left", first, played)
    assert len(ceiling.episodes) == 0
