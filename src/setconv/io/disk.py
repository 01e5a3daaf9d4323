"""Rows that lie on disk, read from there when they are needed.

`StreamedRows` are read in their order, as often as it takes. Those of them that are needed in
another order are gathered once, in the one they are needed in, into a scratch file of plain numbers
(`GatheredRows`). `DiskRows` reads any rows of such a file; that of a numpy memmap is one already
(`memmap_rows`). Nothing here needs pyarrow.
"""

from __future__ import annotations

import errno
import io
import mmap
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from setconv.data import CHUNK
from setconv.errors import DataError, DataTypeError

if TYPE_CHECKING:
    import pyarrow as pa

_READ = 1 << 25  # bytes of a memmap at a time
_FLOATS = {np.dtype(np.float32).str, np.dtype(np.float64).str}
_MAKE_ROOM = "Make room, or let TMPDIR name a folder on a larger disk."
# Gives what is told how many rows are done, of how many.
Bar = Callable[[], AbstractContextManager[Callable[[int, int], None] | None]]
_HOLD_IT = "Give numpy.asarray(X) if the rows fit into memory."


@dataclass(frozen=True)
class Batch:
    """Some rows of a source.

    Attributes
    ----------
    rows : ndarray or csr matrix of shape (n_rows, n_features)
        float32 or float64; of a file always an array.
    extra : pyarrow.Table or None
        The other columns that were asked for; None if none were.
    """

    rows: Any
    extra: pa.Table | None = None


class DiskRows:
    """Rows of a raw binary file in C order.

    What is asked for are fresh arrays. They are never read through a mapping, whose pages would
    count as the process's memory; threads can share the object.

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
    """

    def __init__(
        self, file: io.FileIO, shape: tuple[int, int], dtype: DTypeLike, offset: int = 0
    ) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._file, self._offset, self._lock = file, offset, threading.Lock()
        self.close = weakref.finalize(self, file.close)

    def span(self, start: int, stop: int) -> NDArray[Any]:
        """Return rows that lie together, as far as there are so many."""
        rows = np.empty((min(stop, self.shape[0]) - start, self.shape[1]), self.dtype)
        self._read(start, rows)
        return rows

    def gather(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Return rows, by number, in this order; neighbours in the file are read together."""
        once, places = np.unique(numbers, return_inverse=True)
        rows = np.empty((len(once), self.shape[1]), self.dtype)
        for start, end in _runs(once):
            self._read(int(once[start]), rows[start:end])
        return rows[places]

    def _read(self, first: int, rows: NDArray[Any]) -> None:
        """Fill an array with the rows from the first on."""
        buffer = _bytes_of(rows)
        with self._lock:
            self._file.seek(self._offset + first * self.shape[1] * self.dtype.itemsize)
            while len(buffer):
                count = self._file.readinto(buffer)
                if not count:
                    raise DataError(
                        f"{self._file.name} ends where {len(buffer)} bytes more were to be read: "
                        "it was cut off while it was in use. Write it again, and leave it alone "
                        "until the end."
                    )
                buffer = buffer[count:]


def _runs(numbers: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield where numbers that ascend one by one start and end."""
    starts = np.flatnonzero(np.diff(numbers, prepend=-2) != 1).tolist()
    return zip(starts, [*starts[1:], len(numbers)], strict=False)


def _bytes_of(array: NDArray[Any]) -> memoryview:
    """Return the bytes of a contiguous array, to be read or written."""
    return array.reshape(-1).view(np.uint8).data


class StreamedRows:
    """Rows of a source that are read in their order, as often as it takes.

    Parameters
    ----------
    read : callable
        From nothing to all rows in their order, as arrays of any heights. It is called for each
        pass.
    shape : (int, int)
        Rows and columns of the source.
    dtype : dtype
    bar : callable
        Gives what is told ``(done_rows, total_rows)`` in a pass, as a context.
    kept : bool array of shape (n_rows,), optional
        Which rows of the source these are; None: all.

    Attributes
    ----------
    shape : (int, int)
    dtype : numpy.dtype
    nbytes : int
        Bytes of all rows.
    """

    def __init__(
        self,
        read: Callable[[], Iterator[NDArray[Any]]],
        shape: tuple[int, int],
        dtype: DTypeLike,
        bar: Bar = nullcontext,
        kept: NDArray[np.bool_] | None = None,
    ) -> None:
        self._read, self._source_rows, self._bar, self._kept = read, shape[0], bar, kept
        n_rows = shape[0] if kept is None else int(np.count_nonzero(kept))
        self.shape, self.dtype = (n_rows, shape[1]), np.dtype(dtype)
        self.nbytes = n_rows * shape[1] * self.dtype.itemsize

    def subset(self, chosen: NDArray[np.int64]) -> StreamedRows:
        """Return the rows of these numbers, which ascend; none is read yet."""
        numbers = chosen if self._kept is None else np.flatnonzero(self._kept)[chosen]
        kept = np.zeros(self._source_rows, dtype=np.bool_)
        kept[numbers] = True
        shape = (self._source_rows, self.shape[1])
        return StreamedRows(self._read, shape, self.dtype, self._bar, kept)

    def blocks(self, size: int) -> Iterator[NDArray[Any]]:
        """Yield all rows, so many at a time; each block is good until the next is asked for."""
        block, filled = np.empty((size, self.shape[1]), self.dtype), 0
        for rows in self._wanted():
            start = 0
            while start < len(rows):
                count = min(size - filled, len(rows) - start)
                block[filled : filled + count] = rows[start : start + count]
                start, filled = start + count, filled + count
                if filled == size:
                    yield block
                    filled = 0
            del rows  # else they are held while the next ones are read
        if filled:
            yield block[:filled]

    def _wanted(self) -> Iterator[NDArray[Any]]:
        at = 0
        with self._bar() as told:
            for rows in self._read():
                here = slice(at, at + len(rows))
                yield rows if self._kept is None else rows[self._kept[here]]
                at = here.stop
                del rows
                if told is not None:
                    told(at, self._source_rows)

    def whole(self) -> NDArray[Any]:
        """Return all rows as an array."""
        rows, at = np.empty(self.shape, self.dtype), 0
        for block in self.blocks(CHUNK):
            rows[at : at + len(block)] = block
            at += len(block)
        return rows


class GatheredRows:
    """Some rows of a stream, copied into a scratch file in the order in which they are needed.

    The file has no name where the system can do that, and else goes away when it is closed, so
    that even a killed process leaves nothing behind. It lies in the system's folder for temporary
    files, which TMPDIR names.

    Parameters
    ----------
    stream : StreamedRows
    numbers : int64 array of shape (n_gathered,)
        Which rows, in ascending order; each once.
    places : int64 array of shape (n_gathered,)
        Where each of them is to lie in the file: 0 is the first.

    Attributes
    ----------
    shape : (int, int)
        That of the stream: ``gathered[numbers]`` are rows by their numbers there.
    """

    def __init__(
        self, stream: StreamedRows, numbers: NDArray[np.int64], places: NDArray[np.int64]
    ) -> None:
        self.shape, self._numbers, self._places = stream.shape, numbers, places
        self._row_bytes = stream.shape[1] * stream.dtype.itemsize
        self._folder = tempfile.gettempdir()
        needed, free = len(numbers) * self._row_bytes, shutil.disk_usage(self._folder).free
        if needed > free:
            raise DataError(
                f"The rows that training draws need a scratch file of {show_bytes(needed)}, and "
                f"{self._folder} has {show_bytes(free)} free. {_MAKE_ROOM}"
            )
        self._file: Any = tempfile.TemporaryFile(  # noqa: SIM115 - closed with the rows
            dir=self._folder, prefix="setconv-", buffering=0
        )
        shape = (len(numbers), stream.shape[1])
        self._rows = DiskRows(self._file, shape, stream.dtype)

    def add(self, part: slice, rows: NDArray[Any]) -> None:
        """Write those of some rows of the stream, which have these numbers, that are wanted."""
        first, last = np.searchsorted(self._numbers, [part.start, part.start + len(rows)])
        if first == last:
            return
        order = np.argsort(self._places[first:last])
        places = self._places[first:last][order]
        wanted = rows[self._numbers[first:last][order] - part.start]
        data, size = _bytes_of(np.ascontiguousarray(wanted)), self._row_bytes
        try:
            for start, end in _runs(places):
                self._file.seek(int(places[start]) * size)
                left = data[start * size : end * size]
                while left:
                    left = left[self._file.write(left) :]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            raise DataError(
                f"The disk of {self._folder} is full: the rows that training draws need a scratch "
                f"file of {show_bytes(len(self._numbers) * size)}. It is removed. {_MAKE_ROOM}"
            ) from error

    def __getitem__(self, key: NDArray[np.int64]) -> NDArray[Any]:
        at = np.searchsorted(self._numbers, key)
        if at.max(initial=-1) >= len(self._numbers) or (self._numbers[at] != key).any():
            raise IndexError("A row is asked for that was not gathered.")
        return self._rows.gather(self._places[at])

    def close(self) -> None:
        """Close the file, which is gone then."""
        self._rows.close()


class RowSubset:
    """Chosen rows of others, by number, that are read some at a time.

    Parameters
    ----------
    rows : GatheredRows or array
    chosen : int array of shape (n_chosen,)
        Which rows, in this order.
    """

    def __init__(self, rows: Any, chosen: NDArray[np.int64]) -> None:
        self._rows, self._chosen = rows, chosen
        self.shape = (len(chosen), rows.shape[1])

    def __getitem__(self, key: slice) -> Any:
        return self._rows[self._chosen[key]]


def show_bytes(count: float) -> str:
    """Return a number of bytes as people read it."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def memmap_rows(X: np.memmap[Any, Any], bar: Bar = nullcontext) -> StreamedRows:
    """Return the rows of a C-ordered memmap of float32 or float64, read from its file."""
    if X.ndim != 2 or X.dtype.str not in _FLOATS or not X.flags.c_contiguous or X.mode == "c":
        raise DataTypeError(f"The memmap is no C-ordered file of floats. {_HOLD_IT}")
    try:
        file = io.FileIO(X.filename or "")
    except OSError as error:
        raise DataError(f"The file of the memmap cannot be opened: {error}. {_HOLD_IT}") from error
    # numpy keeps the offset that it was given, also for views, and maps from the page before it.
    page = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    mapping = np.frombuffer(X.__dict__["_mmap"], np.uint8)
    offset = int(page + X.ctypes.data - mapping.ctypes.data)
    rows = DiskRows(file, (X.shape[0], X.shape[1]), X.dtype, offset)
    whole = offset + X.nbytes <= os.fstat(file.fileno()).st_size
    ends = np.array([0, len(X) - 1])  # another file may lie there by now
    if not whole or rows.gather(ends).tobytes() != X[ends].tobytes():
        raise DataError(f"{X.filename} is no longer the file of the memmap. {_HOLD_IT}")
    height = max(1, _READ * len(X) // max(X.nbytes, 1))

    def read() -> Iterator[NDArray[Any]]:
        for start in range(0, len(X), height):
            some = rows.span(start, start + height)
            refuse_not_finite(some, start)
            yield some
            del some

    return StreamedRows(read, rows.shape, rows.dtype, bar)


def not_finite(rows: NDArray[Any]) -> NDArray[np.int64]:
    """Return the places, each a row and a column, of numbers that are NaN or infinite."""
    # A sum is finite if all its terms are (but for overflow): a cheap first look.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum()):
            return np.empty((0, 2), dtype=np.int64)
    return np.argwhere(~np.isfinite(rows))


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
    places = not_finite(rows)
    if not len(places):
        return
    row, number = (int(place) for place in places[0])
    kind = "NaN" if np.isnan(rows[row, number]) else "infinity"
    column = number if names is None else names[number]
    raise DataError(
        f"Column {column!r} has {kind} in row {first_row + row} (counted from 0). Remove or impute "
        "such values first.",
        row=first_row + row,
        column=column,
    )
