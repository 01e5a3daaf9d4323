"""A classifier with the sampler inside, so that only training rows are ever resampled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils import ClassifierTags, Tags, check_random_state, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from setconv.baselines.checking import check_training_rows
from setconv.baselines.seeding import cloned

Prediction = Callable[[Any, Any], np.ndarray]


def _inner_has(method: str) -> Callable[[Prediction], Prediction]:
    def check(self: ResampledClassifier) -> bool:
        inner = self.estimator_ if hasattr(self, "estimator_") else self._classifier()
        getattr(inner, method)
        return True

    return cast("Callable[[Prediction], Prediction]", available_if(check))


class ResampledClassifier(ClassifierMixin, BaseEstimator):
    """Standardise, resample the training rows, fit a classifier.

    The papers of the samplers and the SetConv paper do not say which classifier is trained
    afterwards; by default it is logistic regression on the standardised features, a choice of this
    library that every table states.

    Parameters
    ----------
    sampler : sampler
        Anything with ``fit_resample``, of this package or of imbalanced-learn.
    estimator : classifier, default=None
        Trained on the resampled rows; None is ``LogisticRegression(max_iter=1000)``.
    standardize : bool, default=True
        Whether features are standardised first, by the training rows; the sampler's distances and
        the classifier both see the result.
    random_state : int, RandomState instance or None, default=None
        Seeds the sampler and the classifier where they have no seed of their own.

    Attributes
    ----------
    classes_ : ndarray of shape (C,)
        The labels, sorted.
    scaler_ : StandardScaler or None
        The fitted standardisation.
    sampler_ : sampler
        The fitted sampler; what it could not do is in its ``fallbacks_``.
    estimator_ : classifier
        The fitted classifier.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features, where X had names.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from setconv.baselines import ResampledClassifier, SMOTESampler
    >>> X, y = make_classification(weights=[0.9], random_state=0)
    >>> clf = ResampledClassifier(SMOTESampler(), random_state=0).fit(X, y)
    >>> clf.predict_proba(X).shape
    (100, 2)
    """

    def __init__(
        self,
        sampler: Any,
        estimator: Any = None,
        *,
        standardize: bool = True,
        random_state: Any = None,
    ) -> None:
        self.sampler = sampler
        self.estimator = estimator
        self.standardize = standardize
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the sampler and the classifier on training rows.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels.

        Returns
        -------
        self : ResampledClassifier
            Fitted.
        """
        rows, codes, self.classes_ = check_training_rows(self, X, y, binary=self._is_binary())
        random = check_random_state(self.random_state)
        self.scaler_ = StandardScaler().fit(rows) if self.standardize else None
        self.sampler_ = cloned(self.sampler, random)
        rows, labels = self.sampler_.fit_resample(self._scaled(rows), self.classes_[codes])
        self.estimator_ = cloned(self._classifier(), random).fit(rows, labels)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the label of each row.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n,)
            Predicted labels.
        """
        rows = self._checked(X)
        return np.asarray(self.estimator_.predict(rows))

    @_inner_has("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Give the classifier's probabilities, for the prevalence after resampling.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n, C)
            Columns in the order of ``classes_``.
        """
        rows = self._checked(X)
        return np.asarray(self.estimator_.predict_proba(rows))

    @_inner_has("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """Give the classifier's scores.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n,) or (n, C)
            As the classifier gives them.
        """
        rows = self._checked(X)
        return np.asarray(self.estimator_.decision_function(rows))

    def _classifier(self) -> Any:
        return LogisticRegression(max_iter=1000) if self.estimator is None else self.estimator

    def _checked(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._scaled(validate_data(self, X, dtype=[np.float64, np.float32], reset=False))

    def _scaled(self, rows: np.ndarray) -> np.ndarray:
        return rows if self.scaler_ is None else np.asarray(self.scaler_.transform(rows))

    def _is_binary(self) -> bool:
        tags = getattr(get_tags(self.sampler), "classifier_tags", None)
        return tags is not None and not tags.multi_class

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags = tags.classifier_tags or ClassifierTags()
        tags.classifier_tags.multi_class = not self._is_binary()
        return tags
