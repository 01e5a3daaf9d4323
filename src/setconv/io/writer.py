"""Tables to a data file of any format, which is there whole or not at all.

`open_writer` gives a `RecordWriter`; a sheet renders the tables in the file's format, and an
`OutputFile` takes the bytes.
"""

from __future__ import annotations

import errno
import gzip
import json
import os
import secrets
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from setconv.errors import DataError
from setconv.io.sources import STANDARD, checked_format, format_of_name, names_gzip
from setconv.messages import check_header, did_you_mean, listed

_ROWS = 8192  # rendered as text at once
_ROWS_OF_GROUP = 1 << 16
_BYTES_OF_GROUP = 1 << 25
_FULL = {errno.ENOSPC, errno.EDQUOT}


def open_writer(target: str | Path, *, format: str | None = None) -> RecordWriter:
    """Open a data file for writing: CSV, TSV, JSONL or Parquet, each also compressed with gzip.

    Parameters
    ----------
    target : str or Path
        A file, compressed if its name ends with ".gz", or "-" for standard output.
    format : {"csv", "tsv", "jsonl", "parquet"} or None, default=None
        None: by the extension; "csv" for standard output.

    Returns
    -------
    RecordWriter
        A context manager. The file is in its place, whole, after a clean exit; after an error or
        an interrupt an earlier file is still there and nothing else.
    """
    standard = str(target) == STANDARD
    if format is not None:
        wanted = checked_format(format)
    else:
        wanted = "csv" if standard else format_of_name(Path(target))
    gzipped = not standard and names_gzip(Path(target))
    return RecordWriter(OutputFile(target), wanted, gzipped=gzipped)


class RecordWriter:
    """A data file that is being written; see `open_writer`.

    Parameters
    ----------
    output : OutputFile
    format : str
    gzipped : bool

    Attributes
    ----------
    n_rows : int
        Rows written so far.
    """

    def __init__(self, output: OutputFile, format: str, *, gzipped: bool) -> None:
        self.name, self.format, self.n_rows = output.name, format, 0
        self._output = output
        self._sheet: _Sheet | None = None
        self._done = False
        # Neither name nor time are written, so that the same rows give the same bytes.
        self._zip = gzip.GzipFile("", "wb", 6, output.file, mtime=0) if gzipped else None

    def write(self, table: pa.Table) -> None:
        """Add the rows of a table, which has the columns of the first one."""
        if self._done:
            raise DataError(f"{self.name} is closed. Open it again to write it anew.")
        self._guarded(self._write, table)

    def close(self) -> None:
        """Finish the file and put it in its place."""
        if self._done:
            return
        self._guarded(self._finish)
        self._done = True
        self._output.commit()

    def discard(self) -> None:
        """Stop, and leave nothing behind."""
        if not self._done:
            self._done = True
            with suppress(OSError, ValueError):  # what is closed here goes away anyway
                if self._sheet is not None:
                    self._sheet.abandon()
                if self._zip is not None:
                    self._zip.close()
            self._output.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _guarded(self, action: Any, *arguments: Any) -> None:
        try:
            with self._output.explained():
                action(*arguments)
        except BaseException:
            self.discard()
            raise

    def _write(self, table: pa.Table) -> None:
        if self._sheet is None:
            check_header(table.schema.names, self.name)
            self._sheet = _SHEETS[self.format](self._zip or self._output.file, table.schema)
        self._sheet.write(_matched(table, self._sheet.schema, self.name))
        self.n_rows += table.num_rows

    def _finish(self) -> None:
        if self._sheet is None:
            raise DataError(f"Nothing was written to {self.name}: there were no rows.")
        self._sheet.finish()
        if self._zip is not None:
            self._zip.close()


def _matched(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    if table.schema.equals(schema):
        return table
    if table.schema.names != schema.names:
        raise DataError(
            f"{name}: a table with the columns {listed(table.schema.names)} cannot follow one with "
            f"{listed(schema.names)}. Write tables with the same columns."
        )
    try:
        return table.cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"{name}: a table does not fit the types of the first one ({error}). Cast all tables "
            "to one schema."
        ) from error


class _Sheet(ABC):
    """One format."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile, schema: pa.Schema) -> None:
        self._file = file
        self.schema = schema

    @abstractmethod
    def write(self, table: pa.Table) -> None: ...

    def finish(self) -> None:
        return

    def abandon(self) -> None:
        return


class _Delimited(_Sheet):
    """Text is written as it is, and quoted only where it has to be; what is missing is empty."""

    delimiter = ","

    def __init__(self, file: IO[bytes] | gzip.GzipFile, schema: pa.Schema) -> None:
        super().__init__(file, schema)
        names = [pa.array([name], pa.large_string()) for name in schema.names]
        self._write_lines([self._quoted(name) for name in names])

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches(max_chunksize=_ROWS):
            cells = [
                self._quoted(_as_text(column, name), alone=batch.num_columns == 1)
                for name, column in zip(batch.schema.names, batch.columns, strict=True)
            ]
            if len(batch):
                self._write_lines(cells)

    def _quoted(self, texts: pa.Array, *, alone: bool = False) -> pa.Array:
        needs = pc.match_substring_regex(texts, f'["\r\n{self.delimiter}]')
        if alone:  # an empty line would not be a row
            needs = pc.or_(needs, pc.equal(texts, ""))
        if not pc.any(needs).as_py():
            return texts
        doubled = pc.replace_substring(texts, '"', '""')
        mark, nothing = _scalar('"'), _scalar("")
        return pc.if_else(needs, pc.binary_join_element_wise(mark, doubled, mark, nothing), texts)

    def _write_lines(self, cells: list[pa.Array]) -> None:
        ends = [*cells[:-1], pc.binary_join_element_wise(cells[-1], _scalar("\n"), _scalar(""))]
        joined = pc.binary_join_element_wise(*ends, _scalar(self.delimiter))
        # The text of all rows lies in one buffer, row after row.
        self._file.write(bytes(joined.buffers()[2]))


class _Tabbed(_Delimited):
    delimiter = "\t"


def _as_text(column: pa.Array, name: str) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_nested(column.type):
        values = column.to_pylist()
        texts = pa.array([None if one is None else json.dumps(one, default=str) for one in values])
    else:
        texts = column
    try:
        return pc.fill_null(pc.cast(texts, pa.large_string()), "")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise DataError(
            f"The column {name!r} ({column.type}) cannot be written as text. Write Parquet, or "
            "leave the column out."
        ) from error


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


class _Jsonl(_Sheet):
    """One object a line; what is not finite becomes null."""

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches(max_chunksize=_ROWS):
            finite = [_finite(column) for column in batch.columns]
            rows = pa.RecordBatch.from_arrays(finite, names=batch.schema.names).to_pylist()
            lines = [json.dumps(row, ensure_ascii=False, default=str) for row in rows]
            self._file.write("".join(f"{line}\n" for line in lines).encode("utf-8"))


def _finite(column: pa.Array) -> pa.Array:
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))


class _Parquet(_Sheet):
    def __init__(self, file: IO[bytes] | gzip.GzipFile, schema: pa.Schema) -> None:
        super().__init__(file, schema)
        # A dictionary of numbers that are all distinct only costs its reader memory.
        types = pa.types
        texts = [
            one.name
            for one in schema
            if types.is_string(one.type) or types.is_large_string(one.type)
        ]
        self._writer = pq.ParquetWriter(
            pa.PythonFile(file, mode="w"), schema, compression="zstd", use_dictionary=texts or False
        )
        self._waiting: list[pa.Table] = []

    def write(self, table: pa.Table) -> None:
        self._waiting.append(table)
        n_rows = sum(map(len, self._waiting))
        if n_rows >= _ROWS_OF_GROUP or sum(one.nbytes for one in self._waiting) >= _BYTES_OF_GROUP:
            self._flush()

    def finish(self) -> None:
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            joined = pa.concat_tables(self._waiting)
            self._waiting = []
            self._writer.write_table(joined, row_group_size=_ROWS_OF_GROUP)


_SHEETS: dict[str, Any] = {
    "csv": _Delimited,
    "tsv": _Tabbed,
    "jsonl": _Jsonl,
    "parquet": _Parquet,
}


class OutputFile:
    """Where bytes go.

    A regular file is written beside its place and moved there by `commit`. What is no regular
    file (standard output, a pipe, a device) is written directly.

    Parameters
    ----------
    target : str or Path
        "-" for standard output.
    """

    def __init__(self, target: str | Path) -> None:
        self._temporary: Path | None = None
        self._place: Path | None = None
        if str(target) == STANDARD:
            self.name = "standard output"
            self.file: IO[bytes] = sys.stdout.buffer
            return
        self.name = str(target)
        path = Path(target)
        # A link stays a link: the file that it points to is replaced.
        place = path.resolve()
        with self.explained():
            if path.exists() and not path.is_file() and not path.is_dir():
                self.file = path.open("wb")
                return
            _refuse_wrong_place(path, place)
            self._place = place
            self._temporary = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
            self.file = self._temporary.open("xb")

    def commit(self) -> None:
        """Put the file in its place."""
        try:
            with self.explained():
                self.file.flush()
                if self._temporary is not None and self._place is not None:
                    os.fsync(self.file.fileno())
                    self.file.close()
                    self._temporary.replace(self._place)
                elif self.file is not sys.stdout.buffer:
                    self.file.close()
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        """Leave nothing behind."""
        if self.file is sys.stdout.buffer:
            return
        try:
            self.file.close()
        except OSError:
            # A full disk refuses the last buffered bytes once more; the file goes away anyway.
            pass
        finally:
            if self._temporary is not None:
                self._temporary.unlink(missing_ok=True)

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Say in plain words why the file cannot be written."""
        try:
            yield
        except BrokenPipeError:
            raise
        except PermissionError as error:
            raise DataError(
                f"{self.name} cannot be written: no permission in its folder. Choose another "
                "place, or change the permissions."
            ) from error
        except OSError as error:
            if error.errno in _FULL:
                raise DataError(
                    f"{self.name} cannot be written: the disk is full. Nothing was left "
                    "half-written. Free some space, or choose another place, and run again."
                ) from error
            raise DataError(
                f"{self.name} cannot be written: {error.strerror or error}. Choose another place."
            ) from error


def _refuse_wrong_place(target: Path, place: Path) -> None:
    folder = place.parent
    if place.is_dir():
        raise DataError(f"{target} is a folder. Give the name of a file in it.")
    if not folder.is_dir():
        near = (
            did_you_mean(folder.name, (one.name for one in folder.parent.iterdir() if one.is_dir()))
            if folder.parent.is_dir()
            else ""
        )
        raise DataError(
            f"{target} cannot be written: there is no folder {target.parent}.{near} Make it first, "
            "or choose another place."
        )
