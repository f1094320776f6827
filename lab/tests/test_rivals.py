"""The tables of docs/rivals.md: every agent in both, every row of the league, tests that exist."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from lab.league.entries import ENTRIES
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
        return set() if self.league.startswith("none: ") else set(self.league.split("; ")) - {""}


def rows(text, head):
    """Return the cells of the tables in `text` whose first column is called `head`."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return [line for line in lines if line[0] != head and set(line[0]) != {"-"}]


FIRST = rows(PAGE.partition("\n| agent |")[2].partition("\n\n")[0], "agent")
ROWS = [Row(*line) for line in rows(SECTION, "system")]
PUBLIC = {*agents.__all__, *rivals.__all__}
KINDS = {name: entry.kind for name, entry in ENTRIES.items()}

each_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.system)


def test_every_agent_and_every_row_of_the_league_is_there():
    assert {kind.make.__name__ for kind in AGENTS.values()} <= set().union(*(row.agents for row in ROWS))
    assert set(KINDS) == set().union(*(row.entries for row in ROWS))
    assert sum(len(row.entries) for row in ROWS) == len(KINDS), "each once"


def test_every_agent_is_in_the_first_table():
    named = [set(re.findall(r"`(\w+)`", line[1])) for line in FIRST]
    missing = {kind.make.__name__ for kind in AGENTS.values()} - set().union(*named)
    assert not missing, f"the first table of docs/rivals.md must have a row for {', '.join(sorted(missing))}"
    assert [line[0] for line, names in zip(FIRST, named, strict=True) if not names & PUBLIC] == []


@each_row
def test_a_row_names_an_agent_its_place_in_the_league_and_tests_that_exist(row):
    assert row.agents
    assert row.agents <= PUBLIC
    assert row.league, f"{row.system}: the third column must name its entries in the league, or say `none: why`"
    assert {AGENTS[KINDS[name]].make.__name__ for name in row.entries} <= row.agents
    named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", row.tested)
    assert named
    assert [f"{file}::{name}" for file, name in named if f"\ndef {name}(" not in (ROOT / file).read_text()] == []
    assert row.not_confirmed
