"""Rows of Parquet files, in bounded memory and on several cores.

A reader holds pages and a dictionary, some megabytes, for each column. With a thousand columns that
is gigabytes, so a wide file is read some columns at a time, by two threads. A row group that is
larger than a block is cut into slabs of rows: a wide one is decoded up to each slab anew, a narrow
one is read on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from setconv.errors import DataError
from setconv.storage.batch import Batch
from setconv.storage.features import FeaturePlan, Piece
from setconv.storage.filling import fill
from setconv.storage.tables import BLOCK, Tables, block_of

TALL = 1 << 28
NARROW = 64
_BUFFER = 1 << 16
_WORKERS = min(2, os.cpu_count() or 1)


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
            with _explained(file), _opened(file) as opened:
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
        first = self._closing.enter_context(_opened(path))
        self._metadata = first.metadata
        self._readers.put(first)
        for _ in range(_WORKERS - 1):
            self._readers.put(self._closing.enter_context(_opened(path, self._metadata)))

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    def blocks(self, first_row: int) -> Iterator[Batch]:
        for groups, n_rows, n_bytes in self._runs():
            if n_bytes <= BLOCK:
                yield self._block(n_rows, first_row, _whole(groups))
            elif len(self._columns) <= NARROW:
                yield from self._read_on(groups[0], n_rows * BLOCK // n_bytes, first_row)
            else:
                height = max(n_rows * TALL // n_bytes, 1)
                for number, start in enumerate(range(0, n_rows, height)):
                    rows = min(height, n_rows - start)
                    yield self._block(rows, first_row + start, _slab(groups[0], height, number))
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


_Read = Callable[[pq.ParquetFile, list[str]], pa.Table]


def _whole(groups: list[int]) -> _Read:
    def read(reader: pq.ParquetFile, columns: list[str]) -> pa.Table:
        return reader.read_row_groups(groups, columns=columns, use_threads=False)

    return read


def _slab(group: int, height: int, number: int) -> _Read:
    def read(reader: pq.ParquetFile, columns: list[str]) -> pa.Table:
        slabs = _batches(reader, group, height, columns)
        return pa.Table.from_batches(list(islice(slabs, number, number + 1)))

    return read


def _batches(reader: pq.ParquetFile, group: int, height: int, columns: list[str]) -> Any:
    return reader.iter_batches(height, row_groups=[group], columns=columns, use_threads=False)


def _opened(path: Path, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    return pq.ParquetFile(path, metadata=metadata, buffer_size=_BUFFER, pre_buffer=False)


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise DataError(f"{path} cannot be read: no permission. Change its permissions.") from error
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split(". ")[0].splitlines()[0].rstrip(".")
        raise DataError(
            f"{path} is damaged ({reason}). Write or copy it again; it may have been cut off."
        ) from error
