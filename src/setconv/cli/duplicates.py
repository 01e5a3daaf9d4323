"""Rows that are in two files: a test on them tells nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setconv.copies import text_keys
from setconv.errors import DataError
from setconv.records.frames import as_table

SHOWN = 5


@dataclass(frozen=True)
class Duplicates:
    """Rows of the second file that are in the first one too.

    Parameters
    ----------
    count : int
    rows : tuple of (int, int)
        The first few: their row in the first and in the second file, counted from 1.
    """

    count: int
    rows: tuple[tuple[int, int], ...]


def find_duplicates(train_values: Any, test_values: Any) -> Duplicates:
    """Return which rows of the test data are in the training data too.

    Parameters
    ----------
    train_values, test_values : sequence of str, pyarrow array, or table
        Texts, which are alike as the copies in a fit are: case, white space, links and mentions
        make no difference. Or whole rows, which are compared exactly, by the columns of the first
        table.

    Returns
    -------
    Duplicates
    """
    train, test = _tables(train_values, test_values)
    absent = [name for name in train.column_names if name not in test.column_names]
    if absent:
        raise DataError(
            f"The test data has no column {absent[0]!r}, so rows cannot be compared. Give tables "
            "with the same columns."
        )
    n_train = train.num_rows
    keys: NDArray[np.int64] | None = None
    for name in train.column_names:
        codes = _codes(train[name], test[name])
        keys = codes if keys is None else _numbered(keys * (codes.max(initial=0) + 1) + codes)
        if len(keys) and keys.max() + 1 == len(keys):
            break  # no two rows are alike: other columns cannot change that
    if keys is None:
        return Duplicates(0, ())
    distinct, first = np.unique(keys[:n_train], return_index=True)
    found = np.flatnonzero(np.isin(keys[n_train:], distinct))
    shown = found[:SHOWN]
    origin = first[np.searchsorted(distinct, keys[n_train:][shown])]
    rows = zip(origin.tolist(), shown.tolist(), strict=True)
    return Duplicates(len(found), tuple((one + 1, other + 1) for one, other in rows))


def _tables(train: Any, test: Any) -> tuple[pa.Table, pa.Table]:
    """Return both as tables; of texts with a number for each, the same for texts that are alike."""
    if hasattr(train, "columns") or isinstance(train, dict):
        return as_table(train), as_table(test)
    lists = [one.to_pylist() if hasattr(one, "to_pylist") else list(one) for one in (train, test)]
    keys = text_keys(lists[0] + lists[1])
    n_train = len(lists[0])
    return pa.table({"text": keys[:n_train]}), pa.table({"text": keys[n_train:]})


def _codes(train: pa.ChunkedArray, test: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a number for each value of a column in both files, the same for the same value."""
    if train.type != test.type or pa.types.is_nested(train.type):
        train, test = _as_text(train), _as_text(test)
    return _numbered(pa.chunked_array([*train.chunks, *test.chunks], type=train.type))


def _numbered(values: Any) -> NDArray[np.int64]:
    if isinstance(values, np.ndarray):
        values = pa.chunked_array([pa.array(values)])
    found = pc.index_in(values, value_set=pc.unique(values))
    codes: NDArray[np.int64] = found.to_numpy().astype(np.int64)
    return codes


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_nested(column.type):
        return pa.chunked_array([pa.array(map(str, column.to_pylist()), pa.large_string())])
    return pc.cast(column, pa.large_string())
