"""The rows that lie closest to a row in the learned space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, ParameterError
from setconv.explain.rows import blocks, count_rows, take_rows
from setconv.explain.scoring import Model
from setconv.explain.space import Vectors, unit_blocks, unit_vectors

_QUERIES = 4096  # at a time; the training rows are embedded once for each such block


@dataclass(frozen=True)
class Nearest:
    """The nearest rows of each query, the nearest first.

    Attributes
    ----------
    indices : int64 array of shape (n_queries, k)
        Row numbers.
    similarities : float64 array of shape (n_queries, k)
        Mean cosine over members (and heads), from -1 to 1.
    """

    indices: NDArray[np.int64]
    similarities: NDArray[np.float64]


def nearest_rows(model: Model, X: Any, train_X: Any, k: int = 5) -> Nearest:
    """Find the training rows that the model takes for most alike.

    Memory is bounded: rows go through in blocks.

    Parameters
    ----------
    model : fitted classifier
        With the interface of `setconv.SetConvClassifier`.
    X : array-like or list of str
        The queries, whatever the model takes.
    train_X : array-like or list of str
        The rows to search.
    k : int, default=5
        Rows a query; all of them if there are fewer.

    Returns
    -------
    Nearest
    """
    k = _checked(k, train_X)
    found = [
        _search(model, unit_vectors(model, take_rows(X, part)), train_X, k)
        for part in blocks(count_rows(X), _QUERIES)
    ]
    if not found:
        return Nearest(np.empty((0, k), np.int64), np.empty((0, k)))
    return Nearest(
        np.concatenate([one.indices for one in found]),
        np.concatenate([one.similarities for one in found]),
    )


def _checked(k: int, train_X: Any) -> int:
    if k < 1:
        raise ParameterError(f"k={k!r}: ask for at least one row.")
    n_rows = count_rows(train_X)
    if n_rows == 0:
        raise DataError("train_X has no rows: pass the rows to search, at least one.")
    return min(int(k), n_rows)


def _search(model: Model, queries: Vectors, train_X: Any, k: int) -> Nearest:
    indices = np.empty((len(queries), 0), np.int64)
    similarities = np.empty((len(queries), 0))
    for part, vectors in unit_blocks(model, train_X):
        here = queries.astype(np.float64) @ vectors.T.astype(np.float64)
        indices = np.hstack([indices, np.broadcast_to(part, here.shape)])
        similarities = np.hstack([similarities, here])
        # The sort is stable: of equals the first row comes first.
        best = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
        indices = np.take_along_axis(indices, best, axis=1)
        similarities = np.take_along_axis(similarities, best, axis=1)
    return Nearest(indices, similarities)
