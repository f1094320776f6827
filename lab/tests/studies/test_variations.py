"""Worlds in several sizes, one size at a time."""

import itertools

import pytest

from lab.tests.studies import own
from lab.tests.studies.examples import VARIED
from omg_cmdp.documents import FileError
from omg_lab.studies.catalogue import Part
from omg_lab.studies.config import load_plan, read_plan
from omg_lab.studies.variations import SIZES, sizes_of, variants


def varied(**changes):
    return read_plan(VARIED.format(episodes=40, seeds=3), **changes)


def test_every_world_is_played_in_every_size_one_at_a_time():
    plan = varied()
    found = {(task.world.name, task.episodes, task.setting().world.space.horizon) for task in plan.tasks()}
    long = {(f"linear, T = {episodes}", episodes, 5) for episodes in (20, 40, 80)}
    assert found == long | {(f"linear, H = {horizon}", 40, horizon) for horizon in (2, 4)}
    assert len({task.name for task in plan.tasks()}) == len(plan.tasks()) == 5 * 2 * 3


def test_the_command_line_chooses_sizes_and_keeps_the_values_of_the_file():
    assert varied(vary=["H"]).vary == {"H": (2, 4)}
    plan = varied(vary=["S"])
    assert plan.vary == {"S": ()}
    assert [world.options["states"] for world in plan.sized_worlds()] == [2, 4, 8, 16]


@pytest.mark.parametrize("size", SIZES)
def test_sizes_around_a_worlds_own_are_increasing(size):
    worlds = [Part(name=kind, kind=kind, options={}) for kind in ("linear", "softmax", "lower_bound")]
    for _, found in itertools.groupby(variants(worlds, {size: ()}, episodes=1000), lambda variant: variant.base):
        values = [variant.value for variant in found]
        assert len(values) == 4
        assert values == sorted(set(values))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("B = [2, 4]", "there is no size 'B'; there are T, S, A, H"),
        ("H = [2]", "`H` must be [], or two or more"),
        ("H = [2, 2]", "`H` must be [], or two or more"),
        ("H = [0, 2]", "`H` must be [], or two or more"),
        ("H = 3", "`H` must be [], or two or more"),
        ("H = [2, 1e3]", "`H` must be [], or two or more"),
    ],
)
def test_bad_sizes_are_refused_with_their_line(line, said):
    text = VARIED.format(episodes=40, seeds=3).replace("H = [2, 4]", line)
    with pytest.raises(FileError, match="line 13") as caught:
        read_plan(text)
    assert said in str(caught.value)


def test_a_size_that_a_world_does_not_have_is_refused():
    assert "horizon" not in sizes_of(Part(name="lock", kind="lock", options={}))
    text = VARIED.format(episodes=40, seeds=3) + "[worlds.lock]\n"
    with pytest.raises(FileError, match="line 13: the world 'lock' has no size H that can be varied"):
        read_plan(text)


def test_of_a_world_of_the_user_what_the_file_sets_can_be_varied(tmp_path):
    path = own.write(tmp_path, own.LADDER + "horizon = 2\n", agents="[agents.omg]\n[vary]\nH = [2, 4]\n")
    assert [task.setting().world.space.horizon for task in load_plan(str(path)).tasks()] == [2, 4]
    path.write_text(path.read_text().replace("H = ", "S = "))
    with pytest.raises(FileError, match="has no size S"):
        load_plan(str(path))
