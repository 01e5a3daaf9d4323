"""Weighted multidimensional scaling by majorisation (SMACOF)."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import pdist, squareform


def weighted_mds(
    delta: np.ndarray,
    weights: np.ndarray,
    n_components: int,
    random: np.random.RandomState,
    *,
    n_init: int = 8,
    max_iter: int = 300,
    tol: float = 1e-6,
) -> tuple[np.ndarray, np.ndarray]:
    """Place points whose distances are near given dissimilarities, each pair with its weight.

    Minimises the stress ``sum_{i<j} w_ij (|z_i - z_j| - delta_ij)^2`` by Guttman transforms
    ``Z <- V^+ B(Z) Z``, which never raise it (de Leeuw, "Applications of convex analysis to
    multidimensional scaling", Recent Developments in Statistics, 1977). A pair of weight 0 may be
    as far apart as it likes; scikit-learn's MDS has no weights.

    Parameters
    ----------
    delta : ndarray of shape (n, n)
        Dissimilarities: symmetric, not negative.
    weights : ndarray of shape (n, n)
        Weights of the pairs: symmetric, not negative, 0 on the diagonal.
    n_components : int
        Dimensions of the points.
    random : RandomState
        Draws the starts.
    n_init : int, default=8
        Random starts; the points of the lowest stress are kept.
    max_iter : int, default=300
        Most transforms from one start.
    tol : float, default=1e-6
        Stop when the stress falls by less than this share of the stress of a single point.

    Returns
    -------
    points : ndarray of shape (n, n_components)
        The points.
    stresses : ndarray of shape (iterations + 1,)
        The stress at the start that won, and after each transform.
    """
    starts = random.standard_normal((n_init, len(delta), n_components))
    inverse = np.linalg.pinv(np.diag(weights.sum(axis=1)) - weights, hermitian=True)
    least_fall = tol * (weights * delta**2).sum() / 2

    def descend(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        distances = squareform(pdist(Z))
        stresses = [_stress(distances, delta, weights)]
        for _ in range(max_iter):
            Z = inverse @ _guttman(distances, delta, weights) @ Z
            distances = squareform(pdist(Z))
            stresses.append(_stress(distances, delta, weights))
            if stresses[-2] - stresses[-1] <= least_fall:
                break
        return Z, np.array(stresses)

    return min(map(descend, starts), key=lambda run: run[1][-1])


def _stress(distances: np.ndarray, delta: np.ndarray, weights: np.ndarray) -> float:
    return float((weights * (distances - delta) ** 2).sum() / 2)


def _guttman(distances: np.ndarray, delta: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Give the matrix B of the transform; a pair that coincides has no direction and adds 0."""
    apart = distances > 0
    B = -np.divide(weights * delta, distances, out=np.zeros_like(weights), where=apart)
    B[np.diag_indices_from(B)] = -B.sum(axis=1)
    return np.asarray(B)
