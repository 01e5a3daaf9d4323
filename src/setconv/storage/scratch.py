"""A scratch file of rows: nothing of it is left, however the process ends."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from setconv.errors import DataError
from setconv.storage.disk import DiskRows
from setconv.storage.reading import bytes_of

_FULL = {errno.ENOSPC, errno.EDQUOT}


class Scratch:
    """Rows that are being written; `rows` gives them back.

    The file has no name where the system can do that, and else goes away when it is closed, so
    that even a killed process leaves nothing behind.

    Parameters
    ----------
    folder : str, Path or None
        None for the system's folder of temporary files.
    n_columns : int
    dtype : dtype
    n_rows : int
        How many will come, to see first whether they have room.
    """

    def __init__(
        self, folder: str | Path | None, n_columns: int, dtype: DTypeLike, n_rows: int
    ) -> None:
        self._folder = Path(tempfile.gettempdir() if folder is None else folder)
        self._width = n_columns
        self._dtype: np.dtype[Any] = np.dtype(dtype)
        self._n_rows = 0
        if not self._folder.is_dir():
            raise DataError(
                f"There is no folder {self._folder} for the scratch file. Make it first, or give "
                "another one with scratch."
            )
        self._check_room(n_rows * n_columns * self._dtype.itemsize)
        with self._explained():
            self._file = tempfile.TemporaryFile(  # noqa: SIM115 - closed with the rows
                dir=self._folder, prefix="setconv-", buffering=0
            )

    def append(self, rows: NDArray[Any]) -> None:
        """Write rows behind the others."""
        data = bytes_of(np.ascontiguousarray(rows, self._dtype))
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
                f"{_size(free)} free. Make room, or give a folder on a larger disk with scratch."
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except PermissionError as error:
            raise DataError(
                f"A scratch file cannot be written in {self._folder}: no permission. Give another "
                "folder with scratch."
            ) from error
        except OSError as error:
            if error.errno not in _FULL:
                raise
            written = self._n_rows * self._width * self._dtype.itemsize
            raise DataError(
                f"The disk of {self._folder} is full after {_size(written)} of the scratch file "
                f"({self._n_rows} rows). The file is removed. Make room, or give a folder on a "
                "larger disk with scratch."
            ) from error


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
