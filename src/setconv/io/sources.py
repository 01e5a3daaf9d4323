"""What the readers of all formats share.

The format of a file, by its name or its first bytes; its bytes, decompressed (`open_bytes`); its
text as UTF-8 (`Utf8Stream`); and what a reader can do (`RecordReader`).
"""

from __future__ import annotations

import codecs
import gzip
import logging
import os
import shutil
import sys
import tempfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa

from setconv.errors import DataError, ParameterError
from setconv.messages import did_you_mean

logger = logging.getLogger("setconv")

STANDARD = "-"
PARQUET_MAGIC = b"PAR1"
ZIP_MAGIC = b"PK\x03\x04"
_GZIP_MAGIC = b"\x1f\x8b"
_FORMATS = ("csv", "tsv", "jsonl", "parquet")
_EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # starts like UTF-16, so it comes first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LOOK = 4096  # bytes by which the encoding is found


def checked_format(given: str) -> str:
    """Return a format that the user names, in lower case; an unknown one is refused."""
    if given.lower() in _FORMATS:
        return given.lower()
    raise ParameterError(f"format={given!r}: the formats are {', '.join(_FORMATS)}.")


def format_of_name(path: Path) -> str:
    """Return the format that the extension stands for, a final .gz left out."""
    ending = path.suffix.lower()
    if ending == ".gz":
        ending = path.with_suffix("").suffix.lower()
    if ending in _EXTENSIONS:
        return _EXTENSIONS[ending]
    known = ", ".join(_EXTENSIONS)
    what = f"the extension {ending!r} is unknown" if ending else "it has no extension"
    hint = " Save the sheet as CSV first." if ending in {".xls", ".xlsx", ".ods"} else ""
    raise DataError(
        f"{path}: which format is it? The file name does not say, {what}. Known are {known}, each "
        f"also with .gz. Give --format {'|'.join(_FORMATS)} (in Python: format=...).{hint}"
    )


def names_gzip(path: Path) -> bool:
    """Whether a file of this name is to be compressed."""
    return path.suffix.lower() == ".gz"


def sniffed_format(head: bytes) -> str:
    """Return the format of a stream that has no name, from its first bytes."""
    if head.startswith(PARQUET_MAGIC):
        return "parquet"
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return "jsonl"
    return "csv"


def open_bytes(source: str | Path) -> ByteSource:
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

    @property
    def is_plain_file(self) -> bool:
        """Whether the bytes lie in a file as they are."""
        return self.size is not None and not self._compressed

    def head(self, count: int = 1 << 16) -> bytes:
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
        return min(self._stored.taken / self.size, 1.0)

    def rewind(self) -> None:
        """Go back to the first byte; only for files, and for sources that `keep` has kept."""
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

    def _start(self) -> None:
        self._stored = _PeekableStream(self._raw)
        self._stream: Any = self._stored
        self._compressed = self._stored.peek(2) == _GZIP_MAGIC
        if self._compressed:
            self._stream = _PeekableStream(gzip.GzipFile(fileobj=self._stored, mode="rb"))  # type: ignore[call-overload]


class _PeekableStream:
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


class Utf8Stream:
    """The bytes of a source as UTF-8.

    Parameters
    ----------
    source : ByteSource
        Not yet read.
    encoding : str or None
        None to find it.
    """

    def __init__(self, source: ByteSource, encoding: str | None = None) -> None:
        self.name = source.name
        self._source = source
        self._given = encoding is not None
        self._encoding = (
            _checked_encoding(encoding) if encoding else _found_encoding(source.head(_LOOK))
        )
        if self._encoding == "utf-8" and source.head(3) == codecs.BOM_UTF8:
            source.read(3)
        self._decoder = None if self._encoding == "utf-8" else self._make_decoder()
        self._pending = b""
        self._ascii_so_far = True
        self._lines = 0

    def read(self, count: int) -> bytes:
        """Return about so many bytes, all of them whole characters; none at the end."""
        while True:
            data = self._source.read(count)
            text = self._transcoded(data) if self._decoder else self._validated(data)
            self._lines += count_lines(text)
            if text or not data:
                return text

    def _validated(self, data: bytes) -> bytes:
        last = not data
        if self._pending:
            data, self._pending = self._pending + data, b""
        if data.isascii():
            return data
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data" and not last:
                data, self._pending = data[: error.start], data[error.start :]
            else:
                return self._fall_back(data, error)
        self._ascii_so_far = self._ascii_so_far and data.isascii()
        return data

    def _fall_back(self, data: bytes, error: UnicodeDecodeError) -> bytes:
        line = self._lines + count_lines(data[: error.start]) + 1
        where = f"{self.name}, line {line}: the byte 0x{data[error.start]:02x} is not valid UTF-8"
        if self._given:
            raise DataError(
                f"{where}. Give the encoding that the file has, such as --encoding cp1252 or "
                "--encoding utf-16, or none to have it found."
            ) from error
        if not (self._ascii_so_far and data[: error.start].isascii()):
            raise DataError(
                f"{where}, but characters before it are: the file is damaged there or mixes "
                "encodings. Mend that line, or give --encoding cp1252 to take every byte as it is."
            ) from error
        logger.warning(
            "%s. The file is read as cp1252 (Western European, latin-1). If letters come out "
            "wrong, give its encoding with --encoding.",
            where,
        )
        self._encoding = "cp1252"
        self._decoder = self._make_decoder()
        return self._transcoded(data)

    def _make_decoder(self) -> Any:
        errors = "setconv_latin_1" if self._encoding == "cp1252" else "strict"
        return codecs.getincrementaldecoder(self._encoding)(errors)

    def _transcoded(self, data: bytes) -> bytes:
        assert self._decoder is not None
        try:
            text: str = self._decoder.decode(data, final=not data)
        except UnicodeError as error:
            start = error.start if isinstance(error, UnicodeDecodeError) else 0
            line = self._lines + count_lines(data[:start]) + 1
            raise DataError(
                f"{self.name}, near line {line}: the text is not valid {self._encoding} "
                f"({getattr(error, 'reason', error)}). Give the encoding that the file has with "
                "--encoding, or copy the file again if it was cut off."
            ) from error
        if not self._lines:
            text = text.removeprefix("\ufeff")
        return text.encode("utf-8", errors="replace")


def _latin_1(error: UnicodeError) -> tuple[str, int]:
    """Take the five bytes that cp1252 leaves undefined as latin-1 does; browsers do the same."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("setconv_latin_1", _latin_1)


def _checked_encoding(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
    except LookupError as error:
        raise ParameterError(
            f"encoding={encoding!r} is unknown. Common ones are utf-8, cp1252, latin-1, utf-16."
        ) from error
    return "utf-8" if name in {"utf-8-sig", "ascii"} else name


def _found_encoding(head: bytes) -> str:
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    even, odd = head[0::2].count(0), head[1::2].count(0)
    # Text in UTF-16 that is mostly ASCII has a null in every other byte, and in none between.
    if 2 * len(head[1::2]) >= 4 and max(even, odd) > 0.6 * len(head[1::2]) and min(even, odd) == 0:
        return "utf-16-le" if odd else "utf-16-be"
    return "utf-8"


def count_lines(data: bytes) -> int:
    """Return the number of line ends: LF, CR LF or CR."""
    returns = data.count(b"\r")
    return data.count(b"\n") + (returns - data.count(b"\r\n") if returns else 0)


class RecordReader(ABC):
    """A data file that is read once, from its first row to its last, as pyarrow tables.

    Use it as a context manager. `sample` looks at the first rows and leaves them in place;
    `batches` and `read` take them.

    Attributes
    ----------
    name : str
        Path of the file, for messages.
    format : str
        "csv", "tsv", "jsonl" or "parquet".
    schema : pyarrow.Schema
        All strings for "csv" and "tsv".
    n_rows : int or None
        None where only reading would tell.
    """

    name: str
    format: str
    schema: pa.Schema
    n_rows: int | None = None

    def __init__(self) -> None:
        self._ahead: list[pa.Table] = []
        self._source_tables: Iterator[pa.Table] | None = None
        self._taken = False

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    def sample(self, rows: int = 1000) -> pa.Table:
        """Return the first rows, at most so many, without taking them."""
        self._refuse_second_time()
        while sum(map(len, self._ahead)) < rows:
            table = next(self._tables(), None)
            if table is None:
                break
            self._ahead.append(table)
        return self._joined(self._ahead).slice(0, rows)

    def batches(self, size: int = 8192) -> Iterator[pa.Table]:
        """Iterate over the rows in tables of `size` rows; the last may be smaller."""
        if size < 1:
            raise ParameterError(f"size={size!r}: a batch needs at least 1 row.")
        waiting: list[pa.Table] = []
        n_waiting = 0
        for table in self._remaining():
            start = 0
            while n_waiting + len(table) - start >= size:
                piece = table.slice(start, size - n_waiting)
                start += len(piece)
                yield self._joined([*waiting, piece])
                waiting, n_waiting = [], 0
            if start < len(table):
                waiting.append(table.slice(start))
                n_waiting += len(table) - start
        if waiting:
            yield self._joined(waiting)

    def read(self) -> pa.Table:
        """Return all rows."""
        return self._joined(list(self._remaining()))

    @abstractmethod
    def progress(self) -> float | None:
        """Return the share of the file that has been read, 0 to 1; None if unknown."""

    @abstractmethod
    def close(self) -> None:
        """Close the file."""

    @abstractmethod
    def _read_tables(self) -> Iterator[pa.Table]:
        """Iterate over the rows in tables of any size, each of `schema`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _remaining(self) -> Iterator[pa.Table]:
        self._refuse_second_time()
        self._taken = True
        while self._ahead:
            yield self._ahead.pop(0)
        yield from self._tables()

    def _tables(self) -> Iterator[pa.Table]:
        if self._source_tables is None:
            self._source_tables = self._read_tables()
        return self._source_tables

    def _joined(self, tables: list[pa.Table]) -> pa.Table:
        if len(tables) == 1:
            return tables[0]
        return pa.concat_tables(tables) if tables else self.schema.empty_table()

    def _refuse_second_time(self) -> None:
        if self._taken:
            raise DataError(f"{self.name} has been read already. Open it again to read it again.")
