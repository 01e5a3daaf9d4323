"""Intervals of shares that keep their width at 0 and 1, where drawing rows again shows none."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_Z = 1.959963984540054  # of a 95 % interval


def wilson(share: Any, n: Any) -> tuple[Floats, Floats]:
    """Return Wilson's 95 % interval of a share among ``n`` rows; all from 0 to 1 if there is none.

    ``n`` need not be whole: see `effective`.
    """
    share, n = np.asarray(share, dtype=np.float64), np.asarray(n, dtype=np.float64)
    centre = (n * share + _Z**2 / 2) / (n + _Z**2)
    half = _Z * np.sqrt(n * share * (1 - share) + _Z**2 / 4) / (n + _Z**2)
    return np.clip(centre - half, 0, share), np.clip(centre + half, share, 1)


def effective(total: Any, squares: Any) -> Floats:
    """Return how many rows of equal weight tell as much as weights of this sum and sum of squares.

    Without weights it is the number of rows.
    """
    below = np.asarray(squares, dtype=np.float64)
    found: Floats = np.divide(np.square(total), below, out=np.zeros(below.shape), where=below > 0)
    return found
