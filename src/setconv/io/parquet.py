"""Columns that can be read on their own, and again: Parquet files and the data of pyarrow.

pyarrow holds pages and a dictionary, some megabytes, for each column that it reads. With a thousand
columns that is gigabytes, so a wide file is read some columns at a time, in two threads. A row
group of a wide file that is too large to hold is cut into slabs of rows, for each of which it is
decoded from its start; a narrow file is read on.

What is read several times must not change: files are compared with what they were at first, before
and after each pass.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from sklearn.utils import gen_batches

from setconv.errors import DataError, DataTypeError
from setconv.io.sources import RecordReader, check_header

BLOCK = 1 << 24  # bytes of a table
TALL = 1 << 27  # bytes of a table of a wide row group, which is decoded from its start for each
_NARROW = 64  # columns
_PART = 32  # columns of a wide file that are read at once
_ROWS = 8192  # of a narrow file, and of the batches that most readers are cut into
_BUFFER = 1 << 16
_WORKERS = min(2, os.cpu_count() or 1)

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8}

_File = Path | IO[bytes]
_Marks = dict[_File, tuple[int, int, int] | None]


class ColumnReader(RecordReader):
    """A reader that can go through its rows again, and through some columns only.

    Parameters
    ----------
    name : str
        For messages.
    schema : pyarrow.Schema
    n_rows : int
    tables : callable
        From names of columns to tables that have them, of bounded size, with all rows in order.
    """

    format = "parquet"
    n_rows: int

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        n_rows: int,
        tables: Callable[[list[str]], Iterator[pa.Table]],
    ) -> None:
        super().__init__()
        self.name, self.schema, self.n_rows = name, schema.remove_metadata(), n_rows
        self._tables_of = tables
        check_header(schema.names, name)
        if not n_rows:
            raise DataError(f"{name} has no rows.")

    def select(self, columns: Sequence[str]) -> ColumnReader:
        """Return a reader of these columns only."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        return ColumnReader(self.name, schema, self.n_rows, self._tables_of)

    def tables(self, columns: list[str]) -> Iterator[pa.Table]:
        """Iterate over tables of these columns, of bounded size, with all rows in order."""
        done = 0
        for table in self._tables_of(columns):
            done += len(table)
            if done > self.n_rows:
                break
            yield table
            del table  # else it is held while the next one is read
        if done != self.n_rows:
            found = f"{done} rows" if done < self.n_rows else "more rows"
            raise DataError(
                f"{self.name} had {self.n_rows} rows at first, and {found} when it was read. "
                "Run again, and leave it alone until the end."
            )

    def _read_tables(self) -> Iterator[pa.Table]:
        yield from self.tables(self.columns)


def read_parquet(name: str, files: Sequence[_File]) -> ColumnReader:
    """Return the reader of a Parquet file, or of several of one schema, in their order."""
    schemas, n_rows = [], 0
    marks = _marks(files)
    for file in files:
        with _explained(file, name), _opened(file) as opened:
            schemas.append(opened.schema_arrow.remove_metadata())
            n_rows += opened.metadata.num_rows
        if not schemas[-1].equals(schemas[0]):
            raise DataError(
                f"{file} has other columns than {files[0]}, although files of one folder must have "
                f"the same: {_difference(schemas[0], schemas[-1])}."
            )

    def tables(columns: list[str]) -> Iterator[pa.Table]:
        for file in files:
            with _explained(file, name), _unchanged({file: marks[file]}, name):
                yield from (_narrow_tables if len(columns) <= _NARROW else _wide_tables)(
                    file, columns
                )

    return ColumnReader(name, schemas[0], n_rows, tables)


def _difference(expected: pa.Schema, found: pa.Schema) -> str:
    types = [dict(zip(schema.names, schema.types, strict=True)) for schema in (expected, found)]
    for name in types[0] | types[1]:
        here, there = (str(one.get(name, "missing")) for one in types)
        if here != there:
            return f"{name!r} is {there} instead of {here}"
    for number, (one, other) in enumerate(zip(expected, found, strict=False), start=1):
        if one.name != other.name:
            return f"column {number} is {other.name!r} instead of {one.name!r}"
        if one.nullable != other.nullable:
            return f"{one.name!r} may have nulls in one of them only"
    return "one has columns twice"


def _marks(files: Iterable[_File]) -> _Marks:
    """Return by what it is seen that a file changed; None of a file that is not there."""
    marks: _Marks = {}
    for file in files:
        try:
            found = os.stat(file if isinstance(file, Path) else file.fileno())  # noqa: PTH116
            marks[file] = found.st_ino, found.st_size, found.st_mtime_ns
        except OSError:
            marks[file] = None
    return marks


@contextmanager
def _unchanged(marks: _Marks, name: str) -> Iterator[None]:
    """Refuse files that change before they are read, or while they are."""

    def refuse() -> None:
        for file, mark in _marks(marks).items():
            if mark != marks[file]:
                what = "changed" if mark else "went away"
                raise DataError(
                    f"{file if isinstance(file, Path) else name} {what} while it was being read "
                    "(it is read several times): run again, and leave it alone until the end."
                )

    refuse()
    try:
        yield
    except (pa.ArrowException, OSError):
        refuse()  # which is why
        raise
    refuse()


def _narrow_tables(file: _File, columns: list[str]) -> Iterator[pa.Table]:
    """Iterate over tables that are read on."""
    with _opened(file) as opened:
        height = min(_height(opened.metadata, columns), _ROWS)
        for batch in opened.iter_batches(height, columns=columns, use_threads=False):
            # A name with a dot can select its neighbours too.
            yield pa.Table.from_batches([batch]).select(columns).replace_schema_metadata()


def _wide_tables(file: _File, columns: list[str]) -> Iterator[pa.Table]:
    """Iterate over tables that are read some columns at a time, with a reader for each worker."""
    parts = [columns[at : at + _PART] for at in range(0, len(columns), _PART)]
    readers: SimpleQueue[pq.ParquetFile] = SimpleQueue()
    with ExitStack() as stack:
        first = stack.enter_context(_opened(file))
        readers.put(first)
        if isinstance(file, Path):
            for _ in range(_WORKERS - 1):
                readers.put(stack.enter_context(_opened(file, first.metadata)))
        workers = stack.enter_context(ThreadPoolExecutor(_WORKERS, "setconv-parquet"))

        def in_parts(read: Callable[..., pa.Table], *arguments: Any) -> pa.Table:
            def read_part(part: list[str]) -> pa.Table:
                reader = readers.get()
                try:
                    return read(reader, part, *arguments).select(part)
                finally:
                    readers.put(reader)

            made = [column for one in workers.map(read_part, parts) for column in one.columns]
            return pa.table(made, names=columns)

        height = _height(first.metadata, columns)
        tall = max(height * TALL // BLOCK, 1)
        # What is left of a slab that is cut into batches would hold it while the next is read.
        tall -= tall % _ROWS if tall > _ROWS else 0
        for groups, n_rows in _runs(first.metadata, height):
            if n_rows <= height:
                yield in_parts(_read_groups, groups)
            else:
                for number in range(-(-n_rows // tall)):
                    yield in_parts(_read_slab, groups[0], tall, number)


def _height(metadata: pq.FileMetaData, columns: list[str]) -> int:
    """Return how many rows are a block, as far as the first row group tells."""
    group = metadata.row_group(0)
    wanted = {*columns, *(f"{name}.list.element" for name in columns)}
    leaves = [group.column(number) for number in range(group.num_columns)]
    size = sum(
        max(leaf.num_values * _WIDTHS.get(leaf.physical_type, 0), leaf.total_uncompressed_size)
        for leaf in leaves
        if leaf.path_in_schema in wanted
    )
    height: int = BLOCK * group.num_rows // max(size, 1)
    return max(height, 1)


def _runs(metadata: pq.FileMetaData, height: int) -> Iterator[tuple[list[int], int]]:
    """Iterate over row groups that are a block together: their numbers, and their rows."""
    groups: list[int] = []
    n_rows = 0
    for number in range(metadata.num_row_groups):
        more = metadata.row_group(number).num_rows
        if groups and n_rows + more > height:
            yield groups, n_rows
            groups, n_rows = [], 0
        groups.append(number)
        n_rows += more
    if n_rows:
        yield groups, n_rows


def _read_groups(reader: pq.ParquetFile, columns: list[str], groups: list[int]) -> pa.Table:
    return reader.read_row_groups(groups, columns=columns, use_threads=False)


def _read_slab(
    reader: pq.ParquetFile, columns: list[str], group: int, height: int, number: int
) -> pa.Table:
    slabs = reader.iter_batches(height, row_groups=[group], columns=columns, use_threads=False)
    slab = next(islice(slabs, number, None), None)
    if slab is None:
        raise pa.ArrowInvalid("it has fewer rows than it says")
    return pa.Table.from_batches([slab])


def _opened(file: _File, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    return pq.ParquetFile(file, metadata=metadata, buffer_size=_BUFFER, pre_buffer=False)


@contextmanager
def _explained(file: _File | None, name: str) -> Iterator[None]:
    where = file if isinstance(file, Path) else name
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        why = str(error).split(". ")[0].splitlines()[0].rstrip(".")
        raise DataError(
            f"{where} is not a whole Parquet file, or cannot be read ({why}). It may have been cut "
            "off or damaged, or be another format: write or copy it again.",
            parameter="format",
        ) from error


def read_folder(folder: Path) -> ColumnReader:
    """Return the reader of all Parquet files below a folder, in the order of their names."""
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in {".parquet", ".pq"}
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    )
    if not found:
        raise DataError(
            f"{folder} is a folder without Parquet files that can be read. Give a file, or a "
            "folder of them."
        )
    return read_parquet(str(folder), found)


def read_arrow(data: Any) -> ColumnReader:
    """Return the reader of a table, record batch or dataset of pyarrow."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):
        return ColumnReader(
            "The table", data.schema, len(data), lambda names: _cut(data.select(names).to_batches())
        )
    if not isinstance(data, ds.Dataset):
        raise DataTypeError(
            f"A {type(data).__name__} of pyarrow cannot be read by column, and again: give a "
            "table, or write a Parquet file and give that."
        )
    return _read_dataset(data)


def _read_dataset(dataset: ds.Dataset) -> ColumnReader:
    files = [path for path in map(Path, getattr(dataset, "files", ())) if path.is_file()]
    marks, name = _marks(files), "The dataset"
    # The defaults read a gigabyte ahead.
    options: dict[str, Any] = {"batch_size": 4096, "batch_readahead": 1, "fragment_readahead": 1}
    parquet = isinstance(getattr(dataset, "format", None), ds.ParquetFileFormat)
    if parquet:
        options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
            use_buffered_stream=True, buffer_size=_BUFFER, pre_buffer=False
        )

    def tables(columns: list[str]) -> Iterator[pa.Table]:
        with _explained(None, name):
            try:
                with _unchanged(marks, name):
                    wanted = {column: ds.field(column) for column in columns}
                    yield from _cut(dataset.scanner(wanted, **options).to_batches())
            except (pa.ArrowException, OSError):
                # It does not say in which file: in the first that cannot be read alone.
                for file in files if parquet else ():
                    alone = read_parquet(str(file), [file])
                    shared = [one for one in columns if one in alone.columns]
                    for _ in alone.tables(shared or alone.columns):
                        pass
                raise

    with _explained(None, name):
        return ColumnReader(name, dataset.schema, dataset.count_rows(), tables)


def _cut(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    for batch in batches:
        if not len(batch):
            continue
        height = max(BLOCK * len(batch) // max(batch.nbytes, 1), 1)
        for part in gen_batches(len(batch), height):
            yield pa.Table.from_batches([batch.slice(part.start, height)])
