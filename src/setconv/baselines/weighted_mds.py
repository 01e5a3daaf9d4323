"""Weighted multidimensional scaling by majorisation (SMACOF)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.spatial.distance import pdist, squareform
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import validate_data

from setconv.checks import check_integer
from setconv.errors import DataError, ParameterError


class WeightedMDS(BaseEstimator):
    """Points whose distances are near given dissimilarities, each pair with its weight.

    Minimises the stress ``sum_{i<j} w_ij (|z_i - z_j| - delta_ij)^2`` by Guttman transforms
    ``Z <- V^+ B(Z) Z``, which never raise it. A pair of weight 0 may be as far apart as it likes;
    scikit-learn's MDS has no weights.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the points.
    n_init : int, default=8
        Random starts; the points of the lowest stress are kept.
    max_iter : int, default=300
        Most transforms from one start.
    tol : float, default=1e-6
        Stop when the stress falls by less than this share of the stress of a single point.
    random_state : int, RandomState instance or None, default=None
        Draws the starts.

    Attributes
    ----------
    embedding_ : ndarray of shape (n, n_components)
        The points.
    stress_ : float
        Their stress.
    stresses_ : ndarray of shape (iterations + 1,)
        The stress at the start that won, and after each transform.
    n_iter_ : int
        Transforms from the start that won.
    n_features_in_ : int
        Number of points.

    References
    ----------
    J. de Leeuw. Applications of convex analysis to multidimensional scaling. Recent Developments
    in Statistics, 1977, 133-145.

    Examples
    --------
    >>> import numpy as np
    >>> from setconv.baselines.weighted_mds import WeightedMDS
    >>> D = np.array([[0, 3, 4], [3, 0, 5], [4, 5, 0]])
    >>> mds = WeightedMDS(random_state=0).fit(D)
    >>> bool(mds.stress_ < 1e-3)
    True
    """

    def __init__(
        self,
        *,
        n_components: int = 2,
        n_init: int = 8,
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, weights: Any = None) -> Self:
        """Place the points.

        Parameters
        ----------
        X : array-like of shape (n, n)
            Dissimilarities: symmetric, not negative.
        y : None
            Not used.
        weights : array-like of shape (n, n), default=None
            Weights of the pairs: symmetric, not negative; None for ones.

        Returns
        -------
        self : WeightedMDS
            Fitted.
        """
        self.fit_transform(X, y, weights)
        return self

    def fit_transform(self, X: Any, y: Any = None, weights: Any = None) -> np.ndarray:  # noqa: ARG002
        """Place the points and return them.

        Parameters
        ----------
        X : array-like of shape (n, n)
            Dissimilarities: symmetric, not negative.
        y : None
            Not used.
        weights : array-like of shape (n, n), default=None
            Weights of the pairs: symmetric, not negative; None for ones.

        Returns
        -------
        embedding : ndarray of shape (n, n_components)
            The points.
        """
        for name in ("n_components", "n_init", "max_iter"):
            check_integer(name, getattr(self, name), least=1)
        if not self.tol >= 0:
            raise ParameterError(f"tol={self.tol!r}: give 0 or more.")
        delta = validate_data(self, X, dtype=np.float64, ensure_non_negative=True)
        _check_symmetric("dissimilarities", delta)
        W = np.ones_like(delta) if weights is None else np.array(weights, dtype=np.float64)
        if W.shape != delta.shape:
            raise DataError(f"weights have shape {W.shape}; give {delta.shape}, one for each pair.")
        _check_symmetric("weights", W)
        np.fill_diagonal(W, 0)
        random = check_random_state(self.random_state)
        starts = random.standard_normal((self.n_init, len(delta), self.n_components))
        inverse = np.linalg.pinv(np.diag(W.sum(axis=1)) - W, hermitian=True)
        runs = [self._descend(start, delta, W, inverse) for start in starts]
        self.embedding_, self.stresses_ = min(runs, key=lambda run: run[1][-1])
        self.stress_ = float(self.stresses_[-1])
        self.n_iter_ = len(self.stresses_) - 1
        return self.embedding_

    def _descend(
        self, Z: np.ndarray, delta: np.ndarray, W: np.ndarray, inverse: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        least_fall = self.tol * (W * delta**2).sum() / 2
        distances = squareform(pdist(Z))
        stresses = [stress(distances, delta, W)]
        for _ in range(self.max_iter):
            Z = inverse @ _guttman(distances, delta, W) @ Z
            distances = squareform(pdist(Z))
            stresses.append(stress(distances, delta, W))
            if stresses[-2] - stresses[-1] <= least_fall:
                break
        return Z, np.array(stresses)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        tags.input_tags.positive_only = True
        return tags


def stress(distances: np.ndarray, delta: np.ndarray, W: np.ndarray) -> float:
    """Give the weighted sum of squared differences over all pairs."""
    return float((W * (distances - delta) ** 2).sum() / 2)


def _guttman(distances: np.ndarray, delta: np.ndarray, W: np.ndarray) -> np.ndarray:
    """Give the matrix B of the transform; a pair that coincides has no direction and adds 0."""
    apart = distances > 0
    B = -np.divide(W * delta, distances, out=np.zeros_like(W), where=apart)
    B[np.diag_indices_from(B)] = -B.sum(axis=1)
    return np.asarray(B)


def _check_symmetric(name: str, matrix: np.ndarray) -> None:
    if matrix.shape[0] != matrix.shape[1]:
        raise DataError(f"{name} have shape {matrix.shape}; give a square matrix.")
    if not (np.isfinite(matrix).all() and (matrix >= 0).all() and np.allclose(matrix, matrix.T)):
        raise DataError(f"{name} must be finite, not negative, and symmetric.")
