"""Error rates of the tests of a report, as the guide has them; and bounds of differences that hold in every world."""

import re
from pathlib import Path

import numpy as np
import pytest

import omg_cmdp as omg
from lab.benchmarks import verdicts
from lab.tests.worlds.catalogue import WORLDS
from omg_lab.studies.runner import _widest

GUIDE = Path(__file__).parents[2] / "docs" / "studies.md"


@pytest.mark.slow
def test_the_guide_has_the_error_rates_that_are_measured_and_none_is_above_what_is_allowed():
    """`python -m lab.benchmarks.verdicts` prints them again."""
    rng, text = np.random.default_rng(0), GUIDE.read_text(encoding="utf-8")
    for part in (verdicts.errors, verdicts.errors_of_most):
        table = part(rng)
        assert table in text
        for line in table.splitlines()[2:]:
            assert max(map(float, re.findall(r"[\d.]+", line.split("|")[-2]))) <= 100.0 * verdicts.LEVEL


@pytest.mark.parametrize("make", WORLDS, ids=lambda kind: kind.__name__)
def test_no_two_policies_differ_by_more_than_the_bound_that_tests_rely_on(make):
    """The worst policy for rewards r is the best for 1 - r, and an episode has H steps."""
    world = make()
    for context in world.contexts[:5]:
        mdp = world.truth(context).mdp
        space = world.space
        turned = omg.TabularMDP(
            transitions=mdp.transitions,
            rewards=1.0 - mdp.rewards,
            horizon=space.horizon,
            start=mdp.start,
            admissible=space.admissible,
        )
        worst = space.horizon - omg.optimal_policy(turned)[1]
        assert world.truth(context).best[1] - worst <= _widest(world) + 1e-9
