"""A minimum recall or precision of one class: the threshold on its margin over the others."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setconv.decisions.cuts import Floats, RankedRows

# A precision seen on fewer rows says next to nothing.
_FEW = 5


class Floor(NamedTuple):
    """A threshold for a minimum, and whether the rows it was chosen on say that it is met."""

    threshold: float
    met: bool


def recall_threshold(
    margins: Floats, member: NDArray[np.bool_], weights: Floats, level: float
) -> Floor:
    """Return the highest threshold whose recall is at least ``level`` in expectation.

    For a new row that is exchangeable with the n rows of the class, the chance to score below the
    k-th smallest of them is at most k / (n + 1). So the threshold lies just under number
    k = floor((n + 1)(1 - level)), in the middle of the gap to the next lower score. Unequal
    weights count as so many rows as have the same effective size, (sum w)^2 / sum w^2.

    Parameters
    ----------
    margins : float array of shape (n_rows,)
        A row is decided for the class if its margin exceeds the threshold.
    member : bool array of shape (n_rows,)
        Whether a row is of the class.
    weights : float array of shape (n_rows,)
    level : float

    Warns
    -----
    UserWarning
        When there are too few rows for the guarantee; then all of them are found.
    """
    rows = RankedRows(margins, member)
    own = np.sort(margins[member])
    weight = weights[rows.order][rows.sides]
    effective = weight.sum() ** 2 / (weight**2).sum()
    # Sums of equal weights are to be the whole numbers that they stand for.
    reached = np.cumsum(weight) * (effective / weight.sum()) - 1e-9
    place = int(np.searchsorted(reached, (effective + 1) * (1 - level), side="right")) - 1
    met = place >= 0
    if not met:
        needed = "no number of rows is enough"
        if level < 1:
            needed = f"{math.ceil(level / (1 - level) - 1e-9)} rows are needed"
        warnings.warn(
            f"recall>={level:g} cannot be guaranteed by {len(own)} rows of the class (effective "
            f"{effective:.1f}; {needed}): the threshold finds all of them, which stands for "
            f"{effective / (effective + 1):.3f} on new rows. Ask for less, or add rows.",
            UserWarning,
            stacklevel=2,
        )
        place = 0
    return Floor(rows.threshold(int(np.searchsorted(rows.values, own[place]))), met)


def precision_threshold(
    margins: Floats, member: NDArray[np.bool_], weights: Floats, level: float
) -> Floor:
    """Return the lowest threshold, so the highest recall, with at least this precision.

    Cuts that decide for fewer than five rows count only if no other reaches the precision. If
    none does, it is the cut of highest precision, of equals the one with more rows.

    Parameters
    ----------
    margins, member, weights, level
        As in `recall_threshold`.

    Warns
    -----
    UserWarning
        When the precision is not reached, or on fewer than five rows only.
    """
    rows = RankedRows(margins, member)
    tp, _, fp, _ = rows.counts(weights[rows.order])
    # The last cut decides for no row: it has no precision.
    decided = len(margins) - rows.places[:-1]
    precision = (tp / np.where(tp + fp > 0, tp + fp, 1.0))[:-1]
    solid = decided >= min(_FEW, int(decided[0]))
    for eligible, few in ((solid, False), (~solid, True)):
        good = np.flatnonzero(eligible & (precision >= level - 1e-12))
        if len(good):
            cut = int(good[0])
            if few:
                _warn_precision(level, float(precision[cut]), int(decided[cut]))
            return Floor(rows.threshold(cut), not few)
    cut = int(np.argmax(np.where(solid, precision, -1.0)))
    _warn_precision(level, float(precision[cut]), int(decided[cut]))
    return Floor(rows.threshold(cut), met=False)


def _warn_precision(level: float, reached: float, decided: int) -> None:
    warnings.warn(
        f"precision>={level:g}: the out-of-fold rows reach {reached:.3f}, on {decided} rows "
        "decided for the class. That threshold is taken; ask for less, or expect few finds.",
        UserWarning,
        stacklevel=3,
    )
