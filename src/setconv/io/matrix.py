"""Tables of columns as matrices of numbers, in blocks of bounded size.

`Tables` are rows with named columns. They plan which columns are the features (`FeaturePlan`), read
them in blocks and `fill` matrices with them; `LabelColumn` gathers the labels on the way.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setconv.errors import DataError, LabelError
from setconv.io.columns import is_list, is_number, is_text
from setconv.io.disk import BLOCK, Batch, refuse_not_finite
from setconv.messages import check_header, listed, require_column

logger = logging.getLogger("setconv")

_PART = 32  # columns that are turned into rows at once
_PADDING = 16  # keeps columns of 2^k rows from falling on the same lines of the cache
_EXACT_IN_FLOAT32 = 16  # bits of an integer


@dataclass(frozen=True)
class Piece:
    """A column of numbers, or neighbouring elements of a column of lists.

    Attributes
    ----------
    column : str
    place : int
        Which feature the first one is.
    width : int
        How many features it gives.
    first : int
        The first element of each list that is a feature.
    length : int or None
        Of each list; None for a column of numbers.
    """

    column: str
    place: int
    width: int = 1
    first: int = 0
    length: int | None = None

    @property
    def names(self) -> list[str]:
        """Names of the features."""
        if self.length is None:
            return [self.column]
        return [f"{self.column}_{self.first + number}" for number in range(self.width)]


@dataclass(frozen=True)
class FeaturePlan:
    """The features of a table, in order.

    Attributes
    ----------
    names : list of str
    dtype : numpy.dtype
        float32 if it holds every number exactly that the columns can have, else float64.
    parts : list of list of Piece
        What is read and turned into rows at once: some columns, or one column of lists.
    """

    names: list[str]
    dtype: np.dtype[Any]
    parts: list[list[Piece]]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of features."""
        return len(self.names) * self.dtype.itemsize

    @property
    def columns(self) -> list[str]:
        """Columns to read, each once."""
        return list(dict.fromkeys(piece.column for part in self.parts for piece in part))


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
        """Return which columns are features.

        Parameters
        ----------
        columns : sequence of str or None
            Columns, in this order; ``"name_3"`` is an element of a column ``"name"`` of lists. None
            for all columns of numbers, truth values, and lists of numbers.
        without : collection of str
            Columns that are no features, such as the labels.
        """
        chosen = _by_type(self.schema, without) if columns is None else list(map(str, columns))
        known = _Columns(self.schema, self._first_list_length)
        names: list[str] = []
        pieces: list[Piece] = []
        for name in chosen:
            piece = known.piece(name, place=len(names))
            names += piece.names
            if pieces and _follows(pieces[-1], piece):
                pieces[-1] = replace(pieces[-1], width=pieces[-1].width + piece.width)
            else:
                pieces.append(piece)
        _refuse_labels(pieces, without)
        _refuse_twins(names)
        wide = not all(_fits_float32(_number_type(known.types[piece.column])) for piece in pieces)
        return FeaturePlan(names, np.dtype(np.float64 if wide else np.float32), _parts(pieces))

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


def _by_type(schema: pa.Schema, without: Collection[str]) -> list[str]:
    candidates = [field for field in schema if field.name not in without]
    numeric = [_number_type(field.type) is not None for field in candidates]
    chosen = [field.name for field, good in zip(candidates, numeric, strict=True) if good]
    others = [field.name for field, good in zip(candidates, numeric, strict=True) if not good]
    if not chosen:
        raise DataError(
            f"There is no column of numbers among {listed(schema.names)}. Encode the columns first."
        )
    if others:
        logger.warning("Columns that are not numbers are left out: %s.", listed(others))
    return chosen


class _Columns:
    """What can be said of a column by its name."""

    def __init__(self, schema: pa.Schema, list_length: Callable[[str], int]) -> None:
        self.types: dict[str, pa.DataType] = {field.name: field.type for field in schema}
        self._list_length = list_length
        self._lengths: dict[str, int] = {}

    def piece(self, name: str, place: int) -> Piece:
        """Return the features of this name, of which the first is at ``place``."""
        if name not in self.types and self._names_element(name):
            return self._element(name, place)
        if name not in self.types:
            require_column(name, list(self.types), "columns")
        kind = self.types[name]
        if _number_type(kind) is None:
            raise DataError(
                f"Column {name!r} is {kind}, which is not numbers (from row 0 on). Encode it "
                "first, or leave it out of columns."
            )
        if not is_list(kind):
            return Piece(name, place)
        length = self._length(name)
        return Piece(name, place, length, 0, length)

    def _names_element(self, name: str) -> bool:
        base, _, number = name.rpartition("_")
        kind = self.types.get(base)
        lists = kind is not None and is_list(kind) and _number_type(kind) is not None
        return lists and number.isdecimal() and number == str(int(number))

    def _element(self, name: str, place: int) -> Piece:
        base, _, number = name.rpartition("_")
        length = self._length(base)
        if int(number) >= length:
            raise DataError(
                f"There is no {name!r}: the lists of column {base!r} have {length} numbers, "
                f"{base}_0 to {base}_{length - 1}."
            )
        return Piece(base, place, 1, int(number), length)

    def _length(self, name: str) -> int:
        if name not in self._lengths:
            kind = self.types[name]
            fixed = pa.types.is_fixed_size_list(kind)
            self._lengths[name] = kind.list_size if fixed else self._list_length(name)
        if self._lengths[name] == 0:
            raise DataError(f"The first list of column {name!r} is empty. Leave it out of columns.")
        return self._lengths[name]


def _follows(before: Piece, piece: Piece) -> bool:
    one_list = piece.length is not None and piece.column == before.column
    return one_list and piece.first == before.first + before.width


def _refuse_labels(pieces: list[Piece], without: Collection[str]) -> None:
    for piece in pieces:
        if piece.column in without:
            raise DataError(
                f"Column {piece.column!r} is named both as a feature and as the label. Leave it "
                "out of columns."
            )


def _refuse_twins(names: list[str]) -> None:
    if len(set(names)) < len(names):
        twin = next(name for name in names if names.count(name) > 1)
        raise DataError(f"Two features are called {twin!r}. Rename a column, or choose others.")


def _fits_float32(kind: Any) -> bool:
    types = pa.types
    if types.is_integer(kind):
        return bool(kind.bit_width <= _EXACT_IN_FLOAT32)
    return bool(types.is_boolean(kind) or types.is_float16(kind) or types.is_float32(kind))


def _parts(pieces: list[Piece]) -> list[list[Piece]]:
    parts: list[list[Piece]] = []
    for piece in pieces:
        plain = piece.length is None
        if plain and parts and parts[-1][0].length is None and len(parts[-1]) < _PART:
            parts[-1].append(piece)
        else:
            parts.append([piece])
    return parts


def _number_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the type of the numbers in a column, or in its lists; None if it has none."""
    if is_list(kind) or pa.types.is_dictionary(kind):
        kind = kind.value_type
    return kind if is_number(kind) or pa.types.is_boolean(kind) else None


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


def fill(block: NDArray[Any], table: pa.Table, part: list[Piece], first_row: int) -> None:
    """Write the columns of a part into their places of a block of rows.

    Parameters
    ----------
    block : ndarray of shape (n_rows, n_features)
    table : pyarrow.Table
        With the columns of the part.
    part : list of Piece
        Columns of numbers whose places follow each other, or one column of lists.
    first_row : int
        Number of the first row, for messages.
    """
    if len(table) != len(block):
        raise DataError(
            f"Column {part[0].column!r} has {len(table)} values from row {first_row} on where "
            f"{len(block)} were promised: the data is damaged. Write it again."
        )
    start = part[0].place
    if part[0].length is not None:
        _fill_lists(block[:, start : start + part[0].width], table, part[0], first_row)
        return
    columns = np.empty((len(part), len(block) + _PADDING), block.dtype)[:, : len(block)]
    for target, piece in zip(columns, part, strict=True):
        _copy_numbers(target, table.column(piece.column), piece.column, first_row)
    refuse_not_finite(columns.T, first_row, [piece.column for piece in part])
    block[:, start : start + len(part)] = columns.T


def _copy_numbers(target: NDArray[Any], column: pa.ChunkedArray, name: str, first_row: int) -> None:
    at = 0
    for chunk in column.chunks:
        if pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_decode()
        _refuse_nulls(chunk, name, first_row + at)
        target[at : at + len(chunk)] = _as_numpy(chunk)
        at += len(chunk)


def _fill_lists(block: NDArray[Any], table: pa.Table, piece: Piece, first_row: int) -> None:
    assert piece.length is not None
    at = 0
    for chunk in table.column(piece.column).chunks:
        matrix = _matrix_of_lists(chunk, piece.column, piece.length, first_row + at)
        rows = block[at : at + len(chunk)]
        rows[:] = matrix[:, piece.first : piece.first + piece.width]
        refuse_not_finite(rows, first_row + at, piece.names)
        at += len(chunk)


def _matrix_of_lists(lists: pa.Array, name: str, length: int, first_row: int) -> NDArray[Any]:
    _refuse_nulls(lists, name, first_row)
    lengths = pc.list_value_length(lists)
    unlike = pc.not_equal(lengths, length)
    if pc.any(unlike).as_py():
        at = pc.index(unlike, True).as_py()
        raise DataError(
            f"Column {name!r} has a list of {lengths[at].as_py()} numbers in row {first_row + at} "
            f"(counted from 0), and of {length} in row 0. Give all lists the same length."
        )
    values = lists.flatten()
    _refuse_nulls(values, name, first_row, per_row=length)
    return _as_numpy(values).reshape(-1, length)


def _refuse_nulls(array: pa.Array, column: str, first_row: int, per_row: int = 1) -> None:
    """Refuse an array with a value that is missing."""
    if array.null_count:
        row = first_row + pc.index(array.is_null(), True).as_py() // per_row
        raise DataError(
            f"Column {column!r} has no value (null) in row {row} (counted from 0). Fill it, or "
            "remove such rows, first."
        )


def _as_numpy(array: pa.Array) -> NDArray[Any]:
    """Return an Arrow array of numbers or truth values, without nulls, as numpy sees it."""
    if pa.types.is_boolean(array.type):
        array = pc.cast(array, pa.uint8())
    if pa.types.is_decimal(array.type):
        array = pc.cast(array, pa.float64())
    kind = "f" if pa.types.is_floating(array.type) else "i"
    if pa.types.is_unsigned_integer(array.type):
        kind = "u"
    dtype = np.dtype(f"{kind}{array.type.bit_width // 8}")
    if not len(array):
        return np.empty(0, dtype)
    # Array.to_numpy would import pandas: half a second, and its memory.
    return np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)


class LabelColumn:
    """The labels of all rows.

    Parameters
    ----------
    schema : pyarrow.Schema
    name : str
        The column.
    """

    def __init__(self, schema: pa.Schema, name: str) -> None:
        self.name = require_column(name, schema.names, "y")
        kind = schema.field(name).type
        self._kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        self._chunks: list[pa.Array] = []
        self._n_rows = 0
        if not _can_be_labels(self._kind):
            raise LabelError(
                f"Column {name!r} is {kind}, which cannot be labels. Choose a column of words, "
                "whole numbers or truth values."
            )

    def append(self, table: pa.Table) -> None:
        """Take the labels of the next rows."""
        for chunk in table.column(self.name).chunks:
            if pa.types.is_dictionary(chunk.type):
                chunk = chunk.dictionary_decode()
            missing = chunk.is_null(nan_is_null=pa.types.is_floating(self._kind))
            if pc.any(missing).as_py():
                row = self._n_rows + pc.index(missing, True).as_py()
                raise LabelError(
                    f"Column {self.name!r} has no label in row {row} (counted from 0). Label such "
                    "rows, or remove them, first."
                )
            self._chunks.append(chunk)
            self._n_rows += len(chunk)

    def values(self) -> NDArray[Any]:
        """Return all labels: strings, integers, floats or bools."""
        if not is_text(self._kind):
            numbers = np.concatenate([_as_numpy(chunk) for chunk in self._chunks])
            return numbers.astype(bool) if pa.types.is_boolean(self._kind) else numbers
        coded = pa.chunked_array(self._chunks, self._kind).dictionary_encode().unify_dictionaries()
        words = np.array(coded.chunk(0).dictionary.to_pylist(), dtype=str)
        codes = np.concatenate([_as_numpy(chunk.indices) for chunk in coded.chunks])
        return np.take(words, codes)


def _can_be_labels(kind: pa.DataType) -> bool:
    types = pa.types
    words = types.is_string(kind) or types.is_large_string(kind)
    numbers = types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind)
    return bool(words or numbers)
