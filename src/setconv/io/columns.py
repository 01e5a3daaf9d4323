"""What the columns of a table hold, and which of them are texts, labels and features.

First what a column's type and values are, then `as_table` for what users call a table, then the
finder of columns (`find_columns`, `feature_columns`), and last what makes classes of one.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from setconv.data import collected, joined
from setconv.errors import DataError, DataTypeError, LabelError
from setconv.messages import count_of, excerpt, listed, require_column

logger = logging.getLogger("setconv")

Array = NDArray[Any]
Numbers = Sequence[int] | NDArray[np.int64]

MISSING = ("", "na", "n/a", "nan", "null", "?")
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
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_number(kind: pa.DataType) -> bool:
    """Whether a column of this type holds numbers."""
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_list(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists, of one length or not."""
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def is_vector(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists of numbers."""
    return is_list(kind) and is_number(kind.value_type)


def is_date(kind: pa.DataType) -> bool:
    """Whether a column of this type holds dates, with or without a time."""
    return bool(types.is_date(kind) or types.is_timestamp(kind))


def plain(column: Any) -> Any:
    """Return a column without dictionary, and strings as one type."""
    if types.is_dictionary(column.type) and not types.is_nested(column.type.value_type):
        column = pc.cast(column, column.type.value_type)
    return pc.cast(column, pa.large_string()) if is_text(column.type) else column


def without_missing(texts: Any) -> Any:
    """Return strings with null for what stands for a missing value ("", NA, nan, null, ?)."""
    bare = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    missing = pc.is_in(bare, pa.array(MISSING, bare.type))
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


def as_numbers(column: Any, kind: str, name: str, rows: Numbers) -> NDArray[Any]:
    """Return a column as floats, NaN where missing.

    Parameters
    ----------
    column : pyarrow array
        As `plain` gives it.
    kind : {"number", "boolean", "date"}
        What strings and other types are read as; a date is its days since 1970-01-01.
    name : str
        For messages.
    rows : sequence of int
        What messages call the rows.
    """
    if is_text(column.type):
        column = _parse(column, kind, name, rows)
    if is_date(column.type) and kind == "date":
        stamps = pc.cast(column, pa.timestamp("us", getattr(column.type, "tz", None)), safe=False)
        return np.asarray(pc.cast(pc.cast(stamps, pa.int64()), pa.float64(), safe=False)) / _DAY
    if types.is_boolean(column.type):
        column = pc.cast(column, pa.uint8())
    if types.is_null(column.type):
        return np.full(len(column), np.nan)
    if not is_number(column.type) or kind == "date":
        raise DataError(
            f"The column {name!r} is {column.type} here, but was a {kind} column in training. Give "
            "it the same type.",
            column=name,
        )
    if not (types.is_float32(column.type) or types.is_float64(column.type)):
        column = pc.cast(column, pa.float64(), safe=False)
    return np.asarray(column)


def _parse(texts: Any, kind: str, name: str, rows: Numbers) -> Any:
    known = without_missing(texts)
    bare = pc.utf8_trim_whitespace(known)
    if kind == "boolean":
        good = pc.match_substring_regex(pc.utf8_lower(bare), "^(true|false|1|0)$")
        _refuse_others(texts, good, name, "true or false", rows)
        return pc.cast(bare, pa.bool_())
    if kind == "date":
        if not are_dates(known):
            good = [one is None or are_dates(pa.array([one])) for one in known.to_pylist()]
            _refuse_others(texts, pa.array(good), name, "a date such as 2024-01-31", rows)
        return pc.cast(bare, pa.timestamp("us"))
    _refuse_others(texts, are_numbers(known), name, "a number", rows)
    return pc.cast(bare, pa.float64())


def _refuse_others(texts: Any, good: Any, name: str, wanted: str, rows: Numbers) -> None:
    at = pc.index(good, False).as_py()
    if at >= 0:
        raise DataError(
            f"The column {name!r} has {excerpt(texts[at].as_py())} in row {rows[at]}, which is "
            f"not {wanted}. Correct the value, or leave the field empty if it is missing.",
            row=int(rows[at]),
            column=name,
        )


def as_table(X: Any) -> pa.Table:
    """Return a pyarrow table, a pandas or polars frame, or a dict of columns as a pyarrow table."""
    try:
        table = _converted(collected(X))
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"The table cannot be read: {error}. Each column needs values of one type, and all "
            "columns the same length."
        ) from error
    for name, count in Counter(table.column_names).items():
        if count > 1:
            raise DataError(f"{count} columns are called {name!r}: rename them.", column=name)
    return table


def _converted(X: Any) -> pa.Table:
    if isinstance(X, pa.Table):
        return X
    if isinstance(X, Mapping):
        return pa.table({str(name): _column(values, str(name)) for name, values in X.items()})
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return pa.Table.from_pandas(X, preserve_index=False).replace_schema_metadata(None)
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return pa.table(X)
    raise DataTypeError(
        f"A table is expected, not {type(X).__name__}: give a pyarrow table, a pandas or polars "
        "frame, or a dict of columns by name."
    )


def _column(values: Any, name: str) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise DataError(
            f"The column {name!r} cannot be read: {error}. Give all its values one type.",
            column=name,
        ) from error


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are what.

    Attributes
    ----------
    label : str
    text : str or None
        None if the rows are features.
    group, id, time : str or None
    """

    label: str
    text: str | None = None
    group: str | None = None
    id: str | None = None
    time: str | None = None

    @property
    def no_features(self) -> list[str]:
        """Columns that are no features."""
        return [one for one in (self.label, self.group, self.id, self.time) if one]


def find_columns(
    sample: pa.Table,
    *,
    text: str | None = None,
    label: str | None = None,
    features: Sequence[str] | None = None,
    group: str | None = None,
    id: str | None = None,
    time: str | None = None,
) -> Columns:
    """Return which columns are what: those that the user names, which must exist, and found ones.

    Parameters
    ----------
    sample : pyarrow.Table
        The first rows are looked at.
    text, label, group, id, time : str, optional
        Columns that the user names. Texts and labels are found if they are not named.
    features : sequence of str, optional
        Columns that the user names; with them, even if they are none, no texts are looked for.
    """
    named = [("text", text), ("label", label), ("group", group), ("id", id), ("time", time)]
    for parameter, name in [*named, *(("features", one) for one in features or ())]:
        if name is not None:
            require_column(name, sample.column_names, parameter)
    others = [one for one in (group, id, time) if one is not None]
    if text is None and features is None:
        text = find_text_column(sample, exclude=[label, *others])
    rows = [*(features or ()), *([] if text is None else [text])]
    label = label or find_label_column(sample, exclude=[*others, *rows])
    twice = set(rows) & {label, *others}
    if twice:
        raise DataError(
            f"The column {min(twice)!r} holds labels, groups, ids or times, and cannot be a "
            "feature or a text as well.",
            parameter="text" if min(twice) == text else "features",
            column=min(twice),
        )
    return Columns(label, text, group, id, time)


def find_text_column(sample: pa.Table, exclude: Collection[str | None] = ()) -> str | None:
    """Return the column that holds the texts; None if no column looks like it.

    It is the only one with a common name (text, review, tweet ...) or, if there is none, with long
    strings. If several are, a `DataError` lists them with an example each.
    """
    table = _first_rows(sample, exclude)
    words = [name for name in table.column_names if _holds_words(table[name])]
    return _find(table.select(words), "text", _TEXT_NAMES, _looks_like_text, "long strings")


def find_label_column(sample: pa.Table, exclude: Collection[str | None] = ()) -> str:
    """Return the column that holds the labels.

    It is the only one with a common name (label, class, sentiment ...) or, if there is none, with
    few distinct values. If none or several are, a `DataError` lists them with an example each.
    """
    table = _first_rows(sample, exclude)
    found = _find(table, "label", _LABEL_NAMES, _has_few_values, "few distinct values")
    return found or nothing_found("label", sample.column_names)


def refuse_no_classes(counts: NDArray[Any], name: str, others: pa.Table) -> None:
    """Refuse a label column that names or measures the rows: hardly one has a value of another.

    That is, more than half of the rows have a value of their own, or more than 20 values have
    fewer than three rows each on average; two values are always two classes. ``counts`` are the
    rows of each value, ``others`` the columns that could hold the labels instead.
    """
    n_rows, n_values, n_alone = int(counts.sum()), len(counts), int((counts == 1).sum())
    if n_values <= 2 or (2 * n_alone <= n_rows and not _FEW < n_values > n_rows // 3):
        return
    first = _first_rows(others, [name])
    fit = [one for one in first.column_names if _has_few_values(first[one])]
    look = f"These look like labels: {listed(fit)}" if fit else "No other column looks like labels"
    raise LabelError(
        f"The column {name!r} has {n_values} different values in {n_rows} rows, as ids, "
        f"measurements or free texts have: they are no classes. {look}.",
        parameter="label",
        column=name,
        hint="Name it: label=.",
    )


def nothing_found(parameter: str, names: Sequence[str]) -> NoReturn:
    """Say that no column looks like texts or labels."""
    raise DataError(
        f"Which column holds the {parameter}s? None looks like it. The columns are "
        f"{listed(names)}.",
        parameter=parameter,
        hint=f"Name it: {parameter}=.",
    )


def _find(
    table: pa.Table, parameter: str, known: set[str], fits: Callable[[Any], bool], reason: str
) -> str | None:
    found = _by_name(table.column_names, known, lambda name: fits(table[name]))
    if not found:
        found = [name for name in table.column_names if fits(table[name])]
        if len(found) == 1:
            what = f"{parameter}s"
            logger.info("The %s are those of %r, the only column with %s.", what, found[0], reason)
    if len(found) > 1:
        shown = ", ".join(f"{name!r} (such as {_example(table[name])})" for name in found[:10])
        more = f" and {len(found) - 10} more" if len(found) > 10 else ""
        raise DataError(
            f"Which column holds the {parameter}s? It could be {shown}{more}.",
            parameter=parameter,
            hint=f"Name it: {parameter}=.",
        )
    return found[0] if found else None


def _by_name(names: list[str], known: set[str], fits: Callable[[str], bool]) -> list[str]:
    """Return the columns with a known name; if none, those with a known word in it that fit."""
    exact = [name for name in names if name.strip().lower() in known]
    if len(exact) > 1:
        return [name for name in exact if fits(name)] or exact
    return exact or [name for name in names if known & set(_words(name)) and fits(name)]


def _words(name: str) -> list[str]:
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())


def _first_rows(sample: pa.Table, exclude: Collection[str | None]) -> pa.Table:
    rows = sample.slice(0, _SAMPLE)
    return pa.table({name: plain(rows[name]) for name in rows.column_names if name not in exclude})


def _holds_words(column: pa.ChunkedArray) -> bool:
    """Whether these are strings, and not all of them numbers; of none pyarrow's `all` is null."""
    return is_text(column.type) and not pc.all(are_numbers(known_texts(column))).as_py()


def _looks_like_text(column: pa.ChunkedArray) -> bool:
    known = known_texts(column)
    if pc.count_distinct(known).as_py() <= min(_FEW, len(known) // 2):
        return False
    long = pc.mean(pc.utf8_length(known)).as_py() >= _LONG
    return bool(long and pc.mean(pc.match_substring(known, " ")).as_py() >= 0.5)


def _has_few_values(column: pa.ChunkedArray) -> bool:
    if not (is_text(column.type) or is_number(column.type) or types.is_boolean(column.type)):
        return False
    known = known_texts(column) if is_text(column.type) else column.drop_null()
    distinct = pc.count_distinct(known).as_py()
    return bool(2 <= distinct <= min(_FEW, max(len(known) // 2, 2)))


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
    free = [name for name in table.column_names if name not in excluded]
    reasons = {name: _identifies(name, plain(table[name])) for name in free}
    notes = [f"{name}: left out, because {why}." for name, why in reasons.items() if why]
    return [name for name in free if reasons[name] is None], notes


def _identifies(name: str, column: pa.ChunkedArray) -> str | None:
    """Return why a column only numbers or names the rows; None if it does not."""
    called_id = bool(_ID_NAME.search(name) or _CAMEL_ID.search(name))
    if len(column) < 2 or (len(column) < _ENOUGH and not called_id):
        return None
    numbers = _integers(column)
    if numbers is None:
        words = is_text(column.type) and _distinct_words(column)
        return "it has another value in every row, as an id or a free text has" if words else None
    if (np.diff(numbers) == 1).all():
        return "it only numbers the rows"
    unique = called_id and len(np.unique(numbers)) == len(numbers)
    return "it is an id with another value in every row" if unique else None


def _integers(column: pa.ChunkedArray) -> Any:
    """Return whole numbers without gaps as an array; None for anything else."""
    if is_text(column.type):
        if not pc.all(pc.match_substring_regex(column, r"^\s*-?\d{1,18}\s*$")).as_py():
            return None
        column = pc.cast(pc.utf8_trim_whitespace(column), pa.int64())
    if not types.is_integer(column.type) or column.null_count:
        return None
    return column.to_numpy().astype(np.int64)


def _distinct_words(column: pa.ChunkedArray) -> bool:
    known = known_texts(column)
    distinct = len(known) >= 2 and pc.count_distinct(known).as_py() == len(known)
    return distinct and not pc.all(are_numbers(known)).as_py() and not are_dates(known)


def has_text(column: Any) -> NDArray[np.bool_]:
    """Return which rows of a column have a text that is not blank."""
    texts = plain(column)
    if not is_text(texts.type):
        return np.zeros(len(texts), dtype=bool)
    return _as_mask(pc.not_equal(pc.utf8_trim_whitespace(texts), ""))


def has_label(column: Any) -> NDArray[np.bool_]:
    """Return which rows of a column have a label: not null, NaN or blank."""
    values = plain(column)
    if not is_text(values.type):
        return _as_mask(pc.invert(pc.is_null(values, nan_is_null=True)))
    bare = pc.utf8_lower(pc.utf8_trim_whitespace(values))
    return _as_mask(pc.invert(pc.is_in(bare, pa.array(["", "nan", None], bare.type))))


def _as_mask(column: Any) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(column, False), dtype=np.bool_)


def labels_of(column: Any, counts: NDArray[Any] | None = None) -> Array:
    """Return labels, of which none is missing, as a numpy array of ints, strings or bools.

    Whole numbers in their usual form ("0", "-1", 1.0) become ints if all labels are; "01" stays a
    string, and so do "true" and "false". Labels are never merged: where some differ only in case
    or in spaces at their ends, or numbers and words are mixed, a warning names them.
    """
    values = plain(column)
    kind = values.type
    if is_text(kind):
        return _from_texts(values, counts)
    if types.is_boolean(kind) or types.is_integer(kind):
        return np.asarray(values)
    if not is_number(kind):
        raise _no_labels(f"Labels of type {kind} cannot be classes.")
    numbers = np.asarray(pc.cast(values, pa.float64(), safe=False))
    if (numbers == np.floor(numbers)).all() and (np.abs(numbers) < 2**53).all():
        return numbers.astype(np.int64)
    _refuse_measurements(numbers)
    return np.array([f"{number:g}" for number in numbers])


def _no_labels(message: str, parameter: str = "label") -> LabelError:
    return LabelError(
        f"{message} Write the classes as words or whole numbers, or choose another column.",
        parameter=parameter,
        hint=f"Name it: {parameter}=.",
    )


def _from_texts(texts: Any, counts: NDArray[Any] | None) -> Array:
    if pc.all(pc.match_substring_regex(texts, _WHOLE)).as_py():
        return np.asarray(pc.cast(pc.replace_substring_regex(texts, r"\.0+$", ""), pa.int64()))
    numeric = np.asarray(are_numbers(texts), dtype=bool)
    if numeric.all() and pc.any(pc.match_substring(texts, ".")).as_py():
        _refuse_measurements(np.asarray(pc.cast(pc.utf8_trim_whitespace(texts), pa.float64())))
    found: list[str] = texts.to_pylist()
    often = Counter(found) if counts is None else dict(zip(found, counts.tolist(), strict=True))
    _warn_of_odd_labels(often)
    return np.array(found, dtype=str)


def _refuse_measurements(numbers: NDArray[np.float64]) -> None:
    distinct = np.unique(numbers)
    if len(distinct) > _FEW:
        raise _no_labels(
            f"The labels are measurements, not classes: {len(distinct)} different numbers such as "
            f"{distinct[0]:g} and {distinct[1]:g}."
        )


def _warn_of_odd_labels(counts: dict[str, int]) -> None:
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
    numeric = are_numbers(pa.array(list(counts)))
    if pc.any(numeric).as_py() and not pc.all(numeric).as_py():
        logger.warning("The labels mix numbers and words: %s. All are words.", listed(list(counts)))
    suspect = [one for one in counts if one.strip().lower() in _SUSPECT]
    if suspect:
        logger.warning(
            "The label %s is taken as a class. If it stands for a missing label, empty those "
            "fields.",
            listed(suspect),
        )


def check_label_column(schema: pa.Schema, name: str) -> None:
    """Refuse a column that is not there, or cannot be the y of a fit."""
    kind = schema.field(require_column(name, schema.names, "y")).type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if not (is_text(kind) or is_number(kind) or types.is_boolean(kind)):
        raise _no_labels(f"Column {name!r} is {kind}.", "y")


class CodedColumn(NamedTuple):
    """A column: its distinct values, and of each row the place of its value among them."""

    values: Any
    codes: Array

    @classmethod
    def of(cls, tables: Iterable[pa.Table], name: str, n_rows: int = 0) -> CodedColumn:
        """Return the column of tables that come one after the other; ``n_rows`` if it is known."""
        places: dict[Any, int] = {}
        kind = pa.null()

        def parts() -> Iterator[NDArray[np.int32]]:
            nonlocal kind
            for table in tables:
                column = plain(table[name].combine_chunks())
                coded, kind = column.dictionary_encode(null_encoding="encode"), column.type
                found = coded.dictionary.to_pylist()
                here = [places.setdefault(one, len(places)) for one in found]
                yield np.array(here, dtype=np.int32)[as_numpy(coded.indices)]

        codes = joined(parts(), n_rows)
        return cls(pa.array(list(places), kind), codes.astype(np.min_scalar_type(len(places))))

    def as_labels(self, name: str) -> tuple[Array, Array]:
        """Return values exactly as they are, strings, integers, floats or bools, and codes."""
        values = self.values
        missing = np.asarray(values.is_null(nan_is_null=True))
        if missing.any():
            row = int(np.flatnonzero(missing[self.codes])[0])
            raise LabelError(
                f"Column {name!r} has no label in row {row} (counted from 0). Label such rows, or "
                "remove them, first.",
                row=row,
                column=name,
            )
        if is_text(values.type):
            return np.array(values.to_pylist(), dtype=str), self.codes
        numbers = as_numpy(values)
        return numbers.astype(bool) if types.is_boolean(values.type) else numbers, self.codes


def time_values(tables: Iterable[pa.Table], name: str) -> Array:
    """Return a column of times as `setconv.validation.check_time` takes it."""
    return np.concatenate([np.asarray(plain(table[name])) for table in tables])


def as_numpy(array: pa.Array) -> Array:
    """Return numbers or truth values, without nulls, as numpy sees them."""
    if types.is_boolean(array.type):
        array = pc.cast(array, pa.uint8())
    if types.is_decimal(array.type):
        array = pc.cast(array, pa.float64())
    # Array.to_numpy would import pandas: half a second, and its memory.
    return np.from_dlpack(array)
