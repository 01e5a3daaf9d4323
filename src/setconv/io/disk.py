"""Rows that lie on disk, read from there when they are needed.

`DiskRows` reads any rows of a file of plain numbers, `RowSubset` is a choice of them, and `Scratch`
writes such a file. The file of a numpy memmap is one already (`memmap_rows`). Nothing
here needs pyarrow.
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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from setconv.errors import DataError, DataTypeError

if TYPE_CHECKING:
    import pyarrow as pa

_BUFFERS = 512  # of one call; systems allow 1024
_ADVISED = 64  # from so many reads on, the disk is told of all of them before the first
_LOCK = threading.Lock()
_FLOATS = {np.dtype(np.float32).str, np.dtype(np.float64).str}
_MAKE_ROOM = "Make room, or let TMPDIR name a folder on a larger disk."
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
    """Rows of a raw binary file in C order, as a read-only 2-D array.

    ``rows[a:b]`` and ``rows[numbers]`` are fresh arrays. They are read with positioned reads, so
    threads can share the object, and never through a mapping.

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
            key = np.arange(start, stop, step)
        numbers = np.asarray(key)
        if numbers.ndim != 1 or (len(numbers) and numbers.dtype.kind not in "iu"):
            raise TypeError(f"{self!r} take a slice or a 1-D array of row numbers.")
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(self):
            raise IndexError(f"There are only the rows 0 to {len(self) - 1}.")
        return self._gather(numbers.astype(np.int64))

    def subset(self, chosen: NDArray[np.int64]) -> RowSubset:
        """Return chosen rows, of which none is read yet."""
        return RowSubset(self, chosen)

    def _span(self, start: int, stop: int) -> NDArray[Any]:
        rows = np.empty((stop - start, self.shape[1]), self.dtype)
        _read_into(self._file, _bytes_of(rows), self._offset + start * self._row_bytes)
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
        size, target = self._row_bytes, _bytes_of(rows)
        buffers = [target[start : start + size] for start in (places * size).tolist()]
        starts = np.flatnonzero(np.diff(in_file, prepend=-2) != 1)
        ends = np.append(starts[1:], len(in_file))
        offsets = (self._offset + in_file[starts] * size).tolist()
        self._advise(offsets, ((ends - starts) * size).tolist())
        number, at_once = self._file.fileno(), getattr(os, "preadv", None)
        for start, end, offset in zip(starts.tolist(), ends.tolist(), offsets, strict=True):
            for at in range(start, end, _BUFFERS):
                run, place = buffers[at : min(at + _BUFFERS, end)], offset + (at - start) * size
                if at_once is None or at_once(number, run, place) != size * len(run):
                    for before, buffer in enumerate(run):
                        _read_into(self._file, buffer, place + before * size)

    def _advise(self, offsets: list[int], sizes: list[int]) -> None:
        """Let the disk work on all reads at once; without it, each waits for the one before."""
        if len(offsets) < _ADVISED or not hasattr(os, "posix_fadvise"):
            return
        number = self._file.fileno()
        for offset, size in zip(offsets, sizes, strict=True):
            os.posix_fadvise(number, offset, size, os.POSIX_FADV_WILLNEED)


def _read_into(file: io.FileIO, buffer: memoryview, offset: int) -> None:
    """Fill a buffer with the bytes of an unbuffered file that start at ``offset``."""
    while len(buffer):
        count = _read_once(file, buffer, offset)
        if count == 0:
            raise DataError(
                f"{file.name} ends at byte {offset}, where {len(buffer)} more were to be read: it "
                "was cut off while it was in use. Write it again, and leave it alone until the end."
            )
        buffer, offset = buffer[count:], offset + count


def _read_once(file: io.FileIO, buffer: memoryview, offset: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(file.fileno(), [buffer], offset)
    with _LOCK:  # such as Windows, where a read has to seek first
        file.seek(offset)
        return file.readinto(buffer) or 0


def _bytes_of(array: NDArray[Any]) -> memoryview:
    """Return the bytes of a contiguous array, to be read or written."""
    return array.reshape(-1).view(np.uint8).data


class RowSubset:
    """Chosen rows of `DiskRows`; nothing is read before it is asked for.

    Parameters
    ----------
    rows : DiskRows
    chosen : int array of shape (n_chosen,)
        Which rows, in this order.
    """

    def __init__(self, rows: DiskRows, chosen: NDArray[np.int64]) -> None:
        self._rows, self._chosen = rows, chosen
        self.shape = (len(chosen), rows.shape[1])

    def __getitem__(self, key: slice | NDArray[Any]) -> NDArray[Any]:
        return self._rows[self._chosen[key]]

    def subset(self, chosen: NDArray[np.int64]) -> RowSubset:
        """Return chosen rows, of which none is read yet."""
        return RowSubset(self._rows, self._chosen[chosen])


class Scratch:
    """Rows that are being written; `rows` gives them back.

    The file has no name where the system can do that, and else goes away when it is closed, so
    that even a killed process leaves nothing behind. It lies in the system's folder for temporary
    files, which TMPDIR names.

    Parameters
    ----------
    n_columns : int
    dtype : dtype
    n_rows : int
        How many will come, to see first whether they have room.
    """

    def __init__(self, n_columns: int, dtype: DTypeLike, n_rows: int) -> None:
        self._folder = tempfile.gettempdir()
        self._width = n_columns
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._row_bytes = n_columns * self._dtype.itemsize
        self._n_rows = 0
        needed, free = n_rows * self._row_bytes, shutil.disk_usage(self._folder).free
        if needed > free:
            raise DataError(
                f"The rows need a scratch file of {_size(needed)}, and {self._folder} has "
                f"{_size(free)} free. {_MAKE_ROOM}"
            )
        self._file = tempfile.TemporaryFile(  # noqa: SIM115 - closed with the rows
            dir=self._folder, prefix="setconv-", buffering=0
        )

    def append(self, rows: NDArray[Any]) -> None:
        """Write rows behind the others."""
        data = _bytes_of(np.ascontiguousarray(rows, self._dtype))
        try:
            while len(data):
                data = data[self._file.write(data) :]
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise DataError(
                f"The disk of {self._folder} is full after {_size(self._n_rows * self._row_bytes)} "
                f"of the scratch file ({self._n_rows} rows). The file is removed. {_MAKE_ROOM}"
            ) from error
        self._n_rows += len(rows)

    def rows(self) -> DiskRows:
        """Return the rows; the file is theirs from now on."""
        return DiskRows(self._file, (self._n_rows, self._width), self._dtype)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is not None:
            self._file.close()


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def memmap_rows(X: np.memmap[Any, Any]) -> DiskRows:
    """Return the rows of a C-ordered memmap of float32 or float64, as they lie in its file."""
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
    whole = offset + rows.nbytes <= os.fstat(file.fileno()).st_size
    ends = [0, len(X) - 1]  # another file may lie there by now
    if not whole or rows[ends].tobytes() != X[ends].tobytes():
        raise DataError(f"{X.filename} is no longer the file of the memmap. {_HOLD_IT}")
    return rows


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
    row, number = (int(place) for place in places[0])
    kind = "NaN" if np.isnan(rows[row, number]) else "infinity"
    column = number if names is None else names[number]
    raise DataError(
        f"Column {column!r} has {kind} in row {first_row + row} (counted from 0). Remove or impute "
        "such values first.",
        row=first_row + row,
        column=column,
    )
