"""CLEMS: classes, or sets of labels, as points whose distances are the costs of mistakes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import ClassifierTags, Tags, check_random_state
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted, validate_data

from setconv.baselines.checking import FLOATS, check_class_number, check_training_rows
from setconv.baselines.seeding import cloned
from setconv.baselines.weighted_mds import WeightedMDS
from setconv.checks import check_choice
from setconv.errors import ParameterError

_NAMED_COSTS = ("balanced", "hamming", "f1", "accuracy", "rank")


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
    use for single labels, the cost "balanced" and the probabilities are choices of this library, as
    is the default regressor (the authors' example has random forests, slow for many features).

    Costs that are no distances cannot be met exactly: two classes with the costs 1 and 9, say, end
    up with a threshold between the one for equal costs and the one for 1 to 9.

    Parameters
    ----------
    cost : str, callable or array-like, default="balanced"
        The cost of an answer. "balanced": any mistake on label y_i costs ``N / (u N_i)`` for N
        rows, N_i of them of y_i, and u labels. "hamming", "f1", "accuracy" (one less the Jaccard
        ratio) and "rank" compare sets of labels; a single label is a set of one. A callable gets
        the truth and the answer. A matrix has a line for each truth and a column for each answer,
        in the order of ``labels_``.
    regressor : regressor, default=None
        Takes several targets; None is ``Ridge()`` on standardised features.
    n_components : int, default=None
        Dimensions of the points; None for the number of classes, or of labels in a set.
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
    classes_ : ndarray
        The labels, sorted; for sets of labels, the numbers of the columns of y.
    labels_ : ndarray of shape (u,) or (u, K)
        What can be answered: the classes, or the different sets of labels seen.
    cost_ : ndarray of shape (u, u)
        Cost of each answer (column) for each truth (line).
    true_points_, answer_points_ : ndarray of shape (u, n_components)
        The two halves of the embedding.
    mds_ : WeightedMDS
        The fitted scaling, with its stress.
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
        n_components: int | None = None,
        n_init: int = 8,
        max_iter: int = 300,
        tau: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.cost = cost
        self.regressor = regressor
        self.n_components = n_components
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
        y : array-like of shape (n,) or (n, K)
            Labels, or sets of labels as rows of zeros and ones.

        Returns
        -------
        self : CLEMSClassifier
            Fitted.
        """
        if not self.tau > 0:
            raise ParameterError(f"tau={self.tau!r}: give a positive number.")
        rows, codes = self._checked_rows(X, y)
        random = check_random_state(self.random_state)
        counts = np.bincount(codes)
        vectors = self._vectors()
        self.cost_ = self._costs(vectors, counts)
        self.mds_ = WeightedMDS(
            n_components=vectors.shape[1] if self.n_components is None else self.n_components,
            n_init=self.n_init,
            max_iter=self.max_iter,
            random_state=random.randint(np.iinfo(np.int32).max),
        )
        delta, weights = mirrored(self.cost_, counts)
        points = self.mds_.fit_transform(delta, weights=weights)
        self.true_points_, self.answer_points_ = np.split(points, 2)
        self.n_iter_ = self.mds_.n_iter_
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
        probabilities : ndarray of shape (n, C) or (n, K)
            For single labels, columns in the order of ``classes_``. For sets of labels, the
            probability of each label to be in the set.
        """
        probabilities = softmax(-self._squared_distances(X) / self.tau, axis=1)
        if self.labels_.ndim == 2:
            # A sum of probabilities may exceed 1 by a rounding.
            return np.asarray((probabilities @ self.labels_).clip(0, 1))
        return np.asarray(probabilities)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the answer whose point is nearest to the regressed point.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n,) or (n, K)
            Predicted labels, or sets of labels as rows of zeros and ones.
        """
        nearest = self._squared_distances(X).argmin(axis=1)
        return np.asarray(self.labels_[nearest])

    def _checked_rows(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Check the data; set what can be answered; return rows and the codes of their labels."""
        if type_of_target(y) != "multilabel-indicator":
            rows, codes, self.classes_ = check_training_rows(self, X, y)
            self.labels_ = self.classes_
            return rows, codes
        rows, y = validate_data(self, X, y, multi_output=True, dtype=FLOATS)
        sets = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
        self.labels_, codes = np.unique(sets, axis=0, return_inverse=True)
        check_class_number(type(self).__name__, self.labels_)
        self.classes_ = np.arange(sets.shape[1])
        return rows, codes.ravel()

    def _vectors(self) -> np.ndarray:
        """Give what can be answered as sets of labels; a class is a set of one."""
        return np.eye(len(self.labels_)) if self.labels_.ndim == 1 else self.labels_

    def _costs(self, vectors: np.ndarray, counts: np.ndarray) -> np.ndarray:
        if isinstance(self.cost, str):
            check_choice("cost", self.cost, _NAMED_COSTS)
            if self.cost == "balanced":
                size = len(counts)
                return np.asarray((1 - np.eye(size)) * (counts.sum() / (size * counts))[:, None])
            return set_costs(self.cost, vectors)
        if callable(self.cost):
            costs = [[self.cost(true, answer) for answer in self.labels_] for true in self.labels_]
        else:
            costs = self.cost
        return self._checked_costs(np.array(costs, dtype=np.float64))

    def _checked_costs(self, costs: np.ndarray) -> np.ndarray:
        size = len(self.labels_)
        if costs.shape != (size, size):
            raise ParameterError(
                f"cost has shape {costs.shape}; give {(size, size)}, a line and a column for each "
                f"of {self.labels_.tolist()}."
            )
        if not (np.isfinite(costs).all() and (costs >= 0).all() and costs.any()):
            raise ParameterError("cost must be finite, not negative, and not all zero.")
        return costs

    def _squared_distances(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        points = np.reshape(self.regressor_.predict(rows), (len(rows), -1))
        return np.asarray(cdist(points, self.answer_points_, "sqeuclidean"))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = tags.classifier_tags or ClassifierTags()
        tags.classifier_tags.multi_label = True
        return tags


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


def set_costs(name: str, vectors: np.ndarray) -> np.ndarray:
    """Give a named cost between all pairs of sets of labels, truth by line, answer by column."""
    inside, outside = vectors.astype(float), 1.0 - vectors
    both, missed = inside @ inside.T, inside @ outside.T
    added, neither = outside @ inside.T, outside @ outside.T
    wrong = missed + added
    if name == "rank":
        # Pairs of a label inside and one outside the truth: 1 if reversed, 1/2 if not told apart.
        return np.asarray(missed * added + (both * added + missed * neither) / 2)
    sizes = {
        "hamming": np.full_like(wrong, vectors.shape[1]),
        "f1": 2 * both + wrong,
        "accuracy": both + wrong,
    }
    return np.asarray(np.divide(wrong, sizes[name], out=np.zeros_like(wrong), where=wrong > 0))
