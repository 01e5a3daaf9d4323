"""Distances, neighbours and clusters of dense or sparse rows, in blocks of bounded memory.

Last comes the search among dense rows in which equal rows are equally far: a selection of rows then
does not depend on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import pairwise_distances_chunked
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import gen_batches
from sklearn.utils.extmath import row_norms

from setconv.baselines.base import Rows

BLOCK_MEGABYTES = 128
BLOCK = 1 << 22  # numbers in a block of distances: 32 MB in double precision


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
    return np.asarray(found[_others(found, of)].reshape(len(of), k))


def _others(found: np.ndarray, of: np.ndarray) -> np.ndarray:
    """Tell which of the rows found are not the row itself; in each line all but one."""
    others = found != of[:, None]
    # Among many copies of a row, the row itself may not be found: then the last one goes.
    others[others.all(axis=1), -1] = False
    return np.asarray(others)


def nearest_distances(rows: Rows) -> np.ndarray:
    """Give the distance of each row to the nearest other row."""
    search = NearestNeighbors(n_neighbors=1, algorithm="brute").fit(rows)
    return np.asarray(search.kneighbors()[0][:, 0])


def nearest_mask(distances: np.ndarray, k: int) -> np.ndarray:
    """Tell for each row of a block of distances which k columns are nearest."""
    mask = np.zeros(distances.shape, dtype=bool)
    np.put_along_axis(mask, np.argpartition(distances, k - 1, axis=1)[:, :k], True, axis=1)
    return mask


def average_linkage(rows: Rows, threshold: float) -> np.ndarray:
    """Join clusters by mean distance up to a threshold; give each row the number of its own."""
    above_diagonal = []
    row = 0
    for block in distance_blocks(rows):
        above = np.arange(rows.shape[0]) > np.arange(row, row + len(block))[:, None]
        above_diagonal.append(block[above])
        row += len(block)
    tree = linkage(np.concatenate(above_diagonal), method="average")
    return np.asarray(fcluster(tree, threshold, criterion="distance") - 1)


def exact_nearest_others(
    rows: np.ndarray, places: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest rows of the rows at ``places``, themselves left out, as `exact_nearest`."""
    found, distances = exact_nearest(rows[places], rows, count + 1)
    others, shape = _others(found, places), (len(places), count)
    return found[others].reshape(shape), distances[others].reshape(shape)


def exact_nearest(
    queries: np.ndarray, rows: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the ``count`` nearest rows of each query, nearest first, and the squared distances.

    Distances come from double products and are then rounded to single precision, so that equal
    rows are equally far whatever the block they were computed in; among equals the first rows win.
    """
    found = np.empty((len(queries), count), dtype=np.intp)
    distances = np.empty((len(queries), count), dtype=np.float32)
    rows = rows.astype(np.float64, copy=False)
    norms = row_norms(rows, squared=True)
    for block in gen_batches(len(queries), max(1, BLOCK // len(rows))):
        distance = _rounded_distances(queries[block].astype(np.float64, copy=False), rows, norms)
        found[block] = smallest(distance, count)
        distances[block] = np.take_along_axis(distance, found[block], axis=1)
    return found, distances


def _rounded_distances(queries: np.ndarray, rows: np.ndarray, norms: np.ndarray) -> np.ndarray:
    own = row_norms(queries, squared=True)[:, None]
    distance = queries @ rows.T
    distance *= -2
    distance += norms
    distance += own
    # What is left of a difference of equal numbers is noise: it must not order equal rows.
    distance[distance < 1e-12 * (own + norms.max())] = 0
    return np.asarray(distance, dtype=np.float32)


def smallest(distance: np.ndarray, count: int) -> np.ndarray:
    """Find the ``count`` smallest of each line in ascending order; equals by their place."""
    last = np.partition(distance, count - 1, axis=1)[:, count - 1 : count]
    lines, places = np.divmod(np.flatnonzero(distance <= last), distance.shape[1])
    order = np.lexsort((places, distance[lines, places], lines))
    starts = np.searchsorted(lines, np.arange(len(distance)))
    return np.asarray(places[order[starts[:, None] + np.arange(count)]])
