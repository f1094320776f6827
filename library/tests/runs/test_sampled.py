"""Runs in environments without tables: what was earned is known, regret is not, and a resumed run is the same."""

import numpy as np
import pytest

import omg_cmdp as omg
from library.tests.worlds import SafeArm
from omg_cmdp.adversaries import IID
from omg_cmdp.runs.sampled import SampledRun
from omg_cmdp.runs.simulate import Run

RATES = [0.4, 0.9]


@pytest.fixture(scope="module")
def lake():
    make = {"arguments": "success_rate", "horizon": 6, "reward_range": (-1.0, 1.0)}
    return omg.environments.from_gymnasium("FrozenLake-v1", RATES, **make, tables=False)


def started(lake, **more):
    space = lake.space
    sizes = {"states": space.states, "actions": space.actions, "horizon": space.horizon}
    oracles = omg.oracles.CountRewards(**sizes), omg.oracles.CountDynamics(**sizes)
    agent = omg.OMG(space, *oracles, **{"reward_range": lake.reward_range, **more})
    return SampledRun(lake, IID(RATES), agent, seed=3)


def test_the_ledger_has_what_was_earned_and_no_regret(lake):
    run, seen = started(lake), []
    run._observe = seen.append
    run.advance(15)
    table = run.ledger.table()
    assert table["return"].tolist() == [each.played.rewards.sum() for each in seen]
    assert table[["regret", "value", "optimal_value", "reward_error"]].isna().all(axis=None)
    assert table["certificate"].notna().all()
    assert [each.episode for each in seen] == list(range(1, 16))


def test_a_run_that_is_saved_and_restored_is_the_same_to_the_bit(lake, tmp_path):
    whole, part, rest = started(lake), started(lake), started(lake)
    whole.advance(12)
    part.advance(5)
    with pytest.warns(UserWarning, match="world SampledWorld .* cannot be checked when"):  # it has no tables
        part.save(tmp_path / "run.npz")
    rest.restore(tmp_path / "run.npz")
    rest.advance(7)
    timeless = [name for name in whole.ledger.table() if not name.startswith("seconds")]
    ours, theirs = (run.ledger.table()[timeless].to_numpy() for run in (whole, rest))
    np.testing.assert_array_equal(ours, theirs)


def test_an_agent_for_another_range_of_rewards_is_refused(lake):
    with pytest.raises(ValueError, match=r"`agent` must have reward_range \(-1.0, 1.0\), as the environment"):
        started(lake, reward_range=(0.0, 1.0))


def test_regret_is_not_promised_where_it_is_unknown(lake):
    agent = started(lake).agent
    with pytest.raises(ValueError, match=r"use `omg_cmdp\.play`"):
        Run(lake, IID(RATES), agent)
    with pytest.raises(ValueError, match="must be a SampledWorld"):
        SampledRun(SafeArm(), IID(RATES), agent)


def test_a_sample_of_the_world_is_an_episode_in_its_own_units(lake):
    uniform = np.full((6, lake.space.states, 4), 0.25)
    uniform[:, -1] = [1.0, 0.0, 0.0, 0.0]
    ours, theirs = (lake.sample(0.9, uniform, np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(ours.states, theirs.states)
    assert set(ours.rewards.tolist()) <= {0.0, 1.0}
    with pytest.raises(ValueError, match="`context` must all be numbers"):
        lake.sample("x", uniform, np.random.default_rng(7))
