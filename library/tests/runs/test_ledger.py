"""What a ledger says of its rows."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from omg_cmdp.runs.ledger import Ledger, Row, _spending


def ledger(count, **columns):
    """Return a ledger of `count` rows with these columns, and zeros."""
    made = Ledger()
    for number in range(count):
        told = {name: values[number] for name, values in columns.items()}
        made.add("a", Row(**{**dict.fromkeys(Row._fields, 0.0), "ceiling": math.nan, "cost": math.nan, **told}))
    return made


def test_a_row_is_a_row():
    with pytest.raises(ValueError, match="`row` must be"):
        Ledger().add("a", (0.0,))


@pytest.mark.parametrize(("count", "last"), [(1, 1), (30, 3), (31, 4), (40, 4)])
def test_the_last_tenth_is_rounded_up_and_has_its_own_mean(count, last):
    exploration = [7.0] * (count - last) + [0.5] * last
    assert f"In the last {last} the agent played 0.5 an episode below" in str(ledger(count, exploration=exploration))


@pytest.mark.parametrize(("difference", "shown"), [(1e-10, "0"), (3e-9, "3e-09")])
def test_differences_that_are_zero_are_shown_as_zero(difference, shown):
    text = str(ledger(1, regret=[difference], exploration=[difference]))
    assert f"lost {shown}:" in text
    assert f"played {shown} an episode" in text


@pytest.mark.parametrize(
    ("costs", "row"),
    [([3.0, 2.5], (2.5, 1.0, 1.5, 0.2)), ([5.0, 2.0], (5.0, 3.0, 2.0, 0.1)), ([1.0, 0.5], (0.5, 1.0, 0.0, 0.2))],
)
def test_of_several_budgets_that_is_told_which_is_exceeded_most(costs, row):
    decision = SimpleNamespace(prices=np.array([0.1, 0.2]))
    assert _spending(SimpleNamespace(costs=np.array(costs), budgets=np.array([3.0, 1.0]), decision=decision)) == row


@pytest.mark.parametrize(
    ("excess", "budget", "above"), [(1e-6, 1.0, 0), (2e-6, 1.0, 1), (2e-6, 4.0, 0), (5e-6, 4.0, 1), (0.5, 4.0, 1)]
)
def test_a_budget_is_exceeded_beyond_a_millionth_of_it(excess, budget, above):
    text = str(ledger(2, cost=[budget, budget + excess], budget=[budget] * 2, violation=[0.0, excess]))
    assert f"{above} exceeded it" in text
