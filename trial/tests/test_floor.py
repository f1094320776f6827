"""The floor: a policy with it earns what the planned one earns in the transformed MDP."""

import numpy as np
import pytest

import omg_cmdp as omg
from omg_trial.trial_file.floor import Floor, FlooredDynamics, FlooredRewards
from trial.tests.trials import TEXT, trial


def problem(seed, masked):
    generator = np.random.default_rng(seed)
    admissible = np.ones((4, 3), dtype=bool)
    if masked:
        admissible[1, 2] = admissible[3, 0] = False
    space = omg.Space(states=4, actions=3, horizon=5, admissible=admissible)
    return space, generator.dirichlet(np.ones(4), size=(4, 3)), generator.random((4, 3)), generator


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("probability", [0.0, 0.05, 1 / 3])
def test_a_policy_with_the_floor_earns_what_the_planned_one_earns_in_the_transformed_mdp(masked, probability):
    space, kernel, rewards, generator = problem(0, masked)
    floor = Floor(space, probability)
    planned = generator.random((5, 4, 3)) * space.admissible
    planned /= planned.sum(axis=2, keepdims=True)
    played = floor.policy(planned)
    truth = space.mdp(transitions=kernel, rewards=rewards)
    transformed = space.mdp(transitions=floor.transitions(kernel), rewards=floor.rewards(rewards))
    assert omg.policy_value(truth, played) == pytest.approx(omg.policy_value(transformed, planned), abs=1e-12)
    assert played[:, space.admissible].min() >= probability - 1e-15
    assert not played[:, ~space.admissible].any()


def test_tables_of_every_step_are_transformed_one_by_one():
    space, *_, generator = problem(2, masked=True)
    floor = Floor(space, 0.1)
    for transform, tables in (
        (floor.rewards, generator.random((5, 4, 3))),
        (floor.transitions, generator.dirichlet(np.ones(4), size=(5, 4, 3))),
    ):
        np.testing.assert_array_equal(transform(tables), [transform(table) for table in tables])


def test_no_policy_with_the_floor_is_better_than_the_optimum_of_the_transformed_mdp():
    space, kernel, rewards, generator = problem(1, masked=True)
    floor = Floor(space, 0.1)
    truth = space.mdp(transitions=kernel, rewards=rewards)
    best = omg.optimal_policy(space.mdp(transitions=floor.transitions(kernel), rewards=floor.rewards(rewards)))[1]
    for _ in range(200):
        other = generator.dirichlet(np.full(3, 0.2), size=(5, 4)) * space.admissible + 1e-9 * space.admissible
        other /= other.sum(axis=2, keepdims=True)
        assert omg.policy_value(truth, floor.policy(other)) <= best + 1e-12


def test_floored_oracles_pass_the_contract():
    made = trial().agent()
    assert isinstance(made.reward_oracle, FlooredRewards)
    assert isinstance(made.dynamics_oracle, FlooredDynamics)
    omg.checks.check_agent(made, contexts=[{"age": 30, "lives": "alone"}, {"age": 80}])


@pytest.mark.parametrize("probability", ["-0.1", "0.34", "nan", "'much'"])
def test_a_floor_that_cannot_be_kept_is_refused(probability):
    with pytest.raises(ValueError, match="floor"):
        trial(text=TEXT.replace("floor = 0.1", f"floor = {probability}"))


def test_bounds_for_late_outcomes_are_those_of_the_oracle_inside():
    """Outcomes of a trial are late; counts, the oracles of trials with labels, have a bound for that as they are."""
    space, *_ = problem(0, masked=False)
    sizes = {"states": 4, "actions": 3, "horizon": 5}
    for kind, floored in ((omg.oracles.CountRewards, FlooredRewards), (omg.oracles.CountDynamics, FlooredDynamics)):
        oracle = kind(**sizes)
        late = floored(oracle, Floor(space, 0.1)).delayed_regret_bound(1000, 5, 20)
        assert oracle.regret_bound(1000, 5) < late == oracle.delayed_regret_bound(1000, 5, 20) < np.inf


SIZES = {"states": 4, "actions": 3, "horizon": 5}
STEPS = np.array([0, 1, 3, 2, 0]), np.array([0, 1, 1, 0, 2])
PAIRS = [
    (omg.oracles.CountRewards, FlooredRewards, Floor.rewards, np.array([1.0, 0.0, 0.5, 1.0, 0.0])),
    (omg.oracles.CountDynamics, FlooredDynamics, Floor.transitions, np.array([1, 3, 2, 0, 1])),
]


@pytest.mark.parametrize(("kind", "floored", "transform", "outcomes"), PAIRS)
def test_a_floored_oracle_learns_as_the_one_inside_and_answers_under_the_floor(kind, floored, transform, outcomes):
    floor, alone, inside = Floor(problem(0, masked=False)[0], 0.1), kind(**SIZES), kind(**SIZES)
    oracle = floored(inside, floor)
    for each in (alone, oracle):
        each.update("a", *STEPS, outcomes)
    assert alone.loss > 0.0
    assert (oracle.loss, oracle.best_loss()) == (alone.loss, alone.best_loss())
    assert oracle.surely_learns
    assert alone.surely_learns
    assert oracle.regret_bound(1000, 5) == alone.regret_bound(1000, 5) != alone.regret_bound(5, 1000)
    np.testing.assert_array_equal(oracle.predict("a"), transform(floor, alone.predict("a")))
    np.testing.assert_array_equal(oracle.uncertainty("a"), floor.rewards(alone.uncertainty("a")))
    drawn = [each.draws("a", 3, np.random.default_rng(0)) for each in (oracle, alone)]
    np.testing.assert_array_equal(drawn[0], transform(floor, drawn[1]))


def test_a_transition_that_the_oracle_inside_excludes_is_refused_under_the_floor():
    support = np.zeros((4, 3, 4), dtype=bool)
    support[..., 0] = True
    oracle = FlooredDynamics(
        omg.oracles.CountDynamics(**SIZES, support=support), Floor(problem(0, masked=False)[0], 0.1)
    )
    oracle.check_steps([3, 0], [1, 2], [0, 0])
    with pytest.raises(ValueError, match="support"):
        oracle.check_steps([0, 0], [1, 2], [0, 3])
