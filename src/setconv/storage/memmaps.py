"""Rows of a numpy memmap, read from its file instead of through the mapping."""

from __future__ import annotations

import io
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, DataTypeError
from setconv.storage.disk import DiskRows
from setconv.storage.finite import refuse_not_finite
from setconv.storage.reading import bytes_of, read_into

BLOCK = 1 << 26
_LOOK = 4096
_PRIVATE = "c"  # the mode in which changes stay in memory and never reach the file

Mapped = np.memmap[Any, Any]


def check_memmap(X: Mapped) -> None:
    """Refuse a memmap that is no matrix of numbers."""
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise DataTypeError(
            f"The memmap has shape {X.shape} and holds {X.dtype}: give rows and columns of numbers."
        )
    if 0 in X.shape:
        raise DataError(f"The memmap has shape {X.shape}: it has no rows, or no columns.")


def float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return float32 if it holds every number of this type exactly, else float64."""
    exact = dtype.itemsize <= 2 or (dtype.kind == "f" and dtype.itemsize == 4)
    return np.dtype(np.float32 if exact else np.float64)


def rows_in_place(X: Mapped) -> DiskRows | None:
    """Return the rows as they lie in the user's file; None if they need another form."""
    rows = _reader(X) if X.dtype == float_type(X.dtype) else None
    return rows if isinstance(rows, DiskRows) else None


def memmap_blocks(X: Mapped, size: int | None = None) -> Iterator[NDArray[Any]]:
    """Iterate over the rows as float32 or float64, checked.

    Parameters
    ----------
    X : memmap of shape (n_rows, n_columns)
    size : int or None, default=None
        Rows at a time; None for about 64 MB.
    """
    dtype = float_type(X.dtype)
    height = size or max(BLOCK // (X.shape[1] * dtype.itemsize), 1)
    rows = _reader(X)
    for start in range(0, len(X), height):
        block = np.asarray(rows[start : start + height]).astype(dtype, copy=False)
        refuse_not_finite(block, start)
        yield block


def _reader(X: Mapped) -> DiskRows | Mapped:
    """Return what reads the rows of a memmap: its file, or itself where these may differ."""
    if not X.flags.c_contiguous or X.filename is None or X.mode == _PRIVATE:
        return X
    try:
        file = io.FileIO(X.filename)
    except OSError:  # it was moved or removed; the mapping still works
        return X
    if _same_ends(X, file):
        return DiskRows(file, (X.shape[0], X.shape[1]), X.dtype, _file_offset(X))
    file.close()
    return X


def _same_ends(X: Mapped, file: io.FileIO) -> bool:
    """Whether the first and the last bytes agree: another file may lie there by now."""
    mapped = bytes_of(X)
    ends = mapped[:_LOOK], mapped[-_LOOK:]
    offset = _file_offset(X)
    try:
        for end, place in zip(ends, (offset, offset + len(mapped) - len(ends[1])), strict=True):
            found = np.empty(len(end), np.uint8)
            read_into(file, bytes_of(found), place)
            if found.tobytes() != end.tobytes():
                return False
    except DataError:
        return False
    return True


def _file_offset(X: Mapped) -> int:
    """Return the byte of the file at which a memmap, or a view of some of its rows, starts."""
    # numpy keeps the offset that it was given, also for views, and maps from the page before it.
    page = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    mapping = np.frombuffer(X.__dict__["_mmap"], np.uint8)
    return int(page + X.ctypes.data - mapping.ctypes.data)
