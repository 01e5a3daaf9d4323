"""The line over all sparse columns: one a head and member, each from its own rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from setconv import linear
from setconv.linear import SparseLines, count_supports, fit_lines


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    """Go on to the minimum, where members cannot depend on when others are done."""
    monkeypatch.setattr(linear, "_STEPS", 40)
    monkeypatch.setattr(linear, "_INNER", 100)
    monkeypatch.setattr(linear, "_ACCURACY", 1e-5)


def make_rows(n=160, d=50, classes=2, seed=0):
    """Counts; each class has words of its own."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(classes, n, p=[0.7, *[0.3 / (classes - 1)] * (classes - 1)])
    codes[: 4 * classes] = np.arange(4 * classes) % classes
    often = 0.1 + 0.6 * (np.arange(d) % classes == codes[:, None])
    return sparse.csr_matrix(rng.poisson(often), dtype=np.float32), codes


def fit(rows, codes, left_out=None, weights=None, classes=2):
    n = rows.shape[0]
    left_out = np.zeros((1, n), bool) if left_out is None else left_out
    return fit_lines(rows, codes, np.ones(n) if weights is None else weights, left_out, classes)


def test_a_line_is_logistic_regression_in_which_both_sides_and_all_rows_weigh_one():
    rows, codes = make_rows()
    found = fit(rows, codes)
    scale = count_supports(rows, codes, np.ones(160), 2).column_weights()[:, 0]
    scaled = rows.toarray() * scale
    mass = 0.5 / np.bincount(codes)[codes]
    scaled /= np.sqrt(mass @ np.square(scaled).sum(axis=1))
    peer = LogisticRegression(C=160, tol=1e-8, max_iter=10_000)
    peer.fit(scaled, codes, sample_weight=mass)
    np.testing.assert_allclose(found(rows)[:, 0], peer.decision_function(scaled), rtol=0, atol=0.02)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_member_does_not_learn_from_the_rows_that_it_leaves_out(classes):
    rows, codes = make_rows(classes=classes)
    left_out = np.zeros((2, 160), bool)
    left_out[1, ::3] = True
    heads = 1 if classes == 2 else classes
    both = fit(rows, codes, left_out, classes=classes)
    assert both.weights.shape == (50, 2 * heads)
    kept = np.flatnonzero(~left_out[1])
    alone = fit(rows[kept], codes[kept], classes=classes)
    np.testing.assert_allclose(both.weights[:, heads:], alone.weights, rtol=0, atol=2e-3)
    np.testing.assert_allclose(both.intercepts[heads:], alone.intercepts, rtol=0, atol=2e-3)
    assert not np.allclose(both.weights[:, :heads], both.weights[:, heads:], atol=0.02)
    spoilt = rows.toarray()
    spoilt[left_out[1]] = 9 - spoilt[left_out[1]]
    other = fit(sparse.csr_matrix(spoilt), codes, left_out, classes=classes)
    np.testing.assert_allclose(other.weights[:, heads:], alone.weights, rtol=0, atol=2e-3)


def test_the_order_of_rows_is_nothing():
    rows, codes = make_rows()
    order = np.random.default_rng(0).permutation(160)
    weights = np.random.default_rng(1).random(160) + 0.5
    one = fit(rows, codes, weights=weights)
    other = fit(rows[order], codes[order], weights=weights[order])
    np.testing.assert_allclose(other.weights, one.weights, rtol=0, atol=2e-3)


def test_the_unit_of_the_rows_is_nothing():
    rows, codes = make_rows()
    one, other = fit(rows, codes), fit(1000 * rows, codes)
    np.testing.assert_allclose(other(1000 * rows), one(rows), rtol=0, atol=0.02)


def test_a_row_of_no_weight_is_as_if_it_were_not_there():
    rows, codes = make_rows()
    weights = (np.arange(160) % 4 > 0).astype(float)
    kept = np.flatnonzero(weights)
    weighed, fewer = fit(rows, codes, weights=weights), fit(rows[kept], codes[kept])
    np.testing.assert_allclose(weighed.weights, fewer.weights, rtol=0, atol=2e-3)


def test_each_head_is_its_class_against_the_rest():
    rows, codes = make_rows(classes=3)
    together = fit(rows, codes, classes=3)
    for head in range(3):
        alone = fit(rows, (codes == head).astype(int))
        np.testing.assert_allclose(together.weights[:, [head]], alone.weights, rtol=0, atol=2e-3)


def test_columns_that_never_occur_get_no_weight_and_change_nothing():
    rows, codes = make_rows()
    places = np.sort(np.random.default_rng(0).choice(5000, 50, replace=False))
    wide = sparse.csr_matrix((rows.data, places[rows.indices], rows.indptr), shape=(160, 5000))
    found, alone = fit(wide, codes), fit(rows, codes)
    assert not np.delete(found.weights, places, axis=0).any()
    assert np.array_equal(found.weights[places], alone.weights)
    assert np.array_equal(found.intercepts, alone.intercepts)


def test_rows_of_nothing_but_zeros_give_scores_of_zero():
    rows = sparse.csr_matrix((20, 6), dtype=np.float32)
    found = fit(rows, np.repeat([0, 1], [15, 5]))
    assert not found.weights.any()
    assert found(rows)[:, 0].tolist() == pytest.approx([0.0] * 20, abs=1e-4)


def test_scores_do_not_depend_on_the_batch_and_can_be_scaled():
    rows, codes = make_rows(classes=3)
    found = fit(rows, codes, classes=3)
    whole = found(rows)
    assert np.array_equal(found(rows[40:47]), whole[40:47])
    np.testing.assert_allclose(found.scaled(np.array([2.0, 0.0, 1.0]))(rows), whole * [2, 0, 1])
    np.testing.assert_allclose(whole, rows.toarray() @ found.weights + found.intercepts, atol=1e-4)
    assert isinstance(found.scaled(np.ones(3)), SparseLines)
