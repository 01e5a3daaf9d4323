"""What values are: missing, numbers, words; the same for strings from CSV and for typed columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setconv.errors import DataError
from setconv.names import excerpt

MISSING = ("", "na", "n/a", "nan", "null", "?")
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_DAY = 86_400_000_000


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds strings."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_vector(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists of numbers."""
    types = pa.types
    lists = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(lists and is_number(kind.value_type))


def is_date(kind: pa.DataType) -> bool:
    """Whether a column of this type holds dates, with or without a time."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def plain(column: Any) -> Any:
    """Return a column without dictionary, and strings as one type."""
    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if is_text(column.type) and not pa.types.is_large_string(column.type):
        column = pc.cast(column, pa.large_string())
    return column


def without_missing(texts: Any) -> Any:
    """Return strings with null for what stands for a missing value ("", NA, nan, null, ?)."""
    bare = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    missing = pc.is_in(bare, pa.array(MISSING, bare.type))
    return pc.if_else(missing, pa.scalar(None, texts.type), texts)


def are_numbers(texts: Any) -> Any:
    """Return for each string whether it is a number; null for null."""
    return pc.match_substring_regex(pc.utf8_trim_whitespace(texts), _NUMBER)


def are_dates(texts: Any) -> bool:
    """Whether all strings are dates such as 2024-01-31, with or without a time."""
    try:
        pc.cast(pc.utf8_trim_whitespace(texts), pa.timestamp("us"))
    except pa.ArrowInvalid:
        return False
    return True


def as_numbers(column: Any, kind: str, name: str, first_row: int) -> NDArray[Any]:
    """Return a column as floats, NaN where missing.

    Parameters
    ----------
    column : pyarrow array
        As `plain` gives it.
    kind : {"number", "boolean", "date"}
        What strings and other types are read as; a date is its days since 1970-01-01.
    name : str
        For messages.
    first_row : int
        Number of the first row, for messages.
    """
    if is_text(column.type):
        column = _parsed(column, kind, name, first_row)
    if is_date(column.type) and kind == "date":
        stamps = pc.cast(column, pa.timestamp("us", getattr(column.type, "tz", None)), safe=False)
        return _floats(pc.cast(stamps, pa.int64())) / _DAY
    if pa.types.is_boolean(column.type):
        column = pc.cast(column, pa.uint8())
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    if not is_number(column.type) or kind == "date":
        raise DataError(
            f"The column {name!r} is {column.type} here, but was a {kind} column in training. Give "
            "it the same type."
        )
    return _floats(column)


def _parsed(texts: Any, kind: str, name: str, first_row: int) -> Any:
    known = without_missing(texts)
    bare = pc.utf8_trim_whitespace(known)
    if kind == "boolean":
        lower = pc.utf8_lower(bare)
        good = pc.is_in(lower, pa.array(["true", "false", "1", "0"], lower.type))
        _refuse_others(texts, pc.or_(good, pc.is_null(known)), name, "true or false", first_row)
        return pc.if_else(pc.is_null(known), None, pc.is_in(lower, _TRUE))
    if kind == "date":
        if not are_dates(known):
            good = [one is None or are_dates(pa.array([one])) for one in known.to_pylist()]
            _refuse_others(texts, pa.array(good), name, "a date such as 2024-01-31", first_row)
        return pc.cast(bare, pa.timestamp("us"))
    _refuse_others(texts, pc.fill_null(are_numbers(known), True), name, "a number", first_row)
    return pc.cast(bare, pa.float64())


_TRUE = pa.array(["true", "1"], pa.large_string())


def _refuse_others(texts: Any, good: Any, name: str, wanted: str, first_row: int) -> None:
    if pc.all(good).as_py() is not False:
        return
    at = pc.index(good, False).as_py()
    raise DataError(
        f"The column {name!r} has {excerpt(texts[at].as_py())} in row {first_row + at}, which is "
        f"not {wanted}. Correct the value, or leave the field empty if it is missing."
    )


def _floats(column: Any) -> NDArray[Any]:
    if not (pa.types.is_float32(column.type) or pa.types.is_float64(column.type)):
        column = pc.cast(column, pa.float64(), safe=False)
    if isinstance(column, pa.ChunkedArray):
        numbers: NDArray[Any] = column.to_numpy()
    else:
        numbers = column.to_numpy(zero_copy_only=False)
    return numbers
