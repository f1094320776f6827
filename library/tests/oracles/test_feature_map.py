"""A feature map: its rules for every record, its bounds, and that no state is loaded with other rules."""

import dataclasses
import math

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import omg_cmdp as omg
from omg_cmdp.checks import check_oracle
from omg_cmdp.oracles import FeatureMap, RefittedRewards

TABLE = {
    "age": [*range(20, 80), None],
    "dose": [0.1 * (i % 7) for i in range(61)],
    "ward": ["a", "b", "b", "c", None] * 12 + ["d"],
    "smoker": [True, False] * 30 + [True],
}
CROSSES = [("age", "ward"), ("age", "dose"), ("ward", "smoker"), ("dose", "dose")]
FEATURES = FeatureMap.fit(TABLE, crosses=CROSSES)
SIZES = {"states": 2, "actions": 2, "horizon": 3}
ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just(pandas.NA), st.just([1.0])
)


def entry(record, name, features=FEATURES):
    """Return an entry before vectors are made shorter; the first one is 1."""
    vector = features(record)
    return vector[features.names.index(name)] / vector[0]


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.sampled_from([*TABLE, "name"]), ANYTHING), st.sampled_from(list(TABLE)))
def test_whatever_a_record_holds_its_features_are_finite_and_short(record, column):
    vector = FEATURES({column: None, **record})
    assert vector.shape == (FEATURES.dimension,)
    assert np.isfinite(vector).all()
    assert np.linalg.norm(vector) <= 1.0 + 1e-12
    assert vector[0] > 0.0


def test_no_vector_is_made_shorter_than_it_must_be():
    features = FeatureMap.fit({"x": [0, 1], "ward": ["a", "b"]}, crosses=[("x", "ward")])
    assert np.linalg.norm(features({"x": 9, "ward": "a"})) == pytest.approx(1.0)


def test_numbers_are_scaled_by_quantiles_and_cut():
    low, high = np.quantile(range(20, 80), [0.01, 0.99])
    for age in (25.0, 49.5, 70.0):
        assert entry({"age": age}, "age") == pytest.approx(2.0 * (age - low) / (high - low) - 1.0)
    for far, sign in ((1e9, 1.0), (math.inf, 1.0), (-1e308, -1.0), (-math.inf, -1.0), (high, 1.0)):
        assert entry({"age": far}, "age") == pytest.approx(sign)
    assert entry({"age": "25"}, "age") == entry({"age": np.float32(25)}, "age") == entry({"age": 25}, "age")


@pytest.mark.parametrize("value", [None, math.nan, np.nan, pandas.NA, pandas.NaT, "unknown", [1.0], object()])
def test_a_missing_number_counts_as_the_median(value):
    record = {"age": value, "dose": 0.3, "ward": "a"}
    assert entry(record, "age") == entry({"dose": 0.3, "ward": "a"}, "age") == pytest.approx(0.0, abs=1e-12)
    assert entry(record, "age missing") == pytest.approx(1.0)
    assert entry({"age": 30}, "age missing") == 0.0
    assert "dose missing" not in FEATURES.names  # the table has all of them
    assert entry({"dose": value}, "dose") == entry({"dose": np.median(TABLE["dose"])}, "dose")


def test_the_most_frequent_categories_have_an_entry_and_others_none():
    few = FeatureMap.fit(TABLE, categories=["ward"], most=2)
    assert few.names == ("1", "ward=a", "ward=b")  # as often as c, and before it
    for ward in ("d", "new", None, math.nan):
        assert few({"ward": ward})[1:].tolist() == [0.0, 0.0]
    codes = FeatureMap.fit({"code": [1, 2, None]}, categories=["code"])
    assert codes.names == ("1", "code=1", "code=2")
    for one in (1, 1.0, np.int8(1), "1"):
        assert codes({"code": one})[1] > 0.0


def test_crosses_are_products():
    record = {"age": 30, "dose": 0.2, "ward": "b", "smoker": True}
    age, dose = entry(record, "age"), entry(record, "dose")
    assert entry(record, "age × dose") == pytest.approx(age * dose)
    assert entry(record, "dose × dose") == pytest.approx(dose * dose)
    assert entry(record, "age × ward=b") == pytest.approx(age)
    assert entry(record, "age × ward=a") == 0.0


def test_a_column_with_hardly_any_variety_is_scaled_by_its_range():
    rare = FeatureMap.fit({"x": [0.0] * 999 + [5.0]})
    assert [entry({"x": x}, "x", rare) for x in (0.0, 5.0)] == pytest.approx([-1.0, 1.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({"x": [1, 1]},), "`table` must have different numbers in column 'x'"),
        (({"x": [None, None]},), "`table` must have different numbers in column 'x'"),
        (({"x": [math.inf, 1]},), "`table` must have different numbers in column 'x'"),
        ((TABLE, {"numbers": ["name"]}), "`numbers` must list columns among .*, got \\['name'\\]"),
        ((TABLE, {"categories": "ward"}), "`categories` must list columns among .*, got 'ward'"),
        ((TABLE, {"numbers": []}), "`columns` must be distinct, and at least one, got \\[\\]"),
        ((TABLE, {"numbers": ["age"], "categories": ["age"]}), "`columns` must be distinct"),
        ((TABLE, {"crosses": [("age", "name")]}), "`crosses` must be pairs of the columns .*, got"),
        ((TABLE, {"crosses": ["age"]}), "`crosses` must be pairs of the columns .*, got"),
        ((TABLE, {"crosses": [3]}), "`crosses` must be a list, got int"),
        ((TABLE, {"numbers": 3}), "`numbers` must be a list, got int"),
        ((TABLE, {"numbers": [["age"]]}), "`numbers` must list columns among"),
        (({"age": 3},), "`table` must be a list, got int"),
        ((TABLE, {"outside": 0.5}), "`outside` must lie in \\[0, 1/2\\), got 0.5"),
        ((TABLE, {"outside": "few"}), "`outside` must lie in \\[0, 1/2\\), got 'few'"),
        ((TABLE, {"most": 0}), "`most` must be an integer of at least 1, got 0"),
        ((3,), "`table` must be a table, got 3"),
    ],
)
def test_what_cannot_be_fitted_is_refused_by_name(arguments, message):
    table, options = (*arguments, {})[:2]
    with pytest.raises(ValueError, match=message):
        FeatureMap.fit(table, **options)


@pytest.mark.parametrize("columns", [["age"], [None], [FEATURES]])
def test_columns_are_rules(columns):
    with pytest.raises(ValueError, match="`columns` must be a Number or a Category, got"):
        FeatureMap(columns=columns)


@pytest.mark.parametrize("context", [{}, {"name": "x"}, "a", 3, None, [1.0, 2.0], np.zeros(2)])
def test_what_is_no_record_of_the_table_is_refused(context):
    for ask in (FEATURES, users(FEATURES)["linear"].predict, users(FEATURES)["adapter"].predict):
        with pytest.raises(ValueError, match="`context` must be a record with some of the columns"):
            ask(context)


def test_fingerprints_tell_rules_apart():
    again = FeatureMap.fit(TABLE, crosses=CROSSES)
    assert again == FEATURES
    assert again.fingerprint == FEATURES.fingerprint
    others = [
        FeatureMap.fit(TABLE),
        FeatureMap.fit(TABLE, crosses=CROSSES, outside=0.02),
        FeatureMap.fit({**TABLE, "age": [*range(20, 79), 79.5, None]}, crosses=CROSSES),
        FeatureMap.fit({**TABLE, "ward": ["a"] * 61}, crosses=CROSSES),
    ]
    assert len({each.fingerprint for each in [FEATURES, *others]}) == 5


@pytest.mark.parametrize("change", [{"low": 99.0}, {"high": math.nan}, {"median": -math.inf}])
def test_a_range_that_cannot_be_is_refused(change):
    with pytest.raises(ValueError, match="a number must have a finite `low` < `high`"):
        dataclasses.replace(FEATURES.columns[0], **change)


def users(features):
    """Return what uses a feature map and can be saved."""
    size = {"dimension": features.dimension, "features": features}
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LinearRegression

    return {
        "linear": omg.oracles.LinearRewards(**SIZES, **size),
        "softmax": omg.oracles.SoftmaxDynamics(**SIZES, **size),
        "aggregate": omg.oracles.AggregateRewards([omg.oracles.LinearRewards(**SIZES, **size)], horizon=3),
        "adapter": RefittedRewards(LinearRegression(), features=features, members=2, **SIZES),
    }


@pytest.mark.parametrize("name", ["linear", "softmax", "aggregate", "adapter"])
def test_a_state_of_another_scaling_is_refused(name):
    saved = users(FEATURES)[name].state()
    users(FeatureMap.fit(TABLE, crosses=CROSSES))[name].load_state(saved)
    other = users(FeatureMap.fit({**TABLE, "age": [*range(20, 79), 300, None]}, crosses=CROSSES, outside=0.0))[name]
    with pytest.raises(ValueError, match=f"`state` must come from .*{FEATURES.fingerprint}"):
        other.load_state(saved)


@pytest.mark.parametrize("name", ["linear", "softmax", "adapter"])
def test_oracles_of_records_keep_the_contract(name):
    check_oracle(users(FEATURES)[name], contexts=[{"age": 30}, {"ward": "b", "age": None}, {"dose": 1e9}])


def test_a_wrong_dimension_is_found_before_a_decision_is_due():
    with pytest.raises(ValueError, match="`features` must have shape"):
        omg.oracles.LinearRewards(**SIZES, features=FEATURES, dimension=3)
