"""The slacks of the certificate have twice the digits: compared with exact fractions where most cancel."""

from fractions import Fraction

import pytest

from library.tests.random_mdps import random_mdp
from omg_cmdp.planning.certificate import slacks
from omg_cmdp.planning.rounding import EPSILON, of_slack


@pytest.mark.parametrize("charged", [False, True])
def test_slacks_are_exact_up_to_one_rounding(charged, rng):
    mdp = random_mdp(rng, 3, 2, 3)
    shape = mdp.reward_steps.shape
    costs = [(float(price), rng.random(shape)) for price in (1e3 * rng.random(2) if charged else ())]
    values = 1e6 * rng.random((mdp.horizon, mdp.states))
    found = slacks(mdp, values, costs)
    size = 3.0 * values.max() + sum(price for price, _ in costs)
    for h in range(mdp.horizon):
        for s in range(mdp.states):
            for a in range(mdp.actions):
                exact = Fraction(values[h, s]) - Fraction(at(mdp.reward_steps, h)[s, a])
                exact += sum(Fraction(price) * Fraction(at(table, h)[s, a]) for price, table in costs)
                if h + 1 < mdp.horizon:
                    row = at(mdp.transition_steps, h)[s, a]
                    exact -= sum(Fraction(p) * Fraction(v) for p, v in zip(row, values[h + 1], strict=True))
                assert abs(Fraction(found[h, s, a]) - exact) <= Fraction(EPSILON) * abs(exact) + Fraction(
                    of_slack(mdp.states + len(costs)) * size
                )


def at(table, h):
    return table[h % len(table)]
