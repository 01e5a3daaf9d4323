"""Rows that lie on disk, read from there when they are needed.

`DiskRows` reads any rows of a file of plain numbers, `RowSubset` is a choice of them, and `Scratch`
writes such a file. The file of a numpy memmap is one already. Nothing here needs pyarrow.
"""

from __future__ import annotations

import errno
import io
import mmap
import operator
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from setconv.errors import DataError, DataTypeError

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 26  # bytes that are read at once
_BUFFERS = 512  # of one call; systems allow 1024
_ADVISED = 64  # from so many reads on, the disk is told of all of them before the first
_LOCK = threading.Lock()
_FULL = {errno.ENOSPC, errno.EDQUOT}
_LOOK = 4096  # bytes at each end by which a memmap's file is known again
_PRIVATE = "c"  # the mode of a memmap whose changes stay in memory and never reach the file

_Memmap = np.memmap[Any, Any]


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

    def subset(self, chosen: NDArray[np.int64]) -> RowSubset:
        """Return chosen rows, of which none is read yet."""
        return RowSubset(self, chosen)

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

    ndim = 2

    def __init__(self, rows: DiskRows, chosen: NDArray[np.int64]) -> None:
        self._rows, self._chosen = rows, chosen
        self.shape = (len(chosen), rows.shape[1])
        self.dtype = rows.dtype

    def __len__(self) -> int:
        return len(self._chosen)

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
        self._n_rows = 0
        self._check_room(n_rows * n_columns * self._dtype.itemsize)
        with self._explained():
            self._file = tempfile.TemporaryFile(  # noqa: SIM115 - closed with the rows
                dir=self._folder, prefix="setconv-", buffering=0
            )

    def append(self, rows: NDArray[Any]) -> None:
        """Write rows behind the others."""
        data = _bytes_of(np.ascontiguousarray(rows, self._dtype))
        with self._explained():
            while len(data):
                data = data[self._file.write(data) :]
        self._n_rows += len(rows)

    def rows(self) -> DiskRows:
        """Return the rows; the file is theirs from now on."""
        return DiskRows(self._file, (self._n_rows, self._width), self._dtype)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is not None:
            self._file.close()

    def _check_room(self, needed: int) -> None:
        free = shutil.disk_usage(self._folder).free
        if needed > free:
            raise DataError(
                f"The rows need a scratch file of {_size(needed)}, and {self._folder} has "
                f"{_size(free)} free. Make room, or let TMPDIR name a folder on a larger disk."
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if error.errno not in _FULL:
                raise
            written = self._n_rows * self._width * self._dtype.itemsize
            raise DataError(
                f"The disk of {self._folder} is full after {_size(written)} of the scratch file "
                f"({self._n_rows} rows). The file is removed. Make room, or let TMPDIR name a "
                "folder on a larger disk."
            ) from error


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"


def check_memmap(X: _Memmap) -> None:
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


def rows_in_place(X: _Memmap) -> DiskRows | None:
    """Return the rows as they lie in the user's file; None if they need another form."""
    rows = _reader(X) if X.dtype == float_type(X.dtype) else None
    return rows if isinstance(rows, DiskRows) else None


def memmap_blocks(X: _Memmap, size: int | None = None) -> Iterator[NDArray[Any]]:
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


def _reader(X: _Memmap) -> DiskRows | _Memmap:
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


def _same_ends(X: _Memmap, file: io.FileIO) -> bool:
    """Whether the first and the last bytes agree: another file may lie there by now."""
    mapped = _bytes_of(X)
    ends = mapped[:_LOOK], mapped[-_LOOK:]
    offset = _file_offset(X)
    try:
        for end, place in zip(ends, (offset, offset + len(mapped) - len(ends[1])), strict=True):
            found = np.empty(len(end), np.uint8)
            _read_into(file, _bytes_of(found), place)
            if found.tobytes() != end.tobytes():
                return False
    except DataError:
        return False
    return True


def _file_offset(X: _Memmap) -> int:
    """Return the byte of the file at which a memmap, or a view of some of its rows, starts."""
    # numpy keeps the offset that it was given, also for views, and maps from the page before it.
    page = X.offset - X.offset % mmap.ALLOCATIONGRANULARITY
    mapping = np.frombuffer(X.__dict__["_mmap"], np.uint8)
    return int(page + X.ctypes.data - mapping.ctypes.data)


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
