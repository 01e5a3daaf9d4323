"""What the support of a column in each class tells: how much weight the column gets.

A column that occurs as often in a class as elsewhere says nothing about it, however often it
occurs; the logarithm of the ratio of both frequencies is what it says (naive Bayes). Columns are
multiplied with the square root of that before a line is fitted, so that its penalty falls on
columns that say little. The supports are sums over rows: in any order, of any number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from setconv.heads import count_heads

Floats = NDArray[np.float64]
_PRIOR = 2.0  # rows that every column is taken to have occurred in beforehand


@dataclass(frozen=True)
class Supports:
    """In how many rows of each class a column is not zero, by weight.

    Attributes
    ----------
    occurring : float64 array of shape (n_features, n_classes)
    mass : float64 array of shape (n_classes,)
        All rows of each class.
    """

    occurring: Floats
    mass: Floats

    def without(self, other: Supports) -> Supports:
        """Take some rows away."""
        return Supports(np.maximum(self.occurring - other.occurring, 0), self.mass - other.mass)

    def column_weights(self) -> NDArray[np.float32]:
        """Return the weight of each column for each head, (n_features, heads)."""
        first = 1 if count_heads(len(self.mass)) == 1 else 0
        everywhere, total = self.occurring.sum(axis=1), self.mass.sum()
        heads = []
        for code in range(first, len(self.mass)):
            inside = _frequency(self.occurring[:, code], self.mass[code], self.mass[code] / total)
            rest = total - self.mass[code]
            outside = _frequency(everywhere - self.occurring[:, code], rest, rest / total)
            weight = np.sqrt(np.abs(np.log(inside / outside)))
            heads.append(weight if weight.any() else np.ones_like(weight))
        return np.stack(heads, axis=1).astype(np.float32)


def count_supports(
    rows: sparse.csr_matrix,
    codes: NDArray[np.int64],
    row_weights: NDArray[Any],
    n_classes: int,
) -> Supports:
    """Count in how many rows of each class every column occurs."""
    classes = np.eye(n_classes)[codes] * row_weights[:, None]
    present = sparse.csr_matrix(
        ((rows.data != 0).astype(np.float64), rows.indices, rows.indptr), shape=rows.shape
    )
    return Supports(np.asarray(present.T @ classes), classes.sum(axis=0))


def _frequency(occurring: Floats, mass: float, share: float) -> Floats:
    """Return how often a column occurs, smoothed as if it had been seen before, in the ratio."""
    return (occurring + _PRIOR * share) / (mass + _PRIOR * share)
