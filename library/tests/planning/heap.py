"""Plans made again at other addresses: whether a loop is vectorised can depend on how far its arrays lie apart."""

import ctypes

import numpy as np

import omg_cmdp as omg


class Heap:
    """Blocks of all sizes, some of which are given back and others taken with every call of `churn`.

    They are malloc's own: numpy and Python keep small blocks for themselves, and compiled code would see no change.
    """

    def __init__(self, rng):
        self._library = ctypes.CDLL(None)
        self._library.malloc.restype, self._library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        self._library.free.restype, self._library.free.argtypes = None, [ctypes.c_void_p]
        self._rng, self._blocks = rng, [None] * 500

    def churn(self):
        for place in self._rng.integers(len(self._blocks), size=20).tolist():
            self._library.free(self._blocks[place])
            self._blocks[place] = None
        for place, size in self._rng.integers([0, 1], [len(self._blocks), 2000], size=(20, 2)).tolist():
            self._library.free(self._blocks[place])
            self._blocks[place] = self._library.malloc(size if size < 1900 else 100 * size)

    def clear(self):
        for block in self._blocks:
            self._library.free(block)


def plan_bits(arguments, heap):
    """Return the bits of the plan for a copy of the MDP, elsewhere on the heap."""
    heap.churn()
    mdp = arguments["mdp"]
    parts = {name: getattr(mdp, name) for name in ("transitions", "rewards", "horizon", "start", "admissible")}
    solution = omg.plan(**{**arguments, "mdp": omg.TabularMDP(**parts)})
    return bits([solution.policy, solution.values, solution.occupancy, solution.certificate])


def bits(values):
    """Return the bits of arrays and numbers."""
    found = []
    for value in values:
        found.append(bits(value) if isinstance(value, (list, tuple)) else np.asarray(value).tobytes())
    return tuple(found)
