"""The page of the league: what it says follows from the stored runs, and what is missing is said."""

import numpy as np
import pandas as pd
import pytest

from lab.league.page import ASKED, BEGIN, END, PAGE, TABLE, replayed, rivals, store, text, write
from lab.league.statistics import FEWEST

FAMILIES = [f"family {number}" for number in range(FEWEST + 4)]
RATIOS = {"OMG": 1.0, "greedy": 3.0, "MVP": 1.0, "VIDS": 0.25, "RegCB": 2.0, "uniform": 9.0}
CONSTANTS = {"MVP": (0.5, True)}


def runs(rng, ratios=RATIOS):
    """Return runs in which every agent loses so many times what OMG loses, with noise."""
    rows = []
    for family in FAMILIES:
        base = float(rng.lognormal(4.0, 1.0))
        for agent, ratio in ratios.items():
            where = FAMILIES[:3] if agent == "RegCB" else FAMILIES
            for order, delay in (("i.i.d.", 0), ("sorted", 0)):
                for seed in range(3):
                    regret = ratio * base * float(rng.lognormal(0.0, 0.2))
                    constant = 0.5 if agent == "MVP" else np.nan
                    if family in where:
                        rows.append([family, agent, constant, seed, order, delay, 1.0, regret, regret / 3.0, ratio])
    for row in [each for each in rows if each[1] == "MVP" and each[4] == "i.i.d."]:
        rows.append([*row[:2], 1.0, *row[3:7], 20.0 * row[7], row[8], row[9]])
    names = ["family", "agent", "constant", "seed", "order", "delay", "share", "regret", "early", "seconds"]
    return pd.DataFrame(rows, columns=names)


def section(page, title):
    return page.split(f"## {title}\n")[1].split("\n## ")[0]


def test_it_says_of_each_rival_what_its_runs_say_and_greedy_comes_first(rng):
    table = store(runs(rng), CONSTANTS)
    found, words = rivals(table), section(text(table), "OMG and every rival")
    assert found["verdict"].to_dict() == {
        **{"greedy": "better", "MVP": "no difference shown", "VIDS": "worse"},
        "RegCB": "not tested",
    }
    assert next(iter(found.index)) == "greedy"
    assert "OMG is better than greedy.\n" in words
    assert "No difference is shown from MVP.\n" in words
    assert "It is worse than VIDS.\n" in words
    assert "RegCB" not in words
    assert "| RegCB |" in section(text(table), "Agents of few families, and constants of papers")


def test_goals_that_are_not_met_are_printed_as_such(rng):
    goals = section(text(store(runs(rng), CONSTANTS)), "Goals, and whether they are met")
    lines = {line.split(" | ")[0].strip("| "): line for line in goals.splitlines()}
    assert "**not met**" in lines["better than VIDS"]
    assert "**not met**" in lines["the least mean of L of all agents that play everywhere"]
    assert "**not met**" not in lines["better than greedy"]
    assert {f"better than {name}" for name in ASKED if name in RATIOS} <= lines.keys()


def test_constants_of_papers_stand_apart_and_ends_of_grids_are_said(rng):
    table = store(runs(rng), CONSTANTS)
    page = text(table)
    assert set(table["agent"]) == {*RATIOS, "MVP, as published"}
    assert "MVP, as published" not in section(page, "Every agent")
    assert "| MVP | 0.5 (end) |" in section(page, "Every agent")
    assert "MVP, as published" in section(page, "Agents of few families, and constants of papers")


def test_a_league_that_is_not_finished_says_so(rng, tmp_path):
    page = tmp_path / "league.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    for missing in (7, 0):
        write(page, store(runs(rng), CONSTANTS), commit="0123456789abcdef", missing=missing)
        written = page.read_text()
        assert written.startswith("before\n")
        assert written.endswith(f"{END}\nafter\n")
        assert "old" not in written
        assert ("**Not finished**: 7 runs are missing" in written) == bool(missing)
        assert "`0123456789`" in written


@pytest.mark.slow
def test_the_page_of_the_guide_is_made_of_the_table_or_claims_nothing():
    page = PAGE.read_text(encoding="utf-8")
    generated = page.split(BEGIN)[1].split(END)[0]
    if TABLE.exists():
        assert text(pd.read_csv(TABLE)) in generated
    else:
        assert "nothing is claimed" in generated
        assert "|" not in generated


def test_numbers_survive_the_file(rng, tmp_path):
    table = store(runs(rng), CONSTANTS)
    table.to_csv(tmp_path / "league.csv", index=False)
    assert text(pd.read_csv(tmp_path / "league.csv")) == text(table)


def test_rows_of_the_table_are_played_again_and_others_are_found_out():
    table = pd.read_csv(TABLE)
    cheap = table[(table["seconds"] < 0.2) & table["constant"].notna()].sample(3, random_state=0)
    assert replayed(cheap, count=3, seed=0) == []
    wrong = replayed(cheap.assign(regret=cheap["regret"] + 1.0), count=3, seed=0)
    assert len(wrong) == 3
    assert "in the table" in wrong[0]
