"""The tables of what is proven in docs/rivals.md: every agent, every row of the league, tests that exist."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from lab.benchmarks.league import ENTRIES
from omg_cmdp import agents
from omg_lab import rivals
from omg_lab.studies.catalogue import AGENTS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "rivals.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## What is proven, and where it is tested\n")[2].partition("\n## ")[0]


class Row(NamedTuple):
    system: str
    agent: str
    league: str
    proven: str
    tested: str
    not_confirmed: str

    @property
    def agents(self):
        """The agents that it names, and the covers that they are given."""
        return set(re.findall(r"`(\w+)`", self.agent))

    @property
    def entries(self):
        return set() if self.league.startswith("none: ") else set(self.league.split("; "))


LINES = [[cell.strip() for cell in line.strip("|").split("|")] for line in SECTION.splitlines() if line[:1] == "|"]
ROWS = [Row(*line) for line in LINES if line[0] != "system" and set(line[0]) != {"-"}]
KINDS = {name: entry.kind for league in ENTRIES.values() for name, entry in league.items()}

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.system)


def test_every_agent_and_every_row_of_the_league_is_there():
    assert {kind.make.__name__ for kind in AGENTS.values()} <= set().union(*(row.agents for row in ROWS))
    assert set(KINDS) == set().union(*(row.entries for row in ROWS))
    assert sum(len(row.entries) for row in ROWS) == len(KINDS), "each once"


@each_row
def test_a_row_names_an_agent_its_place_in_the_league_and_tests_that_exist(row):
    assert row.agents
    assert row.agents <= {*agents.__all__, *rivals.__all__}
    assert {AGENTS[KINDS[name]].make.__name__ for name in row.entries} <= row.agents
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", row.tested)
    assert named
    assert [f"{file}::{name}" for file, name in named if f"\ndef {name}(" not in (ROOT / file).read_text()] == []
    assert row.not_confirmed
