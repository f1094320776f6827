"""OLIVE and witness rank: exact expectations, the samples' expectations, the order of the two, and whole runs."""

import copy
import itertools

import numpy as np
import pytest

import omg_cmdp as omg
from lab.tests.rivals.pac.population import exact_elimination, exact_misfits
from omg_cmdp import Space, oracles, policy_value
from omg_lab.rivals import OLIVE, WitnessRank
from omg_lab.rivals.pac.elimination import Phase, Step
from omg_lab.worlds import CombinationLock

BOTH = pytest.mark.parametrize("kind", [OLIVE, WitnessRank])
STATES, ACTIONS, HORIZON, TRUE_REWARD, TRUE_KERNEL = 3, 2, 3, 1, 2
CONTEXTS = ("a", "b")
SPACE = Space(states=STATES, actions=ACTIONS, horizon=HORIZON)


class Classes(omg.ContextualMDP):
    """Random classes of four reward functions and five kernels; one pair is true."""

    contexts, space = CONTEXTS, SPACE

    def __init__(self, rng, space=SPACE):
        self.space = space
        self.rewards = {c: rng.random((4, STATES, ACTIONS)) for c in CONTEXTS}
        self.kernels = {c: rng.dirichlet(np.full(STATES, 0.4), (5, STATES, ACTIONS)) for c in CONTEXTS}
        self.true = TRUE_REWARD * 5 + TRUE_KERNEL

    def mdp(self, context):
        return self.space.mdp(
            transitions=self.kernels[context][TRUE_KERNEL], rewards=self.rewards[context][TRUE_REWARD]
        )

    def agent(self, kind, **more):
        rewards = oracles.FiniteRewards(self.rewards, horizon=HORIZON)
        return kind(self.space, rewards, oracles.FiniteDynamics(self.kernels, horizon=HORIZON), **more)

    def truths(self):
        return [(context, self.mdp(context)) for context in CONTEXTS]


def values_of(agent):
    return np.mean([agent.hypotheses(context).starts for context in CONTEXTS], axis=0)


def test_the_hypotheses_are_all_pairs_with_their_optimal_values(rng):
    space = Space(
        states=STATES,
        actions=ACTIONS,
        horizon=HORIZON,
        start=[0.2, 0.8, 0.0],
        admissible=np.array([[1, 1], [0, 1], [1, 0]], dtype=bool),
    )
    world = Classes(rng, space)
    agent = world.agent(OLIVE)
    found = agent.hypotheses("a")
    for k, (f, p) in enumerate(itertools.product(world.rewards["a"], world.kernels["a"])):
        mdp = space.mdp(transitions=p, rewards=f)
        policy, value = omg.optimal_policy(mdp)
        assert found.starts[k] == pytest.approx(value, rel=1e-12)
        np.testing.assert_array_equal(found.policy(k), policy)
        np.testing.assert_array_equal(found.mdp(k).transitions, mdp.transitions)
        np.testing.assert_array_equal(found.mdp(k).rewards, mdp.rewards)


def test_bellman_errors_sum_to_what_a_hypothesis_promises_too_much(rng):
    """Σ_h E_h(π_f, f) = V_f - V^{π_f}, whatever f is; and the truth has no error under any policy."""
    world = Classes(rng)
    agent = world.agent(OLIVE)
    errors = exact_misfits(agent, world.truths())[..., 0]
    for k, promised in enumerate(values_of(agent)):
        earned = np.mean([policy_value(mdp, agent.hypotheses(c).policy(k)) for c, mdp in world.truths()])
        assert errors[:, k, k].sum() == pytest.approx(promised - earned, abs=1e-12)
    assert np.abs(errors[:, :, world.true]).max() <= 1e-12


@BOTH
def test_exact_elimination_keeps_the_truth_and_ends_after_as_many_rounds_as_the_rank(kind, rng):
    for _ in range(8):
        world = Classes(rng)
        agent = world.agent(kind)
        errors = exact_misfits(world.agent(OLIVE), world.truths())[..., 0]
        misfits = exact_misfits(agent, world.truths())
        ranks = [np.linalg.matrix_rank(matrix, tol=1e-9) for matrix in errors]
        assert ranks[0] <= len(CONTEXTS)  # one start for each context
        assert max(ranks) <= STATES * len(CONTEXTS)
        for epsilon in (0.05, 1e-8):
            ended = exact_elimination(values_of(agent), errors, misfits, epsilon=epsilon)
            assert ended.alive[world.true]
            assert len(ended.leaders) <= sum(ranks)
            seen = np.array([np.abs(misfits[step, leader]).max(axis=1) for leader, step in ended.leaders])
            np.testing.assert_array_equal(ended.alive, (seen <= 1e-9).all(axis=0))
            output = [agent.hypotheses(c).policy(ended.hypothesis) for c in CONTEXTS]
            lost = [mdp_loss(mdp, policy) for (_, mdp), policy in zip(world.truths(), output, strict=True)]
            assert np.mean(lost) <= epsilon + 1e-9
        # The rows of the leaders at each step are independent: that is why there are no more.
        for step in range(HORIZON):
            rows = errors[step][[leader for leader, at in ended.leaders if at == step]]
            assert np.linalg.matrix_rank(rows, tol=1e-9) == len(rows)


def test_each_leader_refutes_what_its_own_policy_sees():
    """Four hypotheses, the third true. The first refutes only itself; the second itself and the last."""
    errors = np.array([[[0.9, 0.0, 0.0, 0.0], [0.0, 0.5, 0.0, 0.4], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.4]]])
    ended = exact_elimination(np.array([4.0, 3.0, 2.0, 1.0]), errors, errors[..., None], epsilon=0.1)
    assert ended.leaders == ((0, 0), (1, 0))
    assert ended.hypothesis == 2
    assert ended.alive.tolist() == [False, False, True, False]


def test_exact_elimination_without_the_truth_is_refused(rng):
    world = Classes(rng)
    agent = world.agent(OLIVE)
    misfits = exact_misfits(agent, world.truths())
    wrong = np.delete(np.delete(misfits, world.true, axis=1), world.true, axis=2) + 0.1
    values = np.delete(values_of(agent), world.true)
    with pytest.raises(ValueError, match="`misfits` must be zero for one hypothesis, the truth, got none"):
        exact_elimination(values, wrong[..., 0], wrong, epsilon=0.0)


def mdp_loss(mdp, policy):
    return omg.optimal_policy(mdp)[1] - policy_value(mdp, policy)


def test_the_truth_has_no_misfit_and_a_witness_sees_what_a_bellman_error_shows(rng):
    world = Classes(rng)
    errors, witnessed = errors_and_witnesses(world)
    assert (witnessed >= np.abs(errors) - 1e-12).all()
    assert (witnessed > np.abs(errors) + 1e-3).mean() > 0.3
    assert witnessed[:, :, world.true].max() <= 1e-12


def test_what_a_witness_sees_of_one_step(rng):
    """E_g[r + V_m(x')] - r - V_m(x') for all models g and values m."""
    world = Classes(rng)
    agent = world.agent(WitnessRank)
    known, seen = agent.hypotheses("a"), Step(step=1, state=2, action=1, reward=0.3, next_state=0)
    found = agent.misfits(known, np.arange(20), seen)
    pairs = itertools.product(world.rewards["a"], world.kernels["a"])
    for g, (f, p) in enumerate(pairs):
        expected = f[2, 1] - 0.3 + known.values[:, 2] @ p[2, 1] - known.values[:, 2, 0]
        others = np.arange(20) != g  # of its own value it says what it promises, which is for its own action
        np.testing.assert_allclose(found[g, others], expected[others], atol=1e-12)


def test_a_witness_sees_the_errors_of_values_that_are_clipped(rng):
    """To what an episode of the truth can earn; other hypotheses promise more, or less."""
    for _ in range(10):
        world = Classes(rng)
        mdps = [mdp for _, mdp in world.truths()]
        least, most = (
            min(HORIZON * mdp.rewards.min() for mdp in mdps),
            max(omg.optimal_policy(mdp)[1] for mdp in mdps),
        )
        errors, witnessed = errors_and_witnesses(world, return_range=(least, most))
        assert (witnessed >= np.abs(errors) - 1e-12).all()
        assert witnessed[:, :, world.true].max() <= 1e-12


def errors_and_witnesses(world, **ranges):
    errors, misfits = (exact_misfits(world.agent(kind, **ranges), world.truths()) for kind in (OLIVE, WitnessRank))
    return errors[..., 0], np.abs(misfits).max(axis=3)


def eliminating(agent, step, leader):
    """Put the agent into a round of elimination at a step, as a state that is loaded."""
    for context in CONTEXTS * agent.evaluations:
        if agent.phase is Phase.STARTS:
            agent.update(omg.Trajectory(context=context, states=[0, 0], actions=[0], rewards=[0.0]))
    state = agent.state()
    state["place"] = np.array([Phase.ELIMINATION, 0, 0, agent.rollouts, leader, step], dtype=float)
    agent.load_state(state)
    return agent


def paths(mdp, policy):
    """Yield every path of an MDP under a policy with its probability; rewards are their means."""
    choices = [range(ACTIONS), range(STATES)] * HORIZON
    for path in itertools.product(*choices):
        actions, states = list(path[::2]), [0, *path[1::2]]
        chance = np.prod(
            [policy[h, states[h], actions[h]] * mdp.transitions[states[h], actions[h], states[h + 1]] for h in range(3)]
        )
        if chance > 0.0:
            yield chance, states, actions, [mdp.rewards[s, a] for s, a in zip(states, actions, strict=False)]


@BOTH
@pytest.mark.parametrize("step", [0, 2])
def test_what_samples_estimate_is_the_exact_misfit(kind, step, rng):
    """The expectation over all paths, with their importance weights, is the population's: no bias."""
    world = Classes(rng)
    agent = eliminating(world.agent(kind, evaluations=1, rollouts=10**6), step, leader=7)
    expected = np.zeros(agent.state()["misfits"].shape[1:])
    for context, mdp in world.truths():
        for chance, states, actions, rewards in paths(mdp, agent.policy(context)):
            taught = copy.deepcopy(agent)
            taught.update(omg.Trajectory(context=context, states=states, actions=actions, rewards=rewards))
            expected += chance / len(CONTEXTS) * taught.state()["misfits"][0]
    exact = exact_misfits(agent, world.truths())[step, 7]
    np.testing.assert_allclose(expected, exact, atol=1e-12)


def test_on_the_same_data_a_witness_sees_all_that_olive_sees(rng):
    """What OLIVE drops by a threshold, the agent of witness rank drops."""
    world = Classes(rng)
    agents = [eliminating(world.agent(kind, evaluations=1), 1, leader=3) for kind in (OLIVE, WitnessRank)]
    for number in range(100):
        context = CONTEXTS[number % 2]
        policies = [agent.policy(context) for agent in agents]
        np.testing.assert_array_equal(*policies)
        episode = world.sample(context, policies[0], rng)
        for agent in agents:
            agent.update(episode)
    olive, witness = (np.abs(agent.state()["misfits"][0]).max(axis=1) for agent in agents)
    assert (witness >= olive - 1e-9).all()
    assert (witness > olive + 1.0).any()


@BOTH
def test_it_puts_out_a_good_policy_and_keeps_the_truth(kind, seed):
    world = CombinationLock(states=4, actions=3, context_count=2, transition_class_size=4, seed=seed)
    rewards = oracles.FiniteRewards(world.reward_functions, horizon=world.space.horizon)
    dynamics = oracles.FiniteDynamics(world.transition_functions, horizon=world.space.horizon)
    agent = kind(world.space, rewards, dynamics, epsilon=0.2, evaluations=50, return_range=(0.0, 1.0))
    run = omg.Run(world, omg.adversaries.IID(world.contexts), agent, seed=seed)
    while agent.phase is not Phase.OUTPUT and run.ledger.episodes < 8000:
        run.advance(100)
    assert agent.phase is Phase.OUTPUT
    assert agent.alive[world.transition_index]
    lost = [mdp_loss(world.mdp(context), agent.policy(context)) for context in world.contexts]
    assert np.mean(lost) <= 0.2
    before = agent.state()
    run.advance(1)
    unchanged = [name for name in before if name != "episodes_seen"]
    assert all(np.array_equal(agent.state()[name], before[name]) for name in unchanged)


@BOTH
def test_the_truth_outlives_many_rounds_by_the_inequality_of_bernstein(kind, rng):
    """Rounds with any leaders; δ = .05 for all of a world together."""
    kept = 0
    for _ in range(3):
        world = Classes(rng)
        agent = world.agent(kind, evaluations=1, rollouts=150, epsilon=1e-6)
        for leader in rng.integers(20, size=4):
            agent = eliminating(agent, int(rng.integers(HORIZON)), int(leader))
            for number in range(150):
                context = CONTEXTS[number % 2]
                agent.update(world.sample(context, agent.policy(context), rng))
        kept += agent.alive[world.true]
    assert kept == 3


@BOTH
def test_what_is_dropped_is_what_bernstein_would_drop(kind, rng):
    """By Maurer and Pontil's inequality, for both sides, all ways to look, and the first round's half of δ."""
    count, dropped = 400, []
    for _ in range(5):
        world = Classes(rng)
        agents = [world.agent(kind, evaluations=1, rollouts=rollouts, delta=0.5) for rollouts in (count, 10**6)]
        short, long = (eliminating(agent, 1, leader=3) for agent in agents)
        for number in range(count):
            context = CONTEXTS[number % 2]
            episode = world.sample(context, short.policy(context), rng)
            for agent in (short, long):
                agent.update(episode)
        means, squares = long.state()["misfits"] / count
        variances, logarithm = (squares - means**2) * count / (count - 1), np.log(4 * means.shape[1] / 0.25)
        span = np.ptp([short.hypotheses(c).values[:, 2] for c in CONTEXTS], axis=2).max()
        widths = np.sqrt(2 * variances * logarithm / count) + 7 * 2 * ACTIONS * (1 + span) * logarithm / (
            3 * (count - 1)
        )
        np.testing.assert_array_equal(short.alive, (np.abs(means) <= widths).all(axis=1))
        dropped.append(~short.alive)
    assert 0.0 < np.mean(dropped) < 1.0


@BOTH
def test_an_evaluation_leaves_out_what_the_leader_cannot_have_played(kind, rng):
    world = Classes(rng)
    agent = eliminating(world.agent(kind, evaluations=1), 1, leader=0)
    state = agent.state()
    state["place"][0] = Phase.EVALUATION
    agent.load_state(state)
    actions = agent.hypotheses("a").actions[0, :, 0]
    for wrong in range(HORIZON):
        played = np.where(np.arange(HORIZON) == wrong, 1 - actions, actions)
        agent.update(omg.Trajectory(context="a", states=[0] * 4, actions=played, rewards=[0.0] * 3))
        assert agent.phase is Phase.EVALUATION
    agent.update(omg.Trajectory(context="a", states=[0] * 4, actions=actions, rewards=[0.0] * 3))
    assert agent.phase is not Phase.EVALUATION


def test_an_episode_that_the_leader_cannot_have_played_is_left_out(rng):
    world = Classes(rng)
    agent = eliminating(world.agent(OLIVE, evaluations=1), 1, leader=0)
    first = int(agent.hypotheses("a").actions[0, 0, 0])
    before = agent.state()["misfits"]
    agent.update(omg.Trajectory(context="a", states=[0, 0, 0, 0], actions=[1 - first, 0, 0], rewards=[0.0] * 3))
    agent.update(omg.Trajectory(context="a", states=[0, 0], actions=[first], rewards=[0.0]))  # ends before the step
    np.testing.assert_array_equal(agent.state()["misfits"], before)


@BOTH
def test_late_episodes_of_another_policy_do_not_speak_against_the_truth(kind, rng):
    """Who plays otherwise after the step of elimination, in some states only, must not choose by what came of it."""
    world = Classes(rng)
    agent = eliminating(world.agent(kind, evaluations=1, rollouts=10**6), 0, leader=3)
    seen = np.zeros(agent.state()["misfits"].shape[1:])
    for context, mdp in world.truths():
        policy = agent.policy(context)
        policy[1, 0] = policy[1, 0, ::-1]
        for chance, states, actions, rewards in paths(mdp, policy):
            taught = copy.deepcopy(agent)
            taught.update(omg.Trajectory(context=context, states=states, actions=actions, rewards=rewards))
            seen += chance * taught.state()["misfits"][0]
    assert np.abs(seen[world.true]).max() <= 1e-12
    assert np.abs(seen).max() > 0.1


def play(agent, world, episodes, rng):
    for number in range(episodes):
        context = CONTEXTS[number % 2]
        agent.update(world.sample(context, agent.policy(context), rng))


@BOTH
def test_a_round_that_does_not_drop_its_leader_makes_the_next_twice_as_long(kind, rng):
    world = Classes(rng)
    for threshold, left in ((100.0, 20), (1e-9, 1)):  # where none would be left, one stays
        agent = eliminating(world.agent(kind, evaluations=1, rollouts=5, threshold=threshold), 1, leader=3)
        play(agent, world, 5, rng)
        assert agent.rounds == 1
        assert agent.phase is Phase.EVALUATION
        assert agent.alive.sum() == left
        assert agent.state()["place"][3] == (10.0 if agent.alive[3] else 5.0)


@BOTH
@pytest.mark.parametrize("episodes", [3, 9, 17, 40])
def test_a_saved_agent_continues_bit_for_bit_in_every_phase(kind, episodes, rng):
    world = Classes(rng)
    first, second = (world.agent(kind, evaluations=5, rollouts=10, epsilon=1e-6) for _ in range(2))
    play(first, world, episodes, rng)
    second.load_state(first.state())
    for agent in (first, second):
        play(agent, world, 30, np.random.default_rng(1))
    assert first.rounds == second.rounds > 0
    for name, array in first.state().items():
        np.testing.assert_array_equal(second.state()[name], array)


@BOTH
def test_an_evaluation_measures_what_is_promised_minus_what_is_earned(kind, rng):
    """ε decides: the most optimistic policy is put out if it may lose so much, and else not."""
    world = Classes(rng)
    for context in CONTEXTS:
        world.rewards[context][0] = 1.0  # the first hypotheses promise all there is
    earned = np.mean(
        [policy_value(mdp, np.eye(ACTIONS)[np.zeros((HORIZON, STATES), int)]) for _, mdp in world.truths()]
    )
    excess = HORIZON - earned  # where all is worth the same, the first action is played
    for epsilon, phase in ((3.0 * excess, Phase.OUTPUT), (0.8 * excess, Phase.ELIMINATION)):
        agent = world.agent(kind, epsilon=epsilon, evaluations=200)
        play(agent, world, 400, rng)
        assert agent.phase is phase
        assert agent.state()["place"][4] < 5  # one of the first


def test_a_class_that_is_too_large_is_refused():
    kernels = np.ones((5, 1, 1, 1))
    one = Space(states=1, actions=1, horizon=1)
    rewards = oracles.FiniteRewards(lambda _: np.zeros((1000, 1, 1)), horizon=1)
    agent = WitnessRank(one, rewards, oracles.FiniteDynamics(lambda _: kernels, horizon=1))
    with pytest.raises(ValueError, match="`reward_oracle` must leave at most 1024 pairs, got 5000"):
        agent.policy("c")


def test_other_oracles_are_refused():
    counts = oracles.CountDynamics(states=STATES, actions=ACTIONS, horizon=HORIZON)
    rewards = oracles.FiniteRewards({"a": np.zeros((1, STATES, ACTIONS))}, horizon=HORIZON)
    with pytest.raises(ValueError, match="`dynamics_oracle` must be a FiniteDynamics, got CountDynamics"):
        OLIVE(SPACE, rewards, counts)
