"""What a report shows of a world: contexts, places and names."""

import numpy as np
import pytest

from lab.tests.worlds.catalogue import WORLDS
from omg_cmdp.environments import from_gymnasium
from omg_cmdp.mdp.environment import set_names
from omg_cmdp.mdp.occupancy import uniform_policy
from omg_lab.shown import CANDIDATES, MOST_STATES, MOST_STEPS, Names, names_of, shown_cells, shown_contexts
from omg_lab.worlds import TreatmentTrial

TRIAL = TreatmentTrial()


@pytest.mark.parametrize("count", [1, 2, 5, 6, 7, 100])
def test_contexts_are_spread_over_the_list(count):
    contexts = tuple(range(count))
    shown = shown_contexts(contexts)
    assert len(shown) == len(set(shown)) == min(count, CANDIDATES)
    assert shown == sorted(shown)
    assert shown[0] == 0
    assert shown[-1] == (count - 1 if count > 1 else 0)


@pytest.mark.parametrize("make", WORLDS, ids=lambda kind: kind.__name__)
def test_names_of_our_worlds_fit_and_the_states_shown_are_those_visited_most(make):
    world = make()
    assert isinstance(names_of(world), Names)
    truths = [world.truth(context) for context in shown_contexts(world.contexts)]
    steps, states = shown_cells(world.space, truths)
    assert len(steps) == min(MOST_STEPS, world.space.horizon)
    assert (steps[0], steps[-1]) == (0, world.space.horizon - 1)
    free = np.flatnonzero(world.space.admissible.sum(axis=1) > 1)
    assert len(states) == min(MOST_STATES, len(free))
    assert set(states) <= set(free)
    played = [(truth, policy) for truth in truths for policy in (truth.best[0], uniform_policy(world.space))]
    visits = sum(truth.occupancy(policy).sum(axis=(0, 2)) for truth, policy in played)
    left = np.setdiff1d(free, states)
    assert visits[states].min() >= visits[left].max(initial=0.0) - 1e-12


def test_the_places_shown_are_those_visited_most():
    """In the trial: recovered and dead leave no choice, and the other three stages fit."""
    assert names_of(TRIAL) == Names(TRIAL.state_names, TRIAL.action_names, TRIAL.feature_names)
    assert shown_cells(TRIAL.space, [TRIAL.truth(TRIAL.contexts[0])])[1].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "names"), [("state", ("a", "b")), ("action", ("a", "b", 3)), ("feature", ("age",))], ids=str
)
def test_names_that_do_not_fit_are_refused(kind, names):
    class Plain:
        space, contexts = TRIAL.space, TRIAL.contexts
        state_names = action_names = feature_names = ()

    odd = type("Odd", (Plain,), {f"{kind}_names": names})
    with pytest.raises(ValueError, match=f"`{kind}_names` must be . texts"):
        names_of(odd)
    assert names_of(Plain) == Names()


def test_a_state_that_is_never_visited_is_not_shown():
    """On the lake, holes and the goal end an episode, and the last state is that of ended episodes: no rows."""
    cells = [f"cell {row}.{column}" for row in range(4) for column in range(4)]
    lake = from_gymnasium(
        "FrozenLake-v1",
        [0.5, 0.9],
        arguments="success_rate",
        horizon=3,
        state_names=cells,
        action_names=["left", "down", "right", "up"],
        feature_names=["grip"],
    )
    assert names_of(lake) == Names((*cells, "ended"), ("left", "down", "right", "up"), ("grip",))
    _, states = shown_cells(lake.space, [lake.truth(0.9)])
    assert states.tolist() == [0, 1, 2, 4, 8]  # 5 is a hole, and 16 the end
    with pytest.raises(ValueError, match="`action_names` must be 4 texts, got"):
        set_names(lake, state_names=cells[::-1], action_names=["a"])
    with pytest.raises(ValueError, match=r"`state_names` must be 17 texts \(the last, of ended episodes, may be left"):
        set_names(lake, state_names=cells[1:])
    assert lake.state_names[0] == "cell 0.0"
