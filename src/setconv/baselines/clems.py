"""CLEMS: classes as points whose distances are the costs of mistakes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from setconv.baselines.checking import check_number, check_training_rows
from setconv.baselines.seeding import cloned
from setconv.baselines.weighted_mds import weighted_mds
from setconv.checks import check_integer
from setconv.errors import ParameterError


class CLEMSClassifier(ClassifierMixin, BaseEstimator):
    """Cost-sensitive label embedding: regress to points, decide for the nearest.

    Each label y_i becomes two points, one for y_i as the truth and one for y_i as the answer, so
    that costs need not be symmetric (mirroring). Weighted multidimensional scaling places them: the
    true point of y_i and the answer point of y_j are to be ``sqrt(cost(y_i, y_j))`` apart, with the
    number of rows of y_i as the weight; other pairs are free. A regressor learns to map a row to
    the true point of its label. The answer whose point is nearest to the regressed one is
    predicted: as far as the embedding is exact, the answer of the least expected cost.

    Original are the embedding, mirroring, weights, decoding and as many dimensions as labels, as
    in the authors' code, and ``n_init`` and ``max_iter``. The original is for sets of labels; the
    use for one label a row, the cost "balanced" and the probabilities are choices of this library,
    as is the default regressor (the authors' example has random forests, slow for many features).

    Costs that are no distances cannot be met exactly: two classes with the costs 1 and 9, say, end
    up with a threshold between the one for equal costs and the one for 1 to 9.

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

    def __init__(
        self,
        *,
        cost: Any = "balanced",
        regressor: Any = None,
        n_init: int = 8,
        max_iter: int = 300,
        tau: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.cost = cost
        self.regressor = regressor
        self.n_init = n_init
        self.max_iter = max_iter
        self.tau = tau
        self.random_state = random_state

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
        check_number("tau", self.tau, 0, np.inf)
        for name in ("n_init", "max_iter"):
            check_integer(name, getattr(self, name), least=1)
        rows, codes, self.classes_ = check_training_rows(self, X, y)
        random = check_random_state(self.random_state)
        counts = np.bincount(codes)
        self.cost_ = self._costs(counts)
        points, stresses = weighted_mds(
            *mirrored(self.cost_, counts),
            len(counts),
            np.random.RandomState(random.randint(np.iinfo(np.int32).max)),
            n_init=self.n_init,
            max_iter=self.max_iter,
        )
        self.true_points_, self.answer_points_ = np.split(points, 2)
        self.stress_, self.n_iter_ = float(stresses[-1]), len(stresses) - 1
        regressor = self.regressor
        if regressor is None:
            regressor = make_pipeline(StandardScaler(), Ridge())
        targets = self.true_points_[codes].astype(rows.dtype)
        self.regressor_ = cloned(regressor, random).fit(rows, targets)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the softmax of minus the squared distances to the answers' points, over ``tau``.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n, C)
            Columns in the order of ``classes_``.
        """
        return np.asarray(softmax(-self._squared_distances(X) / self.tau, axis=1))

    def predict(self, X: Any) -> np.ndarray:
        """Predict the answer whose point is nearest to the regressed point.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n,)
            Predicted labels.
        """
        nearest = self._squared_distances(X).argmin(axis=1)
        return np.asarray(self.classes_[nearest])

    def _costs(self, counts: np.ndarray) -> np.ndarray:
        size = len(counts)
        if isinstance(self.cost, str) and self.cost == "balanced":
            return np.asarray((1 - np.eye(size)) * (counts.sum() / (size * counts))[:, None])
        if np.shape(self.cost) != (size, size):
            raise ParameterError(
                f"cost={self.cost!r}: give 'balanced', or a matrix of shape {(size, size)}, a line "
                f"and a column for each of {self.classes_.tolist()}."
            )
        costs = np.array(self.cost, dtype=np.float64)
        if not (np.isfinite(costs).all() and (costs >= 0).all() and costs.any()):
            raise ParameterError("cost must be finite, not negative, and not all zero.")
        return costs

    def _squared_distances(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        points = np.reshape(self.regressor_.predict(rows), (len(rows), -1))
        return np.asarray(cdist(points, self.answer_points_, "sqeuclidean"))


def mirrored(costs: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Give dissimilarities and weights of the 2u points, true ones first (mirroring).

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
