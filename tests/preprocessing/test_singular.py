"""Leading singular vectors of sparse rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from setconv.preprocessing import leading_directions


def make_rows(shape, rank, seed=0):
    """Rows of a given rank, mostly zeros, with singular values that fall."""
    rng = np.random.default_rng(seed)
    blocks = np.arange(shape[1]) % rank == np.arange(rank)[:, None]
    topics = rng.random((rank, shape[1])) * blocks * 0.7 ** np.arange(rank)[:, None]
    return sparse.csr_matrix(rng.random((shape[0], rank)) @ topics, dtype=np.float32)


@pytest.mark.parametrize("shape", [(60, 200), (200, 60)])
def test_they_are_those_of_a_dense_decomposition(shape):
    rows = make_rows(shape, rank=8)
    found = leading_directions(rows, 5, np.random.default_rng(0))
    assert (found.shape, found.dtype) == ((shape[1], 5), np.float32)
    right = np.linalg.svd(rows.toarray().astype(np.float64))[2][:5].T
    np.testing.assert_allclose(np.abs((right * found).sum(axis=0)), 1, atol=1e-4)


@given(n=st.integers(1, 40), d=st.integers(1, 60), seed=st.integers(0, 99))
def test_they_are_orthonormal_up_to_the_rank(n, d, seed):
    rng = np.random.default_rng(seed)
    rows = sparse.csr_matrix(rng.poisson(0.3, (n, d)), dtype=np.float32)
    width = min(n, d, 7)
    found = leading_directions(rows, width, rng).astype(np.float64)
    rank = min(width, int(np.linalg.matrix_rank(rows.toarray())))
    expected = np.diag([1.0] * rank + [0.0] * (width - rank))
    np.testing.assert_allclose(found.T @ found, expected, atol=2e-3)
    largest = np.abs(found).argmax(axis=0)
    assert (found[largest, np.arange(width)] >= 0).all()


def test_what_is_below_rounding_is_no_direction():
    rows = make_rows((50, 80), rank=3)
    found = leading_directions(rows, 6, np.random.default_rng(0))
    assert found[:, :3].any(axis=0).all()
    assert not found[:, 3:].any()
