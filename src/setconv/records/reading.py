"""What every reader of a data file can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Self

import pyarrow as pa

from setconv.errors import DataError, ParameterError


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
