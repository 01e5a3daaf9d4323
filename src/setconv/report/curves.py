"""Curves as a few hundred points: ROC, precision-recall, reliability."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve, roc_curve

from setconv.report.evaluation import Floats
from setconv.report.intervals import effective, wilson

_POINTS = 300
_BINS = 10


class Curve(NamedTuple):
    """Points of a line."""

    x: Floats
    y: Floats


@dataclass(frozen=True)
class Bin:
    """Rows whose probability lies between two bounds.

    Attributes
    ----------
    low, high : float
        The bounds.
    n_rows : int
    said : float
        The mean probability, by weight.
    seen : float
        The share of rows that are of the class, by weight.
    seen_low, seen_high : float
        Its 95 % interval (Wilson).
    """

    low: float
    high: float
    n_rows: int
    said: float
    seen: float
    seen_low: float
    seen_high: float


def roc(is_class: NDArray[np.bool_], scores: Floats, weights: Floats) -> Curve:
    """Return false alarms against rows found."""
    fpr, tpr, _ = roc_curve(is_class, scores, sample_weight=weights)
    return _thinned(fpr, tpr)


def precision_recall(is_class: NDArray[np.bool_], scores: Floats, weights: Floats) -> Curve:
    """Return recall against precision, without the point at recall 0 that no threshold has."""
    precision, recall, _ = precision_recall_curve(is_class, scores, sample_weight=weights)
    return _thinned(recall[:-1][::-1], precision[:-1][::-1])


def reliability(is_class: NDArray[np.bool_], probability: Floats, weights: Floats) -> list[Bin]:
    """Return ten equal bins of the probability, but for those without rows."""
    number = np.minimum((probability * _BINS).astype(np.int64), _BINS - 1)
    found = []
    for b in np.unique(number):
        inside = number == b
        weight = weights[inside]
        said, seen = (
            float(np.average(part[inside], weights=weight)) for part in (probability, is_class)
        )
        low, high = wilson(seen, effective(weight.sum(), np.square(weight).sum()))
        n = int(inside.sum())
        found.append(Bin(b / _BINS, (b + 1) / _BINS, n, said, seen, float(low), float(high)))
    return found


def _thinned(x: Floats, y: Floats) -> Curve:
    """Return points at equal distances along the line, of those that there are."""
    if len(x) <= _POINTS:
        return Curve(x, y)
    walked = np.r_[0, np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))]
    at = np.searchsorted(walked, np.linspace(0, walked[-1], _POINTS))
    kept = np.unique(np.r_[0, np.minimum(at, len(x) - 1), len(x) - 1])
    return Curve(x[kept], y[kept])
