"""What LMNN minimises, over pairs of rows, and the neighbour searches that make the pairs.

The objective is a sum over triplets, but a triplet only adds to the weights of its two pairs, so
the gradient is one product with the Laplacian of the weighted pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

_CHUNK = 1 << 22  # numbers in a block of distances: 32 MB in double precision


class Triplets(NamedTuple):
    """Rows i, their target neighbours j and possible impostors l, by number.

    Attributes
    ----------
    pairs : ndarray of shape (p, 2)
        The target pairs (i, j), then the impostor pairs (i, l).
    n_targets : int
        How many of the pairs are target pairs.
    target, impostor : ndarray of shape (t,)
        For each triplet (i, j, l) the numbers of its pairs (i, j) and (i, l).
    """

    pairs: np.ndarray
    n_targets: int
    target: np.ndarray
    impostor: np.ndarray


def lmnn_objective(
    L: np.ndarray, X: np.ndarray, triplets: Triplets, push: float
) -> tuple[float, np.ndarray]:
    """Give the objective of LMNN at a linear map, and its gradient.

    The loss of Weinberger and Saul (2009, section 3), divided by the number of target pairs:
    ``(1 - push) sum_ij d_ij + push sum_ijl [1 + d_ij - d_il]_+`` with ``d_ij = |L(x_i - x_j)|^2``.
    The gradient is ``2 L X^T (D - W) X``, where W has the weight of each pair and D its row sums.

    Parameters
    ----------
    L : ndarray of shape (m, d)
        The linear map.
    X : ndarray of shape (n, d)
        Rows.
    triplets : Triplets
        Target neighbours and possible impostors.
    push : float
        Share of the second term.

    Returns
    -------
    objective : float
        The value.
    gradient : ndarray of shape (m, d)
        The gradient by L.
    """
    Z = X @ L.T
    pairs, n_targets = triplets.pairs, triplets.n_targets
    distances = pair_distances(Z, pairs)
    slack = 1 + distances[triplets.target] - distances[triplets.impostor]
    active = slack > 0
    attraction = np.bincount(triplets.target[active], minlength=len(pairs))
    repulsion = np.bincount(triplets.impostor[active], minlength=len(pairs))
    weights = push * (attraction - repulsion)
    weights[:n_targets] += 1 - push
    value = (1 - push) * distances[:n_targets].sum() + push * slack[active].sum()
    gradient = 2 * laplacian_product(weights, pairs, Z).T @ X
    return float(value / n_targets), gradient / n_targets


def pair_distances(Z: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Give the squared distance of each pair of rows."""
    distances = np.empty(len(pairs), dtype=Z.dtype)
    for block in gen_batches(len(pairs), max(1, _CHUNK // Z.shape[1])):
        difference = Z[pairs[block, 0]] - Z[pairs[block, 1]]
        distances[block] = np.einsum("ij,ij->i", difference, difference)
    return distances


def laplacian_product(weights: np.ndarray, pairs: np.ndarray, Z: np.ndarray) -> np.ndarray:
    """Give ``(D - W) Z`` for the symmetric matrix W that has the weights at the pairs."""
    used = weights != 0
    first, second = pairs[used].T
    half = sparse.csr_array((weights[used], (first, second)), shape=(len(Z), len(Z)))
    W = half + half.T
    return np.asarray(W.sum(axis=1)[:, None] * Z - W @ Z)


def target_pairs(X: np.ndarray, codes: np.ndarray, n_neighbors: int) -> np.ndarray:
    """Pair each row with its nearest rows of the same class: ``n_neighbors``, or all there are."""
    parts = [np.empty((0, 2), dtype=np.intp)]
    for code in np.unique(codes):
        (members,) = np.nonzero(codes == code)
        count = min(n_neighbors, len(members) - 1)
        if count:
            nearest, _ = nearest_others(X[members], np.arange(len(members)), count)
            parts.append(np.column_stack([np.repeat(members, count), members[nearest.ravel()]]))
    return np.concatenate(parts)


def with_impostors(
    Z: np.ndarray, codes: np.ndarray, targets: np.ndarray, max_impostors: int
) -> Triplets:
    """Join target pairs with possible impostors: each row's nearest rows of other classes.

    Which of them are inside the margin is for the objective to say, at each map anew.
    """
    parts = []
    for code in np.unique(codes[targets[:, 0]]):
        (members,) = np.nonzero(codes == code)
        (others,) = np.nonzero(codes != code)
        count = min(max_impostors, len(others))
        nearest, _ = nearest_rows(Z[members], Z[others], count)
        parts.append(np.column_stack([np.repeat(members, count), others[nearest.ravel()]]))
    return _triplets(targets, np.concatenate(parts), len(Z))


def nearest_rows(
    queries: np.ndarray, rows: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the ``count`` nearest rows of each query, nearest first, and the squared distances.

    Distances come from double products and are then rounded to single precision, so that equal
    rows are equally far whatever the block they were computed in; among equals the first rows win.
    """
    nearest = np.empty((len(queries), count), dtype=np.intp)
    distances = np.empty((len(queries), count), dtype=np.float32)
    rows = rows.astype(np.float64, copy=False)
    norms = np.einsum("ij,ij->i", rows, rows)
    for block in gen_batches(len(queries), max(1, _CHUNK // len(rows))):
        distance = _rounded_distances(queries[block].astype(np.float64, copy=False), rows, norms)
        nearest[block] = _smallest(distance, count)
        distances[block] = np.take_along_axis(distance, nearest[block], axis=1)
    return nearest, distances


def nearest_others(
    rows: np.ndarray, places: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest rows of the rows at ``places``, themselves left out, as `nearest_rows`."""
    nearest, distances = nearest_rows(rows[places], rows, count + 1)
    others = nearest != places[:, None]
    # Behind many equal rows a row may not be among its own nearest: then the farthest goes.
    others[others.all(axis=1), -1] = False
    shape = len(places), count
    return nearest[others].reshape(shape), distances[others].reshape(shape)


def _rounded_distances(queries: np.ndarray, rows: np.ndarray, norms: np.ndarray) -> np.ndarray:
    own = np.einsum("ij,ij->i", queries, queries)[:, None]
    distance = queries @ rows.T
    distance *= -2
    distance += norms
    distance += own
    # What is left of a difference of equal numbers is noise: it must not order equal rows.
    distance[distance < 1e-12 * (own + norms.max())] = 0
    return np.asarray(distance, dtype=np.float32)


def _smallest(distance: np.ndarray, count: int) -> np.ndarray:
    """Find the ``count`` smallest of each line in ascending order; equals by their place."""
    last = np.partition(distance, count - 1, axis=1)[:, count - 1 : count]
    lines, places = np.divmod(np.flatnonzero(distance <= last), distance.shape[1])
    order = np.lexsort((places, distance[lines, places], lines))
    starts = np.searchsorted(lines, np.arange(len(distance)))
    return np.asarray(places[order[starts[:, None] + np.arange(count)]])


def _triplets(targets: np.ndarray, impostors: np.ndarray, n_rows: int) -> Triplets:
    """Join each impostor pair with all target pairs of its row."""
    order = np.argsort(targets[:, 0], kind="stable")
    counts = np.bincount(targets[:, 0], minlength=n_rows)
    starts = np.cumsum(counts) - counts
    repeats = counts[impostors[:, 0]]
    impostor = np.repeat(np.arange(len(impostors)), repeats)
    within = np.arange(len(impostor)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    target = order[starts[impostors[impostor, 0]] + within]
    pairs = np.concatenate([targets, impostors])
    return Triplets(pairs, len(targets), target, len(targets) + impostor)
