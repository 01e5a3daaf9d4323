"""Rows of any kind, an array, a frame or a list of texts: counted, taken, walked through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray


def count_rows(X: Any) -> int:
    """Return the number of rows."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def take_rows(X: Any, indices: NDArray[np.integer]) -> Any:
    """Return some rows, of the same kind as ``X``."""
    if hasattr(X, "iloc"):
        return X.iloc[indices]
    if isinstance(X, (list, tuple)):
        return [X[index] for index in indices.tolist()]
    return X[indices]


def blocks(n_rows: int, size: int) -> Iterator[NDArray[np.int64]]:
    """Yield row numbers, at most ``size`` at a time."""
    for start in range(0, n_rows, size):
        yield np.arange(start, min(start + size, n_rows))


def to_matrix(X: Any) -> NDArray[np.float64]:
    """Return rows of numbers as a plain array."""
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    return np.asarray(values, dtype=np.float64)


def like(X: Any, values: NDArray[Any]) -> Any:
    """Return a matrix as the kind of frame that ``X`` is, so that a model sees its columns."""
    if hasattr(X, "iloc"):
        return type(X)(values, columns=X.columns)
    if hasattr(X, "schema"):
        return type(X)(values, schema=list(X.columns))
    return values


def are_texts(X: Any) -> bool:
    """Whether the rows are texts: a list or column of strings."""
    if getattr(X, "ndim", 1) != 1 or hasattr(X, "schema") or not count_rows(X):
        return False
    return isinstance(next(iter(X)), str)
