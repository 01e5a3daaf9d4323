"""Rows that are in two files: a test on them tells nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setconv.copies import text_keys


def find_duplicates(train: Any, test: Any) -> NDArray[np.int64]:
    """Return which rows of the test data are in the training data too.

    Parameters
    ----------
    train, test : list of str, or pyarrow.Table
        Texts, which are alike as the copies in a fit are: case, white space, links and mentions
        make no difference. Or whole rows, which are compared exactly, by the columns of the first
        table.

    Returns
    -------
    int64 array of shape (n_found, 2)
        The first such row of the training data, and the row of the test data, counted from 0.
    """
    keys = text_keys(train + test) if isinstance(train, list) else _row_keys(train, test)
    known, new = keys[: len(train)], keys[len(train) :]
    distinct, first = np.unique(known, return_index=True)
    found = np.flatnonzero(np.isin(new, distinct))
    return np.column_stack([first[np.searchsorted(distinct, new[found])], found])


def _row_keys(train: pa.Table, test: pa.Table) -> NDArray[np.int64]:
    """Return a number for each row of both tables, the same for the same row."""
    n_rows = len(train) + len(test)
    keys = np.arange(n_rows) if not train.num_columns else np.zeros(n_rows, dtype=np.int64)
    for name in train.column_names:
        codes = _codes(train[name], test[name])
        keys = _numbered(pa.chunked_array([keys * (codes.max(initial=0) + 1) + codes]))
        if len(keys) and keys.max() + 1 == len(keys):
            break  # no two rows are alike: other columns cannot change that
    return keys


def _codes(train: pa.ChunkedArray, test: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return a number for each value of a column in both files, the same for the same value."""
    if train.type != test.type or pa.types.is_nested(train.type):
        train, test = _as_text(train), _as_text(test)
    return _numbered(pa.chunked_array([*train.chunks, *test.chunks], type=train.type))


def _numbered(values: pa.ChunkedArray) -> NDArray[np.int64]:
    found = pc.index_in(values, value_set=pc.unique(values))
    codes: NDArray[np.int64] = found.to_numpy().astype(np.int64)
    return codes


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_nested(column.type):
        return pa.chunked_array([pa.array(map(str, column.to_pylist()), pa.large_string())])
    return pc.cast(column, pa.large_string())
