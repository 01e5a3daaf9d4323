"""Made rows: overlapping Gaussians, dense, and rows of a few non-zeros among very many columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

HIDDEN = 50
CHUNK = 4096
SHARES = (9.0, 1.0)

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]

_RARE = 0.1
_SHIFT = 100  # frequencies fall as 1 / (column + shift): without one a few columns would have all
_SIGNAL_EVERY = 4
_SIGNAL = 2


class Rows(NamedTuple):
    """Rows to fit, and new ones."""

    X: Any
    y: Labels
    X_new: Any
    y_new: Labels


def dense_chunks(
    rows: int, columns: int, shares: Sequence[float] = SHARES
) -> Iterator[tuple[Floats, Labels]]:
    """Draw rows chunk by chunk, so that making them needs no more memory than a chunk.

    The classes are Gaussians in 50 hidden dimensions, mixed into all columns with noise; class c
    has ``shares[c]`` parts of the rows.
    """
    rng = np.random.default_rng(0)
    counts = [round(rows * share / sum(shares)) for share in shares[1:]]
    place = np.searchsorted(np.cumsum(counts), rng.permutation(rows), side="right")
    y = (place + 1) % len(shares)
    scales = 1 / np.sqrt(1 + np.arange(HIDDEN, dtype=np.float32))
    mixing = rng.standard_normal((HIDDEN, columns), dtype=np.float32)
    means = np.zeros((len(shares), HIDDEN), dtype=np.float32)
    means[1:] = 0.5 * rng.standard_normal((len(shares) - 1, HIDDEN), dtype=np.float32)
    for start in range(0, rows, CHUNK):
        labels = y[start : start + CHUNK]
        hidden = rng.standard_normal((len(labels), HIDDEN), dtype=np.float32) + means[labels]
        part = rng.standard_normal((len(labels), columns), dtype=np.float32)
        part += (hidden * scales) @ mixing
        yield part, labels


def dense_rows(
    rows: int, columns: int, shares: Sequence[float] = SHARES
) -> tuple[NDArray[np.float32], Labels]:
    """Draw the rows of `dense_chunks` into one array."""
    X = np.empty((rows, columns), dtype=np.float32)
    y = np.empty(rows, dtype=np.int64)
    start = 0
    for part, labels in dense_chunks(rows, columns, shares):
        X[start : start + len(part)], y[start : start + len(part)] = part, labels
        start += len(part)
    return X, y


def dense_split(rows: int, columns: int, new: int) -> Rows:
    """Draw rows to fit and new ones."""
    X, y = dense_rows(rows + new, columns)
    return Rows(X[:rows], y[:rows], X[rows:], y[rows:])


def sparse_rows(rows: int, columns: int, non_zeros: int) -> tuple[csr_matrix, Labels]:
    """Draw rows of exactly so many non-zeros, of unit length, as texts have them.

    Columns are ordered by how frequent they are, which falls as the column's number grows
    (Zipf's law). They are cut into as many bands as there are non-zeros, each as likely as the
    others, and a row has one column of each. In every fourth band the rare class prefers the first
    columns.
    """
    rng = np.random.default_rng(0)
    edges = band_edges(columns, non_zeros)
    y = (rng.random(rows) < _RARE).astype(np.int64)
    place = rng.random((rows, non_zeros), dtype=np.float32)
    place[y == 1, ::_SIGNAL_EVERY] **= _SIGNAL
    widths = np.diff(edges).astype(np.float32)
    # float32 rounds up to the width itself now and then.
    indices = np.minimum((place * widths).astype(np.int32), widths.astype(np.int32) - 1)
    indices += edges[:-1].astype(np.int32)
    values = rng.random((rows, non_zeros), dtype=np.float32) + 0.5
    values /= np.sqrt((values**2).sum(axis=1, keepdims=True))
    starts = np.arange(rows + 1, dtype=np.int32) * np.int32(non_zeros)
    matrix = csr_matrix((values.ravel(), indices.ravel(), starts), shape=(rows, columns))
    matrix.has_sorted_indices = True
    return matrix, y


def sparse_split(rows: int, columns: int, non_zeros: int, new: int) -> Rows:
    """Draw rows to fit and new ones."""
    X, y = sparse_rows(rows + new, columns, non_zeros)
    return Rows(X[:rows], y[:rows], X[rows:], y[rows:])


def band_edges(columns: int, bands: int) -> NDArray[np.int64]:
    """Return the first column of each band and the end: bands of equal share under Zipf's law."""
    reach = np.linspace(0, np.log1p(columns / _SHIFT), bands + 1)
    edges = np.round(_SHIFT * np.expm1(reach)).astype(np.int64)
    if (np.diff(edges) < 1).any():
        raise ValueError(f"{columns} columns are too few for {bands} bands")
    return edges
