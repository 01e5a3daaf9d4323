"""Rows in the order of their scores, and what each cut between two scores would decide."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.integer[Any]]
# Sums of the same weights in another order differ by less, honest differences by more.
_TIE = 1e-11


class Counts(NamedTuple):
    """Weight of true and false decisions for side 1, one figure a cut: (n_values + 1,) each."""

    tp: Floats
    fn: Floats
    fp: Floats
    tn: Floats

    def swapped(self) -> Counts:
        """Return the same decisions, seen from side 0."""
        return Counts(self.tn, self.fp, self.fn, self.tp)


class RankedRows:
    """Rows sorted by score once; every choice of weights is then a cumulative sum.

    Cut j decides for side 1 from the distinct score j upwards: cut 0 takes all rows, cut
    ``n_values`` none.

    Parameters
    ----------
    scores : float array of shape (n_rows,)
    sides : bool array of shape (n_rows,)
        Whether a row truly belongs to side 1.
    tolerance : float
        Scores no further apart count as one: differences of scores carry rounding errors.

    Attributes
    ----------
    order : int array of shape (n_rows,)
        Sorts the rows.
    sides : bool array of shape (n_rows,)
        In sorted order.
    values : float array of shape (n_values,)
        The distinct scores, ascending.
    places : int array of shape (n_values + 1,)
        The first row, in sorted order, that each cut takes.
    """

    def __init__(self, scores: Floats, sides: NDArray[np.bool_], tolerance: float = 0.0) -> None:
        self.order = np.argsort(scores, kind="stable")
        ranked = scores[self.order]
        self.sides = sides[self.order]
        apart = ranked[1:] > ranked[:-1] + tolerance
        self._starts = np.flatnonzero(np.append(True, apart))
        self.places = np.append(self._starts, len(ranked))
        self.values: Floats = ranked[self._starts]
        m = len(self.values)
        gap = (self.values[-1] - self.values[0]) / (m - 1) if m > 1 else 1.0
        # Beyond the last row there is no gap to take the middle of: take an average one.
        self._edges = np.concatenate([[self.values[0] - gap], self.values, [self.values[-1] + gap]])

    def counts(self, weights: Floats) -> Counts:
        """Count every cut; ``weights`` are in sorted order."""
        side1 = np.where(self.sides, weights, 0.0)
        side0 = weights - side1
        if len(self.values) < len(weights):
            side1 = np.add.reduceat(side1, self._starts)
            side0 = np.add.reduceat(side0, self._starts)
        # Both directions are added up, never subtracted, so an empty side is exactly 0.
        return Counts(_above(side1), _below(side1), _above(side0), _below(side0))

    def threshold(self, first: int, last: int | None = None) -> float:
        """Return the middle of the gap at a cut, or of all gaps from cut ``first`` to ``last``."""
        last = first if last is None else last
        low, high = self._edges[first], self._edges[last + 1]
        middle = float(low + (high - low) / 2)
        # Between neighbouring floats there is no middle; "score > threshold" needs the lower.
        return middle if middle < high else float(low)

    def best(self, criterion: Floats) -> float:
        """Return the threshold of the largest criterion; of several, the middle of the widest."""
        top = float(criterion.max())
        good = np.concatenate([[False], criterion >= top - _TIE * max(1.0, abs(top)), [False]])
        steps = np.diff(good.astype(np.int8))
        first, last = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1
        widest = int(np.argmax(self._edges[last + 1] - self._edges[first]))
        return self.threshold(int(first[widest]), int(last[widest]))


def _above(weights: Floats) -> Floats:
    return np.concatenate([np.cumsum(weights[::-1])[::-1], [0.0]])


def _below(weights: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(weights)])
