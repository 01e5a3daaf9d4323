"""Write tables to a data file, whatever its format."""

from __future__ import annotations

import gzip
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from setconv.errors import DataError
from setconv.names import check_header, listed
from setconv.records.formats import checked_format, format_of_name, names_gzip
from setconv.records.rendering import csv_header, csv_rows, jsonl_rows
from setconv.records.sources import STANDARD
from setconv.records.targets import Target

_ROWS_OF_GROUP = 1 << 16
_BYTES_OF_GROUP = 1 << 25


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
    opened = Target(target)
    return RecordWriter(opened, wanted, gzipped=not standard and names_gzip(Path(target)))


class RecordWriter:
    """A data file that is being written; see `open_writer`.

    Parameters
    ----------
    target : Target
    format : str
    gzipped : bool

    Attributes
    ----------
    n_rows : int
        Rows written so far.
    """

    def __init__(self, target: Target, format: str, *, gzipped: bool) -> None:
        self.name, self.format, self.n_rows = target.name, format, 0
        self._target = target
        self._sheet: _Sheet | None = None
        self._done = False
        # Neither name nor time are written, so that the same rows give the same bytes.
        self._zip = gzip.GzipFile("", "wb", 6, target.file, mtime=0) if gzipped else None

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
        self._target.commit()

    def discard(self) -> None:
        """Stop, and leave nothing behind."""
        if not self._done:
            self._done = True
            with suppress(OSError, ValueError):  # what is closed here goes away anyway
                if self._sheet is not None:
                    self._sheet.abandon()
                if self._zip is not None:
                    self._zip.close()
            self._target.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()

    def _guarded(self, action: Any, *arguments: Any) -> None:
        try:
            with self._target.explained():
                action(*arguments)
        except BaseException:
            self.discard()
            raise

    def _write(self, table: pa.Table) -> None:
        if self._sheet is None:
            check_header(table.schema.names, self.name)
            self._sheet = _SHEETS[self.format](self._zip or self._target.file, table.schema)
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
    delimiter = ","

    def __init__(self, file: IO[bytes] | gzip.GzipFile, schema: pa.Schema) -> None:
        super().__init__(file, schema)
        file.write(csv_header(schema.names, self.delimiter))

    def write(self, table: pa.Table) -> None:
        for block in csv_rows(table, self.delimiter):
            self._file.write(block)


class _Tabbed(_Delimited):
    delimiter = "\t"


class _Jsonl(_Sheet):
    def write(self, table: pa.Table) -> None:
        for block in jsonl_rows(table):
            self._file.write(block)


class _Parquet(_Sheet):
    def __init__(self, file: IO[bytes] | gzip.GzipFile, schema: pa.Schema) -> None:
        super().__init__(file, schema)
        # A dictionary of numbers that are all distinct only costs its reader memory.
        texts = [one.name for one in schema if _is_text(one.type)]
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


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


_SHEETS: dict[str, Any] = {
    "csv": _Delimited,
    "tsv": _Tabbed,
    "jsonl": _Jsonl,
    "parquet": _Parquet,
}
