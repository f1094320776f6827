"""What looks like a log and cannot be one: hidden entries, lost columns, propensities beyond the range of floats."""

import numpy as np
import pytest

import omg_cmdp as omg
from omg_cmdp.logs.off_policy.estimate import Support

SPACE = omg.Space(states=2, actions=2, horizon=2)
STEPS = {"states": [0, 1, 1], "actions": [1, 0], "rewards": [1.0, 0.5]}
UNIFORM = np.full((2, 2, 2), 0.5)


def episode(context="c", propensities=(0.5, 0.5)):
    return omg.Episode(context=context, propensities=list(propensities), **STEPS)


@pytest.mark.parametrize("tiny", [1e-300, 1e-160, 1e-80])
@pytest.mark.parametrize("weighted", [True, False])
def test_weights_beyond_all_bounds_support_nothing(tiny, weighted):
    log = omg.Log(SPACE, [episode(propensities=[tiny, tiny])] * 50)
    with np.errstate(all="ignore"):
        found = omg.logs.importance_sampling(log, lambda _: UNIFORM, weighted=weighted)
    assert found.support is not Support.GOOD
    assert found.interval() == (0.0, 2.0)


@pytest.mark.parametrize("name", ["states", "actions", "rewards"])
def test_entries_below_a_mask_are_not_taken(name):
    hidden = np.ma.array(STEPS[name], mask=[True] + [False] * (len(STEPS[name]) - 1))
    with pytest.raises(ValueError, match=f"`{name}` has masked entries"):
        omg.Trajectory(context="c", **(STEPS | {name: hidden}))
    shown = np.ma.array(STEPS[name], mask=False)
    assert omg.Trajectory(context="c", **(STEPS | {name: shown})).actions.tolist() == [1, 0]


def test_tables_below_a_mask_are_not_taken():
    rewards = np.ma.array([[0.1, 0.9]], mask=[[False, True]])
    with pytest.raises(ValueError, match="`rewards` has masked entries"):
        omg.TabularMDP(transitions=np.ones((1, 2, 1)), rewards=rewards, horizon=1)


def test_integers_beyond_the_range_are_refused():
    with pytest.raises(ValueError, match="`states` must be a vector of integers"):
        omg.Trajectory(context="c", **(STEPS | {"states": np.array([0, 2**64 - 1, 1], dtype=np.uint64)}))


def test_a_lost_column_of_a_vector_is_missed():
    frame = omg.Log(SPACE, [episode(np.array([1.0, 2.0, 3.0]))]).table().drop(columns="context_1")
    with pytest.raises(ValueError, match="must have a column 'context_1'"):
        omg.logs.read_table(frame, space=SPACE)


def test_two_kinds_of_contexts_in_one_table_are_refused():
    frame = omg.Log(SPACE, [episode("a")]).table()
    frame["context_0"] = 1.5
    with pytest.raises(ValueError, match="both `context` and `context_0`"):
        omg.logs.read_table(frame, space=SPACE)
    assert list(omg.logs.read_table(frame, space=SPACE, context="context").contexts) == ["a"]


def test_a_label_of_four_hundred_digits_is_no_number():
    frame = omg.Log(SPACE, [episode()]).table()
    frame["state"] = [10**400, 1]
    with pytest.raises(ValueError, match="column 'state' must be a finite number"):
        omg.logs.read_table(frame, space=SPACE)
    assert len(omg.logs.read_table(frame).episodes) == 1
