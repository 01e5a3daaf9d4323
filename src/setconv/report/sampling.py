"""A bounded number of rows that still has the rare classes in it."""

from __future__ import annotations

import numpy as np

from setconv.report.evaluation import Codes


def sample_rows(codes: Codes, limit: int, seed: int) -> Codes:
    """Return at most about ``limit`` row numbers, sorted; all rows if there are no more.

    Classes come in their shares, but the rare ones have up to half of an equal share.
    """
    if len(codes) <= limit:
        return np.arange(len(codes))
    rng = np.random.default_rng(seed)
    counts = np.bincount(codes)
    floor = max(1, limit // (2 * len(counts)))
    wanted = np.minimum(counts, np.maximum(floor, counts * limit // len(codes)))
    largest = int(np.argmax(counts))
    wanted[largest] = max(floor, limit - wanted.sum() + wanted[largest])
    parts = [
        rng.choice(np.flatnonzero(codes == code), size=number, replace=False)
        for code, number in enumerate(wanted.tolist())
    ]
    return np.sort(np.concatenate(parts))
