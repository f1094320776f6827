"""Worlds whose truth is unknown: what is shown is what was earned, and more is better."""

import functools

import numpy as np
import pytest

import omg_lab
from omg_lab.reports.figures import BLOCKS, comparing_figures, series
from omg_lab.reports.scenarios import compare_scenarios, scenarios
from omg_lab.reports.sentences import chance_or_not, headline
from omg_lab.reports.statistics import mean_interval
from omg_lab.reports.tables import agents_table, comparisons_table

pytest.importorskip("gymnasium")


@functools.cache
def results(seeds=3):
    lake = {"arguments": "success_rate", "horizon": 8, "tables": False, "reward_range": (0.0, 1.0)}
    agents = {"omg": "omg", "lazy": "uniform"}
    return omg_lab.compare("FrozenLake-v1", [0.6, 1.0], agents, episodes=45, seeds=seeds, **lake).results


def test_the_table_has_the_means_of_the_log_best_first():
    (earned,) = scenarios(results())
    assert not earned.exact
    means = results().log.groupby(["seed", "agent"])["return"].mean().unstack()
    np.testing.assert_allclose(earned.finals, means[earned.finals.columns])
    assert earned.finals.mean().is_monotonic_decreasing
    late = results().log.query("episode > 22").groupby("agent")["return"].mean()
    for row in agents_table(earned).rows:
        assert (row["return"], row["low"], row["high"]) == mean_interval(means[row["agent"]])
        assert row["last_half"] == pytest.approx(late[row["agent"]])
    assert earned.focus == "omg"


def test_blocks_share_out_all_episodes():
    (earned,) = scenarios(results())
    for agent in earned.finals.columns:
        episodes, values = series(earned, agent)
        assert values.shape == (3, BLOCKS)
        lengths = np.diff([0.0, *episodes])
        assert lengths.sum() == 45
        np.testing.assert_allclose(values @ lengths / 45, earned.finals[agent])


def test_whoever_earns_more_has_the_smaller_loss_and_two_agents_differ_by_the_range_of_returns_at_most():
    ((earned, (pair,)),) = compare_scenarios(results(), against="omg")
    means = earned.finals.mean()
    assert pair.difference == pytest.approx(means["lazy"] - means["omg"])
    assert earned.largest == 8.0  # of eight steps with rewards in [0, 1]
    assert earned.pairs["lazy"] == pair


@pytest.mark.slow
def test_words_and_pictures_are_those_of_one_seed_too():
    pytest.importorskip("matplotlib")
    for seeds in (1, 3):
        (earned,) = scenarios(results(seeds))
        assert headline(earned).startswith(f"In an episode, {earned.agents[0]} earned most")
        assert "no regret" in headline(earned)
        assert len(comparisons_table(earned, earned.pairs.values()).lines()) == 1
        assert "nan" not in chance_or_not(earned)
        assert [figure.title for figure in comparing_figures(earned)] == ["Return by agent", "Return by episode"]
