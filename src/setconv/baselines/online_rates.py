"""What an online method remembers of its stream: class sizes, resampling rates, recalls.

The equations are those of Wang, Minku and Yao (2015); all of them forget at a fixed rate, so that
memory is bounded whatever the length of the stream.
"""

from __future__ import annotations

from collections import deque

import numpy as np


class DecayedClassSizes:
    """The share of each class, the recent rows counting most.

    ``w_k(t) = theta w_k(t-1) + (1 - theta) [y_t = k]``, for every class at every row, from
    ``w_k(0) = 1 / C``.

    Parameters
    ----------
    n_classes : int
        Number of classes, C.
    theta : float
        How much of the past is kept, 0 <= theta < 1.
    """

    def __init__(self, n_classes: int, theta: float) -> None:
        self.theta = theta
        self.sizes = np.full(n_classes, 1 / n_classes)

    def update(self, code: int) -> None:
        """Count a row of class ``code``."""
        self.sizes *= self.theta
        self.sizes[code] += 1 - self.theta


def oversampling_rate(sizes: np.ndarray, code: int) -> float:
    """Return OOB's Poisson rate ``w_max / w_c``: 1 for the largest class, more for the others."""
    return float(sizes.max() / sizes[code])


def undersampling_rate(sizes: np.ndarray, code: int) -> float:
    """Return UOB's Poisson rate ``w_min / w_c``: 1 for the smallest class, less for the others."""
    return float(sizes.min() / sizes[code])


class SmoothedRecall:
    """The recall of each class on rows tested before they are learned from.

    Only the class of the row moves: ``R_k(t) = theta R_k(t-1) + (1 - theta) [hit]`` if ``y_t = k``,
    else ``R_k(t) = R_k(t-1)``. The first row of the stream sets the recall of its class to the hit;
    the others start at 0. The smoothed recall is the mean of ``R_k`` over the last ``window`` rows.

    Parameters
    ----------
    n_classes : int
        Number of classes, C.
    theta : float
        How much of the past is kept, 0 <= theta < 1.
    window : int
        How many rows the mean goes over; only these are kept.
    """

    def __init__(self, n_classes: int, theta: float, window: int) -> None:
        self.theta = theta
        self.recalls = np.zeros(n_classes)
        self._recent: deque[np.ndarray] = deque(maxlen=window)

    def update(self, code: int, hit: bool) -> None:
        """Count a tested row of class ``code``."""
        theta = self.theta if self._recent else 0.0
        self.recalls[code] = theta * self.recalls[code] + (1 - theta) * hit
        self._recent.append(self.recalls.copy())

    def smoothed(self) -> np.ndarray:
        """Return the smoothed recall of each class, 0 before the first row."""
        return np.mean(self._recent, axis=0) if self._recent else self.recalls.copy()

    def gmean(self) -> float:
        """Return the geometric mean of the smoothed recalls."""
        smoothed = self.smoothed()
        return float(np.prod(smoothed) ** (1 / len(smoothed)))
