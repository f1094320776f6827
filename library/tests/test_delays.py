"""When feedback arrives: the laws of the delays, and what is refused."""

import numpy as np
import pytest

from omg_cmdp import delays
from omg_cmdp.delays import as_delay

MANY = 20_000


def drawn(delay, count=MANY):
    generator = np.random.default_rng(0)
    return np.array([delay.late(t, generator) for t in range(1, count + 1)])


def assert_tail(found, tail):
    """The share of delays of at least k is `tail(k)`, within four standard errors."""
    for k in (0, 1, 2, 5, 20, 100):
        share = tail(k)
        assert abs((found >= k).mean() - share) <= 4.0 * np.sqrt(share * (1.0 - share) / len(found)) + 1e-12


def test_delays_have_their_laws():
    assert_tail(drawn(delays.UpTo(10)), lambda k: max(0.0, 1.0 - k / 11))
    assert_tail(drawn(delays.Geometric(4.0)), lambda k: 0.8**k)
    assert_tail(drawn(delays.HeavyTailed(1.2, 3.0)), lambda k: (1.0 + k / 3.0) ** -1.2)
    assert (drawn(delays.Fixed(7), 5) == 7).all()


@pytest.mark.parametrize("most", [0, 1, 2, 7, 10])
def test_reversed_blocks_come_back_last_first_one_after_each_episode(most):
    block, late = most // 2 + 1, drawn(delays.Reversed(most), 60)
    due = np.arange(60) + late
    assert late.max() <= most
    assert len(set(due.tolist())) == 60
    for start in range(0, 60 - block, block):
        assert (np.diff(due[start : start + block]) == -1).all()


def test_a_number_and_a_function_are_delays():
    assert as_delay(3) == delays.Fixed(3)
    assert as_delay(delays.UpTo(2)) == delays.UpTo(2)
    assert [as_delay(lambda t: t % 3).late(t, None) for t in (1, 2, 3)] == [1, 2, 0]


@pytest.mark.parametrize(
    "make",
    [
        lambda: delays.Fixed(-1),
        lambda: delays.UpTo(2.5),
        lambda: delays.Reversed(True),
        lambda: delays.Geometric(0.0),
        lambda: delays.HeavyTailed(exponent=-1.0),
        lambda: delays.HeavyTailed(scale=np.inf),
        lambda: as_delay("late"),
        lambda: as_delay(None),
        lambda: as_delay(-2),
    ],
)
def test_what_is_no_delay_is_refused(make):
    with pytest.raises(ValueError, match=r"`\w+` must be"):
        make()
