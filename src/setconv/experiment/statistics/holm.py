"""Several tests at once: p-values that are corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["holm"]


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number by Holm's step-down method; nan stays nan."""
    given = np.asarray(p_values, dtype=np.float64)
    corrected = np.full(len(given), np.nan)
    known = np.flatnonzero(~np.isnan(given))
    order = known[np.argsort(given[known], kind="stable")]
    largest = 0.0
    for place, index in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - place) * given[index]))
        corrected[index] = largest
    return [float(p) for p in corrected]
