"""Contexts as numbers for regressions, as they are by default."""

import numpy as np
import pytest

from omg_cmdp.logs.off_policy.design import context_rows
from omg_cmdp.oracles.feature_map import FeatureMap


def test_vectors_are_standardised_and_cut_and_constants_are_zero(rng):
    vectors = np.hstack([rng.normal(2.0, 3.0, size=(200, 1)), np.full((200, 1), 7.0)])
    vectors[0, 0] = 1e3
    expected = (vectors[:, 0] - vectors[:, 0].mean()) / vectors[:, 0].std()
    assert expected[0] > 3.0
    np.testing.assert_allclose(
        context_rows(list(vectors), None), np.stack([expected.clip(-3.0, 3.0), np.zeros(200)], 1)
    )


def test_records_are_encoded_by_a_feature_map_without_its_constant():
    records = [{"age": 30.0 + i, "ward": "ab"[i % 2]} for i in range(10)]
    features = FeatureMap.fit(records)
    rows = np.array([features(record) for record in records])
    np.testing.assert_allclose(context_rows(records, None), rows[:, 1:] / rows[:, :1])


def test_the_twenty_most_frequent_labels_have_a_column():
    labels = [chr(97 + number) for number in range(25)]
    assert context_rows([*labels, "y", "x"], None).sum(axis=0).tolist() == [2.0] * 2 + [1.0] * 18
    assert context_rows(["a"] * 9, None).shape == (9, 0)


def test_own_features_are_taken_as_they_are():
    assert context_rows([3.0], lambda context: [context, 1.0]).tolist() == [[3.0, 1.0]]
    with pytest.raises(ValueError, match="`features` must be a function"):
        context_rows([3.0], 3)
