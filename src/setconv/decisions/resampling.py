"""Bootstrap resamples of rows, class by class, and when they are worth their time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from setconv.decisions.cuts import Codes, Floats
from setconv.errors import ParameterError

Method = Literal["smooth", "exact", "bagged", "mean_criterion"]
# With so many rows of the rarest class the cut that is best on them is hardly noisy.
ENOUGH_ROWS = 2000
_METHODS = ("smooth", "exact", "bagged", "mean_criterion")


def effective_method(method: Method, codes: Codes) -> Method:
    """Return the method to use: "exact" when the rarest class seen has over 2,000 rows."""
    if method not in _METHODS:
        names = ", ".join(map(repr, _METHODS))
        raise ParameterError(f"method={method!r} is not known: choose one of {names}.")
    counts = np.bincount(codes)
    return "exact" if counts[counts > 0].min() > ENOUGH_ROWS else method


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
