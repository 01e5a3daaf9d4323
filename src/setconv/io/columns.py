"""What the columns of a table hold, and which of them are texts, labels and features.

First what a column's type and values are, then `as_table` for what users call a table, then the
finders of columns, and last `labels_of`, which makes classes of one.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setconv.errors import DataError, DataTypeError, LabelError
from setconv.messages import count_of, excerpt, listed, require_column

logger = logging.getLogger("setconv")

Array = NDArray[Any]

_MISSING = ("", "na", "n/a", "nan", "null", "?")
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_DAY = 86_400_000_000  # microseconds

_TEXT_NAMES = {
    "text", "texts", "review", "reviews", "tweet", "sentence", "content", "message", "body",
    "comment", "document", "utterance", "question", "post", "description", "headline", "abstract",
    "verbatim",
}  # fmt: skip
_LABEL_NAMES = {
    "label", "labels", "class", "classes", "target", "sentiment", "y", "category", "outcome",
    "polarity", "intent", "topic",
}  # fmt: skip
_SAMPLE = 1000  # rows that are looked at to find a column
_LONG = 20  # characters of a text, on average
_FEW = 20  # distinct values that may be classes

_ID_NAME = re.compile(r"(^|_|\b)(id|ids|uuid|guid|key|index|idx|rownum|unnamed: 0)$", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z]I[dD]$")
_ENOUGH = 20  # rows that tell an id without a telling name

_WHOLE = r"^(0|-?[1-9]\d{0,17})(\.0+)?$"
_SUSPECT = frozenset({"na", "n/a", "null", "none", "?", "-"})


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type holds strings."""
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists, of one length or not."""
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def is_vector(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists of numbers."""
    return is_list(kind) and is_number(kind.value_type)


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
    missing = pc.is_in(bare, pa.array(_MISSING, bare.type))
    return pc.if_else(missing, pa.scalar(None, texts.type), texts)


def known_texts(texts: Any) -> Any:
    """Return the strings that do not stand for a missing value."""
    return without_missing(texts).drop_null()


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
        column = _parse(column, kind, name, first_row)
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


def _parse(texts: Any, kind: str, name: str, first_row: int) -> Any:
    known = without_missing(texts)
    bare = pc.utf8_trim_whitespace(known)
    if kind == "boolean":
        lower = pc.utf8_lower(bare)
        good = pc.is_in(lower, pa.array(["true", "false", "1", "0"], lower.type))
        _refuse_others(texts, pc.or_(good, pc.is_null(known)), name, "true or false", first_row)
        return pc.if_else(
            pc.is_null(known), None, pc.is_in(lower, pa.array(["true", "1"], lower.type))
        )
    if kind == "date":
        if not are_dates(known):
            good = [one is None or are_dates(pa.array([one])) for one in known.to_pylist()]
            _refuse_others(texts, pa.array(good), name, "a date such as 2024-01-31", first_row)
        return pc.cast(bare, pa.timestamp("us"))
    _refuse_others(texts, pc.fill_null(are_numbers(known), True), name, "a number", first_row)
    return pc.cast(bare, pa.float64())


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


def as_table(X: Any) -> pa.Table:
    """Return a pyarrow table, a pandas or polars frame, or a dict of columns as a pyarrow table."""
    if isinstance(X, pa.Table):
        return X
    try:
        if isinstance(X, pa.RecordBatch):
            return pa.Table.from_batches([X])
        if isinstance(X, Mapping):
            return pa.table({str(name): _as_column(values) for name, values in X.items()})
        if hasattr(X, "iloc"):
            return pa.Table.from_pandas(X, preserve_index=False).replace_schema_metadata(None)
        if hasattr(X, "__arrow_c_stream__"):
            return pa.table(X)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"The table cannot be read: {error}. Each column needs values of one type, and all "
            "columns the same length."
        ) from error
    raise DataTypeError(
        f"A table is expected, not {type(X).__name__}: give a pyarrow table, a pandas or polars "
        "frame, or a dict of columns by name."
    )


def _as_column(values: Any) -> Any:
    if hasattr(values, "__arrow_c_array__") or hasattr(values, "__arrow_c_stream__"):
        return values
    return pa.array(values)


def find_text_column(sample: pa.Table, given: str | None = None) -> str | None:
    """Return the name of the column that holds the texts.

    Parameters
    ----------
    sample : pyarrow.Table
        The first rows are looked at.
    given : str or None, default=None
        The name that the user gives; it must exist.

    Returns
    -------
    str or None
        The given name; else the only column with a common name (text, review, tweet ...) or, if
        there is none, with long strings. None if no column looks like text: a feature file. If
        several do, a `DataError` lists them with an example each.
    """
    if given is not None:
        return require_column(given, sample.column_names, "--text")
    table = _first_rows(sample)
    words = [name for name in table.column_names if _holds_words(table[name])]
    found = _by_name(words, _TEXT_NAMES, lambda name: _looks_like_text(table[name]))
    if not found:
        found = [name for name in words if _looks_like_text(table[name])]
        _say_guess("texts", found, "long strings")
    if len(found) > 1:
        raise _unsure("texts", "--text", found, table)
    return found[0] if found else None


def find_label_column(
    sample: pa.Table, given: str | None = None, *, exclude: Iterable[str] = ()
) -> str:
    """Return the name of the column that holds the labels.

    Parameters
    ----------
    sample : pyarrow.Table
        The first rows are looked at.
    given : str or None, default=None
        The name that the user gives; it must exist.
    exclude : iterable of str, default=()
        Columns that it is not, such as the texts.

    Returns
    -------
    str
        The given name; else the only column with a common name (label, class, sentiment ...) or,
        if there is none, with few distinct values. If none or several do, a `DataError` lists the
        candidates with an example each.
    """
    if given is not None:
        return require_column(given, sample.column_names, "--label")
    names = [name for name in sample.column_names if name not in set(exclude)]
    table = _first_rows(sample.select(names))
    found = _by_name(table.column_names, _LABEL_NAMES, lambda name: _has_few_values(table[name]))
    if not found:
        found = [name for name in table.column_names if _has_few_values(table[name])]
        _say_guess("labels", found, "few distinct values")
    if len(found) == 1:
        return found[0]
    raise _unsure("labels", "--label", found, table)


def _by_name(names: list[str], known: set[str], fits: Callable[[str], bool]) -> list[str]:
    """Return the columns with a known name; if none, those with a known word in it that fit."""
    exact = [name for name in names if name.strip().lower() in known]
    if len(exact) > 1:
        return [name for name in exact if fits(name)] or exact
    return exact or [name for name in names if known & set(_words(name)) and fits(name)]


def _words(name: str) -> list[str]:
    apart = re.sub(r"([a-z])([A-Z])", r"\1 \2", name)
    return re.findall(r"[a-z]+", apart.lower())


def _first_rows(sample: pa.Table) -> pa.Table:
    table = sample.slice(0, _SAMPLE)
    return pa.table({name: plain(table[name]) for name in table.column_names})


def _holds_words(column: pa.ChunkedArray) -> bool:
    """Whether these are strings, and not all of them numbers."""
    if not is_text(column.type):
        return False
    known = known_texts(column)
    return len(known) == 0 or not pc.all(are_numbers(known)).as_py()


def _looks_like_text(column: pa.ChunkedArray) -> bool:
    known = known_texts(column)
    if len(known) == 0:
        return False
    long = pc.mean(pc.utf8_length(known)).as_py() >= _LONG
    spaced = pc.mean(pc.cast(pc.match_substring(known, " "), pa.uint8())).as_py() >= 0.5
    varied = pc.count_distinct(known).as_py() > min(_FEW, len(known) // 2)
    return bool(long and spaced and varied)


def _has_few_values(column: pa.ChunkedArray) -> bool:
    if not (is_text(column.type) or is_number(column.type) or pa.types.is_boolean(column.type)):
        return False
    known = known_texts(column) if is_text(column.type) else column.drop_null()
    distinct = pc.count_distinct(known).as_py()
    return bool(2 <= distinct <= min(_FEW, max(len(known) // 2, 2)))


def _say_guess(what: str, found: list[str], reason: str) -> None:
    if len(found) == 1:
        logger.info("The %s are taken from %r, the only column with %s.", what, found[0], reason)


def _unsure(what: str, option: str, found: list[str], table: pa.Table) -> DataError:
    if not found:
        return DataError(
            f"Which column holds the {what}? None looks like it. The columns are "
            f"{listed(table.column_names)}: give one with {option}."
        )
    shown = ", ".join(f"{name!r} (such as {_example(table[name])})" for name in found[:10])
    more = f" and {len(found) - 10} more" if len(found) > 10 else ""
    return DataError(
        f"Which column holds the {what}? It could be {shown}{more}. Give one with {option}."
    )


def _example(column: pa.ChunkedArray) -> str:
    known = column.drop_null()
    return excerpt(known[0].as_py(), 30) if len(known) else "nothing"


def feature_columns(table: pa.Table, exclude: Iterable[str] = ()) -> tuple[list[str], list[str]]:
    """Return the columns that can be features, and notes on those left out.

    Parameters
    ----------
    table : pyarrow.Table
    exclude : iterable of str, default=()
        Columns that are something else, such as the labels.

    Returns
    -------
    names : list of str
    notes : list of str
        A sentence for each column that only numbers or names the rows: different strings in every
        row, or whole numbers that are all distinct and either count up by 1 or are called an id.
    """
    excluded = set(exclude)
    names, notes = [], []
    for name in table.column_names:
        if name in excluded:
            continue
        reason = _identifies(name, plain(table[name]))
        if reason is None:
            names.append(name)
        else:
            notes.append(f"{name}: left out, because {reason}.")
    return names, notes


def _identifies(name: str, column: pa.ChunkedArray) -> str | None:
    """Return why a column only numbers or names the rows; None if it does not."""
    called_id = bool(_ID_NAME.search(name) or _CAMEL_ID.search(name))
    if len(column) < 2 or (len(column) < _ENOUGH and not called_id):
        return None
    numbers = _integers(column)
    if numbers is not None:
        steps = np.diff(numbers)
        if len(steps) and (steps == 1).all():
            return "it only numbers the rows"
        if called_id and len(np.unique(numbers)) == len(numbers):
            return "it is an id with another value in every row"
        return None
    if is_text(column.type) and _distinct_words(column):
        return "it has another value in every row, as an id or a free text has"
    return None


def _integers(column: pa.ChunkedArray) -> Any:
    """Return whole numbers without gaps as an array; None for anything else."""
    if is_text(column.type):
        if not pc.all(pc.match_substring_regex(column, r"^\s*-?\d{1,18}\s*$")).as_py():
            return None
        column = pc.cast(pc.utf8_trim_whitespace(column), pa.int64())
    if not pa.types.is_integer(column.type) or column.null_count:
        return None
    return column.to_numpy().astype(np.int64)


def _distinct_words(column: pa.ChunkedArray) -> bool:
    known = known_texts(column)
    if len(known) < 2 or pc.count_distinct(known).as_py() < len(known):
        return False
    return not pc.all(are_numbers(known)).as_py() and not are_dates(known)


@overload
def labels_of(column: Any, *, drop: Literal[False] = False) -> Array: ...


@overload
def labels_of(column: Any, *, drop: Literal[True]) -> tuple[Array, NDArray[np.bool_]]: ...


def labels_of(column: Any, *, drop: bool = False) -> Array | tuple[Array, NDArray[np.bool_]]:
    """Return labels as a numpy array of ints, strings or bools.

    Whole numbers in their usual form ("0", "-1", 1.0) become ints if all labels are; "01" stays a
    string, and so do "true" and "false". Labels are never merged: where some differ only in case
    or in spaces at their ends, or numbers and words are mixed, a warning names them.

    Parameters
    ----------
    column : pyarrow array, or sequence
    drop : bool, default=False
        Whether rows without a label (null, NaN, blank) are left out instead of refused.

    Returns
    -------
    labels : ndarray
    mask : ndarray of bool
        With ``drop``: which rows have a label. ``labels`` has only those.
    """
    values = plain(column if isinstance(column, pa.Array | pa.ChunkedArray) else _as_array(column))
    present = _present(values)
    missing = np.flatnonzero(~present)
    if len(missing) and not drop:
        raise _unlabelled(missing, len(present))
    labels = _converted(values.filter(pa.array(present)))
    return (labels, present) if drop else labels


def _as_array(values: Any) -> Any:
    try:
        return pa.array(values, from_pandas=True)
    except pa.ArrowException:
        # Values of several types; as strings they can at least be named.
        return pa.array([None if one is None else str(one) for one in values])


def _present(values: Any) -> NDArray[np.bool_]:
    if is_text(values.type):
        bare = pc.utf8_lower(pc.utf8_trim_whitespace(values))
        good = pc.invert(pc.is_in(bare, pa.array(["", "nan"], bare.type)))
        good = pc.and_(good, pc.is_valid(values))
    else:
        good = pc.invert(pc.is_null(values, nan_is_null=True))
    present: NDArray[np.bool_] = np.asarray(good, dtype=bool)
    return present


def _unlabelled(rows: NDArray[np.int64], n_rows: int) -> LabelError:
    shown = ", ".join(str(row + 1) for row in rows[:5])
    more = " ..." if len(rows) > 5 else ""
    return LabelError(
        f"{count_of(len(rows), 'row')} of {n_rows} have no label (row {shown}{more}, counted from "
        "1 after the column names). Label them, remove them, or leave them out with "
        "--empty skip."
    )


def _converted(values: Any) -> Array:
    kind = values.type
    if is_text(kind):
        return _from_texts(values)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return np.asarray(values)
    if is_number(kind):
        return _from_floats(np.asarray(pc.cast(values, pa.float64(), safe=False)))
    if pa.types.is_null(kind):
        return np.array([], dtype=str)
    raise LabelError(
        f"Labels of type {kind} cannot be classes. Choose another column with --label, or write "
        "the classes as words or whole numbers."
    )


def _from_floats(numbers: NDArray[np.float64]) -> Array:
    if (numbers == np.floor(numbers)).all() and (np.abs(numbers) < 2**53).all():
        return numbers.astype(np.int64)
    _refuse_measurements(numbers)
    return np.array([f"{number:g}" for number in numbers])


def _from_texts(texts: Any) -> Array:
    if pc.all(pc.match_substring_regex(texts, _WHOLE)).as_py():
        return np.asarray(pc.cast(pc.replace_substring_regex(texts, r"\.0+$", ""), pa.int64()))
    numeric = np.asarray(are_numbers(texts), dtype=bool)
    if numeric.all() and pc.any(pc.match_substring(texts, ".")).as_py():
        _refuse_measurements(np.asarray(pc.cast(pc.utf8_trim_whitespace(texts), pa.float64())))
    found: list[str] = texts.to_pylist()
    _warn_of_odd_labels(Counter(found))
    return np.array(found, dtype=str)


def _refuse_measurements(numbers: NDArray[np.float64]) -> None:
    distinct = np.unique(numbers)
    if len(distinct) > _FEW:
        raise LabelError(
            f"The labels are measurements, not classes: {len(distinct)} different numbers such as "
            f"{distinct[0]:g} and {distinct[1]:g}. Choose another column with --label, or make "
            "classes of them first."
        )


def _warn_of_odd_labels(counts: Counter[str]) -> None:
    alike: dict[str, list[str]] = defaultdict(list)
    for label in counts:
        alike[label.strip().casefold()].append(label)
    for labels in alike.values():
        if len(labels) > 1:
            shown = ", ".join(f"{excerpt(one)} ({count_of(counts[one], 'row')})" for one in labels)
            logger.warning(
                "The labels %s differ only in case or spaces. They are taken as different classes; "
                "make them equal if they are one.",
                shown,
            )
    numbers = [one for one in counts if _reads_as_float(one)]
    if numbers and len(numbers) < len(counts):
        words = [one for one in counts if not _reads_as_float(one)]
        logger.warning(
            "The labels mix numbers (%s) and words (%s). All are taken as words.",
            listed(numbers[:5]),
            listed(words[:5]),
        )
    suspect = [one for one in counts if one.strip().lower() in _SUSPECT]
    if suspect:
        logger.warning(
            "The label %s is taken as a class. If it stands for a missing label, empty those "
            "fields.",
            listed(suspect),
        )


def _reads_as_float(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True
