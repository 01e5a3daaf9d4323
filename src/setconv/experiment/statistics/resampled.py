"""Two methods on many random splits of one data set: the corrected resampled t test."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from setconv.errors import DataError, ParameterError

__all__ = ["corrected_t_test"]

_DIGITS = 12


def corrected_t_test(differences: ArrayLike, test_share: float) -> float:
    """Return the two-sided p-value of no difference, for splits that share rows.

    Random splits of one data set share most of their training rows, so their scores are not
    independent and a plain paired t test finds differences that are not there. Nadeau and Bengio
    (2003) widen its variance::

        t = mean / sqrt((1 / J + n_test / n_train) * variance),  J - 1 degrees of freedom

    Parameters
    ----------
    differences : array-like of shape (J,)
        Score of one method minus score of the other on the same split.
    test_share : float
        Rows for testing over rows for training: 3/7 for a split of 7:3.

    Returns
    -------
    float
        1.0 where nothing differs; nan where the spread is not known: for fewer than two splits,
        and where the difference is the same on all.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise DataError("differences must be one finite number a split.")
    if not test_share > 0:
        raise ParameterError(f"test_share={test_share!r}: give a number above 0.")
    if len(values) < 2:
        return float("nan")
    # Equal differences of decimal scores differ in the last bits.
    values = np.round(values, _DIGITS)
    if np.ptp(values) == 0:
        return 1.0 if values[0] == 0 else float("nan")
    t = values.mean() / np.sqrt((1 / len(values) + test_share) * values.var(ddof=1))
    return float(2 * stats.t.sf(abs(t), df=len(values) - 1))
