"""Out-of-fold scores: checked and weighted, thinned where they are many, ranked and counted.

`OutOfFoldScores` are the rows that calibrator and thresholds are chosen on. `RankedScores` sees
them as one side against another and counts what every possible threshold decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class OutOfFoldScores:
    """Rows with a score that their model had not seen them for.

    Attributes
    ----------
    scores : float array of shape (n_rows, heads)
        One head for two classes (the log-odds of class 1), else one a class.
    codes : int array of shape (n_rows,)
        Class of each row, from 0.
    weights : float array of shape (n_rows,)
        Weight of each row within its class: as `check_scores` makes them, 1 on average in each
        class. They say how much a row matters, never how frequent its class is.
    n_classes : int
    """

    scores: Floats
    codes: Codes
    weights: Floats
    n_classes: int

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Whether a class has rows."""
        return np.bincount(self.codes, minlength=self.n_classes) > 0

    @property
    def totals(self) -> Floats:
        """Weight of the rows of each class."""
        totals = np.bincount(self.codes, weights=self.weights, minlength=self.n_classes)
        return totals.astype(np.float64)

    @property
    def prior(self) -> Floats:
        """The share of each class; one without rows is taken as half a row, so none is 0."""
        totals = np.where(self.seen, self.totals, 0.5 * self.weights.mean())
        return np.asarray(totals / totals.sum())

    def part(self, rows: NDArray[Any]) -> OutOfFoldScores:
        """Return some of the rows."""
        return replace(
            self, scores=self.scores[rows], codes=self.codes[rows], weights=self.weights[rows]
        )

    def weighed(self, factors: Floats) -> OutOfFoldScores:
        """Return the rows with the weights of each class multiplied by its factor."""
        return replace(self, weights=self.weights * factors[self.codes])


def check_scores(scores: Any, codes: Any, weights: Any, n_classes: int) -> OutOfFoldScores:
    """Check that scores, codes and weights belong together.

    Rows of weight 0 are left out; the weights of the others are brought to a mean of 1 in each
    class.
    """
    scores = np.asarray(scores, dtype=np.float64)
    codes = np.asarray(codes, dtype=np.int64)
    heads = 1 if n_classes == 2 else n_classes
    if codes.ndim != 1 or scores.shape != (len(codes), heads):
        raise DataError(
            f"out-of-fold scores have shape {scores.shape} and codes {codes.shape}: for "
            f"{n_classes} classes pass scores of shape (n_rows, {heads}) and one code a row."
        )
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)
    if weights.shape != codes.shape:
        raise DataError(f"weights have shape {weights.shape}: pass one a row, {codes.shape}.")
    if not np.isfinite(weights).all() or (weights < 0).any() or not (weights > 0).any():
        raise DataError("weights must be finite, not negative and not all zero.")
    kept = weights > 0
    if not kept.all():
        scores, codes, weights = scores[kept], codes[kept], weights[kept]
    if not np.isfinite(scores).all():
        row = int(np.argmin(np.isfinite(scores).all(axis=1)))
        raise DataError(
            f"out-of-fold scores are not finite, first in row {row} of those with weight: look "
            "for overflow in the model there."
        )
    if codes.min() < 0 or codes.max() >= n_classes:
        raise DataError(
            f"codes go from {codes.min()} to {codes.max()}: {n_classes} classes are numbered "
            f"from 0 to {n_classes - 1}."
        )
    if (weights != 1).any():
        weights = weights * weight_scales(weights, codes, n_classes)[codes]
    return OutOfFoldScores(scores, codes, weights, n_classes)


def weight_scales(weights: Floats, codes: Codes, n_classes: int) -> Floats:
    """Return a factor a class that makes the mean weight of its rows 1, and prevalence counts."""
    largest = weights.max()  # sums of huge weights would overflow
    sums = np.bincount(codes, weights=weights / largest, minlength=n_classes)
    counts = np.bincount(codes, minlength=n_classes)
    return np.asarray(np.divide(counts, sums, out=np.ones(n_classes), where=sums > 0) / largest)


def rarest(codes: Codes, n_classes: int) -> int:
    """Return the class with the fewest rows, of equals the last: as `setconv.metrics` does."""
    counts = np.bincount(codes, minlength=n_classes)
    counts = np.where(counts > 0, counts, len(codes) + 1)
    return n_classes - 1 - int(np.argmin(counts[::-1]))


def thin(evidence: OutOfFoldScores, most: int, least: int, seed: int) -> OutOfFoldScores:
    """Return about ``most`` of the rows, drawn class by class, with the same weight a class.

    A class keeps at least ``least`` rows, or all that it has.
    """
    n_rows = len(evidence.codes)
    if n_rows <= most:
        return evidence
    generator = np.random.default_rng(seed)
    counts = np.bincount(evidence.codes, minlength=evidence.n_classes)
    shares = np.maximum(counts * most // n_rows, np.minimum(counts, least))
    rows = [
        generator.choice(np.flatnonzero(evidence.codes == c), size=shares[c], replace=False)
        for c in np.flatnonzero(counts)
    ]
    part = evidence.part(np.sort(np.concatenate(rows)))
    # A class that kept a larger share of its rows is not to weigh more for it.
    kept = np.where(evidence.seen, part.totals, 1.0)
    return part.weighed(evidence.totals / kept)


class Counts(NamedTuple):
    """Weight of true and false decisions for side 1, one figure a cut: (n_values + 1,) each."""

    tp: Floats
    fn: Floats
    fp: Floats
    tn: Floats

    def swapped(self) -> Counts:
        """Return the same decisions, seen from side 0."""
        return Counts(self.tn, self.fp, self.fn, self.tp)


# Sums of the same weights in another order differ by less, honest differences by more.
_TIE = 1e-11


class RankedScores:
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
        return Counts(sums_above(side1), sums_below(side1), sums_above(side0), sums_below(side0))

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


def sums_above(weights: Floats) -> Floats:
    """Return the sum from each place to the end, and 0 after it: (n + 1,)."""
    return np.append(np.cumsum(weights[::-1])[::-1], 0.0)


def sums_below(weights: Floats) -> Floats:
    """Return 0, and the sum up to each place: (n + 1,)."""
    return np.append(0.0, np.cumsum(weights))
