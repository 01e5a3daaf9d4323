"""CLEMS: classes as points whose distances are the costs of mistakes.

After K.-H. Huang and H.-T. Lin, "Cost-sensitive label embedding for multi-label classification",
Machine Learning 106, 2017. Original are the embedding, its weights and the decoding; decided here
are the use for one label a row, the default cost and regressor, and the probabilities. The class
says it in full. Below it stand its parts: the dissimilarities of the points, and the weighted
multidimensional scaling (MDS) that places them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from setconv.baselines.base import LogScoresClassifier, Random, cloned, draw_seed, parameter
from setconv.errors import ParameterError
from setconv.validation import at_least, between, one_of


@dataclass(kw_only=True, eq=False, repr=False)
class CLEMSClassifier(LogScoresClassifier):
    """Cost-sensitive label embedding: regress to points, decide for the nearest.

    Each label y_i becomes two points, one for y_i as the truth and one for y_i as the answer, so
    that costs need not be symmetric (mirroring). Weighted multidimensional scaling places them: the
    true point of y_i and the answer point of y_j are to be ``sqrt(cost(y_i, y_j))`` apart, with the
    number of rows of y_i as the weight; other pairs are free. A regressor learns to map a row to
    the true point of its label. The answer whose point is nearest to the regressed one is
    predicted: as far as the embedding is exact, the answer of the least expected cost.
    Probabilities are the softmax of minus the squared distances to the answers' points, over
    ``tau``.

    Costs that are no distances cannot be met exactly, and **in two classes the ratio of the costs
    acts as its square root**: with a cost of a for mistakes on the first class and of b for those
    on the second, the second is predicted where its regressed probability exceeds
    ``sqrt(a) / (sqrt(a) + sqrt(b))``, whatever the numbers of rows; the least expected cost would
    be from ``a / (a + b)`` on. So "balanced" lies between equal costs and full balance. Give the
    squares of the costs to have their ratio itself.

    Original are the embedding, mirroring, weights, decoding and as many dimensions as labels, as
    in the authors' code, and ``n_init`` and ``max_iter``. The original is for sets of labels; the
    use for one label a row, the cost "balanced" and the probabilities are choices of this library,
    as is the default regressor (the authors' example has random forests, slow for many features).

    Parameters
    ----------
    cost : "balanced" or array-like of shape (C, C), default="balanced"
        The cost of each answer (column) for each truth (line), in the order of ``classes_``.
        "balanced": any mistake on label y_i costs ``N / (C N_i)`` for N rows, N_i of them of y_i.
    regressor : regressor, default=None
        Takes several targets; None is ``Ridge()`` on standardised features.
    n_init : int, default=8
        Random starts of the scaling.
    max_iter : int, default=300
        Most iterations from one start.
    tau : float, default=1.0
        Temperature of the probabilities, in units of the cost.
    random_state : int, RandomState instance or None, default=None
        Seeds the scaling and the regressor.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels, sorted.
    cost_ : ndarray of shape (C, C)
        Cost of each answer (column) for each truth (line).
    true_points_, answer_points_ : ndarray of shape (C, C)
        The two halves of the embedding, a point a line.
    stress_ : float
        How far the distances are from the roots of the costs.
    regressor_ : regressor
        The fitted regressor.
    n_iter_ : int
        Iterations of the scaling.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, where X had names.

    References
    ----------
    K.-H. Huang and H.-T. Lin. Cost-sensitive label embedding for multi-label classification.
    Machine Learning 106 (2017), 1725-1746.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from setconv.baselines.clems import CLEMSClassifier
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> clf = CLEMSClassifier(cost=[[0, 1], [5, 0]], random_state=0).fit(X, y)
    >>> clf.predict_proba(X).shape
    (100, 2)
    """

    cost: Any = parameter("balanced", one_of("balanced"), "array-like")
    regressor: Any = None
    n_init: int = parameter(8, at_least(1))
    max_iter: int = parameter(300, at_least(1))
    tau: float = parameter(1.0, between(0, None))
    random_state: Any = None

    def fit(self, X: Any, y: Any) -> Self:
        """Embed the labels and fit the regressor.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels.

        Returns
        -------
        self : CLEMSClassifier
            Fitted.
        """
        rows, codes, random = self._check_training(X, y)
        counts = np.bincount(codes)
        self.cost_ = self._costs(counts)
        delta, weights = mirrored(self.cost_, counts)
        of_scaling = Random(draw_seed(random))
        points, stresses = weighted_mds(
            delta, weights, len(counts), of_scaling, n_init=self.n_init, max_iter=self.max_iter
        )
        self.true_points_, self.answer_points_ = np.split(points, 2)
        self.stress_, self.n_iter_ = float(stresses[-1]), len(stresses) - 1
        default = make_pipeline(StandardScaler(), Ridge())
        regressor = cloned(default if self.regressor is None else self.regressor, random)
        targets = self.true_points_[codes].astype(rows.dtype)
        self.regressor_ = regressor.fit(rows, targets)
        return self

    def _costs(self, counts: np.ndarray) -> np.ndarray:
        size = len(counts)
        if isinstance(self.cost, str):
            return np.asarray((1 - np.eye(size)) * (counts.sum() / (size * counts))[:, None])
        if np.shape(self.cost) != (size, size):
            raise ParameterError(
                f"cost={self.cost!r}: give 'balanced', or a matrix of shape {(size, size)}, a line "
                f"and a column for each of {self.classes_.tolist()}.",
                parameter="cost",
            )
        costs = np.array(self.cost, dtype=np.float64)
        if not (np.isfinite(costs).all() and (costs >= 0).all() and costs.any()):
            raise ParameterError(
                "cost must be finite, not negative, and not all zero.", parameter="cost"
            )
        return costs

    def _log_scores(self, X: Any) -> np.ndarray:
        rows = self._check_rows(X, np.float64)
        points = np.reshape(self.regressor_.predict(rows), (len(rows), -1))
        return -np.asarray(cdist(points, self.answer_points_, "sqeuclidean")) / self.tau


def mirrored(costs: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give dissimilarities and weights of the 2C points, true ones first (mirroring).

    True point i and answer point j are ``sqrt(cost_ij)`` apart with weight ``counts_i``; pairs
    within a half have weight 0.
    """
    nothing = np.zeros_like(costs)
    delta = np.sqrt(costs)
    weights = np.broadcast_to(counts[:, None].astype(float), costs.shape)
    return (
        np.block([[nothing, delta], [delta.T, nothing]]),
        np.block([[nothing, weights], [weights.T, nothing]]),
    )


def weighted_mds(
    delta: np.ndarray,
    weights: np.ndarray,
    n_components: int,
    random: Random,
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
