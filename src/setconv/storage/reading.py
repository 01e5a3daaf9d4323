"""Bytes of a file at a place, without a position that threads would share."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError

_LOCK = threading.Lock()


def bytes_of(array: NDArray[Any]) -> memoryview:
    """Return the bytes of a contiguous array, to be read or written."""
    return array.reshape(-1).view(np.uint8).data


def read_into(file: io.FileIO, buffer: memoryview, offset: int) -> None:
    """Fill a buffer with the bytes of an unbuffered file that start at ``offset``."""
    while len(buffer):
        count = _read_once(file, buffer, offset)
        if count == 0:
            raise DataError(
                f"{file.name} ends at byte {offset}, where {len(buffer)} more were to be read: it "
                "was cut off while it was in use. Write it again, and leave it alone until the end."
            )
        buffer, offset = buffer[count:], offset + count


def read_runs(file: io.FileIO, runs: Iterable[tuple[int, Sequence[memoryview]]], size: int) -> None:
    """Fill buffers of ``size`` bytes each.

    Parameters
    ----------
    file : unbuffered binary file
    runs : iterable of (int, sequence of memoryview)
        Where in the file a run starts, and the buffers that its bytes fill one after the other.
    size : int
    """
    number, at_once = file.fileno(), getattr(os, "preadv", None)
    for offset, buffers in runs:
        if at_once is None or at_once(number, buffers, offset) != size * len(buffers):
            for place, buffer in enumerate(buffers):
                read_into(file, buffer, offset + place * size)


def _read_once(file: io.FileIO, buffer: memoryview, offset: int) -> int:
    if hasattr(os, "preadv"):
        return os.preadv(file.fileno(), [buffer], offset)
    with _LOCK:  # such as Windows, where a read has to seek first
        file.seek(offset)
        return file.readinto(buffer) or 0
