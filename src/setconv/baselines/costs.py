"""The rows that are set aside for early stopping."""

from __future__ import annotations

import numpy as np


def stratified_share(
    codes: np.ndarray, fraction: float, random: np.random.RandomState
) -> np.ndarray:
    """Draw a share of the rows of each class, rounded, as a mask over the rows."""
    drawn = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes):
        members = random.permutation(np.flatnonzero(codes == code))
        drawn[members[: int(fraction * len(members) + 0.5)]] = True
    return drawn
