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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa

from setconv.errors import DataError, ParameterError
from setconv.messages import check_integer, did_you_mean

logger = logging.getLogger("setconv")

STANDARD = "-"
_PARQUET_MAGIC = b"PAR1"
_ZIP_MAGIC = b"PK\x03\x04"
_GZIP_MAGIC = b"\x1f\x8b"
_FORMATS = ("csv", "tsv", "jsonl", "parquet")
_EXTENSIONS = {
    **{".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"},
    **{".parquet": "parquet", ".pq": "parquet"},
}
_MARKS = {
    "utf-8": (codecs.BOM_UTF8,),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),  # like UTF-16 at first, so it is before
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
_LOOK = 4096  # bytes by which format and encoding are found


def check_format(given: str) -> str:
    """Return a format that the user names, in lower case; an unknown one is refused."""
    if str(given).lower() in _FORMATS:
        return str(given).lower()
    raise ParameterError(
        f"format={given!r}: the formats are {', '.join(_FORMATS)}.", parameter="format"
    )


def format_of_name(path: Path) -> str:
    """Return the format that the extension stands for, a final .gz left out."""
    plain = path.with_suffix("") if is_gzip_name(path) else path
    ending = plain.suffix.lower()
    if ending in _EXTENSIONS:
        return _EXTENSIONS[ending]
    sheet = " Save the sheet as CSV first." if ending in {".xls", ".xlsx", ".ods"} else ""
    raise DataError(
        f"{path}: which format is it? Its name does not end with {', '.join(_EXTENSIONS)}, or one "
        f"of these and .gz.{sheet}",
        parameter="format",
        hint=f"Give format={'|'.join(_FORMATS)}.",
    )


def is_gzip_name(path: Path) -> bool:
    """Whether a file of this name is compressed."""
    return path.suffix.lower() == ".gz"


def open_bytes(source: str | Path) -> ByteSource:
    """Open a file, or standard input for "-"; a missing file is named with near ones."""
    if str(source) == STANDARD:
        return ByteSource("standard input", sys.stdin.buffer, None)
    path = Path(source)
    try:
        raw = path.open("rb")
    except FileNotFoundError as error:
        raise _missing(path) from error
    except (OSError, ValueError) as error:  # ValueError: a name that no file can have
        why = getattr(error, "strerror", error)
        raise DataError(
            f"{str(path)!r:.200} cannot be opened: {why}. Check the path and its permissions."
        ) from error
    return ByteSource(str(path), raw, path.stat().st_size if path.is_file() else None)


def _missing(path: Path) -> DataError:
    folder = path.parent
    if not folder.is_dir():
        return DataError(f"There is no folder {folder}, so no file {path}. Check the path.")
    near = did_you_mean(path.name, sorted(one.name for one in folder.iterdir()))
    return DataError(f"There is no file {path}.{near or ' Check the path.'}")


class ByteSource:
    """What is read, decompressed; it knows its name, its first bytes and how much is read.

    Parameters
    ----------
    name : str
        For messages.
    raw : binary file
    size : int or None
        Bytes of the file as it is stored; None for what can be read only once.

    Attributes
    ----------
    compressed : bool
        Whether the bytes of the file are others.
    """

    def __init__(self, name: str, raw: IO[bytes], size: int | None) -> None:
        self.name, self.size = name, size
        self._raw = raw
        self._start()

    def format(self) -> str | None:
        """Return the format that the first bytes tell; None of text that may be any."""
        head = self.head()
        if not head:
            raise DataError(f"{self.name} is empty. Check that it was written or piped whole.")
        if head.startswith(_ZIP_MAGIC):
            raise DataError(
                f"{self.name} is a zip archive or an Excel file. Unpack it, or save it as CSV, "
                "first."
            )
        if head.startswith(_PARQUET_MAGIC):
            return "parquet"
        return "jsonl" if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else None

    def head(self) -> bytes:
        """Return the first bytes without taking them; the source must not be read before."""
        with _readable(self.name):
            return self._stream.peek(_LOOK)

    def read(self, count: int) -> bytes:
        """Return up to so many bytes; none at the end."""
        with _readable(self.name):
            return self._stream.read(count)

    def progress(self) -> float | None:
        """Return the share of the stored bytes that have been read."""
        return self._raw.tell() / self.size if self.size else None

    def keep(self) -> None:
        """Copy a stream, which can be read only once, to a temporary file on disk."""
        if self.size is None:
            self._raw = self.as_file()
            self.size = self._raw.seek(0, os.SEEK_END)
            self.rewind()

    def rewind(self) -> None:
        """Go back to the first byte; only for files, and for sources that `keep` has kept."""
        self._raw.seek(0)
        self._start()

    def as_file(self) -> IO[bytes]:
        """Copy all bytes, decompressed, to a temporary file, and close the source."""
        unpacked = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the caller
        with _readable(self.name):
            shutil.copyfileobj(self._stream, unpacked, 1 << 20)
        unpacked.seek(0)
        self.close()
        return unpacked

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._raw is not sys.stdin.buffer:
            self._raw.close()

    def _start(self) -> None:
        self._stream = _Peekable(self._raw)
        self.compressed = self._stream.peek(2) == _GZIP_MAGIC
        if self.compressed:
            packed: Any = self._stream
            self._stream = _Peekable(gzip.GzipFile(fileobj=packed, mode="rb"))


class _Peekable:
    """A stream whose first bytes can be looked at."""

    def __init__(self, stream: IO[bytes] | gzip.GzipFile) -> None:
        self._stream, self._ahead = stream, b""

    def peek(self, count: int) -> bytes:
        while more := self._stream.read(max(count - len(self._ahead), 0)):
            self._ahead += more
        return self._ahead[:count]

    def read(self, count: int = -1, /) -> bytes:
        if not self._ahead:
            return self._stream.read(count)
        data, self._ahead = self._ahead[:count], self._ahead[count:]
        return data


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Say in plain words why bytes cannot be read."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        why = "is cut off" if isinstance(error, EOFError) else f"holds damaged gzip data ({error})"
        raise DataError(f"{name} {why}. Copy or download it again.") from error
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
        self._encoding = _known_encoding(encoding) if encoding else _found_encoding(source.head())
        self._decoder = _decoder(self._encoding)
        # Whether nothing tells yet that it is not UTF-8, or that it is.
        self._unsure = encoding is None and self._encoding == "utf-8"
        self._lines = 0

    def read(self, count: int) -> bytes:
        """Return about so many bytes, all of them whole characters; none at the end."""
        while True:
            data = self._source.read(count)
            text = self._decoded(data)
            if not self._lines:
                text = text.removeprefix("\ufeff")
            self._unsure = self._unsure and text.isascii()
            found = text.encode("utf-8", errors="replace")
            self._lines += count_lines(found)
            if found or not data:
                return found

    def _decoded(self, data: bytes) -> str:
        try:
            return self._decoder.decode(data, final=not data)
        except UnicodeError as error:
            given = error.object if isinstance(error, UnicodeDecodeError) else data
            before = given[: getattr(error, "start", 0)]
            where = f"{self.name}, line {self._lines + count_lines(before) + 1}"
            why = getattr(error, "reason", error)
            if not (self._unsure and before.isascii()):
                raise _misread(f"{where}: not valid {self._encoding} ({why}).") from error
            logger.warning(
                "%s: not valid UTF-8. The file is read as cp1252 (Western European, latin-1). If "
                "letters come out wrong, give its encoding.",
                where,
            )
            self._encoding, self._decoder, self._unsure = "cp1252", _decoder("cp1252"), False
            return self._decoder.decode(given, final=not data)


def _misread(message: str) -> DataError:
    hint = "Give the encoding that the file has, such as encoding='cp1252', or mend the line."
    return DataError(message, parameter="encoding", hint=hint)


def _latin_1(error: UnicodeError) -> tuple[str, int]:
    """Take the five bytes that cp1252 leaves undefined as latin-1 does; browsers do the same."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("setconv_latin_1", _latin_1)


def _decoder(encoding: str) -> codecs.IncrementalDecoder:
    errors = "setconv_latin_1" if encoding == "cp1252" else "strict"
    return codecs.getincrementaldecoder(encoding)(errors)


def _known_encoding(encoding: str) -> str:
    try:
        "a".encode(encoding)  # codecs of bytes, such as "hex", are none of texts
        name = codecs.lookup(encoding).name
    except (LookupError, TypeError, ValueError) as error:
        raise ParameterError(
            f"encoding={encoding!r} is unknown. Common ones are utf-8, cp1252, latin-1, utf-16.",
            parameter="encoding",
        ) from error
    return "utf-8" if name in {"utf-8-sig", "ascii"} else name


def _found_encoding(head: bytes) -> str:
    for encoding, marks in _MARKS.items():
        if head.startswith(marks):
            return encoding
    even, odd = head[0::2].count(0), head[1::2].count(0)
    # Text in UTF-16 that is mostly ASCII has a null in every other byte, and in none between.
    if len(head) >= 4 and max(even, odd) > 0.3 * len(head) and min(even, odd) == 0:
        return "utf-16-le" if odd else "utf-16-be"
    return "utf-8"


def count_lines(data: bytes) -> int:
    """Return the number of line ends: LF, CR LF or CR."""
    returns = data.count(b"\r")
    return data.count(b"\n") + (returns - data.count(b"\r\n") if returns else 0)


def check_header(names: Sequence[str], where: str) -> None:
    """Refuse column names that are empty or occur twice."""
    places: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        if not name.strip():
            raise DataError(
                f"{where}: column {number} of {len(names)} has no name. Give it one in the first "
                "line. (pandas writes its index so: to_csv(..., index=False) leaves it out.)",
                column=number,
            )
        if places.setdefault(name, number) < number:
            raise DataError(
                f"{where}: columns {places[name]} and {number} are both called {name!r}. Rename "
                "one of them. (Is the first line the names of the columns?)",
                column=name,
            )


def in_batches(tables: Iterable[pa.Table], size: int) -> Iterator[pa.Table]:
    """Iterate over the same rows in tables of ``size`` rows; the last may be smaller."""
    check_integer("size", size, least=1)
    waiting: list[pa.Table] = []
    missing = size
    for table in tables:
        start = 0
        while len(table) - start >= missing:
            yield pa.concat_tables([*waiting, table.slice(start, missing)])
            start += missing
            waiting, missing = [], size
        if start < len(table):
            waiting.append(table.slice(start))
            missing -= len(table) - start
        del table  # else it is held while the next one is read
    if waiting:
        yield pa.concat_tables(waiting)


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
    _source: ByteSource | None = None

    def __init__(self) -> None:
        self._tables: Iterator[pa.Table] | None = self._read_tables()

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.schema.names)

    def sample(self, rows: int = 1000) -> pa.Table:
        """Return the first rows, at most so many, without taking them."""
        tables, first = self._take(), []
        for table in tables:
            first.append(table)
            if sum(map(len, first)) >= rows:
                break
        self._tables = chain(first, tables)
        return pa.concat_tables(first).slice(0, rows)

    def batches(self, size: int = 8192) -> Iterator[pa.Table]:
        """Iterate over the rows in tables of `size` rows; the last may be smaller."""
        return in_batches(self._take(), size)

    def read(self) -> pa.Table:
        """Return all rows."""
        return pa.concat_tables(self._take())

    def progress(self) -> float | None:
        """Return the share of the file's bytes that have been read, 0 to 1; None if unknown."""
        return None if self._source is None else self._source.progress()

    def close(self) -> None:
        """Close the file."""
        self._tables = None  # what was read ahead is let go
        if self._source is not None:
            self._source.close()

    @abstractmethod
    def _read_tables(self) -> Iterator[pa.Table]:
        """Iterate over the rows in tables of any size, each of `schema`."""

    def _take(self) -> Iterator[pa.Table]:
        tables, self._tables = self._tables, None
        if tables is None:
            raise DataError(f"{self.name} has been read already. Open it again to read it again.")
        return tables

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
