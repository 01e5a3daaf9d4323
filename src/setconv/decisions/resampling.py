"""Bootstrap resamples of rows, class by class, and when they are worth their time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from setconv.decisions.cuts import Codes, Floats

ENOUGH_ROWS = 2000


def has_enough_rows(codes: Codes) -> bool:
    """Whether the rarest class seen has so many rows that the cut best on them is hardly noisy."""
    counts = np.bincount(codes)
    return bool(counts[counts > 0].min() > ENOUGH_ROWS)


def resamples(codes: Codes, count: int, seed: int) -> Iterator[Floats]:
    """Yield how often each row is drawn, with replacement within its class.

    Parameters
    ----------
    codes : int array of shape (n_rows,)
    count : int
        Number of resamples.
    seed : int
    """
    generator = np.random.default_rng(seed)
    members = [np.flatnonzero(codes == c) for c in np.unique(codes)]
    for _ in range(count):
        drawn = np.empty(len(codes))
        for rows in members:
            picks = generator.integers(len(rows), size=len(rows))
            drawn[rows] = np.bincount(picks, minlength=len(rows))
        yield drawn
