"""The few dense columns that stand for many sparse ones."""

import numpy as np
import pytest
from scipy import sparse

from setconv import preprocessing
from setconv.preprocessing import (
    Densify,
    SparseProjection,
    as_sparse,
    automatic_width,
    fit_projection,
    make_front,
    unit_rows,
)


def make_rows(n=80, d=700, rank=None, seed=0):
    """Sparse rows; with a rank, of that rank and still mostly zeros."""
    rng = np.random.default_rng(seed)
    if rank is None:
        return sparse.csr_matrix(rng.poisson(0.03, (n, d)), dtype=np.float32)
    topics = rng.random((rank, d)) * (np.arange(d) % rank == np.arange(rank)[:, None])
    shares = rng.random((n, rank)) * rng.geometric(0.3, (n, rank))
    return sparse.csr_matrix(shares @ (topics * np.arange(1, rank + 1)[:, None]))


def test_a_row_does_not_depend_on_its_batch(monkeypatch):
    rows = make_rows()
    found = fit_projection(rows, np.ones(80), 20, seed=0)
    whole = found(rows)
    assert (whole.shape, whole.dtype) == ((80, 20), np.float32)
    chosen = np.random.default_rng(0).permutation(80)[:33]
    assert np.array_equal(found(rows[chosen]), whole[chosen])
    assert np.array_equal(found(rows[5:6])[0], whole[5])
    monkeypatch.setattr(preprocessing, "_CHUNK", 7)
    assert np.array_equal(found(rows), whole)


def test_the_length_of_a_row_does_not_matter():
    rows = make_rows()
    found = fit_projection(rows, np.ones(80), 20, seed=0)
    np.testing.assert_allclose(found(3 * rows), found(rows), atol=1e-6)


def test_rows_of_zeros_stay_zeros():
    rows = sparse.vstack([make_rows(20), sparse.csr_matrix((3, 700), dtype=np.float32)]).tocsr()
    found = fit_projection(rows, np.ones(23), 8, seed=0)(rows)
    assert not found[20:].any()
    assert found[:20].any(axis=1).all()
    nothing = sparse.csr_matrix((5, 700), dtype=np.float32)
    empty = fit_projection(nothing, np.ones(5), 4, seed=0)
    assert np.isfinite(empty.directions).all()
    assert not empty(nothing).any()


def test_the_directions_are_the_leading_singular_vectors():
    rows = make_rows(rank=6)
    found = fit_projection(rows, np.ones(80), 3, seed=0)
    dense = rows.toarray()
    _, _, right = np.linalg.svd(dense / np.linalg.norm(dense, axis=1, keepdims=True))
    overlap = np.abs((right[:3] * found.directions.T).sum(axis=1))
    np.testing.assert_allclose(overlap, 1, atol=1e-3)
    np.testing.assert_allclose(found.directions.T @ found.directions, np.eye(3), atol=1e-4)


def test_the_order_of_the_training_rows_does_not_matter():
    rows = make_rows(rank=5)
    order = np.random.default_rng(1).permutation(80)
    weights = np.random.default_rng(2).random(80) + 0.5
    one = fit_projection(rows, weights, 5, seed=0)
    other = fit_projection(rows[order], weights[order], 5, seed=0)
    np.testing.assert_allclose(other(rows), one(rows), atol=1e-4)


def test_a_weight_of_two_is_the_row_twice():
    rows = make_rows(rank=5)
    weights = np.random.default_rng(0).integers(1, 3, 80)
    weighed = fit_projection(rows, weights, 5, seed=0)
    twice = fit_projection(rows[np.repeat(np.arange(80), weights)], np.ones(weights.sum()), 5, 0)
    np.testing.assert_allclose(weighed(rows), twice(rows), atol=1e-4)
    ten = fit_projection(rows, 10.0 * weights, 5, seed=0)
    np.testing.assert_allclose(weighed(rows), ten(rows), atol=1e-4)


def test_the_same_seed_gives_the_same_projection():
    rows = make_rows()
    one, two = (fit_projection(rows, np.ones(80), 20, seed=3) for _ in range(2))
    assert np.array_equal(one.directions, two.directions)


@pytest.mark.parametrize(
    ("shape", "width"),
    [
        ((10_000, 5000), 128),
        ((512, 5000), 128),
        ((400, 5000), 100),
        ((40, 5000), 16),
        ((10, 5000), 10),
        ((10_000, 50), 50),
    ],
)
def test_the_automatic_width_is_a_quarter_of_the_rows_within_bounds(shape, width):
    assert automatic_width(*shape) == width


@pytest.mark.parametrize(("given", "width"), [(1, 1), (30, 30), (500, 80)])
def test_a_width_is_what_is_asked_for_but_no_more_than_rows(given, width):
    rows = make_rows()
    assert fit_projection(rows, np.ones(80), given, seed=0).width == width


def test_only_wide_rows_are_projected():
    narrow, wide = make_rows(d=512), make_rows(d=513)
    assert make_front(narrow, np.ones(80), 0) == Densify(512)
    front = make_front(wide, np.ones(80), 0)
    assert isinstance(front, SparseProjection)
    assert front.width == 20
    assert make_front(wide, np.ones(80), 0, whole=True) == Densify(513)


def test_narrow_rows_get_their_zeros():
    rows = make_rows(d=12)
    assert np.array_equal(Densify(12)(rows), rows.toarray())


def test_only_the_heaviest_columns_take_part_where_there_are_many(monkeypatch):
    rows = make_rows(d=60)
    weight = np.square(rows.toarray()).sum(axis=0)
    expected = np.sort(np.argsort(-weight, kind="stable")[:10])
    monkeypatch.setattr(preprocessing, "_COLUMNS", 10)
    found = fit_projection(rows, np.ones(80), 4, seed=0)
    assert np.array_equal(found.columns, expected)
    assert found.directions.shape == (10, 4)
    without = sparse.csr_matrix(np.where(np.isin(np.arange(60), expected), rows.toarray(), 0))
    assert np.array_equal(found(rows), found(without))


def test_of_many_rows_a_random_part_is_enough(monkeypatch):
    rows = make_rows(n=300, rank=4)
    monkeypatch.setattr(preprocessing, "_ROWS", 100)
    some = fit_projection(rows, np.ones(300), 4, seed=0)
    monkeypatch.setattr(preprocessing, "_ROWS", 1000)
    whole = fit_projection(rows, np.ones(300), 4, seed=0)
    assert not np.array_equal(some.directions, whole.directions)
    # Both span all that the rows have.
    for found in (some, whole):
        np.testing.assert_allclose(np.linalg.norm(found(rows), axis=1), 1, atol=1e-3)


def test_rows_of_length_one():
    rows = make_rows()
    lengths = np.linalg.norm(unit_rows(rows).toarray(), axis=1)
    assert set(lengths.round(5)) <= {0.0, 1.0}


def test_a_csr_matrix_is_not_copied_and_dense_rows_become_one():
    rows = make_rows()
    assert as_sparse(rows) is rows
    assert (as_sparse(rows.toarray()) != rows).nnz == 0
