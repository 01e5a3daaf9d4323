"""Rows with what belongs to each of them, in memory, sparse or on disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from setconv.io.disk import DiskRows, RowSubset

# What these have in common is all that is used of them: a shape, slices of rows and rows by number.
StoredRows: TypeAlias = DiskRows | RowSubset
Matrix: TypeAlias = NDArray[Any] | sparse.csr_matrix | StoredRows
_CHUNK = 8192


@dataclass(frozen=True)
class Rows:
    """Rows with what belongs to each of them.

    Attributes
    ----------
    features : Matrix
    codes : int64 array of shape (n_rows,)
        Class numbers.
    weights : float64 array of shape (n_rows,)
        Within a class; their mean is 1 in each.
    groups : array of shape (n_rows,), optional
        As the user gave them.
    units : int64 array of shape (n_rows,), optional
        Rows of equal numbers stay on one side of a split: groups and copies.
    shares : float64 array of shape (n_rows,), optional
        One over the number of copies of a row.
    crossing : int64 array of shape (n_rows,), optional
        Equal for copies that need not be on one side: see `setconv.sampling.Ties`.
    numbers : int64 array of shape (n_rows,), optional
        Which of the rows that the user gave these are; None: all of them, in their order.
    """

    features: Matrix
    codes: NDArray[np.int64]
    weights: NDArray[np.float64]
    groups: NDArray[Any] | None = None
    units: NDArray[np.int64] | None = None
    shares: NDArray[np.float64] | None = None
    crossing: NDArray[np.int64] | None = None
    numbers: NDArray[np.int64] | None = None

    def take(self, chosen: NDArray[np.int64]) -> Rows:
        """Return the rows of these numbers; those on disk stay there."""
        return Rows(
            choose(self.features, chosen),
            self.codes[chosen],
            self.weights[chosen],
            None if self.groups is None else self.groups[chosen],
            None if self.units is None else self.units[chosen],
            None if self.shares is None else self.shares[chosen],
            None if self.crossing is None else self.crossing[chosen],
            chosen if self.numbers is None else self.numbers[chosen],
        )

    @property
    def weights_once(self) -> NDArray[np.float64]:
        """The weights for what is learned without labels, in which copies count as one row."""
        return self.weights if self.shares is None else self.weights * self.shares


def choose(features: Matrix, chosen: NDArray[Any]) -> Matrix:
    """Return chosen rows, by number or mask; of rows on disk none is read yet."""
    if isinstance(features, StoredRows):
        return RowSubset(features, chosen)
    picked: Matrix = features[chosen]
    return picked


def row_slices(n_rows: int, size: int) -> Iterator[slice]:
    """Yield the slices that cover all rows, ``size`` at a time."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def weighted_mean(features: Matrix, weights: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean of the rows, in one pass; rows of weight 0 are not looked at."""
    total = np.zeros(features.shape[1])
    counted = np.flatnonzero(weights)
    for part in row_slices(len(counted), _CHUNK):
        chosen = counted[part]
        whole = len(counted) == features.shape[0]
        some = features[part] if whole else features[chosen]
        total += weights[chosen] @ some.astype(np.float64)
    return np.asarray(total / weights.sum())


def arrays_of(features: Matrix) -> Iterator[NDArray[Any]]:
    """Yield arrays that hold all that is in the features, none of them large if on disk."""
    if isinstance(features, StoredRows):
        for part in row_slices(len(features), _CHUNK):
            yield features[part]
    elif isinstance(features, np.ndarray):
        yield features
    else:
        yield from (features.data, features.indices, features.indptr)
