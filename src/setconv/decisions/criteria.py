"""The figures that a threshold is chosen by: counts in, one figure a cut out."""

from __future__ import annotations

import numpy as np

from setconv.decisions.cuts import Counts, Floats
from setconv.decisions.objective import Criterion


def binary_criterion(kind: Criterion, counts: Counts, positive: int, powers: Floats) -> Floats:
    """Return the criterion of every cut.

    Parameters
    ----------
    kind : {"balanced", "f1", "mcc"}
    counts : Counts
        Seen from class 1.
    positive : int
        The class whose F1 counts.
    powers : float array of shape (2,)
        The powers of the two recalls in "balanced", summing to one.
    """
    tp, fn, fp, tn = counts if positive == 1 else counts.swapped()
    if kind == "balanced":
        own, other = (powers[1], powers[0]) if positive == 1 else (powers[0], powers[1])
        return np.asarray(_ratio(tp, tp + fn) ** own * _ratio(tn, tn + fp) ** other)
    if kind == "f1":
        return _ratio(2 * tp, 2 * tp + fp + fn)
    sides = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
    return _ratio(tp * tn - fp * fn, sides)


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros_like(below), where=below > 0)
