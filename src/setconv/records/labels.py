"""A column of a file as labels."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from typing import Any, Literal, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setconv.errors import LabelError
from setconv.names import count_of, excerpt, listed
from setconv.records.values import are_numbers, is_number, is_text, plain

logger = logging.getLogger("setconv")

Array = NDArray[Any]

_WHOLE = r"^(0|-?[1-9]\d{0,17})(\.0+)?$"
_MANY = 20
_SUSPECT = frozenset({"na", "n/a", "null", "none", "?", "-"})


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
    values = plain(column if isinstance(column, pa.Array | pa.ChunkedArray) else _array(column))
    present = _present(values)
    missing = np.flatnonzero(~present)
    if len(missing) and not drop:
        raise _missing(missing, len(present))
    labels = _converted(values.filter(pa.array(present)))
    return (labels, present) if drop else labels


def _array(values: Any) -> Any:
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


def _missing(rows: NDArray[np.int64], n_rows: int) -> LabelError:
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
    _say_look_alikes(Counter(found))
    return np.array(found, dtype=str)


def _refuse_measurements(numbers: NDArray[np.float64]) -> None:
    distinct = np.unique(numbers)
    if len(distinct) > _MANY:
        raise LabelError(
            f"The labels are measurements, not classes: {len(distinct)} different numbers such as "
            f"{distinct[0]:g} and {distinct[1]:g}. Choose another column with --label, or make "
            "classes of them first."
        )


def _say_look_alikes(counts: Counter[str]) -> None:
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
    numbers = [one for one in counts if _is_number(one)]
    if numbers and len(numbers) < len(counts):
        words = [one for one in counts if not _is_number(one)]
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


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True
