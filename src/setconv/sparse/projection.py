"""Sparse rows as the network sees them: a few dense columns that tell most of all of them.

The kernel of the set convolution multiplies an attention over the features with the features of a
row. In a sparse row nearly all of these are zero, so nearly all of the attention falls on nothing:
embeddings, gradients and similarities vanish with the number of columns. The network therefore
looks at a projection of the row, its coordinates along the leading singular vectors of the
training rows (latent semantic analysis), in which every column has a share. It is linear in the
row, costs as much as the row has non-zeros, and knows no labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from setconv.sparse.singular import leading_directions

_FEWEST_ROWS_A_COLUMN = 4  # the last columns of many are noise that new rows do not share
_LEAST_WIDTH = 16
_ROWS = 20_480  # rows that the projection is learned from
_COLUMNS = 1 << 16  # columns that take part; the line sees all of them
_CHUNK = 8192


@dataclass(frozen=True)
class Projection:
    """Coordinates of rows of unit length along orthogonal directions.

    Attributes
    ----------
    columns : int64 array of shape (n_kept,)
        The columns that take part.
    directions : float32 array of shape (n_kept, width)
    n_features : int
    """

    columns: NDArray[np.int64]
    directions: NDArray[np.float32]
    n_features: int

    @property
    def width(self) -> int:
        """Number of dense columns."""
        return int(self.directions.shape[1])

    def __call__(self, rows: sparse.csr_matrix) -> NDArray[np.float32]:
        """Return dense rows, float32 of shape (n_rows, width); each depends on its row alone."""
        projected = np.empty((rows.shape[0], self.width), dtype=np.float32)
        for start in range(0, rows.shape[0], _CHUNK):
            part = rows[start : start + _CHUNK]
            kept = unit_rows(self._keep(part)) @ self.directions
            projected[start : start + _CHUNK] = kept
        return projected

    def _keep(self, rows: sparse.csr_matrix) -> sparse.csr_matrix:
        return rows if len(self.columns) == self.n_features else rows[:, self.columns]


def automatic_width(n_rows: int, n_features: int) -> int:
    """Return the width for rows: 128, or a quarter of their number if that is less."""
    return min(128, max(_LEAST_WIDTH, n_rows // _FEWEST_ROWS_A_COLUMN), n_rows, n_features)


def fit_projection(
    rows: sparse.csr_matrix, weights: NDArray[Any], width: int, seed: int
) -> Projection:
    """Learn the projection from rows, or from a random part of them where there are many.

    Parameters
    ----------
    rows : csr matrix of shape (n_rows, n_features)
    weights : array of shape (n_rows,)
        Of the rows; only their ratios matter.
    width : int
        Columns of the result; no more than rows or columns.
    seed : int
    """
    rng = np.random.default_rng(seed)
    if rows.shape[0] > _ROWS:
        some = np.sort(rng.choice(rows.shape[0], _ROWS, replace=False))
        rows, weights = rows[some], weights[some]
    columns = _heaviest(rows)
    kept = rows if len(columns) == rows.shape[1] else rows[:, columns]
    scaled = sparse.diags_array(np.sqrt(weights / weights.mean())) @ unit_rows(kept)
    narrow = sparse.csr_matrix(scaled, dtype=np.float32)
    width = min(width, *narrow.shape)
    return Projection(columns, leading_directions(narrow, width, rng), int(rows.shape[1]))


def unit_rows(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return rows of length one; a row of zeros stays."""
    # In double precision: squares of large or tiny numbers leave the range of float32.
    numbers = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    squares = np.bincount(
        numbers, weights=np.square(rows.data, dtype=np.float64), minlength=rows.shape[0]
    )
    factors = 1 / np.sqrt(np.where(squares > 0, squares, 1.0))
    scaled = rows.data * factors[numbers]
    return sparse.csr_matrix(
        (scaled.astype(np.float32), rows.indices, rows.indptr), shape=rows.shape
    )


def _heaviest(rows: sparse.csr_matrix) -> NDArray[np.int64]:
    """Return the columns with the largest sums of squares, in their order."""
    if rows.shape[1] <= _COLUMNS:
        return np.arange(rows.shape[1])
    squares = np.bincount(
        rows.indices, weights=np.square(rows.data, dtype=np.float64), minlength=rows.shape[1]
    )
    return np.sort(np.argsort(-squares, kind="stable")[:_COLUMNS]).astype(np.int64)
