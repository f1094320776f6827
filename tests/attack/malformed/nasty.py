"""What nobody should pass: values of every wrong kind, and good values with one thing wrong."""

import datetime
import decimal
import fractions
import math
import pathlib
import types

import numpy as np

NAN, INF = math.nan, math.inf


class Junk:
    """Nothing that any argument could be, but a context of any kind."""

    def __repr__(self):
        return "Junk()"


class Raising:
    """It claims to be an array, and is not."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("no array after all")

    def __repr__(self):
        return "Raising()"


def sparse():
    from scipy.sparse import csr_array

    return csr_array(np.eye(3))


def frame():
    import pandas

    return pandas.DataFrame({"a": [1.0, 2.0]})


VALUES = {
    "None": lambda: None,
    "Junk": Junk,
    "Raising": Raising,
    "''": lambda: "",
    "'abc'": lambda: "abc",
    "'12'": lambda: "12",
    "b'12'": lambda: b"12",
    "True": lambda: True,
    "-3": lambda: -3,
    "-3.0": lambda: -3.0,
    "0": lambda: 0,
    "0.0": lambda: 0.0,
    "1.5": lambda: 1.5,
    # Sizes between this and what fits into memory are left out: a table that the machine cannot hold is its to refuse.
    "2**70": lambda: 2**70,
    "1e300": lambda: 1e300,
    "5e-324": lambda: 5e-324,
    "nan": lambda: NAN,
    "inf": lambda: INF,
    "-inf": lambda: -INF,
    "1j": lambda: 1j,
    "Fraction": lambda: fractions.Fraction(1, 3),
    "Decimal": lambda: decimal.Decimal("NaN"),
    "a date": lambda: datetime.date(2026, 1, 1),
    "[]": list,
    "[[]]": lambda: [[]],
    "ragged": lambda: [1.0, [2.0, 3.0]],
    "[None]": lambda: [None],
    "[Junk]": lambda: [Junk()],
    "['a', 'b']": lambda: ["a", "b"],
    "(nan, 1)": lambda: (NAN, 1.0),
    "(1, 0)": lambda: (1.0, 0.0),
    "(0, 1, 2)": lambda: (0, 1, 2),
    "{}": dict,
    "{'a': 1}": lambda: {"a": 1},
    "{'a': None}": lambda: {"a": None},
    "{3: Junk}": lambda: {3: Junk()},
    "a set": lambda: {1, 2},
    "a generator": lambda: (i for i in range(2)),
    "a range": lambda: range(3),
    "a slice": lambda: slice(0, 2),
    "a function to None": lambda: lambda *_, **__: None,
    "a function to text": lambda: lambda *_, **__: "abc",
    "a class": lambda: str,
    "a module": lambda: math,
    "a namespace": lambda: types.SimpleNamespace(space=None, state=None),
    "a path": lambda: pathlib.Path("no") / "such" / "folder" / "file.npz",
    "float32": lambda: np.float32(0.5),
    "int8": lambda: np.int8(1),
    "datetime64": lambda: np.datetime64("2026-01-01"),
    "array of nan": lambda: np.full(3, NAN),
    "array ()": lambda: np.array(0.5),
    "array (0,)": lambda: np.zeros(0),
    "array (2, 0, 3)": lambda: np.zeros((2, 0, 3)),
    "array (1, 1)": lambda: np.ones((1, 1)),
    "array (7, 7, 7)": lambda: np.ones((7, 7, 7)),
    "array of objects": lambda: np.array([None, Junk()], dtype=object),
    "array of texts": lambda: np.array([["a", "b"]]),
    "array of complex": lambda: np.ones((2, 2), dtype=complex),
    "array of dates": lambda: np.array(["2026-01-01"], dtype="M8[D]"),
    "record array": lambda: np.zeros(2, dtype=[("a", "f8")]),
    "masked array": lambda: np.ma.masked_array(np.ones((2, 2)), mask=True),
    "sparse": sparse,
    "frame": frame,
    "generator of numbers": lambda: np.random.default_rng(0),
    "RandomState": lambda: np.random.RandomState(0),
}
"""Name -> a fresh value."""


def twisted(good, generator):
    """Yield (name, value): the good value, with one thing wrong or unusual."""
    if isinstance(good, (bool, str)) or good is None:
        return
    if isinstance(good, (int, float)):
        yield from ((f"{value!r}", value) for value in (-good, good + 0.5, str(good), [good], np.array([good])))
    if isinstance(good, (list, tuple)) and good:
        yield "one entry less", good[:-1]
        yield "one entry twice", [*good, good[-1]]
        yield "None among them", [*good[:-1], None]
        yield "Junk among them", [*good[:-1], Junk()]
        yield "as a generator", (entry for entry in good)
    if isinstance(good, dict) and good:
        first = next(iter(good))
        yield "one key less", {key: value for key, value in good.items() if key != first}
        for name, value in (("None", None), ("Junk", Junk()), ("nan", np.array(NAN)), ("text", np.array("abc"))):
            yield f"{name} under {first!r}", {**good, first: value}
        yield "an unknown key", {**good, "unknown": np.zeros(3)}
    if isinstance(good, np.ndarray) and good.size:
        yield from _twisted_array(good, generator)


def _twisted_array(good, generator):
    for value in (NAN, INF, -1, 2**62):
        if good.dtype.kind != "f" and not math.isfinite(value):
            continue
        spoilt = np.array(good, dtype=good.dtype if good.dtype.kind in "iuf" else np.float64)
        spoilt.flat[generator.integers(spoilt.size)] = value
        yield f"{value} in it", spoilt
    yield "transposed", good.T
    yield "one row less", good[:-1]
    yield "one axis more", good[None]
    yield "as text", good.astype(str)
    yield "as objects", good.astype(object)
    yield "as complex", good.astype(complex)
    yield "as a list", good.tolist()
    yield "twice as long", np.concatenate([good, good]) if good.ndim else np.array([good, good])
