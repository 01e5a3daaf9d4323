"""Rows whose numbers are all finite, or an error that says where not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError


def refuse_not_finite(
    rows: NDArray[Any], first_row: int, names: Sequence[str] | None = None
) -> None:
    """Refuse rows with NaN or infinity.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
    first_row : int
        Number of the first row, for the message.
    names : sequence of str or None, default=None
        Of the columns; None if they only have numbers.
    """
    # A sum is finite if all its terms are (but for overflow): a cheap first look.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum()):
            return
    places = np.argwhere(~np.isfinite(rows))
    if not len(places):
        return
    row, column = (int(place) for place in places[0])
    kind = "NaN" if np.isnan(rows[row, column]) else "infinity"
    raise DataError(
        f"Column {column if names is None else repr(names[column])} has {kind} in row "
        f"{first_row + row} (counted from 0). Remove or impute such values first."
    )
