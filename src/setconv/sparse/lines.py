"""The linear part of a member's scores on sparse rows: a line over all columns.

Logistic regression in which both sides of a head weigh the same, on columns that are weighed by
their supports. All heads of all members are fitted at once: what a step needs of the rows is two
sparse products with as many columns as there are heads, so the cost grows with the non-zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from setconv.heads import head_sides
from setconv.sparse.newton import minimise_logistic
from setconv.sparse.supports import count_supports

Array = NDArray[Any]


@dataclass(frozen=True)
class SparseLines:
    """A linear score for each head of each member: ``x @ weight + intercept``.

    Attributes
    ----------
    weights : float32 array of shape (n_features, n_stacked)
        The heads of the first member come first.
    intercepts : float32 array of shape (n_stacked,)
    """

    weights: NDArray[np.float32]
    intercepts: NDArray[np.float32]

    def __call__(self, rows: sparse.csr_matrix) -> Array:
        """Score sparse rows; the result is (n_rows, n_stacked)."""
        return np.asarray(rows @ self.weights + self.intercepts)

    def scaled(self, factors: NDArray[np.float64]) -> SparseLines:
        """Return them with the scores of each multiplied by a factor."""
        by = factors.astype(np.float32)
        return SparseLines(self.weights * by, self.intercepts * by)


def fit_lines(
    rows: sparse.csr_matrix,
    codes: NDArray[np.int64],
    row_weights: NDArray[Any],
    left_out: NDArray[np.bool_],
    n_classes: int,
) -> SparseLines:
    """Fit a line for each head to each member's own rows.

    Parameters
    ----------
    rows : csr matrix of shape (n_rows, n_features)
    codes : array of shape (n_rows,)
    row_weights : array of shape (n_rows,)
    left_out : bool array of shape (n_members, n_rows)
        Rows that a member does not learn from.
    n_classes : int
    """
    n_features = rows.shape[1]
    rows, occurring = _occurring(rows)
    row_weights = row_weights / row_weights[row_weights > 0].mean()  # only ratios count
    everything = count_supports(rows, codes, row_weights, n_classes)
    sides = head_sides(codes, n_classes)
    scales, masses, penalties = [], [], []
    for out in left_out:
        own = everything
        if out.any():
            chosen = np.flatnonzero(out)
            taken = count_supports(rows[chosen], codes[chosen], row_weights[chosen], n_classes)
            own = everything.without(taken)
        weights = np.where(out, 0.0, row_weights)
        scales.append(own.column_weights())
        masses += [_balance(side, weights) for side in sides]
        penalties += [1 / max(int((weights > 0).sum()), 1)] * len(sides)
    scale, mass = np.concatenate(scales, axis=1), np.stack(masses, axis=1).astype(np.float32)
    # In double precision: squares of large or tiny numbers leave the range of float32.
    squares = sparse.csr_matrix(
        (np.square(rows.data, dtype=np.float64), rows.indices, rows.indptr), rows.shape
    )
    lengths = np.sqrt(((squares @ np.square(scale)) * mass).sum(axis=0, dtype=np.float64))
    scale /= np.where(lengths > 0, lengths, 1).astype(np.float32)
    signs = np.tile(np.where(sides == 1, 1, -1), (len(left_out), 1)).T.astype(np.float32)
    weights, intercepts = minimise_logistic(rows, scale, signs, mass, np.array(penalties))
    everywhere = np.zeros((n_features, weights.shape[1]), dtype=np.float32)
    everywhere[occurring] = weights
    return SparseLines(everywhere, intercepts)


def _occurring(rows: sparse.csr_matrix) -> tuple[sparse.csr_matrix, NDArray[Any]]:
    """Return the rows with the columns alone that occur, and which these are.

    There are no more of them than non-zeros, however many columns there are.
    """
    seen = np.zeros(rows.shape[1], dtype=bool)
    seen[rows.indices] = True
    columns = np.flatnonzero(seen)
    places = np.cumsum(seen, dtype=rows.indices.dtype) - 1
    shape = (rows.shape[0], len(columns))
    return sparse.csr_matrix((rows.data, places[rows.indices], rows.indptr), shape), columns


def _balance(side: NDArray[np.int8], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return weights that sum to one half on each side."""
    balanced = np.zeros(len(side))
    for which in (0, 1):
        here = side == which
        balanced[here] = weights[here] / (2 * weights[here].sum())
    return balanced
