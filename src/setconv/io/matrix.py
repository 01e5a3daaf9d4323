"""Columns of numbers as matrices of rows.

A `FeaturePlan` says which columns of a reader are the features and makes a matrix of each of its
tables: exact, and without gaps. (`setconv.io.encoder` is for gaps and categories.)
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from setconv.errors import DataError, ParameterError
from setconv.io.columns import as_numpy, is_list, is_number
from setconv.io.disk import refuse_not_finite
from setconv.io.parquet import ColumnReader
from setconv.messages import listed, require_column

logger = logging.getLogger("setconv")

_PART = 32  # columns that are turned into rows at once
_PADDING = 16  # keeps columns of 2^k rows from falling on the same lines of the cache


@dataclass(frozen=True)
class _Part:
    """Neighbouring features that are turned into rows at once.

    Attributes
    ----------
    columns : list of str
        Columns of numbers, or one column of lists.
    elements : list of int
        Which elements of each list are features; none for columns of numbers.
    length : int
        Of each list.
    """

    columns: list[str]
    elements: list[int]
    length: int = 0

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        if not self.elements:
            return self.columns
        return [f"{self.columns[0]}_{number}" for number in self.elements]


@dataclass(frozen=True)
class FeaturePlan:
    """The features of a reader, in order.

    Attributes
    ----------
    names : list of str
    columns : list of str
        To read, each once.
    dtype : numpy.dtype
        float32 if it holds every number exactly that the columns can have, else float64.
    parts : list of _Part
    """

    names: list[str]
    columns: list[str]
    dtype: np.dtype[Any]
    parts: list[_Part]

    @classmethod
    def of(
        cls, reader: ColumnReader, columns: Sequence[str] | None, without: Collection[str]
    ) -> FeaturePlan:
        """Return which columns are features.

        Parameters
        ----------
        reader : ColumnReader
        columns : sequence of str or None
            Columns, in this order; ``"name_3"`` is an element of a column ``"name"`` of lists. None
            for all columns of numbers, truth values, and lists of numbers.
        without : collection of str
            Columns that are no features, such as the labels.
        """
        if columns is not None and (np.ndim(columns) != 1 or not np.size(columns)):
            raise ParameterError(
                f"columns={columns!r}: give a list of names, or None for all.", parameter="columns"
            )
        chosen = _by_type(reader.schema, without) if columns is None else list(map(str, columns))
        parts = _parts(reader, chosen)
        used = list(dict.fromkeys(column for part in parts for column in part.columns))
        names = [name for part in parts for name in part.names]
        twins = set(used) & set(without) or {one for one in names if names.count(one) > 1}
        if twins:
            raise DataError(
                f"The column {min(twins)!r} is named twice, as two features or as feature and "
                "label. Rename a column, or choose others.",
                column=min(twins),
                parameter="columns",
            )
        kinds = [_number_type(reader.schema.field(one).type).to_pandas_dtype() for one in used]
        wide = not all(np.can_cast(kind, np.float32) for kind in kinds)
        return cls(names, used, np.dtype(np.float64 if wide else np.float32), parts)

    def rows(self, table: pa.Table, first_row: int) -> NDArray[Any]:
        """Return the features of a table; ``first_row`` is its number of a row, for messages."""
        rows = np.empty((len(table), len(self.names)), self.dtype)
        start = 0
        for part in self.parts:
            into = rows[:, start : start + len(part.names)]
            if part.elements:
                for row, chunk in _chunks(table, part.columns[0], first_row):
                    into[row : row + len(chunk)] = _elements(chunk, part, first_row + row)
                refuse_not_finite(into, first_row, part.names)
            else:
                columns = np.empty((into.shape[1], len(rows) + _PADDING), self.dtype)
                columns = columns[:, : len(rows)]
                for target, name in zip(columns, part.columns, strict=True):
                    for row, chunk in _chunks(table, name, first_row):
                        target[row : row + len(chunk)] = as_numpy(chunk)
                refuse_not_finite(columns.T, first_row, part.names)  # while it is in the cache
                into[:] = columns.T
            start += into.shape[1]
        return rows


def _by_type(schema: pa.Schema, without: Collection[str]) -> list[str]:
    numeric = {one.name: _number_type(one.type) for one in schema if one.name not in without}
    chosen = [name for name, kind in numeric.items() if kind is not None]
    others = [name for name, kind in numeric.items() if kind is None]
    if not chosen:
        raise DataError(
            f"There is no column of numbers among {listed(schema.names)}. Encode the columns first."
        )
    if others:
        logger.warning("Columns that are not numbers are left out: %s.", listed(others))
    return chosen


def _parts(reader: ColumnReader, names: list[str]) -> list[_Part]:
    """Return the features of these names; neighbours of one kind together."""
    types = {field.name: field.type for field in reader.schema}

    @cache
    def length(column: str) -> int:
        if pa.types.is_fixed_size_list(types[column]):
            return int(types[column].list_size)
        first = next(reader.tables([column])).column(column)[0]
        if not first.is_valid or not len(first):
            raise DataError(f"Column {column!r} has no list in row 0.", row=0, column=column)
        return len(first)

    def elements(name: str) -> list[tuple[str, int]]:
        base, _, number = name.rpartition("_")
        lists = name not in types and base in types and is_list(types[base])
        if lists and number in map(str, range(length(base))):
            return [(base, int(number))]
        kind = types[require_column(name, list(types), "columns")]
        if _number_type(kind) is None:
            raise DataError(
                f"Column {name!r} is {kind}, which is not numbers. Encode it, or leave it out.",
                column=name,
            )
        return [(name, n) for n in range(length(name))] if is_list(kind) else [(name, -1)]

    parts = []
    chosen = [one for name in names for one in elements(name)]
    for column, group in groupby(chosen, key=lambda one: one[0] if one[1] >= 0 else None):
        some = list(group)
        if column is not None:
            parts.append(_Part([column], [number for _, number in some], length(column)))
        else:
            columns = [name for name, _ in some]
            parts += [_Part(columns[part], []) for part in gen_batches(len(columns), _PART)]
    return parts


def _number_type(kind: pa.DataType) -> Any:
    """Return the type of the numbers in a column, or in its lists; None if it has none."""
    if is_list(kind) or pa.types.is_dictionary(kind):
        kind = kind.value_type
    return kind if is_number(kind) or pa.types.is_boolean(kind) else None


def _chunks(table: pa.Table, name: str, first_row: int) -> Iterator[tuple[int, pa.Array]]:
    """Iterate over a column without gaps, each part with the table's row at which it starts."""
    row = 0
    for chunk in table.column(name).chunks:
        if pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_decode()
        _refuse_nulls(chunk, name, first_row + row)
        yield row, chunk
        row += len(chunk)


def _elements(lists: pa.Array, part: _Part, first_row: int) -> NDArray[Any]:
    """Return the features in lists, which all must have the length of the first one."""
    name = part.columns[0]
    unlike = pc.index(pc.not_equal(pc.list_value_length(lists), part.length), True).as_py()
    if unlike >= 0:
        row = first_row + unlike
        raise DataError(
            f"Column {name!r} has a list of {len(lists[unlike])} numbers in row {row} (counted "
            f"from 0), and of {part.length} in row 0. Give all lists the same length.",
            row=row,
            column=name,
        )
    values = lists.flatten()
    _refuse_nulls(values, name, first_row, per_row=part.length)
    return as_numpy(values).reshape(-1, part.length)[:, part.elements]


def _refuse_nulls(array: pa.Array, column: str, first_row: int, per_row: int = 1) -> None:
    """Refuse an array with a value that is missing."""
    if array.null_count:
        row = first_row + pc.index(array.is_null(), True).as_py() // per_row
        raise DataError(
            f"Column {column!r} has no value (null) in row {row} (counted from 0). Fill it, or "
            "remove such rows, first.",
            row=row,
            column=column,
        )
