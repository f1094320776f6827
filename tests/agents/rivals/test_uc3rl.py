"""UC³RL: what is kept is what the counterfactual loop of the paper computes; optimism; and who can make it fail."""

import math

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.adversaries import IID, WorstRegret
from omg_cmdp.agents import UC3RL, Greedy, uc3rl_kernels
from omg_cmdp.agents.rivals.uc3rl import theoretical_scales
from omg_cmdp.environments import Decoy
from omg_cmdp.mdp import occupancy_measure
from omg_cmdp.mdp.bellman import best_response
from omg_cmdp.oracles import (
    FiniteDynamics,
    FiniteRewards,
    OfflineFiniteDynamics,
    OfflineFiniteRewards,
    OfflineLinearRewards,
    OfflineSoftmaxDynamics,
)
from tests.random_mdps import random_mdp

STATES, ACTIONS, HORIZON, FUNCTIONS = 3, 3, 4, 16
LABELS = ("a", "b", "c", "d")
MASK = np.array([[True, True, True], [False, True, True], [True, False, True]])
SPACES = {
    "plain": omg.Space(states=STATES, actions=ACTIONS, horizon=HORIZON),
    "restricted": omg.Space(states=STATES, actions=ACTIONS, horizon=HORIZON, start=[0.5, 0.2, 0.3], admissible=MASK),
}


class Small(omg.ContextualMDP):
    """Random classes of sixteen functions, not far from one another; the sixth are true."""

    def __init__(self, rng, space=SPACES["plain"]):
        self.space = space
        self.rewards = {c: rng.uniform(0.4, 0.6, (FUNCTIONS, HORIZON, STATES, ACTIONS)) for c in LABELS}
        self.kernels = {c: rng.dirichlet(np.full(STATES, 5.0), (FUNCTIONS, STATES, ACTIONS)) for c in LABELS}

    def mdp(self, context):
        return self.space.mdp(transitions=self.kernels[context][5], rewards=self.rewards[context][5])

    def offline(self):
        return (
            OfflineFiniteRewards(self.rewards, horizon=HORIZON),
            OfflineFiniteDynamics(self.kernels, horizon=HORIZON, smoothing=1e-3),
        )


def plain_loop(agent, fits, lengths, context):
    """Return W and π of the next round by the loop in the paper: what would each round have played on this context?

    `fits` are those of all rounds, the next one last, or of all epochs with their `lengths`; β is that of their first.
    """
    horizon, began = agent.space.horizon, 0
    visits = np.ones((horizon, agent.space.states, agent.space.actions))
    for fit, length in zip(fits, (*lengths, 0), strict=True):
        rewards, dynamics = (scale * math.sqrt(agent.episodes or began + 1) for scale in agent.scales)
        bonus = np.minimum(1, rewards / (2 * visits)) + horizon * np.minimum(2, dynamics / (2 * visits))
        model = agent.space.mdp(
            rewards=agent.reward_oracle.predict_with(fit[0], context),
            transitions=agent.dynamics_oracle.predict_with(fit[1], context),
        )
        policy, _ = best_response(model, model.reward_steps + bonus, cap=1.0)
        visits = visits + length * occupancy_measure(model, policy)
        began += length
    return visits, policy


def fits_of(agent):
    return agent.reward_oracle.parameters(), agent.dynamics_oracle.parameters()


def watched(world, agent, rounds, rng):
    """Play, and return the fits of all rounds, the next one included."""
    fits, run = [fits_of(agent)], omg.Run(world, IID(LABELS), agent, seed=int(rng.integers(1000)))
    for _ in range(rounds):
        run.advance(1)
        fits.append(fits_of(agent))
    return fits


@pytest.mark.parametrize("episodes", [None, 60])
@pytest.mark.parametrize("space", SPACES)
def test_kept_counts_are_those_of_the_plain_loop(space, episodes, rng):
    world = Small(rng, SPACES[space])
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS, scale=(0.3, 0.1), episodes=episodes)
    fits = watched(world, agent, 60, rng)
    assert len({(*r, *p) for r, p in fits}) > 2
    for context in LABELS:
        visits, policy = plain_loop(agent, fits, [1] * 60, context)
        np.testing.assert_allclose(agent.visits(context), visits, rtol=0, atol=1e-12)
        assert np.array_equal(agent.policy(context), policy)


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 4, 7, 8, 45, 64])
def test_without_a_list_they_are_those_of_the_plain_loop_over_epochs(rounds, rng):
    """One fit for all rounds of an epoch, which count as many times as the epoch is long."""
    world = Small(rng, SPACES["restricted"])
    agent = UC3RL(world.space, *world.offline(), scale=(0.3, 0.1))
    fits = watched(world, agent, rounds, rng)
    starts = [0, *(2**m for m in range(8) if 2**m <= rounds)]
    for context in LABELS:
        visits, policy = plain_loop(agent, [fits[start] for start in starts], np.diff(starts), context)
        np.testing.assert_allclose(agent.visits(context), visits, rtol=0, atol=1e-12)
        assert np.array_equal(agent.policy(context), policy)


def test_without_a_list_unseen_vectors_are_answered(rng):
    size = {"states": STATES, "actions": ACTIONS, "horizon": HORIZON, "dimension": 2}
    agent = UC3RL(SPACES["plain"], OfflineLinearRewards(**size), OfflineSoftmaxDynamics(**size), scale=0.3)
    for _ in range(20):
        context = rng.uniform(-0.5, 0.5, 2)
        states, actions = rng.integers(STATES, size=HORIZON + 1), rng.integers(ACTIONS, size=HORIZON)
        agent.update(omg.Trajectory(context=context, states=states, actions=actions, rewards=rng.random(HORIZON)))
    assert agent.visits(rng.uniform(-0.5, 0.5, 2)).sum() == pytest.approx(HORIZON * (STATES * ACTIONS + 16))


def test_compiled_rounds_are_plans_and_their_occupancies(rng):
    """Any model, any bonus: PLAN with values clipped at the steps to go, and OCC."""
    for _ in range(60):
        mdp = random_mdp(rng)
        bonus = rng.exponential(rng.choice([0.0, 0.1, 3.0]), (mdp.horizon, mdp.states, mdp.actions))
        rewards = mdp.reward_steps + bonus
        policies, occupancies = np.empty((2, 1, *rewards.shape))
        kernel, _, start, admissible = mdp.raw
        uc3rl_kernels.rehearse(kernel[None], rewards[None], start, admissible, policies, occupancies)
        policy, _ = best_response(mdp, rewards, cap=1.0)
        assert np.array_equal(policies[0], policy)
        np.testing.assert_allclose(occupancies[0], occupancy_measure(mdp, policy), rtol=0, atol=1e-12)


def test_contexts_do_not_mix_in_a_compiled_round(rng):
    world = Small(rng)
    models = [world.mdp(context) for context in LABELS]
    kernels = np.stack([model.raw[0] for model in models])
    rewards = np.stack([model.raw[1] for model in models])
    start, admissible = models[0].raw[2:]
    together, alone = np.empty((2, *rewards.shape)), np.empty((2, *rewards.shape))
    uc3rl_kernels.rehearse(kernels, rewards, start, admissible, *together)
    for i in range(len(LABELS)):
        here = slice(i, i + 1)
        uc3rl_kernels.rehearse(kernels[here], rewards[here], start, admissible, *alone[:, here])
    assert np.array_equal(together, alone)


def test_every_round_adds_one_visit_to_every_step(rng):
    world = Small(rng)
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS)
    watched(world, agent, 30, rng)
    for context in LABELS:
        np.testing.assert_allclose(agent.visits(context).sum(axis=(1, 2)), STATES * ACTIONS + 30)


@pytest.mark.parametrize(("scale", "bonus"), [((0.1, 0.02), 0.5 + HORIZON * 0.1), (9.0, 1.0 + HORIZON * 2.0)])
def test_the_bonus_before_any_data(scale, bonus):
    """W = 1 and √T = 10: b = β_R/2 + H·β_P/2, up to 1 + 2H."""
    agent = UC3RL(SPACES["plain"], *Small(np.random.default_rng(0)).offline(), scale=scale, episodes=100)
    np.testing.assert_allclose(agent.bonus("a"), bonus)


def test_without_a_bonus_it_is_greedy(rng):
    world = Small(rng, SPACES["restricted"])
    agent, greedy = (
        UC3RL(world.space, *world.offline(), contexts=LABELS, scale=0.0),
        Greedy(world.space, *world.offline()),
    )
    ledgers = [omg.simulate(world, IID(LABELS), each, 40) for each in (agent, greedy)]
    assert np.array_equal(ledgers[0].regret, ledgers[1].regret)


def test_listing_more_contexts_changes_nothing_for_the_others(rng):
    world = Small(rng)
    few = UC3RL(world.space, *world.offline(), contexts=LABELS[:2])
    many = UC3RL(world.space, *world.offline(), contexts=LABELS)
    ledgers = [omg.simulate(world, IID(LABELS[:2]), each, 40) for each in (few, many)]
    assert np.array_equal(ledgers[0].regret, ledgers[1].regret)


# RM-UCDD


def test_rm_ucdd_plays_every_action_once_and_counts_choices(rng):
    world = Small(rng)
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS, counts="policy")
    chosen = {context: np.zeros((HORIZON, STATES, ACTIONS)) for context in LABELS}
    run = omg.Run(world, IID(LABELS), agent)
    for round_ in range(25):
        for context in LABELS:
            policy = agent.policy(context)
            if round_ < ACTIONS:
                assert (policy[..., round_] == 1.0).all()
            chosen[context] += policy
        run.advance(1)
        if round_ + 1 >= ACTIONS:
            assert all(np.array_equal(agent.visits(context), chosen[context]) for context in LABELS)


def test_without_a_list_rm_ucdd_counts_the_rounds_after_the_warm_up(rng):
    """Epochs begin after 0, 1, 2, 4 and 8 rounds, of which the first three are the warm-up."""
    world = Small(rng)
    agent = UC3RL(world.space, *world.offline(), counts="policy")
    run = omg.Run(world, IID(LABELS), agent)
    totals = []
    for _ in range(9):
        (total,) = set(agent.visits("a").sum(axis=2).flat)
        totals.append(total)
        run.advance(1)
    assert totals == [3, 3, 3, 3, 4, 4, 4, 4, 8]


def test_a_warm_up_with_restricted_actions_covers_them_all(rng):
    world = Small(rng, SPACES["restricted"])
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS, counts="policy")
    run, covered = omg.Run(world, IID(LABELS), agent), np.zeros((HORIZON, STATES, ACTIONS))
    for _ in range(ACTIONS):
        covered += agent.policy("a")
        run.advance(1)
    assert np.array_equal(covered > 0.0, np.broadcast_to(MASK, covered.shape))


def test_rare_states_are_explored_more():
    """p_min stands beside the counts: half of it is twice the bonus."""
    oracles = Small(np.random.default_rng(0)).offline()
    settings = {"counts": "policy", "scale": 0.01, "contexts": LABELS}
    sure, rare = (UC3RL(SPACES["plain"], *oracles, reachability=p, **settings) for p in (1.0, 0.5))
    np.testing.assert_allclose(rare.bonus("a"), 2.0 * sure.bonus("a"))


# The lemmas of the analysis


@pytest.mark.parametrize("scale", [1e-4, 0.1])
def test_the_plan_is_optimistic_up_to_the_in_sample_error(scale, rng):
    """V* - Ṽ <= Σ d*·W·[(f* - f̂)²/(2β_R) + H·‖P* - P̂‖₁²/(2β_P)], in every round and context."""
    world = Small(rng)
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS, scale=scale, episodes=80)
    run, beta, gaps = omg.Run(world, IID(LABELS), agent), scale * math.sqrt(80), []
    for _ in range(80):
        for context in LABELS:
            model, truth = agent.model(context), world.truth(context)
            _, values = best_response(model, model.reward_steps + agent.bonus(context), cap=1.0)
            best_policy, best = truth.best
            squares = (truth.mdp.reward_steps - model.reward_steps) ** 2
            moved = np.abs(truth.mdp.kernel - model.kernel).sum(axis=-1) ** 2
            errors = (squares + HORIZON * moved) / (2.0 * beta)
            gaps.append(best - world.space.start @ values[0])
            weights = occupancy_measure(truth.mdp, best_policy) * agent.visits(context)
            assert gaps[-1] <= (weights * errors).sum() + 1e-9
        run.advance(1)
    assert scale > 1e-3 or max(gaps) > 0.0  # with next to no bonus it is not optimistic by itself


def test_potential_lemma(rng):
    """Σ x_t/(1 + Σ_{i<t} x_i) <= log(1 + T)/log 2 for x in [0, 1]: so much bonus is handed out, for each tuple."""
    world = Small(rng)
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS, scale=0.3)
    run, before, handed_out = omg.Run(world, IID(LABELS), agent), {c: agent.visits(c) for c in LABELS}, 0.0
    for _ in range(100):
        run.advance(1)
        after = {c: agent.visits(c) for c in LABELS}
        steps = np.stack([after[c] - before[c] for c in LABELS])
        assert steps.min() >= 0.0
        assert steps.max() <= 1.0 + 1e-12
        handed_out += steps / np.stack([before[c] for c in LABELS])
        before = after
    assert handed_out.max() <= math.log1p(100) / math.log(2.0)
    drawn = np.concatenate([np.ones((500, 1)), rng.random((500, 20)) ** 10, rng.random((500, 20))], axis=1)
    sums = 1.0 + np.cumsum(drawn, axis=0) - drawn
    assert (drawn / sums).sum(axis=0).max() <= math.log1p(500) / math.log(2.0)


def test_the_theoretical_bonus_exceeds_any_reward():
    """S = 5, A = 3, H = 5, 32 functions each, T = 10⁴: after a visit in every round it is still above 1."""
    space = omg.Space(states=5, actions=3, horizon=5)
    rewards, dynamics = theoretical_scales(space, episodes=10**4, reward_functions=32, dynamics_functions=32)
    root = math.sqrt(10**4)
    assert min(1, rewards / (2 * root)) + 5 * min(2, dynamics / (2 * root)) > 1.0


# Regret


@pytest.mark.parametrize("how", [{"counts": "occupancy"}, {"counts": "policy"}])
def test_regret_is_sublinear_if_contexts_are_drawn(how):
    world = Decoy(seed=1)
    oracles = (
        OfflineFiniteRewards(world.reward_functions, horizon=4),
        OfflineFiniteDynamics(world.transition_functions, horizon=4),
    )
    agent = UC3RL(world.space, *oracles, contexts=world.contexts, scale=(0.1, 0.0), episodes=800, **how)
    regret = omg.simulate(world, IID(world.contexts), agent, 800).regret
    assert regret[:200].sum() > 5.0
    assert regret[400:].sum() < 0.2 * regret[:400].sum()


class Twins(omg.ContextualMDP):
    """H = 1, a safe arm of mean .5 and a risky one: .1 in context "bad"; in "good" either .1, or in truth .9."""

    space = omg.Space(states=1, actions=2, horizon=1)
    contexts = ("bad", "good")
    kernel = np.ones((1, 1, 2, 1))

    def __init__(self):
        says_bad, says_good = [[0.5, 0.1]], [[0.5, 0.9]]
        self.rewards = {"bad": [says_bad, says_bad], "good": [says_bad, says_good]}

    def mdp(self, context):
        return self.space.mdp(transitions=self.kernel[0], rewards=self.rewards[context][1])

    def oracles(self, rewards, dynamics):
        return rewards(self.rewards, horizon=1), dynamics(lambda context: self.kernel, horizon=1)


@pytest.mark.parametrize("counts", ["occupancy", "policy"])
@pytest.mark.parametrize("scale", [0.01, 0.1, 1.0, 10.0])
def test_an_adversary_makes_the_regret_linear_whatever_the_bonus(scale, counts):
    """Why contexts must be drawn: in `Twins` an adversary takes .4 in every round, and teaches nothing.

    The first function is the fit until the risky arm is tried on "good". The fit says the same of both contexts, hence
    so do the counts, which grow whether or not a context is shown, and both would play alike. While that is the safe
    arm, "good" is shown: .4 lost, nothing learned. As soon as it is the risky arm, "bad" is: .4 lost, nothing learned.
    """
    world = Twins()
    offline = world.oracles(OfflineFiniteRewards, OfflineFiniteDynamics)
    settings = {"contexts": world.contexts, "scale": (scale, 0.0), "counts": counts}
    agent = UC3RL(world.space, *offline, **settings)
    regret = omg.simulate(world, WorstRegret(world.contexts), agent, 400).regret
    np.testing.assert_allclose(regret, 0.4)


@pytest.mark.parametrize("adversary", [WorstRegret, IID])
def test_where_that_adversary_meets_omg_it_takes_little(adversary):
    """OMG plays both arms with some probability, and a context that it is shown for its regret teaches it."""
    world = Twins()
    online = world.oracles(FiniteRewards, FiniteDynamics)
    for gamma in ("adaptive", lambda t: 10.0 * math.sqrt(t)):
        agent = omg.OMG(world.space, *online, gamma)
        assert omg.simulate(world, adversary(world.contexts), agent, 400).regret.sum() < 10.0


def test_in_the_same_world_drawn_contexts_do_no_harm():
    world = Twins()
    offline = world.oracles(OfflineFiniteRewards, OfflineFiniteDynamics)
    agent = UC3RL(world.space, *offline, contexts=world.contexts, scale=(0.3, 0.0))
    assert omg.simulate(world, IID(world.contexts), agent, 400).regret.sum() < 10.0


# The boundary


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *(("scale", value) for value in (-0.1, math.nan, (0.1, -0.1), (0.1, 0.1, 0.1), "0.1", None)),
        *(("counts", value) for value in ("visits", None)),
        *(("reachability", value) for value in (0.0, 1.5, 0.5, "often")),
        *(("contexts", value) for value in ((), 5, [["a"]], ("a", "no such context"))),
        ("episodes", 0),
    ],
)
def test_bad_arguments_are_refused_by_name(argument, value):
    world = Small(np.random.default_rng(0))
    name = "context" if value == ("a", "no such context") else argument
    with pytest.raises(ValueError, match=f"`{name}`"):
        UC3RL(world.space, *world.offline(), **{argument: value})


def test_without_a_list_the_oracles_must_keep_fits():
    world = Small(np.random.default_rng(0))
    rewards, dynamics = world.offline()
    with pytest.raises(ValueError, match="`reward_oracle`"):
        UC3RL(world.space, FiniteRewards(world.rewards, horizon=HORIZON), dynamics)
    with pytest.raises(ValueError, match="`dynamics_oracle`"):
        UC3RL(world.space, rewards, FiniteDynamics(world.kernels, horizon=HORIZON))


@pytest.mark.parametrize("contexts", [LABELS, None])
def test_oracles_of_another_size_are_refused(contexts):
    """Even where a table would fit if it were read in another order."""
    world = Small(np.random.default_rng(0))
    space = omg.Space(states=STATES * ACTIONS, actions=1, horizon=HORIZON)
    with pytest.raises(ValueError, match="`predict`"):
        UC3RL(space, *world.offline(), contexts=contexts).policy("a")


def test_a_context_that_is_not_listed_is_refused_and_teaches_nothing(rng):
    world = Small(rng)
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS[:2])
    steps = np.zeros(HORIZON, dtype=int)
    before = agent.state()
    for context in ("c", ["a"]):
        with pytest.raises(ValueError, match="`context`"):
            agent.policy(context)
        episode = omg.Trajectory(context=context, states=[0, *steps], actions=steps, rewards=steps * 0.5)
        with pytest.raises(ValueError, match="`context`"):
            agent.update(episode)
    assert all(np.array_equal(array, before[name]) for name, array in agent.state().items())


@pytest.mark.parametrize("change", [{"contexts": LABELS[:3]}, {"contexts": None}, {"scale": 0.2}, {"counts": "policy"}])
def test_states_of_another_make_are_refused(change, rng):
    world = Small(rng)
    agent = UC3RL(world.space, *world.offline(), contexts=LABELS)
    other = UC3RL(world.space, *world.offline(), **({"contexts": LABELS} | change))
    with pytest.raises(ValueError, match="`state`"):
        agent.load_state(other.state())
