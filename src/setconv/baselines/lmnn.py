"""LMNN: a linear map in which a row's nearest rows are of its class, by a large margin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from setconv.baselines.lmnn_objective import (
    Triplets,
    lmnn_objective,
    pair_distances,
    target_pairs,
    with_impostors,
)

_TARGETS = 3  # target neighbours of a row
_IMPOSTORS = 50  # rows of other classes in the active set of a row
_REFRESH = 5  # steps after which impostors are searched for again
_PUSH = 0.5  # share of the push term
_LEAST_FALL = 1e-5  # share of the objective; less in one active set and the descent is over


def learned_metric(
    rows: np.ndarray,
    codes: np.ndarray,
    random: np.random.RandomState,
    fall_back: Callable[[str], None],
    *,
    max_iter: int = 30,
    max_rows: int = 5000,
) -> np.ndarray:
    """Learn a linear map L by large margin nearest neighbours.

    It pulls each row to its target neighbours, the nearest rows of its class, and pushes rows of
    other classes (impostors) out of a unit margin around them:
    ``(1 - push) sum |L(x_i - x_j)|^2 + push sum [1 + |L(x_i - x_j)|^2 - |L(x_i - x_l)|^2]_+``.

    Original (Weinberger and Saul, "Distance metric learning for large margin nearest neighbor
    classification", Journal of Machine Learning Research 10, 2009) are the objective, target
    neighbours that stay fixed, and impostors kept in an active set that is renewed from time to
    time. Three targets and equal push and pull are the defaults of other libraries. Choices of this
    library: L-BFGS on L instead of projected gradients on L^T L; rows are first divided by the root
    mean squared distance to a target neighbour, since the margin is of unit size; the active set of
    a row is its 50 nearest rows of other classes, in or near the margin; of more than ``max_rows``
    rows a subset is learned from, in which each class has an equal share or all its rows, whichever
    is less, so that a rare class stays whole. A class of one row has no target neighbours: its row
    is only pushed by others.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Rows, in double precision.
    codes : ndarray of shape (n,)
        The class of each row.
    random : RandomState
        Draws the subset of rows.
    fall_back : callable
        Is told what could not be done.
    max_iter : int, default=30
        Steps of L-BFGS in all.
    max_rows : int, default=5000
        Most rows to learn from.

    Returns
    -------
    L : ndarray of shape (d, d)
        The map, in units in which the margin is 1.
    """
    kept = balanced_subset(codes, max_rows, random)
    codes = codes[kept]
    centred = rows[kept] - rows[kept].mean(axis=0)
    L = np.eye(rows.shape[1])
    targets = target_pairs(centred, codes, _TARGETS)
    if len(targets) == 0:
        fall_back("no class has two rows to pull together; the metric is the first one")
        return L
    unit = float(np.sqrt(pair_distances(centred, targets).mean()))
    if unit == 0:
        fall_back("all target neighbours are equal rows; distances keep their unit")
        unit = 1.0
    X = centred / unit
    falling, steps = True, 0
    while falling and steps < max_iter:
        triplets = with_impostors(X @ L.T, codes, targets, _IMPOSTORS)
        L, values = _descend(L, X, triplets, min(_REFRESH, max_iter - steps))
        falling = values[0] - values[-1] > _LEAST_FALL * values[0]
        steps += len(values) - 1
    return L / unit


def _descend(
    L: np.ndarray, X: np.ndarray, triplets: Triplets, steps: int
) -> tuple[np.ndarray, list[float]]:
    """Make steps of L-BFGS with one active set; give the map and the objective's values."""

    def flat_objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = lmnn_objective(flat.reshape(L.shape), X, triplets, _PUSH)
        return value, gradient.ravel()

    values = [flat_objective(L.ravel())[0]]

    def keep_value(intermediate_result: OptimizeResult) -> None:
        values.append(float(intermediate_result.fun))

    found = minimize(
        flat_objective,
        L.ravel(),
        jac=True,
        method="L-BFGS-B",
        callback=keep_value,
        options={"maxiter": steps},
    )
    return found.x.reshape(L.shape), values


def balanced_subset(codes: np.ndarray, max_rows: int, random: np.random.RandomState) -> np.ndarray:
    """Draw at most ``max_rows`` rows, of each class an equal share or all it has, in order.

    What a class has less than its share goes to the larger ones.
    """
    if len(codes) <= max_rows:
        return np.arange(len(codes))
    classes, counts = np.unique(codes, return_counts=True)
    kept, left = [], max_rows
    for position, place in enumerate(np.argsort(counts, kind="stable")):
        quota = min(int(counts[place]), left // (len(classes) - position))
        (members,) = np.nonzero(codes == classes[place])
        kept.append(random.choice(members, quota, replace=False))
        left -= quota
    return np.sort(np.concatenate(kept))
