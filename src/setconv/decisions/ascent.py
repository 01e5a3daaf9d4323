"""Coordinate ascent: the thresholds of several classes, one class at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setconv.decisions.cuts import Floats, RankedRows
from setconv.decisions.objective import Criterion

_Term = Callable[[Floats, Floats, NDArray[np.int64]], Floats]
_SWEEPS = 10
# Far below what any sample of rows can tell.
_GAIN = 1e-6
# Keeps the other recalls in sight while one of the classes has none yet.
_NO_RECALL = 1e-12
_ROUNDING = 1e-13


class Problem(NamedTuple):
    """The rows and what is to be maximised on them; every class has rows.

    Attributes
    ----------
    scores : float array of shape (n_classes, n_rows)
    codes : int array of shape (n_rows,)
    weights : float array of shape (n_rows,)
    kind : {"balanced", "f1", "mcc"}
    powers : float array of shape (n_classes,)
        The powers of the recalls in "balanced", summing to one.
    """

    scores: Floats
    codes: NDArray[np.int64]
    weights: Floats
    kind: Criterion
    powers: Floats


def ascend(problem: Problem, start: Floats) -> tuple[Floats, float]:
    """Return the thresholds (n_classes,), with mean 0, and the criterion that they reach."""
    thresholds = start.copy()
    values = problem.scores - thresholds[:, None]
    reached = -np.inf
    for _ in range(_SWEEPS):
        before = reached
        for c in range(len(thresholds)):
            rows, curve = _cuts_of(problem, values, c)
            best = float(curve.max())
            if best > reached + _GAIN:
                reached, thresholds[c] = best, rows.best(curve)
                values[c] = problem.scores[c] - thresholds[c]
        if not reached > before + _GAIN:
            break
    return thresholds - thresholds.mean(), reached


def _cuts_of(problem: Problem, values: Floats, c: int) -> tuple[RankedRows, Floats]:
    """Return the cuts of one class against its best rivals, and the criterion of each."""
    best = np.full(values.shape[1], -np.inf)
    rival = np.zeros(values.shape[1], dtype=np.int64)
    for other in range(len(values)):
        if other != c:
            rival[values[other] > best] = other
            np.maximum(best, values[other], out=best)
    rounding = _ROUNDING * float(np.abs(best).max())
    rows = RankedRows(problem.scores[c] - best, problem.codes == c, rounding)
    order = rows.order
    flips = _Flips(c, rival[order], problem.codes[order], problem.weights[order], len(values))
    return rows, _criterion(problem, flips)[rows.places]


class _Flips:
    """What changes when rows leave a class for their rivals, in the order of their margins.

    Only the figures of the class and of one rival change with each row, so a sum over all classes
    follows in one pass over the rows, however many classes there are.
    """

    def __init__(
        self,
        c: int,
        rival: NDArray[np.int64],
        codes: NDArray[np.int64],
        weights: Floats,
        n_classes: int,
    ) -> None:
        self._own = np.full(len(codes) + 1, c)
        self._own_decided = _remaining(weights)
        self._own_right = _remaining(np.where(codes == c, weights, 0.0))
        self._others = np.delete(np.arange(n_classes), c)
        self._group = np.argsort(rival.astype(np.int16), kind="stable")
        self._rival = rival[self._group]
        self._first = np.append(True, self._rival[1:] != self._rival[:-1])
        self._decided = self._within(weights)
        self._right = self._within(np.where(codes == rival, weights, 0.0))

    def _within(self, weights: Floats) -> Floats:
        """Return the cumulative sum within the rows of each rival."""
        sums = np.cumsum(weights[self._group])
        starts = np.flatnonzero(self._first)
        before = np.concatenate([[0.0], sums[starts[1:] - 1]])
        lengths = np.diff(np.append(starts, len(sums)))
        return np.asarray(sums - np.repeat(before, lengths))

    def total(self, term: _Term) -> Floats:
        """Sum term(right, decided, class) over the classes, after 0, 1, ... rows have left."""
        zeros = np.zeros(len(self._rival))
        after = term(self._right, self._decided, self._rival)
        before = np.append(0.0, after[:-1])
        before[self._first] = term(zeros, zeros, self._rival)[self._first]
        change = np.empty_like(after)
        change[self._group] = after - before
        none = np.zeros(len(self._others))
        start = term(none, none, self._others).sum()
        own = term(self._own_right, self._own_decided, self._own)
        return np.asarray(own + start + np.append(0.0, np.cumsum(change)))


def _criterion(problem: Problem, flips: _Flips) -> Floats:
    truth = np.bincount(problem.codes, problem.weights, minlength=len(problem.scores))
    total = truth.sum()
    if problem.kind == "f1":
        shares = flips.total(lambda right, decided, c: 2 * right / (decided + truth[c]))
        return np.asarray(shares / len(truth))
    if problem.kind == "balanced":
        powers = problem.powers
        return np.exp(
            flips.total(
                lambda right, _, c: powers[c] * np.log(np.maximum(right / truth[c], _NO_RECALL))
            )
        )
    # R_K, the correlation over all classes, on shares of the rows.
    share = truth / total
    hits = flips.total(lambda right, decided, c: (right - share[c] * decided) / total)
    spread = 1 - flips.total(lambda _, decided, __: (decided / total) ** 2)
    below = np.sqrt(np.maximum(spread, 0.0) * (1 - (share**2).sum()))
    return np.asarray(np.divide(hits, below, out=np.zeros_like(hits), where=below > 1e-9))


def _remaining(weights: Floats) -> Floats:
    return np.append(np.cumsum(weights[::-1])[::-1], 0.0)
