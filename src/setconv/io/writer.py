"""Write tables to a data file, whatever its format."""

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

# ---------- records.targets

_FULL = {errno.ENOSPC, errno.EDQUOT}


class Target:
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


# ---------- records.rendering

_ROWS = 8192


def csv_header(names: list[str], delimiter: str) -> bytes:
    """Return the line with the names of the columns."""
    cells = [_quoted(pa.array([name], pa.large_string()), delimiter, one=False) for name in names]
    return _lines(cells, delimiter)


def csv_rows(table: pa.Table, delimiter: str) -> Iterator[bytes]:
    """Iterate over the rows as delimited text; a missing value is an empty field.

    Text is written as it is, and quoted only where it holds the delimiter, a quote or a line end.
    """
    for batch in table.to_batches(max_chunksize=_ROWS):
        one = batch.num_columns == 1
        cells = [
            _quoted(_as_text(column, name), delimiter, one=one)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        if len(batch):
            yield _lines(cells, delimiter)


def jsonl_rows(table: pa.Table) -> Iterator[bytes]:
    """Iterate over the rows as one JSON object a line; what is not finite becomes null."""
    for batch in table.to_batches(max_chunksize=_ROWS):
        finite = [_finite(column) for column in batch.columns]
        rows = pa.RecordBatch.from_arrays(finite, names=batch.schema.names).to_pylist()
        lines = [json.dumps(row, ensure_ascii=False, default=str) for row in rows]
        yield "".join(f"{line}\n" for line in lines).encode("utf-8")


def _lines(cells: list[pa.Array], delimiter: str) -> bytes:
    ends = [*cells[:-1], pc.binary_join_element_wise(cells[-1], _scalar("\n"), _scalar(""))]
    joined = pc.binary_join_element_wise(*ends, _scalar(delimiter))
    # The text of all rows lies in one buffer, row after row.
    return bytes(joined.buffers()[2])


def _quoted(texts: pa.Array, delimiter: str, *, one: bool) -> pa.Array:
    special = f'["\r\n{delimiter}]'
    needs = pc.match_substring_regex(texts, special)
    if one:  # an empty line would not be a row
        needs = pc.or_(needs, pc.equal(texts, ""))
    if not pc.any(needs).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    mark = _scalar('"')
    return pc.if_else(needs, pc.binary_join_element_wise(mark, doubled, mark, _scalar("")), texts)


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


def _finite(column: pa.Array) -> pa.Array:
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


# ---------- records.writing

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
