"""A small share of every attack; and many kills of one study."""

import random

import pytest

from lab.tests.studies.examples import SMALL, content, run_study
from lab.tests.studies.processes import killed_again_and_again
from tests.attack.__main__ import ATTACKS, run
from trial.tests.disaster import servers

EFFORT = 0.01


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in ("kills", "files") else ()) for name in ATTACKS]
)
def test_nothing_breaks(name, seed):
    outcome = run(name, EFFORT, seed)
    assert outcome.tried > 0
    assert not outcome.broken, "\n".join(outcome.broken[:10])


@pytest.mark.slow
@pytest.mark.skipif(servers.PROGRAMS is None, reason="PostgreSQL is not installed: apt-get install postgresql")
def test_kills_beside_a_server_that_crashes_lose_nothing(seed):
    outcome = run("service", 5 * EFFORT, seed, postgresql=True)
    assert outcome.counts["crashes of the server"] > 0
    assert not outcome.broken, "\n".join(outcome.broken[:10])


@pytest.mark.slow
def test_fifty_kills_change_nothing(tmp_path, seed):
    text = SMALL.replace("episodes = 60", "episodes = 4000").replace("seeds = 2", "seeds = 4")
    (tmp_path / "study.toml").write_text(text)
    run_study(text, tmp_path / "whole")
    draw, out = random.Random(seed), tmp_path / "out"
    interrupted, error = killed_again_and_again(50, tmp_path / "study.toml", out, workers=2, draw=draw)
    assert not error
    assert interrupted > 0
    assert content(out) == content(tmp_path / "whole")
