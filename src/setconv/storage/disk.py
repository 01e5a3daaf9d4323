"""Rows of a binary file, indexed like a read-only array."""

from __future__ import annotations

import io
import operator
import os
import weakref
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from setconv.storage.reading import bytes_of, read_into, read_runs

_BUFFERS = 512  # of one call; systems allow 1024
_ADVISED = 64  # from so many reads on, the disk is told of all of them before the first


class DiskRows:
    """Rows of a raw binary file in C order, as a read-only 2-D array.

    ``rows[a:b]``, ``rows[numbers]`` and ``rows[mask]`` are fresh arrays, ``rows[5]`` is one row.
    They are read with positioned reads, so threads can share the object, and never through a
    mapping.

    Parameters
    ----------
    file : unbuffered binary file
        Open for reading; it is closed with the rows.
    shape : (int, int)
        Rows and columns.
    dtype : dtype
        Of the numbers in the file.
    offset : int, default=0
        Byte of the file at which the first row starts.

    Attributes
    ----------
    shape : (int, int)
    dtype : numpy.dtype
    ndim : int
        2.
    nbytes : int
        Bytes of all rows.
    """

    ndim = 2

    def __init__(
        self, file: io.FileIO, shape: tuple[int, int], dtype: DTypeLike, offset: int = 0
    ) -> None:
        self.shape = shape
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self._file = file
        self._offset = offset
        self._row_bytes = shape[1] * self.dtype.itemsize
        self._closing = weakref.finalize(self, file.close)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return self.shape[0] * self._row_bytes

    def close(self) -> None:
        """Close the file; a scratch file is gone then."""
        self._closing()

    def __len__(self) -> int:
        return self.shape[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<DiskRows of shape {self.shape}, {self.dtype}>"

    def __array__(self, *_: object, **__: object) -> NDArray[Any]:
        raise TypeError(
            f"{self!r} lie on disk and are not read as a whole by accident. Take rows[a:b] or "
            "rows[numbers]; rows[:] if they do fit into memory."
        )

    def __getitem__(self, key: Any) -> NDArray[Any]:
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step == 1:
                return self._span(start, max(stop, start))
            return self._gather(np.arange(start, stop, step))
        numbers = np.asarray(key)
        if numbers.ndim == 0:
            number = self._checked(np.array([operator.index(key)]))[0]
            return self._span(number, number + 1).reshape(-1)
        return self._gather(self._checked(self._numbers(numbers)))

    def _numbers(self, key: NDArray[Any]) -> NDArray[np.int64]:
        if key.ndim != 1 or (len(key) and key.dtype.kind not in "iub"):
            raise TypeError(
                f"{self!r} take a slice or a 1-D array of row numbers, not an array of "
                f"{key.dtype} with shape {key.shape}."
            )
        if key.dtype.kind != "b":
            return key.astype(np.int64)
        if len(key) != len(self):
            raise IndexError(f"A mask of {len(key)} for {len(self)} rows: give one value a row.")
        return np.flatnonzero(key)

    def _checked(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        n_rows = len(self)
        if len(numbers) and (numbers.min() < -n_rows or numbers.max() >= n_rows):
            bad = numbers[(numbers < -n_rows) | (numbers >= n_rows)][0]
            raise IndexError(f"There is no row {bad}: there are {n_rows} rows, counted from 0.")
        return np.where(numbers < 0, numbers + n_rows, numbers)

    def _span(self, start: int, stop: int) -> NDArray[Any]:
        rows = np.empty((stop - start, self.shape[1]), self.dtype)
        read_into(self._file, bytes_of(rows), self._offset + start * self._row_bytes)
        return rows

    def _gather(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return rows in this order; each is read once, and neighbours in the file together."""
        rows = np.empty((len(numbers), self.shape[1]), self.dtype)
        if not len(numbers):
            return rows
        order = np.argsort(numbers, kind="stable")
        in_file = numbers[order]
        repeated = np.flatnonzero(in_file[1:] == in_file[:-1]) + 1
        once = np.delete(order, repeated)
        self._read_runs(rows, np.delete(in_file, repeated), once)
        if len(repeated):
            sources = np.searchsorted(numbers[once], in_file[repeated])
            rows[order[repeated]] = rows[once[sources]]
        return rows

    def _read_runs(
        self, rows: NDArray[Any], in_file: NDArray[np.int64], places: NDArray[np.int64]
    ) -> None:
        """Read ascending row numbers into their places, one call a run of neighbours."""
        starts = np.flatnonzero(np.diff(in_file, prepend=-2) != 1)
        ends = np.append(starts[1:], len(in_file))
        offsets = (self._offset + in_file[starts] * self._row_bytes).tolist()
        self._advise(offsets, ((ends - starts) * self._row_bytes).tolist())
        buffers = self._buffers(rows, places)
        runs = (
            (offset + (at - start) * self._row_bytes, buffers[at : min(at + _BUFFERS, end)])
            for start, end, offset in zip(starts.tolist(), ends.tolist(), offsets, strict=True)
            for at in range(start, end, _BUFFERS)
        )
        read_runs(self._file, runs, self._row_bytes)

    def _buffers(self, rows: NDArray[Any], places: NDArray[np.int64]) -> list[memoryview]:
        size, target = self._row_bytes, bytes_of(rows)
        return [target[start : start + size] for start in (places * size).tolist()]

    def _advise(self, offsets: list[int], sizes: list[int]) -> None:
        """Let the disk work on all reads at once; without it, each waits for the one before."""
        if len(offsets) < _ADVISED or not hasattr(os, "posix_fadvise"):
            return
        number = self._file.fileno()
        for offset, size in zip(offsets, sizes, strict=True):
            os.posix_fadvise(number, offset, size, os.POSIX_FADV_WILLNEED)
