"""One problem, one answer to the bit, wherever its arrays lie; `tests/attack/bits.py` tries many more."""

import pytest

from library.tests.planning.heap import Heap, plan_bits
from library.tests.planning.problems import combination_lock
from library.tests.random_mdps import random_mdp

REGULARISERS = {
    "barrier": lambda rng, table: {"gamma": 1e3},
    "weights": lambda rng, table: {"gamma": 1e3, "weights": 10.0 ** rng.uniform(-3, 3, table)},
    "floor": lambda rng, table: {"uncertainty": 10.0 ** rng.uniform(-8, 0, table), "floor": 1e-4},
}
MDPS = {
    "loops": lambda rng: random_mdp(rng, 3, 5, 8, kernel="dense"),
    "lock": lambda rng: combination_lock(2, 5, 8),
    "wide": lambda rng: random_mdp(rng, 1, 37, 3),
    "BLAS": lambda rng: random_mdp(rng, 17, 3, 4, kernel="dense"),
    "sparse rows": lambda rng: random_mdp(rng, 50, 2, 3, kernel="deterministic"),
}


@pytest.mark.parametrize("regulariser", REGULARISERS.values(), ids=REGULARISERS)
@pytest.mark.parametrize("make", MDPS.values(), ids=MDPS)
def test_a_plan_has_the_same_bits_wherever_its_arrays_lie(make, regulariser, rng):
    heap, mdp = Heap(rng), make(rng)
    arguments = {"mdp": mdp, "tolerance": 1e-8, **regulariser(rng, (mdp.states, mdp.actions))}
    assert len({plan_bits(arguments, heap) for _ in range(1000 if mdp.states < 16 else 20)}) == 1
    heap.clear()
