"""Sources that have columns: what they are called, and their rows as blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa

from setconv.errors import DataError
from setconv.names import check_header, require_column
from setconv.storage.batch import Batch
from setconv.storage.features import FeaturePlan, plan_features
from setconv.storage.filling import fill

BLOCK = 1 << 26


class Tables(ABC):
    """Rows with named columns, too many to hold.

    Attributes
    ----------
    name : str
        For messages.
    schema : pyarrow.Schema
    n_rows : int
    """

    def __init__(self, name: str, schema: pa.Schema, n_rows: int) -> None:
        check_header(schema.names, name)
        if n_rows == 0:
            raise DataError(f"{name} has no rows.")
        self.name, self.schema, self.n_rows = name, schema, n_rows

    def plan(self, columns: Sequence[str] | None, without: Collection[str]) -> FeaturePlan:
        """Return which columns are features; see `plan_features`."""
        return plan_features(
            self.schema, columns, without=without, list_length=self._first_list_length
        )

    def require(self, names: Iterable[str], option: str) -> None:
        """Refuse names that are no columns."""
        for name in names:
            require_column(name, self.schema.names, option)

    @abstractmethod
    def blocks(self, plan: FeaturePlan, extra: Sequence[str]) -> Generator[Batch]:
        """Iterate over all rows, in blocks of bounded size."""

    @abstractmethod
    def _first(self, column: str) -> pa.ChunkedArray:
        """Return a column of the first rows."""

    def _first_list_length(self, column: str) -> int:
        first = self._first(column)
        if not len(first):
            raise DataError(f"{self.name} has no rows.")
        if not first[0].is_valid:
            raise DataError(
                f"Column {column!r} has no list (null) in row 0. Fill it, or remove such rows."
            )
        return len(first[0])


class ArrowTables(Tables):
    """Rows that pyarrow hands out as record batches.

    Parameters
    ----------
    name : str
    schema : pyarrow.Schema
    n_rows : int
    batches : callable
        From names of columns to the record batches that have them, in order.
    """

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        n_rows: int,
        batches: Callable[[list[str]], Iterable[pa.RecordBatch]],
    ) -> None:
        super().__init__(name, schema, n_rows)
        self._batches = batches

    def blocks(self, plan: FeaturePlan, extra: Sequence[str]) -> Generator[Batch]:
        """Iterate over all rows, in blocks of bounded size."""
        height = max(BLOCK // plan.row_bytes, 1)
        done = 0
        for batch in self._batches(list(dict.fromkeys([*plan.columns, *extra]))):
            for start in range(0, len(batch), height):
                table = pa.Table.from_batches([batch.slice(start, height)])
                yield block_of(table, plan, extra, done)
                done += len(table)

    def _first(self, column: str) -> pa.ChunkedArray:
        filled = (batch for batch in self._batches([column]) if len(batch))
        first = [batch.column(column) for batch in islice(filled, 1)]
        return pa.chunked_array(first, self.schema.field(column).type)


def block_of(table: pa.Table, plan: FeaturePlan, extra: Sequence[str], first_row: int) -> Batch:
    """Return the rows of one table."""
    rows = np.empty((len(table), len(plan.names)), plan.dtype)
    for part in plan.parts:
        fill(rows, table, part, first_row)
    return Batch(rows, table.select(list(extra)) if extra else None)
