"""Which columns are features, and which only number or name the rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from setconv.records.values import are_dates, are_numbers, is_text, plain, without_missing

_ID_NAME = re.compile(r"(^|_|\b)(id|ids|uuid|guid|key|index|idx|rownum|unnamed: 0)$", re.IGNORECASE)
_CAMEL_ID = re.compile(r"[a-z]I[dD]$")
_ENOUGH = 20


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
    known = without_missing(column).drop_null()
    if len(known) < 2 or pc.count_distinct(known).as_py() < len(known):
        return False
    return not pc.all(are_numbers(known)).as_py() and not are_dates(known)
