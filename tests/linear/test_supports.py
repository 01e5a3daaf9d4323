"""In how many rows of a class a column occurs, and what that says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from setconv.linear import Supports, count_supports


def make_rows(n=30, d=9, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    rows = sparse.csr_matrix(rng.poisson(0.4, (n, d)) * rng.standard_normal((n, d)))
    return rows, rng.integers(0, classes, n), rng.random(n)


def test_supports_are_counts_by_hand():
    rows, codes, weights = make_rows()
    found = count_supports(rows, codes, weights, 3)
    expected, mass = np.zeros((9, 3)), np.zeros(3)
    for row, code, weight in zip(rows.toarray(), codes, weights, strict=True):
        mass[code] += weight
        for column in range(9):
            if row[column] != 0:
                expected[column, code] += weight
    np.testing.assert_allclose(found.occurring, expected)
    np.testing.assert_allclose(found.mass, mass)


@given(st.integers(0, 10**6))
def test_the_order_of_rows_is_nothing_and_a_weight_of_two_is_the_row_twice(seed):
    rows, codes, _ = make_rows(seed=seed)
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 3, len(codes))
    repeated = rng.permutation(np.repeat(np.arange(len(codes)), weights))
    weighed = count_supports(rows, codes, weights, 3)
    twice = count_supports(rows[repeated], codes[repeated], np.ones(len(repeated)), 3)
    np.testing.assert_array_equal(weighed.occurring, twice.occurring)
    np.testing.assert_array_equal(weighed.mass, twice.mass)


def test_a_zero_that_is_stored_does_not_occur():
    rows, codes, weights = make_rows()
    stored = rows.copy()
    stored.data[::2] = 0
    gone = stored.copy()
    gone.eliminate_zeros()
    assert gone.nnz < stored.nnz
    one, other = (count_supports(each, codes, weights, 3) for each in (stored, gone))
    np.testing.assert_array_equal(one.occurring, other.occurring)


def test_rows_taken_away_are_as_if_they_had_not_been_counted():
    rows, codes, weights = make_rows()
    kept = np.arange(len(codes)) >= 8
    everything = count_supports(rows, codes, weights, 3)
    some = count_supports(rows[:8], codes[:8], weights[:8], 3)
    rest = count_supports(rows[8:], codes[kept], weights[kept], 3)
    found = everything.without(some)
    np.testing.assert_allclose(found.occurring, rest.occurring, atol=1e-12)
    np.testing.assert_allclose(found.mass, rest.mass)
    np.testing.assert_allclose(found.column_weights(), rest.column_weights(), rtol=1e-4, atol=1e-5)


def test_a_column_as_frequent_inside_as_outside_weighs_nothing_and_a_telling_one_most():
    occurring = np.array([[30.0, 10.0], [0.0, 10.0], [20.0, 10.0], [0.0, 0.0]])
    even, only, some, never = Supports(occurring, np.array([60.0, 20.0])).column_weights()[:, 0]
    assert even == never == pytest.approx(0, abs=1e-3)
    assert only > some > 0


def test_the_weight_is_the_root_of_the_log_ratio_of_smoothed_frequencies():
    supports = Supports(np.array([[6.0, 3.0]]), np.array([30.0, 10.0]))
    inside, outside = (3 + 2 / 4) / (10 + 2 / 4), (6 + 2 * 3 / 4) / (30 + 2 * 3 / 4)
    expected = np.sqrt(abs(np.log(inside / outside)))
    np.testing.assert_allclose(supports.column_weights(), [[expected]], rtol=1e-6)


@pytest.mark.parametrize(("classes", "heads"), [(2, 1), (3, 3), (5, 5)])
def test_each_head_compares_its_class_with_the_rest(classes, heads):
    rows, codes, weights = make_rows(n=80, classes=classes, seed=4)
    found = count_supports(rows, codes, weights, classes).column_weights()
    assert found.shape == (9, heads)
    for head in range(heads):
        side = (codes == (1 if heads == 1 else head)).astype(int)
        alone = count_supports(rows, side, weights, 2).column_weights()
        np.testing.assert_allclose(found[:, head], alone[:, 0], rtol=1e-5)


def test_columns_of_which_none_tells_anything_weigh_the_same():
    rows = sparse.csr_matrix(np.ones((6, 4)))
    found = count_supports(rows, np.arange(6) % 2, np.ones(6), 2).column_weights()
    np.testing.assert_array_equal(found, np.ones((4, 1)))
