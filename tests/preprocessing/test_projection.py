"""The few dense columns that stand for many sparse ones."""

import numpy as np
import pytest
from scipy import sparse

from setconv import preprocessing
from setconv.data import Rows
from setconv.preprocessing import FRONTS, Densify, SparseProjection


def make_rows(n=80, d=700, rank=None, seed=0):
    """Sparse rows; with a rank, of that rank, mostly zeros, with singular values that fall."""
    rng = np.random.default_rng(seed)
    if rank is None:
        return sparse.csr_matrix(rng.poisson(0.03, (n, d)), dtype=np.float32)
    topics = rng.random((rank, d)) * (np.arange(d) % rank == np.arange(rank)[:, None])
    shares = rng.random((n, rank)) * rng.geometric(0.3, (n, rank))
    falling = topics * 0.7 ** np.arange(rank)[:, None]
    return sparse.csr_matrix(shares @ falling, dtype=np.float32)


def fit(rows, weights=None, seed=0):
    weights = np.ones(rows.shape[0]) if weights is None else weights
    return SparseProjection.fit(rows, weights, seed)


def prepare(rows, scaling="auto"):
    n_rows = rows.shape[0]
    train = Rows(rows, np.zeros(n_rows, np.int64), np.ones(n_rows))
    return preprocessing.prepare_rows(scaling, train, 0)


@pytest.fixture
def narrow(monkeypatch):
    """Projections of five columns."""
    monkeypatch.setattr(preprocessing, "_WIDTH", 5)


def test_a_row_depends_on_itself_alone_and_its_length_is_nothing(monkeypatch):
    rows = make_rows()
    found = fit(rows)
    whole = found(rows)
    assert (whole.shape, whole.dtype) == ((80, 20), np.float32)
    chosen = np.random.default_rng(0).permutation(80)[:33]
    assert np.array_equal(found(rows[chosen]), whole[chosen])
    np.testing.assert_allclose(found(3 * rows), whole, atol=1e-6)
    assert np.array_equal(fit(rows).directions, found.directions)
    monkeypatch.setattr(preprocessing, "_CHUNK", 7)
    assert np.array_equal(found(rows), whole)


def test_rows_of_zeros_stay_zeros():
    nothing = sparse.csr_matrix((3, 700), dtype=np.float32)
    found = fit(sparse.vstack([make_rows(20), nothing]).tocsr())
    assert not found(nothing).any()
    assert found(make_rows(20)).any(axis=1).all()
    empty = fit(nothing)
    assert np.isfinite(empty.directions).all()
    assert not empty(nothing).any()


@pytest.mark.usefixtures("narrow")
def test_the_directions_are_the_leading_singular_vectors_of_rows_of_unit_length():
    rows = make_rows(rank=8)
    found = fit(rows).directions
    dense = rows.toarray().astype(np.float64)
    right = np.linalg.svd(dense / np.linalg.norm(dense, axis=1, keepdims=True))[2][:5].T
    np.testing.assert_allclose(np.abs((right * found).sum(axis=0)), 1, atol=1e-3)


@pytest.mark.usefixtures("narrow")
def test_a_weight_of_two_is_the_row_twice_and_the_order_of_rows_is_nothing():
    rows, rng = make_rows(rank=5), np.random.default_rng(0)
    weights = rng.integers(1, 3, 80)
    repeated = rng.permutation(np.repeat(np.arange(80), weights))
    weighed = fit(rows, weights)(rows)
    np.testing.assert_allclose(fit(rows[repeated])(rows), weighed, atol=1e-4)
    np.testing.assert_allclose(fit(rows, 10.0 * weights)(rows), weighed, atol=1e-4)


@pytest.mark.parametrize(
    ("shape", "width"),
    [((2000, 600), 128), ((400, 600), 100), ((40, 600), 16), ((10, 600), 10), ((2000, 50), 50)],
)
def test_the_width_is_a_quarter_of_the_rows_within_bounds(shape, width):
    assert fit(make_rows(*shape)).width == width


def test_only_wide_rows_are_projected_and_none_without_scaling():
    rows = make_rows(d=512)
    prepared = prepare(rows)
    assert (prepared.front, prepared.has_lines) == (Densify(512), False)
    assert np.array_equal(prepared.features, rows.toarray())
    wide = prepare(make_rows(d=513))
    assert (wide.front.kind, wide.features.shape, wide.has_lines) == ("projection", (80, 20), True)
    with pytest.warns(UserWarning, match="513 columns"):
        whole = prepare(make_rows(d=513), scaling=None)
    assert (whole.front, whole.has_lines) == (Densify(513), True)
    assert sparse.issparse(whole.features)


@pytest.mark.parametrize("make", [fit, lambda rows: Densify(rows.shape[1])])
def test_a_front_survives_as_arrays_and_knows_which_rows_it_fits(make):
    rows = make_rows(d=30)
    front = make(rows)
    restored = FRONTS[front.kind].restore(front.arrays())
    assert np.array_equal(restored(rows), front(rows))
    assert restored.fits(30)
    assert not restored.fits(29)
    assert not restored.fits(31)
