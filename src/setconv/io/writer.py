"""Tables to a data file of any format, which is there whole or not at all.

`open_writer` gives a `RecordWriter`, in which a sheet renders the tables in the file's format.
"""

from __future__ import annotations

import errno
import gzip
import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from setconv.errors import DataError
from setconv.io.columns import are_numbers, is_text
from setconv.io.files import replaced, why_not
from setconv.io.sources import STANDARD, check_format, check_header, format_of_name, is_gzip_name
from setconv.messages import did_you_mean

_ROWS = 8192  # rendered as text at once
_ROWS_OF_GROUP = 1 << 16
_BYTES_OF_GROUP = 1 << 25


@contextmanager
def open_writer(
    target: str | Path, *, format: str | None = None, escape_formulas: bool = False
) -> Iterator[RecordWriter]:
    """Open a data file for writing: CSV, TSV, JSONL or Parquet, each also compressed with gzip.

    Parameters
    ----------
    target : str or Path
        A file, compressed if its name ends with ".gz", or "-" for standard output.
    format : {"csv", "tsv", "jsonl", "parquet"} or None, default=None
        None: by the extension; "csv" for standard output.
    escape_formulas : bool, default=False
        Whether a text or column name that a spreadsheet would take for a formula, since it starts
        with =, +, -, @, a tab or a carriage return and is no number, gets an apostrophe in front
        in CSV and TSV. What reads such a file back sees the apostrophe.

    Returns
    -------
    context manager of RecordWriter
        The file is in its place, whole, after a clean exit; after an error or an interrupt an
        earlier file is still there and nothing else.
    """
    standard, path = str(target) == STANDARD, Path(target)
    format = writer_format(target, format)
    name = "standard output" if standard else str(target)
    with ExitStack() as opened:
        with _explained(name):
            file = sys.stdout.buffer if standard else opened.enter_context(_output(path))
            # Neither name nor time are written, so that the same rows give the same bytes.
            packed = not standard and is_gzip_name(path)
            stream = gzip.GzipFile("", "wb", 6, file, mtime=0) if packed else file
        writer = RecordWriter(name, format, stream, escape_formulas=escape_formulas)
        try:
            yield writer
            with _explained(name):
                writer.close()
                if packed:
                    stream.close()
                file.flush()
                opened.close()
        except BaseException:
            for one in [writer, stream] if packed else [writer]:
                with suppress(OSError, ValueError):  # what is closed here goes away anyway
                    one.close()
            raise


def writer_format(target: str | Path, format: str | None) -> str:
    """Return the format in which `open_writer` writes a file; a folder is refused."""
    if str(target) != STANDARD and Path(target).is_dir():
        raise DataError(
            f"{target} is a folder. Give the name of a file in it."
        ) from IsADirectoryError(errno.EISDIR, "")
    if format is not None:
        return check_format(format)
    return "csv" if str(target) == STANDARD else format_of_name(Path(target))


@contextmanager
def _output(path: Path) -> Iterator[IO[bytes]]:
    """Give what is written to: a new file, or the pipe or device that is there."""
    place = path.resolve()  # a link stays a link: the file that it points to is replaced
    folder = place.parent
    if not folder.is_dir():
        others = folder.parent.iterdir() if folder.parent.is_dir() else ()
        near = did_you_mean(folder.name, (one.name for one in others if one.is_dir()))
        raise DataError(
            f"{path} cannot be written: there is no folder {path.parent}.{near} Make it first, or "
            "choose another place."
        ) from FileNotFoundError(errno.ENOENT, "")
    if place.is_file() or not place.exists():
        with replaced(place) as file:
            yield file
        return
    file = place.open("wb")
    try:
        yield file
    finally:
        with suppress(OSError):  # what could not be written was said already
            file.close()


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Say in plain words why the file cannot be written."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DataError(
            f"{name} cannot be written: {why_not(error)}. Nothing is left half-written: choose "
            "another place."
        ) from error


class RecordWriter:
    """A data file that is being written; see `open_writer`.

    Parameters
    ----------
    name : str
        For messages.
    format : str
    stream : binary file
    escape_formulas : bool, default=False

    Attributes
    ----------
    n_rows : int
        Rows written so far.
    """

    def __init__(
        self, name: str, format: str, stream: Any, *, escape_formulas: bool = False
    ) -> None:
        self.name, self.format, self.n_rows = name, format, 0
        self._escape = escape_formulas
        self._stream = stream
        self._sheet: _Sheet | None = None

    def write(self, table: pa.Table) -> None:
        """Add the rows of a table, which has the columns of the first one."""
        with _explained(self.name):
            if self._sheet is None:
                check_header(table.schema.names, self.name)
                self._sheet = _SHEETS[self.format](self._stream, table.schema, self._escape)
            try:
                rows = table.cast(self._sheet.schema)
            except (ValueError, pa.ArrowNotImplementedError) as error:
                raise DataError(
                    f"{self.name}: a table does not fit the first one ({error}). Write tables with "
                    "the same columns, and cast them to one schema."
                ) from error
            self._sheet.write(rows)
        self.n_rows += table.num_rows

    def close(self) -> None:
        """Write what is left; `open_writer` calls this."""
        if self._sheet is None:
            raise DataError(f"Nothing was written to {self.name}: there were no rows.")
        self._sheet.close()


class _Sheet(ABC):
    """One format; ``escape`` is about formulas in text."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile, schema: pa.Schema, escape: bool) -> None:
        self.file, self.schema, self.escape = file, schema, escape

    @abstractmethod
    def write(self, table: pa.Table) -> None: ...

    def close(self) -> None:
        """Write what is left."""
        return


class _Delimited(_Sheet):
    """Text is written as it is, and quoted only where it has to be; what is missing is empty."""

    delimiter = ","

    def __init__(self, file: IO[bytes] | gzip.GzipFile, schema: pa.Schema, escape: bool) -> None:
        super().__init__(file, schema, escape)
        names = [pa.array([name], pa.large_string()) for name in schema.names]
        self._write_lines([self._quoted(name) for name in names])

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches(max_chunksize=_ROWS):
            alone = batch.num_columns == 1
            named = zip(batch.schema.names, batch.columns, strict=True)
            cells = [self._quoted(_as_text(column, name), alone=alone) for name, column in named]
            if len(batch):
                self._write_lines(cells)

    def _quoted(self, texts: pa.Array, *, alone: bool = False) -> pa.Array:
        if self.escape:
            found = pc.and_not(pc.match_substring_regex(texts, "^[=+@\t\r-]"), are_numbers(texts))
            escaped = pc.binary_join_element_wise(_scalar("'"), texts, _scalar(""))
            texts = pc.if_else(found, escaped, texts)
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
        self.file.write(bytes(joined.buffers()[2]))


class _Tabbed(_Delimited):
    delimiter = "\t"


def _as_text(column: pa.Array, name: str) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    texts = column
    if pa.types.is_nested(column.type):
        values = column.to_pylist()
        texts = pa.array([None if one is None else json.dumps(one, default=str) for one in values])
    try:
        return pc.fill_null(pc.cast(texts, pa.large_string()), "")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise DataError(
            f"The column {name!r} ({column.type}) cannot be written as text. Write Parquet, or "
            "leave the column out.",
            column=name,
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
            self.file.write("".join(f"{line}\n" for line in lines).encode("utf-8"))


def _finite(column: pa.Array) -> pa.Array:
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))


class _Parquet(_Sheet):
    def __init__(self, file: IO[bytes] | gzip.GzipFile, schema: pa.Schema, escape: bool) -> None:
        super().__init__(file, schema, escape)
        # A dictionary of numbers that are all distinct only costs its reader memory.
        texts = [one.name for one in schema if is_text(one.type)] or False
        sink = pa.PythonFile(file, mode="w")
        self._writer = pq.ParquetWriter(sink, schema, compression="zstd", use_dictionary=texts)
        self._waiting: list[pa.Table] = []

    def write(self, table: pa.Table) -> None:
        self._waiting.append(table)
        n_rows = sum(map(len, self._waiting))
        if n_rows >= _ROWS_OF_GROUP or sum(one.nbytes for one in self._waiting) >= _BYTES_OF_GROUP:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            joined = pa.concat_tables(self._waiting)
            self._waiting = []
            self._writer.write_table(joined, row_group_size=_ROWS_OF_GROUP)


_SHEETS: dict[str, Any] = {"csv": _Delimited, "tsv": _Tabbed, "jsonl": _Jsonl, "parquet": _Parquet}


def check_kept(kept: Iterable[str], classes: NDArray[Any]) -> None:
    """Refuse columns to keep whose names the predictions need."""
    clash = set(kept) & set(_prediction_names(classes))
    if clash:
        raise DataError(
            f"The input has a column {min(clash)!r}, which the output needs: do not keep it, or "
            "rename it.",
            parameter="keep",
            column=min(clash),
        )


def prediction_columns(
    classes: NDArray[Any], found: Any, present: NDArray[np.bool_]
) -> dict[str, pa.Array]:
    """Return label and probabilities as columns, null where a row is not present.

    ``found`` are the `Predictions` of the rows that are, or None where there are none.
    """
    decided = np.full(len(present), None, dtype=object)
    shares = np.full((len(present), len(classes)), np.nan)
    if found is not None:
        decided[present], shares[present] = found.labels.tolist(), found.probabilities
    columns = [pa.array(decided, type=pa.array(classes.tolist()).type)]
    columns += [pa.array(column, from_pandas=True) for column in shares.T]
    return dict(zip(_prediction_names(classes), columns, strict=True))


def _prediction_names(classes: NDArray[Any]) -> list[str]:
    return ["predicted_label", *(f"probability_{label}" for label in classes.tolist())]
