"""Some of the rows on disk, as if they were all."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.storage.disk import DiskRows


class RowSubset:
    """Chosen rows of `DiskRows`; nothing is read before it is asked for.

    Parameters
    ----------
    rows : DiskRows or RowSubset
    chosen : int array of shape (n_chosen,), or a mask
        Which rows, in this order.
    """

    ndim = 2

    def __init__(self, rows: DiskRows | RowSubset, chosen: NDArray[Any]) -> None:
        numbers = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        self._rows: DiskRows = rows._rows if isinstance(rows, RowSubset) else rows
        self._chosen: NDArray[Any] = (
            rows._chosen[numbers] if isinstance(rows, RowSubset) else numbers
        )
        self.shape = (len(self._chosen), self._rows.shape[1])
        self.dtype = self._rows.dtype

    def __len__(self) -> int:
        return len(self._chosen)

    def __getitem__(self, key: slice | NDArray[Any]) -> NDArray[Any]:
        return self._rows[self._chosen[key]]
