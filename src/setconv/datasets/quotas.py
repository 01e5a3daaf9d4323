"""How many rows each class gives to a smaller set in which the classes keep their shares."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setconv.checks import check_integer
from setconv.errors import ParameterError


def proportional_quotas(counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return rows for each class that sum to ``size``, as near to the shares as whole rows can be.

    Fractions are rounded by the largest remainder. A class keeps at least one row.

    Parameters
    ----------
    counts : ndarray of int
        Rows of each class, none of them 0.
    size : int
        Between the number of classes and the number of rows.
    """
    check_integer("size", size, least=1)
    total = int(counts.sum())
    if not len(counts) <= size <= total:
        raise ParameterError(
            f"size={size}: give {len(counts)} (one row for each class) to {total:,} (all rows)."
        )
    exact = counts / total * size
    quotas = np.maximum(np.floor(exact).astype(np.int64), 1)
    while quotas.sum() < size:
        quotas[np.argmax(exact - quotas)] += 1
    while quotas.sum() > size:
        quotas[np.argmin(np.where(quotas > 1, exact - quotas, np.inf))] -= 1
    return quotas
