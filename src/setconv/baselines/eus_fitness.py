"""How good a choice of rows is: leave-one-out 1-NN over precomputed lists of neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms, safe_sparse_dot

_DISTANCES = 2**24  # numbers of a block of distances: 64 MB in single precision
_PAIRS = 2**17  # pairs of a choice and a row that are looked up together
_STEPS = (0, 8, 32, 128)  # most rows have a chosen one among their first few neighbours


class NearestChosen:
    """Finds the nearest chosen row of each row, itself left out.

    The neighbours of every row are listed once, nearest first (rows at the same distance in their
    order); the nearest chosen row is then the first of the list that is chosen. Where the list has
    none, all chosen rows are looked at.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        Rows; the distance is Euclidean.
    length : int
        Number of neighbours listed for each row.
    """

    def __init__(self, X: Any, length: int) -> None:
        rows = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
        # Distances come from products, which lose digits if the rows lie far from the origin.
        dense = isinstance(rows, np.ndarray)
        self._rows = rows - rows.mean(axis=0) if dense else rows.tocsr()
        self._squares = row_norms(self._rows, squared=True)
        n = self._rows.shape[0]
        self._lists = np.empty((n, min(length, n - 1)), dtype=np.int32)
        for block in gen_batches(n, max(1, _DISTANCES // n)):
            distances = self._distances(np.arange(n)[block], slice(None))
            self._lists[block] = _smallest(distances, self.length)

    @property
    def length(self) -> int:
        """Number of neighbours listed for each row, all the others at most."""
        return int(self._lists.shape[1])

    def __call__(self, chosen: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Find the nearest chosen row of each row.

        Parameters
        ----------
        chosen : bool ndarray of shape (m, n)
            ``m`` choices of rows.
        rows : int ndarray of shape (k,)
            The rows whose nearest is asked for.

        Returns
        -------
        nearest : int ndarray of shape (m, k)
            Numbers of rows; -1 where no other row is chosen.
        """
        parts = gen_batches(len(chosen), max(1, _PAIRS // len(rows)))
        return np.concatenate([self._look_up(chosen[part], rows) for part in parts])

    def _look_up(self, chosen: np.ndarray, rows: np.ndarray) -> np.ndarray:
        nearest = np.full((len(chosen), len(rows)), -1)
        open_pairs = np.arange(nearest.size)
        steps = [step for step in _STEPS if step < self.length]
        for start, stop in pairwise([*steps, self.length]):
            choice, place = np.divmod(open_pairs, len(rows))
            neighbours = self._lists[rows[place], start:stop]
            hits = chosen.ravel()[neighbours + choice[:, None] * chosen.shape[1]]
            found = hits.any(axis=1)
            nearest.flat[open_pairs[found]] = neighbours[found, hits[found].argmax(axis=1)]
            open_pairs = open_pairs[~found]
        if self.length < chosen.shape[1] - 1:
            for choice in np.unique(open_pairs // len(rows)):
                places = np.flatnonzero(nearest[choice] < 0)
                nearest[choice, places] = self._scan(chosen[choice], rows[places])
        return nearest

    def _scan(self, chosen: np.ndarray, rows: np.ndarray) -> np.ndarray:
        candidates = np.flatnonzero(chosen)
        if not len(candidates):
            return np.full(len(rows), -1)
        found = []
        for block in gen_batches(len(rows), max(1, _DISTANCES // len(candidates))):
            distances = self._distances(rows[block], candidates)
            best = distances.argmin(axis=1)
            none = np.isinf(distances[np.arange(len(best)), best])
            found.append(np.where(none, -1, candidates[best]))
        return np.concatenate(found)

    def _distances(self, rows: np.ndarray, others: Any) -> np.ndarray:
        """Squared distances but for what is the same in a line; infinite to the row itself."""
        distances: np.ndarray = safe_sparse_dot(
            self._rows[rows], self._rows[others].T, dense_output=True
        )
        distances *= -2
        distances += self._squares[others]
        distances[rows[:, None] == np.arange(len(self._squares))[others]] = np.inf
        return distances


def _smallest(distances: np.ndarray, number: int) -> np.ndarray:
    """Columns of the smallest values of each line, in the order of value, then of column."""
    columns = np.argpartition(distances, number - 1, axis=1)[:, :number]
    columns.sort(axis=1)
    order = np.take_along_axis(distances, columns, axis=1).argsort(axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


@dataclass(frozen=True)
class Fitness:
    """The fitness of a choice of rows: ``G-mean - penalty * |1 - chosen / target|``.

    The G-mean is ``sqrt(TPR * TNR)`` of leave-one-out 1-NN. A chromosome has one bit for each row
    of the class to be reduced; the rows of the other are always chosen.

    Parameters
    ----------
    nearest : NearestChosen
        Finds the nearest chosen row.
    reduced : bool ndarray of shape (n,)
        Whether a row is of the class to be reduced, the majority.
    target : int
        Number of rows of the reduced class at which the classes count as balanced.
    penalty : float
        Weight of the balance term; 0 is without.
    """

    nearest: NearestChosen
    reduced: np.ndarray
    target: int
    penalty: float

    def choices(self, chromosomes: np.ndarray) -> np.ndarray:
        """Turn chromosomes (m, g) into choices of rows (m, n)."""
        chosen = np.ones((len(chromosomes), len(self.reduced)), dtype=bool)
        chosen[:, self.reduced] = chromosomes
        return chosen

    def __call__(self, chromosomes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Evaluate chromosomes on some rows.

        Parameters
        ----------
        chromosomes : bool ndarray of shape (m, g)
            What is chosen.
        rows : int ndarray of shape (k,)
            The rows that are classified, of both classes.

        Returns
        -------
        fitness : ndarray of shape (m,)
            The larger the better, at most 1.
        """
        chosen = self.choices(chromosomes)
        nearest = self.nearest(chosen, rows)
        is_reduced = self.reduced[rows]
        right = (self.reduced[nearest] == is_reduced) & (nearest >= 0)
        reduced_rate = right[:, is_reduced].mean(axis=1)
        other_rate = right[:, ~is_reduced].mean(axis=1)
        imbalance = np.abs(1 - chromosomes.sum(axis=1) / self.target)
        return np.asarray(np.sqrt(reduced_rate * other_rate) - self.penalty * imbalance)


def windows(reduced: np.ndarray, random: np.random.RandomState) -> list[np.ndarray]:
    """Split the rows of the reduced class into strata as large as the other class.

    Returns
    -------
    windows : list of int ndarray
        The rows of one stratum each, with all rows of the other class.
    """
    others = np.flatnonzero(~reduced)
    mixed = random.permutation(np.flatnonzero(reduced))
    strata = np.array_split(mixed, max(1, len(mixed) // len(others)))
    return [np.concatenate([stratum, others]) for stratum in strata]
