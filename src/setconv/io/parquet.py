"""Parquet files in bounded memory: `ParquetReader` gives records, `ParquetTables` matrices.

pyarrow holds pages and a dictionary, some megabytes, for each column that it reads. With a thousand
columns that is gigabytes, so a wide file is read some columns at a time; `ParquetTables` does so in
two threads. A row group that is too large to hold is cut into slabs of rows: a wide one is decoded
up to each slab anew, a narrow one is read on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from setconv.errors import DataError
from setconv.io.disk import BLOCK, Batch
from setconv.io.matrix import FeaturePlan, Piece, Tables, block_of, fill
from setconv.io.sources import RecordReader
from setconv.messages import check_header, count_of

SLAB = 1 << 26  # bytes of a table of records
TALL = 1 << 28  # bytes of a block of a wide row group, which each block decodes from its start
_ROWS = 8192
_COLUMNS_AT_ONCE = 16
_NARROW = 64  # columns
_BUFFER = 1 << 16
_WORKERS = min(2, os.cpu_count() or 1)

_Read = Callable[[pq.ParquetFile, list[str]], pa.Table]


class ParquetReader(RecordReader):
    """A Parquet file, or all files of a folder in the order of their names.

    Parameters
    ----------
    name : str
    files : list of Path or binary file

    Attributes
    ----------
    files : list of Path or binary file
    """

    def __init__(self, name: str, files: list[Path | IO[bytes]]) -> None:
        super().__init__()
        self.name, self.format = name, "parquet"
        self.files = files
        self._rows_read = 0
        schemas, counts = [], []
        for file in files:
            with self._opened(file) as opened:
                schemas.append(opened.schema_arrow.remove_metadata())
                counts.append(opened.metadata.num_rows)
        self.schema = schemas[0]
        self.n_rows = sum(counts)
        check_header(self.columns, name)
        for file, schema in zip(files, schemas, strict=True):
            if not schema.equals(self.schema):
                raise DataError(
                    f"{file} has other columns than {files[0]}: "
                    f"{_difference(self.schema, schema)}. Files of one folder must have the same "
                    "columns and types."
                )
        if self.n_rows == 0:
            raise DataError(f"{name} has {count_of(len(self.columns), 'column')} but no rows.")

    def progress(self) -> float | None:
        """Return the share of the rows that have been read."""
        assert self.n_rows
        return self._rows_read / self.n_rows

    def close(self) -> None:
        """Close the files."""
        for file in self.files:
            if not isinstance(file, Path):
                file.close()

    def _read_tables(self) -> Iterator[pa.Table]:
        for file in self.files:
            with self._opened(file) as opened:
                for group in range(opened.num_row_groups):
                    for table in _group_tables(opened, group):
                        self._rows_read += len(table)
                        yield table.cast(self.schema)

    @contextmanager
    def _opened(self, file: Path | IO[bytes]) -> Iterator[pq.ParquetFile]:
        where = file if isinstance(file, Path) else self.name
        try:
            with _open(file) as opened:
                yield opened
        except PermissionError as error:
            raise DataError(f"{where} cannot be read: no permission.") from error
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{where} is not a whole Parquet file ({_first_sentence(error)}). It may have been "
                "cut off, or be another format: copy it again, or give its --format."
            ) from error


def _difference(expected: pa.Schema, found: pa.Schema) -> str:
    for name in expected.names:
        if name not in found.names:
            return f"{name!r} is missing"
        if found.field(name).type != expected.field(name).type:
            types = found.field(name).type, expected.field(name).type
            return f"{name!r} is {types[0]} instead of {types[1]}"
    extra = [name for name in found.names if name not in expected.names]
    return f"{extra[0]!r} is only there" if extra else "their order differs"


def _group_tables(file: pq.ParquetFile, group: int) -> Iterator[pa.Table]:
    found = file.metadata.row_group(group)
    if found.total_byte_size <= SLAB or _dictionary_bytes(found) <= SLAB:
        for batch in _batches(file, group, _ROWS):
            yield pa.Table.from_batches([batch])
        return
    names = file.schema_arrow.names
    parts = [names[at : at + _COLUMNS_AT_ONCE] for at in range(0, len(names), _COLUMNS_AT_ONCE)]
    height = max(SLAB * found.num_rows // found.total_byte_size, 1)
    for number in range(-(-found.num_rows // height)):
        columns: list[Any] = []
        for part in parts:
            slab = _read_slab(file, part, group, height, number)
            columns += [slab.column(name) for name in part]
        yield pa.table(columns, names=names)


def _dictionary_bytes(group: pq.RowGroupMetaData) -> int:
    """Return the bytes of the dictionaries of all columns, which are held at once."""
    columns = [group.column(number) for number in range(group.num_columns)]
    return sum(
        one.data_page_offset - one.dictionary_page_offset
        for one in columns
        if one.dictionary_page_offset is not None
    )


class ParquetTables(Tables):
    """The rows of Parquet files of one schema, in the order of the files.

    Parameters
    ----------
    name : str
        For messages.
    files : list of Path
    schema : pyarrow.Schema
    n_rows : int
    """

    def __init__(self, name: str, files: list[Path], schema: pa.Schema, n_rows: int) -> None:
        super().__init__(name, schema, n_rows)
        self._files = files

    def blocks(self, plan: FeaturePlan, extra: Sequence[str]) -> Generator[Batch]:
        """Iterate over all rows, in blocks of bounded size."""
        done = 0
        with ThreadPoolExecutor(_WORKERS, thread_name_prefix="setconv-parquet") as workers:
            for file in self._files:
                with _explained(file), _File(file, plan, list(extra), workers) as opened:
                    for block in opened.blocks(done):
                        done += len(block.rows)
                        yield block
                        del block  # else it is held while the next one is read

    def _first(self, column: str) -> pa.ChunkedArray:
        for file in self._files:
            with _explained(file), _open(file) as opened:
                for batch in opened.iter_batches(1, columns=[column], use_threads=False):
                    return pa.chunked_array([batch.column(column)])
        return pa.chunked_array([], self.schema.field(column).type)


class _File:
    """One file, with an open reader for each worker."""

    def __init__(
        self, path: Path, plan: FeaturePlan, extra: list[str], workers: ThreadPoolExecutor
    ) -> None:
        self._plan, self._extra, self._workers = plan, extra, workers
        self._columns = list(dict.fromkeys([*plan.columns, *extra]))
        self._readers: SimpleQueue[pq.ParquetFile] = SimpleQueue()
        self._closing = ExitStack()
        first = self._closing.enter_context(_open(path))
        self._metadata = first.metadata
        self._readers.put(first)
        for _ in range(_WORKERS - 1):
            self._readers.put(self._closing.enter_context(_open(path, self._metadata)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def blocks(self, first_row: int) -> Iterator[Batch]:
        for groups, n_rows, n_bytes in self._runs():
            if n_bytes <= BLOCK:
                yield self._block(n_rows, first_row, partial(_read_groups, groups=groups))
            elif len(self._columns) <= _NARROW:
                yield from self._read_on(groups[0], n_rows * BLOCK // n_bytes, first_row)
            else:
                height = max(n_rows * TALL // n_bytes, 1)
                for number, start in enumerate(range(0, n_rows, height)):
                    read = partial(_read_slab, group=groups[0], height=height, number=number)
                    yield self._block(min(height, n_rows - start), first_row + start, read)
            first_row += n_rows

    def _runs(self) -> Iterator[tuple[list[int], int, int]]:
        """Iterate over row groups that fit into a block together: numbers, rows and bytes."""
        leaves = self._leaves_of_extra()
        groups: list[int] = []
        n_rows = n_bytes = 0
        for number in range(self._metadata.num_row_groups):
            group = self._metadata.row_group(number)
            size = group.num_rows * self._plan.row_bytes
            size += sum(group.column(leaf).total_uncompressed_size for leaf in leaves)
            if groups and n_bytes + size > BLOCK:
                yield groups, n_rows, n_bytes
                groups, n_rows, n_bytes = [], 0, 0
            groups.append(number)
            n_rows, n_bytes = n_rows + group.num_rows, n_bytes + size
        if n_rows:
            yield groups, n_rows, n_bytes

    def _leaves_of_extra(self) -> list[int]:
        schema = self._metadata.schema
        paths = [schema.column(number).path for number in range(len(schema))]
        return [
            number
            for number, path in enumerate(paths)
            if any(path == name or path.startswith(f"{name}.") for name in self._extra)
        ]

    def _block(self, n_rows: int, first_row: int, read: _Read) -> Batch:
        """Read a block some columns at a time, each time all columns of a part."""
        rows = np.empty((n_rows, len(self._plan.names)), self._plan.dtype)

        def fill_part(part: list[Piece]) -> None:
            fill(rows, self._with_reader(read, [piece.column for piece in part]), part, first_row)

        list(self._workers.map(fill_part, self._plan.parts))
        return Batch(rows, self._with_reader(read, self._extra) if self._extra else None)

    def _with_reader(self, read: _Read, columns: list[str]) -> pa.Table:
        reader = self._readers.get()
        try:
            # A name with a dot can select its neighbours too.
            return read(reader, columns).select(columns)
        finally:
            self._readers.put(reader)

    def _read_on(self, group: int, height: int, first_row: int) -> Iterator[Batch]:
        reader = self._readers.get()
        try:
            for batch in _batches(reader, group, max(height, 1), self._columns):
                table = pa.Table.from_batches([batch])
                yield block_of(table, self._plan, self._extra, first_row)
                first_row += len(table)
        finally:
            self._readers.put(reader)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise DataError(f"{path} cannot be read: no permission. Change its permissions.") from error
    except (pa.ArrowException, OSError) as error:
        raise DataError(
            f"{path} is damaged ({_first_sentence(error)}). Write or copy it again; it may have "
            "been cut off."
        ) from error


def _open(file: Path | IO[bytes], metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    return pq.ParquetFile(file, metadata=metadata, buffer_size=_BUFFER, pre_buffer=False)


def _read_groups(reader: pq.ParquetFile, columns: list[str], groups: list[int]) -> pa.Table:
    return reader.read_row_groups(groups, columns=columns, use_threads=False)


def _read_slab(
    reader: pq.ParquetFile, columns: list[str], group: int, height: int, number: int
) -> pa.Table:
    slabs = _batches(reader, group, height, columns)
    return pa.Table.from_batches(list(islice(slabs, number, number + 1)))


def _batches(
    reader: pq.ParquetFile, group: int, height: int, columns: list[str] | None = None
) -> Any:
    return reader.iter_batches(height, row_groups=[group], columns=columns, use_threads=False)


def _first_sentence(error: Exception) -> str:
    return str(error).split(". ")[0].splitlines()[0].rstrip(".")
