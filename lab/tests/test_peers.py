"""The peers' worlds: closed forms, the same tables as theirs where they are installed, and the commands."""

import json
import math

import numpy as np
import pytest

from lab.benchmarks.peers import __main__ as command
from lab.benchmarks.peers import bakeoff, bsuite, colosseum, outside, scool
from lab.benchmarks.peers.kept import Kept
from lab.benchmarks.peers.world import OURS, Line, kernel_of
from omg_cmdp import optimal_policy, policy_value


def needs(peer):
    return pytest.mark.skipif(not outside.available(peer), reason=f"{peer} is not installed (OMG_PEERS)")


def always(world, action):
    """Return the value of playing one action everywhere."""
    policy = np.zeros((world.space.horizon, world.space.states, world.space.actions))
    policy[..., action] = 1.0
    return policy_value(world.mdp(0), policy)


def test_lazy_and_random_moves_are_mixtures():
    moves = np.array([[0, 1], [0, 1]])
    lazy = kernel_of(moves, lazy=0.25, random=0.4)
    np.testing.assert_allclose(lazy[0, 1], [0.25 + 0.75 * 0.2, 0.75 * 0.8])
    np.testing.assert_allclose(lazy.sum(axis=2), 1.0)


def test_a_chain_that_cannot_fail_pays_from_its_end_on():
    chain = scool.chain(L=4, fail_prob=0.0, horizon=10)
    assert chain.optimal_value(0) == pytest.approx(0.05 + (10 - 3))  # 3 steps to the end, paid in the first one
    assert always(chain, 0) == pytest.approx(10 * 0.05)


def test_a_grid_world_without_slips_pays_after_the_shortest_way():
    grid = scool.grid_world(success_probability=1.0, horizon=20)
    assert grid.space.states == 25 - 2
    assert grid.optimal_value(0) == pytest.approx(20 - 8)  # around the walls it is no longer
    corner = grid.places.index((0, 0))
    np.testing.assert_array_equal(grid.mdp(0).transitions[corner, [0, 3], corner], 1.0)  # left and up: a wall


def test_a_slip_in_the_grid_world_leads_to_other_open_neighbours():
    grid = scool.grid_world(horizon=2)
    here, kernel = grid.places.index((0, 1)), grid.mdp(0).transitions  # a wall below
    np.testing.assert_allclose(kernel[here, 1, [grid.places.index((0, 2)), grid.places.index((0, 0))]], [0.9, 0.1])
    assert kernel[here, 2, here] == 1.0


@pytest.mark.parametrize("size", [5, 8])
def test_only_the_diagonal_of_the_deep_sea_is_not_bad(size):
    sea = bsuite.DeepSea(size)
    policy, value = optimal_policy(sea.mdp(0))
    assert value * (sea.high - sea.low) + size * sea.low == pytest.approx(1.0 - bsuite.COST)
    best = sea.sample(0, policy, np.random.default_rng(0))
    assert not sea.is_bad(best.states[:-1], best.actions)
    assert sea.is_bad(best.states[:-1], 1 - best.actions)
    # Its bad episodes are those without the treasure: all others earn .01 at most.
    rewards = sea.mdp(0).rewards
    assert np.sort(rewards, axis=None)[-2] == pytest.approx(bsuite.COST / size)
    assert rewards.max() == 1.0


def test_the_stochastic_sea_is_worth_more_than_its_authors_say():
    size = 6
    sea = bsuite.DeepSea(size, stochastic=True)
    stated = (1.0 - 1.0 / size) ** (size - 1) - bsuite.COST
    value = sea.optimal_value(0) * (sea.high - sea.low) + size * sea.low
    # Who has slipped need not pay for diving on.
    assert stated < value < stated + bsuite.COST
    here, below = sea.places.index((3, 1)), sea.places.index((4, 1))
    assert sea.mdp(0).transitions[here, sea.rights[here], below] == pytest.approx(1 / size)  # a slip stays
    draws = [
        sea.sample(0, np.full((size, size * (size + 1) // 2, 2), 0.5), np.random.default_rng(k)) for k in range(50)
    ]
    assert {float(r) for e in draws for r in e.rewards[:-1]} == set(sea._scaled(np.array([0.0, -bsuite.COST / size])))


def test_rewards_of_colosseum_have_the_means_of_their_tables():
    river = colosseum.world("river_swim", {"size": 4, "make_reward_stochastic": True})
    policy = np.zeros((4, 4, 2))
    policy[..., 0] = 1.0
    generator = np.random.default_rng(0)
    drawn = [river.sample(0, policy, generator).rewards.mean() for _ in range(2000)]
    assert np.mean(drawn) == pytest.approx(0.2 / 4, rel=0.1)


def test_colosseums_published_river_is_best_left_alone():
    river = colosseum.world(*colosseum.WORLDS["RiverSwim, n = 5, quick test"])
    usual = colosseum.world(*colosseum.WORLDS["RiverSwim, n = 5, usual rewards"])
    assert river.optimal_value(0) == pytest.approx(always(river, 0)) == pytest.approx(5 * 2.4 / 26.4)
    # With its own rewards one swims up to the end, but drifts in the last step if that is out of reach.
    assert usual.optimal_value(0) >= always(usual, 1) > 3 * always(usual, 0)


def test_colosseums_sea_and_grid_without_chance():
    sea = colosseum.world("deep_sea", {"size": 7})
    assert sea.optimal_value(0) == pytest.approx(1.0)
    assert always(sea, 0) == pytest.approx(1 / 7)
    grid = colosseum.world("simple_grid", {"size": 5})  # from (2, 2) it is 4 steps to a corner; 0.5 elsewhere
    assert grid.optimal_value(0) == pytest.approx(0.5 * 4 + (grid.space.horizon - 4))
    stay = dict(zip(grid.places, grid.mdp(0).rewards[:, 4], strict=True))
    assert [stay[corner] for corner in ((0, 0), (4, 4), (0, 4), (4, 0))] == [0.0, 0.0, 1.0, 1.0]


def test_colosseums_lake_and_minigrid_without_chance():
    lake = colosseum.world("frozen_lake", {"size": 4, "p_frozen": 1.0})
    assert lake.space.horizon == 1 + 6
    kernel, start, goal = lake.mdp(0).transitions, lake.places.index((0, 0)), lake.places.index((3, 3))
    np.testing.assert_array_equal(kernel[goal, :, start], 1.0)
    middle, targets = lake.places.index((1, 1)), [lake.places.index(place) for place in ((2, 1), (1, 0), (1, 2))]
    np.testing.assert_array_equal(kernel[middle, 2, targets], [0.5, 0.25, 0.25])
    with_holes = colosseum.world("frozen_lake", {"size": 4, "p_frozen": 0.6}, seed=1)
    assert with_holes.space.states < 16
    # From a side to the opposite one: n - 1 steps ahead, at most n - 1 to the side, and three turns; then it pays.
    grid = colosseum.world("minigrid_empty", {"size": 4, "n_starting_states": 4}, seed=3)
    assert grid.space.states == 4 * 16
    assert np.count_nonzero(grid.mdp(0).start) == 4
    values = grid.space.horizon - grid.optimal_value(0)  # what is lost on the way, the mean of four starts
    assert 2.0 <= values <= 3 + 3 + 3


@needs("scool")
@pytest.mark.parametrize("name", scool.WORLDS)
def test_tables_are_scools(name):
    kind, options, _ = scool.WORLDS[name]
    theirs, ours = outside.ask("scool", what="tables", world=kind, options=options), scool.world(name).mdp(0)
    np.testing.assert_allclose(ours.transitions, theirs["transitions"], atol=1e-15)
    np.testing.assert_allclose(ours.rewards, theirs["rewards"], atol=1e-15)
    assert ours.start[theirs["start"]] == 1.0


@needs("bsuite")
@pytest.mark.parametrize(("stochastic", "luck"), [(False, True), (True, True), (True, False)])
def test_moves_are_bsuites(stochastic, luck):
    size = 9
    asked = {"size": size, "stochastic": stochastic, "luck": luck, "mapping_seed": bsuite.MAPPING_SEED}
    sea = bsuite.DeepSea(size, stochastic=stochastic)
    numbers = {cell: number for number, cell in enumerate(sea.places)}
    means = sea.mdp(0).rewards * (sea.high - sea.low) + sea.low
    for row, column, action, reward, target in outside.ask("bsuite", what="tables", **asked)["moves"]:
        here = numbers[row, column]
        assert means[here, action] == pytest.approx(reward, abs=1e-12)
        if row < size - 1:
            slips = stochastic and action == sea.rights[here]
            chance = (1.0 - 1.0 / size if luck else 1.0 / size) if slips else 1.0
            assert sea.mdp(0).transitions[here, action, numbers[row + 1, target]] == pytest.approx(chance)


@needs("colosseum")
@pytest.mark.parametrize("name", colosseum.WORLDS)
def test_tables_are_colosseums(name):
    theirs = colosseum.asked(name, what="tables", seed=10)
    places = [tuple(place) for place in theirs["places"]]
    chosen = places[int(np.argmax(theirs["start"]))] if name.startswith("SimpleGrid") else None
    ours = colosseum.world(*colosseum.WORLDS[name], start=chosen, seed=10)
    order = [places.index(place) for place in ours.places]
    kernel = np.array(theirs["transitions"])[order][:, :, order]
    np.testing.assert_allclose(ours.mdp(0).transitions, kernel, atol=1e-6)  # theirs are 32 bits wide
    np.testing.assert_allclose(ours.mdp(0).rewards, np.array(theirs["rewards"])[order], atol=1e-6)
    np.testing.assert_allclose(ours.mdp(0).start, np.array(theirs["start"])[order])
    assert (ours.space.horizon, ours.space.states) == (theirs["horizon"], len(places))
    assert ours.optimal_value(0) == pytest.approx(theirs["optimal_value"], abs=1e-5)


def test_losses_of_the_bake_off_are_relative_to_who_is_told():
    lines = [
        Line("iris", "OMG", [0.2, 0.4]),
        Line("iris", bakeoff.SUPERVISED, [0.1, 0.1]),
        Line("wine", "OMG", [0.3]),
        Line("wine", bakeoff.SUPERVISED, [0.2]),
    ]
    (line,) = bakeoff.relative(lines)
    assert line.agent == "OMG"
    assert line.values == [pytest.approx((2.0 + 0.5) / 2)]
    assert bakeoff.relative(lines[:1]) == []


def test_what_was_measured_is_not_measured_again(tmp_path):
    calls = []

    def measure(*, seed):
        calls.append(seed)
        return seed if seed else None

    path = tmp_path / "deep" / "kept.json"
    assert Kept(path).each(measure, [0, 1], "a", 2, agent="a") == [None, 1]
    assert Kept(path).each(measure, [0, 1, 2], "a", 2, agent="a") == [None, 1, 2]
    assert Kept(path, run=False).each(measure, [1, 9], "a", 2, agent="a") == [1]
    assert Kept(path, only=["b"]).each(measure, [1, 9], "a", 2, agent="a") == [1]
    assert calls == [0, 1, 2]
    assert json.loads(path.read_text()) == {"a | 2 | 0": None, "a | 2 | 1": 1, "a | 2 | 2": 2}


def test_a_line_shows_mean_and_standard_error():
    assert Line("w", "a", [1.0, 3.0]).cells == ("w", "a", "2 ± 1")
    assert Line("w", "a", [math.pi]).cells == ("w", "a", "3.142")
    assert Line("w", "a", [9_000.0, 11_000.0]).cells == ("w", "a", "10000 ± 1000")


@pytest.mark.parametrize("peer", command.PEERS)
def test_the_command_runs(peer, tmp_path, monkeypatch, capsys):
    for module in (scool, bsuite, colosseum):
        monkeypatch.setattr(module, "available", lambda peer: False)
    monkeypatch.setattr(bakeoff, "available", lambda: False)
    monkeypatch.setattr(scool, "OURS", dict(list(OURS.items())[:1]))
    monkeypatch.setattr(colosseum, "OURS", dict(list(OURS.items())[2:3]))
    command.main([peer, "--quick"], folder=tmp_path)
    printed = capsys.readouterr().out
    assert f"{peer}: " in printed
    assert "| agent |" in printed
    command.main([peer, "--quick", "--summary"], folder=tmp_path)
    assert capsys.readouterr().out == printed


def test_only_some_play_and_what_is_kept_of_others_is_shown(tmp_path, capsys):
    command.main(["scool", "--quick", "--only", "UCBVI, c = 1"], folder=tmp_path)
    assert "posterior sampling" not in capsys.readouterr().out
    first = json.loads((tmp_path / "peers-quick.json").read_text())
    assert {key.split(" | ")[1] for key in first} == {"UCBVI, c = 1"}
    command.main(["scool", "--quick", "--only", "posterior sampling"], folder=tmp_path)
    assert "UCBVI, c = 1" in capsys.readouterr().out
    both = json.loads((tmp_path / "peers-quick.json").read_text())
    assert {key: both[key] for key in first} == first
    assert len(both) == 2 * len(first)


def test_an_unknown_agent_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        command.main(["--only", "nobody", "OMG"], folder=tmp_path)
    assert "--only must name agents of the tables, got nobody" in capsys.readouterr().err


def test_the_stochastic_sea_is_not_solved_before_episode_100():
    found = bsuite.solved(3, "UCBVI, c = 0.05", seed=0, episodes=1000, stochastic=True)
    assert found is None or found >= 100
