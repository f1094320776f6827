"""Worlds of the league: drawn anew in every seed, and as others defined them where their definition says a number."""

import numpy as np
import pytest

from lab.league.entries import ENTRIES
from lab.league.families import DEVELOPMENT, TEST
from lab.league.play import Game, finished, play, plays
from omg_cmdp import optimal_policy, policy_value
from omg_cmdp.mdp.occupancy import uniform_policy

NO_DRAW = {"deep sea", "corridor"}
"""Families of the lab in which a seed draws too little to be seen in one context."""


def drawn(family, seed):
    return family.make(np.random.default_rng(seed))


@pytest.mark.parametrize("name", TEST)
def test_a_seed_draws_a_world_in_which_choices_matter(name):
    worlds = [drawn(TEST[name], seed) for seed in (0, 0, 1)]
    tables = [[world.mdp(context) for context in world.contexts[:12]] for world in worlds]
    same, other = (
        all(
            np.array_equal(one.rewards, two.rewards) and np.array_equal(one.transitions, two.transitions)
            for one, two in zip(tables[0], tables[place], strict=True)
        )
        for place in (1, 2)
    )
    assert same
    assert not other
    for mdp in tables[0]:
        best, uniform = optimal_policy(mdp)[1], policy_value(mdp, uniform_policy(mdp.space))
        assert best >= uniform
        if worlds[0].return_range is not None:  # what every agent is told must be true
            assert worlds[0].return_range[0] <= best <= worlds[0].return_range[1] + 1e-12
    assert any(optimal_policy(mdp)[1] > policy_value(mdp, uniform_policy(mdp.space)) + 0.02 for mdp in tables[0])


def test_families_are_many_and_apart():
    assert not set(DEVELOPMENT) & set(TEST)
    assert len(TEST) >= 24
    assert sum("omg_lab" not in family.source for family in TEST.values()) == len(TEST)


def test_the_loop_pays_what_is_published():
    """Four rounds of five steps in the second loop, at 1 each; the first would pay half of that."""
    world = drawn(TEST["loop"], 0)
    assert [optimal_policy(world.mdp(context))[1] for context in world.contexts] == [4.0, 4.0]


def test_the_gambler_of_a_fair_coin_wins_in_proportion_to_the_capital():
    """With a fair coin every stake is fair: 4 of 10 win with probability at most .4, and bold play reaches it."""
    world = drawn(TEST["gambler"], 0)
    mdp = world.mdp(0)
    fair = np.where((mdp.transitions > 0.0) & (mdp.transitions < 1.0), 0.5, mdp.transitions)
    value = optimal_policy(world.space.mdp(transitions=fair, rewards=mdp.rewards))[1]
    assert 0.39 < value <= 0.4


def test_a_dealer_with_a_six_loses_more_often_than_one_with_a_ten():
    world = drawn(TEST["blackjack"], 0)
    values = [optimal_policy(world.mdp(context))[1] for context in world.contexts]
    assert values[5] > values[9] > values[0]  # a six, a ten, an ace


def test_runs_repeat_and_resume(tmp_path):
    games = [Game("small gaps", agent, None, 3, share=0.02) for agent in ("greedy", "posterior sampling")]
    first = finished(games[:1], tmp_path / "runs", workers=1)
    both = finished(games, tmp_path / "runs", workers=1)
    again = {name: value for name, value in play(games[1]).items() if name != "seconds"}
    assert len((tmp_path / "runs").read_text().splitlines()) == 2
    assert both.iloc[0]["regret"] == first.iloc[0]["regret"]
    assert all(both.iloc[1][name] == value or value is None for name, value in again.items())


@pytest.mark.slow
@pytest.mark.parametrize("agent", ENTRIES)
def test_every_agent_plays_where_it_can(agent):
    entry, where = ENTRIES[agent], [name for name in TEST if plays(name, agent)]
    assert where
    for name in where[:3]:
        constant = entry.first
        assert play(Game(name, agent, constant, 0, share=0.01))["regret"] >= 0.0
