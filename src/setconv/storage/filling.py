"""Columns of an Arrow table as rows of a matrix, checked on the way.

Some columns at a time are laid below each other and then turned: to write a column straight into
its place of each row costs three times as much, because every number is on another page.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setconv.errors import DataError
from setconv.storage.features import Piece, feature_names
from setconv.storage.finite import refuse_not_finite

_PADDING = 16  # keeps columns of 2^k rows from falling on the same lines of the cache


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


def numbers_of(array: pa.Array) -> NDArray[Any]:
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


def refuse_nulls(array: pa.Array, column: str, first_row: int, per_row: int = 1) -> None:
    """Refuse an array with a value that is missing."""
    if array.null_count:
        row = first_row + pc.index(array.is_null(), True).as_py() // per_row
        raise DataError(
            f"Column {column!r} has no value (null) in row {row} (counted from 0). Fill it, or "
            "remove such rows, first."
        )


def _copy_numbers(target: NDArray[Any], column: pa.ChunkedArray, name: str, first_row: int) -> None:
    at = 0
    for chunk in column.chunks:
        if pa.types.is_dictionary(chunk.type):
            chunk = chunk.dictionary_decode()
        refuse_nulls(chunk, name, first_row + at)
        target[at : at + len(chunk)] = numbers_of(chunk)
        at += len(chunk)


def _fill_lists(block: NDArray[Any], table: pa.Table, piece: Piece, first_row: int) -> None:
    assert piece.length is not None
    at = 0
    for chunk in table.column(piece.column).chunks:
        matrix = _matrix(chunk, piece.column, piece.length, first_row + at)
        rows = block[at : at + len(chunk)]
        rows[:] = matrix[:, piece.first : piece.first + piece.width]
        refuse_not_finite(rows, first_row + at, feature_names(piece))
        at += len(chunk)


def _matrix(lists: pa.Array, name: str, length: int, first_row: int) -> NDArray[Any]:
    refuse_nulls(lists, name, first_row)
    lengths = pc.list_value_length(lists)
    unlike = pc.not_equal(lengths, length)
    if pc.any(unlike).as_py():
        at = pc.index(unlike, True).as_py()
        raise DataError(
            f"Column {name!r} has a list of {lengths[at].as_py()} numbers in row {first_row + at} "
            f"(counted from 0), and of {length} in row 0. Give all lists the same length."
        )
    values = lists.flatten()
    refuse_nulls(values, name, first_row, per_row=length)
    return numbers_of(values).reshape(-1, length)
