"""Leading singular vectors of sparse rows, at a cost that follows the non-zeros."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_SPARE = 10  # more vectors than are asked for: the last ones are found less well
_ITERATIONS = 3
_SMALLEST = 1e-6  # of the largest singular value; below it there is only rounding


def leading_directions(
    rows: sparse.csr_matrix, width: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """Return about the leading right singular vectors, found by subspace iteration.

    Vectors are made orthogonal as combinations of rows, of which there are few. Along the columns
    there are sparse products and one small dense one, so that a million columns cost little more
    than ten thousand with as many non-zeros.

    Parameters
    ----------
    rows : csr matrix of shape (n_rows, n_features)
    width : int
    rng : numpy Generator

    Returns
    -------
    float32 array of shape (n_features, width)
        Orthonormal columns, those beyond the rank of the rows zero; the largest number of each is
        positive.
    """
    size = min(width + _SPARE, *rows.shape)
    basis = rows @ rng.standard_normal((rows.shape[1], size), dtype=np.float32)
    for _ in range(_ITERATIONS):
        basis = rows @ (rows.T @ _orthonormal(basis))
    narrow = np.asarray(rows.T @ _orthonormal(basis))
    squares, turns = np.linalg.eigh(narrow.T.astype(np.float64) @ narrow)
    squares, turns = squares[::-1][:width], turns[:, ::-1][:, :width]
    known = squares > _SMALLEST**2 * max(squares[0], np.finfo(np.float64).tiny)
    factors = np.where(known, 1 / np.sqrt(np.where(known, squares, 1)), 0)
    directions = narrow @ (turns * factors).astype(np.float32)
    largest = np.abs(directions).argmax(axis=0)
    return np.ascontiguousarray(directions * np.sign(directions[largest, np.arange(width)]))


def _orthonormal(vectors: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(np.linalg.qr(vectors)[0], dtype=np.float32)
