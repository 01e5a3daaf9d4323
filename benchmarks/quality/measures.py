"""The figures of a cell; fast, because threshold tuning asks for them at hundreds of thresholds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def g_mean(y: NDArray, predicted: NDArray) -> float:
    """Return the geometric mean of the recalls of both classes."""
    hits, positives = np.count_nonzero(y & predicted), np.count_nonzero(y)
    negatives = len(y) - positives
    rejected = negatives - np.count_nonzero(predicted) + hits
    return float(np.sqrt(hits / positives * rejected / negatives))


def f1(y: NDArray, predicted: NDArray) -> float:
    """Return the F1 of class 1; 0 if it is never predicted."""
    found = np.count_nonzero(predicted)
    return 2 * np.count_nonzero(y & predicted) / (found + np.count_nonzero(y)) if found else 0.0


def brier(y: NDArray, p: NDArray) -> float:
    """Return the mean squared difference between the probability of class 1 and the truth."""
    return float(np.mean((p - y) ** 2))


def calibration_error(y: NDArray, p: NDArray, n_bins: int = 15) -> float:
    """Return the expected calibration error over bins with equally many rows."""
    order = np.argsort(p, kind="stable")
    bins = np.array_split(order, min(n_bins, len(y)))
    return float(sum(len(b) * abs(p[b].mean() - y[b].mean()) for b in bins) / len(y))
