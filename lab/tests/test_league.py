"""The leagues of the benchmarks: cells that can be built, constants by geometric means, and ratios."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lab.benchmarks import page as pages
from lab.benchmarks import reservations
from lab.benchmarks.cells import LEAGUES
from lab.benchmarks.grid import grid
from lab.benchmarks.league import ENTRIES, WIDE, Entry, players, tuned
from lab.benchmarks.league_figures import draw
from lab.benchmarks.page import DOCS, PAGE, TABLE, add, page
from lab.benchmarks.standings import mean_regrets, over_posterior_sampling, ratios_to_the_best, standings
from omg_lab.studies.oracles import oracle_names
from omg_lab.studies.results import Results

leagues = pytest.mark.parametrize("league", LEAGUES)


def runs(regrets):
    """Return the rows of runs from {(world, adversary, agent): regrets of the seeds}."""
    return pd.DataFrame(
        [
            {"world": w, "adversary": a, "agent": name, "seed": seed, "regret": regret, "constant": ""}
            for (w, a, name), values in regrets.items()
            for seed, regret in enumerate(values)
        ]
    )


PLAYED = runs(
    {
        ("river", "iid", "OMG"): [3.0, 5.0],
        ("river", "iid", "posterior sampling"): [9.0, 9.0],
        ("river", "adaptive", "OMG"): [0.0, 0.0],
        ("river", "adaptive", "posterior sampling"): [7.0, 7.0],
        ("sea", "adaptive of 3", "OMG"): [15.0, 15.0],
        ("sea", "adaptive of 3", "posterior sampling"): [7.0, 7.0],
        ("sea", "adaptive of 3", "some"): [1.0, 1.0],
    }
)


@leagues
def test_every_cell_is_a_valid_part_of_a_study(league):
    content = LEAGUES[league].content(0.5)
    plan = grid(content, {"greedy": {}}, seeds=[0], episodes=content["episodes"])
    assert {world.name for world in plan.worlds} == LEAGUES[league].cells.keys() - set(LEAGUES[league].missing())
    for cell in LEAGUES[league].cells.values():
        assert set(cell.adversaries) <= LEAGUES[league].adversaries.keys()
        assert set(cell.without) <= ENTRIES["learned"].keys()
        oracle_names(cell.world.get("oracles", "finite"))
    assert set(LEAGUES[league].tuning_adversaries) <= LEAGUES[league].adversaries.keys()


@leagues
def test_every_agent_is_a_valid_part_of_a_study_with_each_of_its_constants(league):
    agents = {
        f"{name} {constant:g}": {"kind": entry.kind, **entry.options(constant)}
        for name, entry in ENTRIES[league].items()
        for constant in (*entry.constants, 1.0)
    }
    grid(LEAGUES[league].content(), agents, seeds=[0], episodes=10)
    tuned_entries = {name for name, entry in ENTRIES["finite"].items() if entry.constants}
    assert set(WIDE) <= tuned_entries  # and what is tuned in one league is tuned in the other
    assert tuned_entries & ENTRIES["learned"].keys() == {
        n for n, entry in ENTRIES["learned"].items() if entry.constants
    }


def test_bandits_play_only_where_episodes_have_one_step():
    content = LEAGUES["finite"].content()
    plan = grid(content, {"SquareCB 10": {"kind": "square_cb"}, "greedy": {}}, seeds=[0, 50], episodes=10)
    played = list(filter(players("finite", 0, ("iid",)), plan.tasks()))
    assert {task.world.name for task in played if task.agent.name == "SquareCB 10"} == {"bandit"}
    assert {task.world.name for task in played if task.agent.name == "greedy"} == content["worlds"].keys()
    assert {(task.adversary.name, task.seed) for task in played} == {("iid", 0)}  # of 10 seeds the 51st is too many


def test_the_constant_is_the_best_in_the_geometric_mean():
    values = {"a 1": [0.0, 99.0], "a 2": [9.0, 9.0], "a 3": [0.0, 98.0]}
    played = runs({("w", "iid", name): regrets for name, regrets in values.items()})
    results = Results(directory=Path(), configuration={}, provenance={}, runs=played, failed=played[:0])
    entries = {"a": Entry("omg", constants=(1.0, 2.0, 3.0)), "b": Entry("greedy")}
    assert tuned(results, entries) == {"a": 3.0, "b": None}  # √(1·99) < 10, though its mean is larger


def test_ratios_have_the_best_of_the_cell_as_one():
    regret = mean_regrets(PLAYED)
    ratio = ratios_to_the_best(regret)
    np.testing.assert_allclose(ratio.min(axis=1), 1.0)
    assert ratio.loc[("river", "iid"), "posterior sampling"] == pytest.approx(10.0 / 5.0)
    table = standings(PLAYED)
    assert table.index[0] == "some"
    assert (table.loc["OMG", "worst ratio"], table.loc["OMG", "where"]) == (8.0, "sea, adaptive of 3")
    assert table["scenarios"].to_dict() == {"OMG": 3, "posterior sampling": 3, "some": 1}


def test_ratios_to_posterior_sampling_by_adversary():
    table = over_posterior_sampling(mean_regrets(PLAYED))
    assert set(table.loc["posterior sampling", ["geometric mean", "worst", "iid", "adaptive"]]) == {1.0}
    # 5/10 under i.i.d. contexts; 1/8 and 16/8 under adaptive ones, whichever of the two it is called
    assert table.loc["OMG", ["iid", "adaptive", "worst"]].tolist() == [0.5, 0.5, 2.0]
    assert table.loc["OMG", "where"] == "sea, adaptive of 3"
    assert table.loc["OMG", "geometric mean"] == 0.5


def test_new_runs_take_the_place_of_those_of_their_season_or_of_their_agents(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "TABLE", tmp_path / "league.csv")
    some, again = PLAYED[PLAYED["agent"] != "some"], PLAYED[PLAYED["agent"] == "OMG"].assign(regret=2.0)

    def kept(delay):
        table = pd.read_csv(tmp_path / "league.csv", keep_default_na=False)
        here = table[table["delay"] == delay]
        return {agent: set(part["regret"]) for agent, part in here.groupby("agent")}

    add(PLAYED, "learned", 0)
    add(some, "learned", 10)
    assert kept(0).keys() == {"OMG", "posterior sampling", "some"}
    add(again, "learned", 0, ["OMG"])
    assert kept(0) == {"OMG": {2.0}, "posterior sampling": {7.0, 9.0}, "some": {1.0}}
    add(some, "learned", 0)
    assert kept(0) == kept(10) == {"OMG": {0.0, 3.0, 5.0, 15.0}, "posterior sampling": {7.0, 9.0}}


def season(delays=(0, 10), seeds=6):
    """Return rows as docs/league.csv has them: OMG always loses half of greedy, and a delay d adds d to everybody."""
    generator = np.random.default_rng(0)
    size = np.exp(generator.normal(size=(2, 3, seeds)))
    return pd.DataFrame(
        [
            {
                "league": league,
                "delay": delay,
                "world": f"world {world}",
                "adversary": adversary,
                "agent": agent,
                "constant": "",
                "seed": seed,
                "regret": factor * 10 * size[number, world, seed] - 1 + delay,
                "first": 0.5,
                "mistakes": 7,
                "horizon": 1 + world,
                "contexts": 4,
                "µs": 100.0 * factor,
                "µs early": 100.0,
                "µs late": 100.0,
            }
            for number, league in enumerate(("finite", "learned"))
            for delay in delays
            for world in range(3)
            for adversary in ("iid", "adaptive")
            for agent, factor in (("OMG", 1), ("greedy", 2), ("only one decision", 0.5))
            for seed in range(seeds)
            if world == 0 or agent != "only one decision"
        ]
    )


def test_the_page_says_who_wins_by_how_much_and_whether_that_is_chance():
    text = page(season())
    assert "**Finite classes**, with these reservations: OMG is first" in text
    assert "| **0.50** | 7 | 1.0 | 1.0 | 6 |" in text, "OMG loses half of greedy, on every seed"
    assert "If an episode is one decision | only one decision |" in text
    assert "If episodes have several steps, and tables are learned | OMG | OMG 1.00, greedy 2.00 | 4 |" in text
    assert "| Finite classes | 10 |" in text
    assert "| 1.00 | world" in text, "10 more, in units of 2·10·0.5"
    assert "| world 1 | iid | OMG |" in text


def test_the_page_begins_with_what_is_unfair_and_claims_no_first_place_without_it():
    text = PAGE.read_text(encoding="utf-8")
    box, rest = text.index("no first place on this page stands"), text.index(" is first")
    assert text.startswith("# The league\n\n> **What is known to be unfair")
    assert box < rest
    claims = re.findall(r"[^.\n]*\b(?:is|are) first\b[^.\n]*", text)
    assert [claim for claim in claims if "with these reservations" not in claim] == []


def test_what_the_page_says_of_fairness_is_so():
    rows = pd.read_csv(TABLE, keep_default_na=False)
    undelayed = rows[rows["delay"] == 0].groupby(["league", "agent"])["constant"].first()
    tuned = {(league, name): entry.constants for league in ENTRIES for name, entry in ENTRIES[league].items()}
    tuned = {key: grid for key, grid in tuned.items() if grid and key in undelayed.index}
    at_an_end = {key[1] for key, grid in tuned.items() if float(undelayed[key]) in (min(grid), max(grid))}
    assert (len({name for _, name in tuned}), len(at_an_end)) == (reservations.TUNED, reservations.AT_AN_END)
    told_more = {"known", "linear", "softmax", "basis"}
    worlds = {name: cell.world.get("oracles") for name, cell in LEAGUES["learned"].cells.items()}
    for world in reservations.EQUALLY_TOLD:
        parts = set(worlds[world].values()) if isinstance(worlds[world], dict) else {worlds[world]}
        assert not parts & told_more or set(rows[rows["world"] == world]["horizon"]) == {1}, "dynamics of one step"
    assert LEAGUES["learned"].tuning_share == 0.25
    text = page(rows)
    assert "OMG loses 1.26, 1.17 and 1.23 times what UCBVI-BF, UCBVI per context and MVP lose" in text


@pytest.mark.slow
def test_the_page_has_figures_of_every_league(tmp_path):
    names = {path.name for path in draw(season(), tmp_path)}
    made = {f"league-{league}{part}.svg" for league in ("finite", "learned") for part in ("", "-cost")}
    assert names == {*made, "league-delay.svg"}
    assert {path.name for path in draw(season(delays=(0,)), tmp_path)} == made
    for path in tmp_path.iterdir():
        assert f"figures/{path.name}" in page(season())


def test_the_page_of_the_guide_is_made_of_its_table():
    """`python -m lab.benchmarks.page` makes it again."""
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(pd.read_csv(TABLE, keep_default_na=False))
    figures = re.findall(r"\]\((figures/[\w-]+\.svg)\)", text)
    assert figures
    assert all((DOCS / figure).exists() for figure in figures)
