"""Contexts as keys, and as text that gives them back bit for bit."""

import math
import pickle
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from omg_cmdp import oracles
from omg_cmdp.contexts import (
    ContextCache,
    check_same_kind,
    context_from_json,
    context_key,
    context_to_json,
    keyed,
    unchanging,
)

LABELS = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.lists(inner, max_size=3).map(tuple)),
    max_leaves=6,
)
VECTORS = arrays.arrays(
    st.sampled_from(["f8", "f4", "f2", ">f8", "i8", "i4", "u8", "u1", "?"]), arrays.array_shapes(min_dims=0, max_side=4)
)


def round_trip(context):
    text = context_to_json(context)
    assert isinstance(text, str)
    return context_from_json(text)


def kinds(label):
    """Return the label with the types of all its parts, which `==` does not tell apart (1, 1.0, True)."""
    if isinstance(label, (tuple, list)):
        return type(label), [kinds(entry) for entry in label]
    return type(label), repr(label)


@settings(max_examples=200, deadline=None)
@given(LABELS)
def test_labels_survive_as_text(label):
    assert kinds(round_trip(label)) == kinds(label)


@settings(max_examples=200, deadline=None)
@given(VECTORS)
def test_vectors_survive_bit_for_bit(vector):
    found = round_trip(vector)
    assert (found.dtype, found.shape) == (vector.dtype, vector.shape)
    if vector.dtype.kind == "f":  # a NaN's payload is not kept
        np.testing.assert_array_equal(np.signbit(found), np.signbit(np.where(np.isnan(vector), np.abs(vector), vector)))
        np.testing.assert_array_equal(found, vector)
    else:
        assert found.tobytes() == vector.tobytes()


@pytest.mark.parametrize("number", [0.1, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, 1 / 3])
def test_numbers_survive_bit_for_bit(number):
    assert np.float64(round_trip(number)).tobytes() == np.float64(number).tobytes()
    assert round_trip(np.array([number])).tobytes() == np.array([number]).tobytes()


def test_vectors_inside_tuples():
    label, vector = round_trip(("patient", np.array([0.1, 0.2], dtype=np.float32)))
    assert label == "patient"
    assert vector.dtype == np.float32
    assert vector.tolist() == np.array([0.1, 0.2], dtype=np.float32).tolist()


def test_empty_tables_keep_their_shape():
    assert round_trip(np.zeros((0, 3))).shape == (0, 3)


class Patient(NamedTuple):
    age: int
    sex: str


def test_named_tuples_become_equal_labels():
    assert round_trip(Patient(70, "f")) == Patient(70, "f")


@pytest.mark.parametrize("scalar", [np.int64(3), np.float64(0.1), np.str_("a"), np.bool_(True)])
def test_numpy_scalars_become_equal_labels(scalar):
    assert round_trip(scalar) == scalar
    assert hash(round_trip(scalar)) == hash(scalar)


@pytest.mark.parametrize(
    "context",
    [
        object(),
        {"a": {1, 2}},
        {1, 2},
        b"bytes",
        1j,
        np.array([1j]),
        np.array([object()]),
        np.array(["text"]),
        ("a", {"b": object()}),
        np.complex128(1j),
        np.datetime64("2026-01-01"),
        np.array([1.0], dtype=np.longdouble),
    ],
    ids=lambda context: f"{type(context).__name__} {getattr(context, 'dtype', '')}",
)
def test_what_cannot_be_written_is_refused_by_name(context):
    with pytest.raises(ValueError, match="`context` must be a vector, a number, a text, or a tuple or record"):
        context_to_json(context)


def test_keys_tell_contexts_apart():
    different = ["1", 1, 1.0, True, (1,), [1], ((1,),), np.array(1), np.array([1]), np.array([1.0]), np.array([[1]])]
    keys = [context_key(context) for context in different]
    assert None not in keys
    assert len(set(keys)) == len(different)


def test_labels_of_other_types_have_tables_of_their_own():
    """Worlds tell 1, 1.0 and True apart, though they are equal: `{1: "a"}[True]` is "a"."""
    labels, size = [1, 1.0, True, "1", (1,), (1.0,)], {"states": 1, "actions": 1, "horizon": 1}
    tables = {"predictions": lambda label: np.array([[[0.0]], [[1.0]]]), "states": 1, "functions": 2, "horizon": 1}
    for oracle in (
        oracles.CountRewards(**size, contexts=labels),
        oracles.ProductRewards(**tables, contexts=labels),
    ):
        assert [type(label) for label in oracle.contexts] == [type(label) for label in labels]
        for _ in range(5):
            oracle.update(1, [0], [0], [1.0])
            oracle.update(np.float64(1.0), [0], [0], [0.0])
        found = [oracle.predict(label).item() for label in labels]
        assert found[0] > 0.8
        assert found[1] < 0.2
        assert found[2:] == [0.5] * 4
        assert oracle.predict(np.int64(1)).item() == found[0]
        for other in (2, False, 0.0, [1]):
            with pytest.raises(ValueError, match="`context` must be one of the 6 listed"):
                oracle.predict(other)


def test_a_dictionary_of_tables_has_no_table_for_a_label_of_another_type():
    tables = {1: np.zeros((2, 1, 1)), "a": np.ones((2, 1, 1))}
    oracle = oracles.FiniteRewards(tables, horizon=1)
    assert oracle.predict(np.int64(1)) == oracle.predict(1) == 0.0
    assert oracle.predict(np.str_("a")) == 1.0
    for other in (True, 1.0, "b"):
        with pytest.raises(ValueError, match="`context` must be one of the 2 in `predictions`"):
            oracle.predict(other)


@pytest.mark.parametrize(
    "scalar", [np.int64(1), np.int8(1), np.float64(1.0), np.float32(0.5), np.bool_(True), np.str_("a")]
)
def test_numpy_scalars_are_plain_labels(scalar):
    assert context_key(scalar) == context_key(scalar.item())
    assert context_key((scalar, {"a": scalar})) == context_key((scalar.item(), {"a": scalar.item()}))


def test_not_a_number_is_one_label():
    assert context_key(float("nan")) == context_key(np.float64("nan"))
    assert context_key(float("nan")) != context_key("nan")


def test_keys_of_equal_contexts_are_equal():
    for make in (lambda: np.array([0.1, 0.2]), lambda: ("a", (1, 2.5)), lambda: "label", lambda: [np.array([1]), "x"]):
        assert context_key(make()) == context_key(make())
        assert hash(context_key(make())) == hash(context_key(make()))


@pytest.mark.parametrize(
    "context", [None, object(), {"a": object()}, np.array([object()]), ("a", {"b": {1}}), [["a"], object()]]
)
def test_what_may_change_in_place_has_no_key(context):
    assert context_key(context) is None


def test_records_are_told_apart_by_what_they_hold():
    record = {"age": 40, "ward": "a", "weight": None}
    turned = dict(reversed(record.items()))
    assert context_key(record) == context_key(turned)
    assert repr(context_key(record)) == repr(context_key(turned))  # `NeverTwice` keeps that
    others = [{**record, "age": 41}, {**record, "age": 40.0}, {**record, "weight": 0}, {"age": 40, "ward": "a"}, {}]
    assert len({context_key(each) for each in [record, *others]}) == 6
    assert context_key({**record, "weight": float("nan")}) == context_key(record)
    assert kinds(list(round_trip(record).items())) == kinds(list(record.items()))
    kept = unchanging(record)
    record["age"] = 50
    assert kept["age"] == 40


def test_records_of_other_columns_are_of_another_kind():
    check_same_kind("contexts", {"age": 1, "ward": "a"}, {"ward": None, "age": 2.5})
    for other in ({"age": 1}, "a", [1.0, 2.0]):
        with pytest.raises(ValueError, match=r"`contexts` must all be records of .'age', 'ward'. like the first"):
            check_same_kind("contexts", other, {"age": 1, "ward": "a"})


def test_a_cache_drops_what_was_used_longest_ago():
    asked, dropped = [], []
    cache = ContextCache(3, drop=dropped.append)
    for context in ("a", "b", "c", "a", "d", "a", "b"):
        assert cache.get(context, lambda c: asked.append(c) or c.upper()) == context.upper()
    assert asked == ["a", "b", "c", "d", "b"]
    assert dropped == ["B", "C"]


def test_a_cache_may_be_limited_by_size_and_keeps_the_last_value():
    cache = ContextCache(10, size=len)
    for context, expected in (("xxxx", 1), ("yyyyyy", 2), ("z", 2), ("w" * 99, 1), ("v", 1)):
        cache.get(context, str)
        assert len(cache) == expected


def test_contexts_without_a_key_are_computed_anew():
    cache, asked = ContextCache(), []
    for context in ({"age": {40}}, {"age": {40}}, np.array([{}], dtype=object)):
        cache.get(context, asked.append)
    assert (len(asked), len(cache)) == (3, 0)


def test_an_error_leaves_nothing_in_the_cache():
    cache = ContextCache()
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda context: 1 // 0)
    assert len(cache) == 0


def test_a_copy_of_a_cache_is_empty():
    cache = ContextCache(2)
    cache.get("a", str)
    again = pickle.loads(pickle.dumps(cache))
    assert (len(cache), len(again)) == (1, 0)
    for context in "abc":
        again.get(context, str)
    assert len(again) == 2


def test_an_array_that_changed_has_another_key():
    vector = np.array([1.0, 2.0])
    vector.setflags(write=False)
    first = context_key(vector)
    assert context_key(vector) == first
    vector.setflags(write=True)
    vector[0] = 3.0
    assert context_key(vector) != first
    window = np.broadcast_to(vector, (2,))  # read-only, but it shows memory that may change
    before = context_key(window)
    vector[1] = 5.0
    assert context_key(window) != before


def test_only_a_context_that_may_change_is_copied():
    vector = np.array([1.0, 2.0])
    copied = unchanging(vector)
    assert copied is not vector
    assert unchanging(copied) is copied
    assert unchanging("label") == "label"
    window = copied[:1]
    assert unchanging(window) is not window


def test_a_key_is_computed_once_and_handed_to_those_who_take_it():
    class Taker:
        takes_keyed = True

    class Outsider:
        takes_keyed = False

    known = keyed(np.array([1.0, 2.0]))
    assert keyed(known) is known
    assert known.to(Taker()) is known
    given = known.to(Outsider())
    assert given is not known.context  # nobody outside can change it
    assert given.tolist() == [1.0, 2.0]
    assert keyed("a").to(Outsider()) == "a"
    asked = []
    cache = ContextCache()
    for context in (known, known.context, np.array([1.0, 2.0])):
        cache.get(context, asked.append)
    assert asked[0].tolist() == known.context.tolist()
