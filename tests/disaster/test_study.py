"""Power cuts of a study, and a disk that fails under it."""

import pytest

from tests.disaster import study  # noqa: F401 - it adds the study to the tools
from trial.tests.disaster import cuts, nth


@pytest.mark.slow
def test_power_cuts_of_a_study(seed):
    assert cuts.power_cuts("study", seed, 200) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["error", "full"])
def test_the_nth_failure_of_a_study(kind):
    failures, wrong = nth.every_failure("study", kind, most=30)
    assert failures > 10
    assert wrong == []
