"""Bytes from a file, compressed or not, or from standard input."""

from __future__ import annotations

import gzip
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from setconv.errors import DataError
from setconv.names import did_you_mean
from setconv.records.formats import GZIP_MAGIC

STANDARD = "-"
HEAD = 1 << 16


class ByteSource:
    """What is read, decompressed; it knows its name, its first bytes and how much is read.

    Parameters
    ----------
    name : str
        For messages.
    raw : binary file
    size : int or None
        Bytes of the file as it is stored; None if unknown.
    """

    def __init__(self, name: str, raw: IO[bytes], size: int | None) -> None:
        self.name = name
        self.size = size
        self._raw = raw
        self._start()

    def _start(self) -> None:
        self._chain = _Chain(self._raw)
        self._stream: Any = self._chain
        self._compressed = self._chain.peek(2) == GZIP_MAGIC
        if self._compressed:
            self._stream = _Chain(gzip.GzipFile(fileobj=self._chain, mode="rb"))  # type: ignore[call-overload]

    @property
    def is_plain_file(self) -> bool:
        """Whether the bytes lie in a file as they are."""
        return self.size is not None and not self._compressed

    def head(self, count: int = HEAD) -> bytes:
        """Return the first bytes without taking them; the source must not be read before."""
        with _readable(self.name):
            head: bytes = self._stream.peek(count)
        return head

    def read(self, count: int) -> bytes:
        """Return up to so many bytes; none at the end."""
        with _readable(self.name):
            data: bytes = self._stream.read(count)
        return data

    def progress(self) -> float | None:
        """Return the share of the stored bytes that have been read."""
        if not self.size:
            return None
        return min(self._chain.taken / self.size, 1.0)

    def rewind(self) -> None:
        """Go back to the first byte; only for files, and for sources that are `kept`."""
        self._raw.seek(0)
        self._start()

    def keep(self) -> None:
        """Copy a stream, which can be read only once, to a temporary file on disk."""
        if self.size is not None:
            return
        kept = self.unpacked()
        self.size = kept.seek(0, os.SEEK_END)
        self.close()
        self._raw = kept
        self.rewind()

    def unpacked(self) -> IO[bytes]:
        """Return all bytes, decompressed, as a file that can be sought in."""
        unpacked = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the caller
        with _readable(self.name):
            shutil.copyfileobj(self._stream, unpacked, 1 << 20)
        unpacked.seek(0)
        return unpacked

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._raw is not sys.stdin.buffer:
            self._raw.close()


def open_source(source: str | Path) -> ByteSource:
    """Open a file, or standard input for "-"; a missing file is named with near ones."""
    if str(source) == STANDARD:
        return ByteSource("standard input", sys.stdin.buffer, None)
    path = Path(source)
    try:
        raw = path.open("rb")
        regular = path.is_file()
    except FileNotFoundError as error:
        raise _missing(path) from error
    except PermissionError as error:
        raise DataError(
            f"{path} cannot be read: no permission. Change its permissions (chmod u+r) or ask its "
            "owner."
        ) from error
    except OSError as error:
        raise DataError(f"{path} cannot be opened: {error.strerror}. Check the path.") from error
    return ByteSource(str(path), raw, path.stat().st_size if regular else None)


def _missing(path: Path) -> DataError:
    folder = path.parent
    if not folder.is_dir():
        return DataError(f"There is no folder {folder}, so no file {path}. Check the path.")
    names = sorted(one.name for one in folder.iterdir())
    hint = did_you_mean(path.name, names)
    return DataError(f"There is no file {path}.{hint or ' Check the path.'}")


class _Chain:
    """A stream whose first bytes can be looked at, and that counts what was taken."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._ahead = b""
        self.taken = 0

    def peek(self, count: int) -> bytes:
        while len(self._ahead) < count:
            more = self._stream.read(count - len(self._ahead))
            if not more:
                break
            self._ahead += more
        return self._ahead[:count]

    def read(self, count: int = -1) -> bytes:
        data: bytes
        if count < 0:
            data, self._ahead = self._ahead + self._stream.read(), b""
        elif self._ahead:
            data, self._ahead = self._ahead[:count], self._ahead[count:]
        else:
            data = self._stream.read(count)
        self.taken += len(data)
        return data


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Say in plain words why bytes cannot be read."""
    try:
        yield
    except EOFError as error:
        raise DataError(
            f"{name} ends in the middle of its gzip data: it was cut off. Copy or download it "
            "again."
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"{name} holds damaged gzip data ({error}). Copy or download it again."
        ) from error
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error.strerror or error}.") from error
