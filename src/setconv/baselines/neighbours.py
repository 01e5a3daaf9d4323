"""Distances, neighbours and clusters of dense or sparse rows, in blocks of bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import NearestNeighbors

from setconv.baselines.base import Rows

BLOCK_MEGABYTES = 128


def distance_blocks(rows: Rows, to: Rows | None = None) -> Iterator[np.ndarray]:
    """Yield Euclidean distances of successive rows to all of ``to`` (by default the rows)."""
    yield from pairwise_distances_chunked(rows, to, working_memory=BLOCK_MEGABYTES)


def mean_distance(rows: Rows) -> float:
    """Give the mean Euclidean distance between two different rows."""
    n = int(rows.shape[0])
    total = sum(float(block.sum(dtype=np.float64)) for block in distance_blocks(rows))
    return total / (n * (n - 1))


def nearest(rows: Rows, queries: Rows, k: int) -> np.ndarray:
    """Give the k rows nearest to each query, as numbers of rows, nearest first."""
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(rows)
    return np.asarray(search.kneighbors(queries, return_distance=False))


def nearest_others(rows: Rows, of: np.ndarray, k: int) -> np.ndarray:
    """Give the k rows nearest to each of the rows ``of``, that row itself left out."""
    found = nearest(rows, rows[of], k + 1)
    itself = found == of[:, None]
    # Among more than k copies of a row, the row itself may not be found: then the last one goes.
    itself[~itself.any(axis=1), -1] = True
    return np.asarray(found[~itself].reshape(len(of), k))


def nearest_distances(rows: Rows) -> np.ndarray:
    """Give the distance of each row to the nearest other row."""
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(rows)
    return np.asarray(search.kneighbors()[0][:, 0])


def nearest_mask(distances: np.ndarray, k: int) -> np.ndarray:
    """Tell for each row of a block of distances which k columns are nearest."""
    mask = np.zeros(distances.shape, dtype=bool)
    np.put_along_axis(mask, np.argpartition(distances, k - 1, axis=1)[:, :k], True, axis=1)
    return mask


def condensed_distances(rows: Rows) -> np.ndarray:
    """Give the distances above the diagonal, row after row, as scipy's linkage takes them."""
    n = rows.shape[0]
    condensed = np.empty(n * (n - 1) // 2)
    row = filled = 0
    for block in distance_blocks(rows):
        above = np.arange(n) > np.arange(row, row + len(block))[:, None]
        part = block[above]
        condensed[filled : filled + len(part)] = part
        row, filled = row + len(block), filled + len(part)
    return condensed


def average_linkage(rows: Rows, threshold: float) -> np.ndarray:
    """Join clusters by mean distance up to a threshold; give each row the number of its own."""
    tree = linkage(condensed_distances(rows), method="average")
    return np.asarray(fcluster(tree, threshold, criterion="distance") - 1)
