"""Small estimators that give peers what their users would give them by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.utils.metaestimators import available_if

from benchmarks.quality.splits import folds


def _has(name: str) -> Any:
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), name))


class Delegating(ClassifierMixin, BaseEstimator):
    """Answers with ``estimator_``, which the fit of a subclass leaves."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def predict(self, X: NDArray) -> NDArray:
        return self.estimator_.predict(X)

    @_has("predict_proba")
    def predict_proba(self, X: NDArray) -> NDArray:
        return self.estimator_.predict_proba(X)

    @_has("decision_function")
    def decision_function(self, X: NDArray) -> NDArray:
        return self.estimator_.decision_function(X)

    def _keep(self, fitted: Any) -> Self:
        self.estimator_, self.classes_ = fitted, fitted.classes_
        return self


class Searched(Delegating):
    """A grid search over folds that keep groups together."""

    def __init__(
        self,
        estimator: Any,
        grid: Mapping[str, Sequence[float]],
        scoring: str = "roc_auc",
        seed: int = 0,
    ) -> None:
        super().__init__(estimator)
        self.grid = grid
        self.scoring = scoring
        self.seed = seed

    def fit(self, X: NDArray, y: NDArray, groups: NDArray | None = None) -> Self:
        cv = folds(y, groups, self.seed, 3)
        search = GridSearchCV(self.estimator, dict(self.grid), scoring=self.scoring, cv=cv)
        return self._keep(search.fit(X, y).best_estimator_)


class Calibrated(Delegating):
    """A searched model, calibrated over five folds that keep groups together."""

    def __init__(self, estimator: Any, method: str, seed: int = 0) -> None:
        super().__init__(estimator)
        self.method = method
        self.seed = seed

    def fit(self, X: NDArray, y: NDArray, groups: NDArray | None = None) -> Self:
        chosen = clone(self.estimator).fit(X, y, groups).estimator_
        cv = folds(y, groups, self.seed, 5)
        return self._keep(
            CalibratedClassifierCV(clone(chosen), method=self.method, cv=cv).fit(X, y)
        )


class PositiveWeighted(Delegating):
    """Sets XGBoost's ``scale_pos_weight`` to the ratio of the classes."""

    def fit(self, X: NDArray, y: NDArray) -> Self:
        ratio = np.count_nonzero(y == 0) / np.count_nonzero(y == 1)
        return self._keep(clone(self.estimator).set_params(scale_pos_weight=ratio).fit(X, y))


class Retried(Delegating):
    """Takes the next seed when a fit fails: RUSBoost does if its first sample of rows misleads."""

    def __init__(self, estimator: Any, seed: int = 0, tries: int = 50) -> None:
        super().__init__(estimator)
        self.seed = seed
        self.tries = tries

    def fit(self, X: NDArray, y: NDArray) -> Self:
        for attempt in range(self.tries):
            try:
                model = clone(self.estimator).set_params(random_state=self.seed + attempt)
                return self._keep(model.fit(X, y))
            except ValueError:
                if attempt == self.tries - 1:
                    raise
        return self


class QuantileCodes(TransformerMixin, BaseEstimator):
    """Replaces values by the number of their quantile; columns with few values keep them apart."""

    def __init__(self, n_codes: int = 255) -> None:
        self.n_codes = n_codes

    def fit(self, X: NDArray, y: NDArray | None = None) -> Self:  # noqa: ARG002
        self.edges_ = [self._edges(column) for column in X.T]
        return self

    def transform(self, X: NDArray) -> NDArray[np.float32]:
        pairs = zip(self.edges_, X.T, strict=True)
        codes = [np.searchsorted(edges, column, side="right") for edges, column in pairs]
        return np.column_stack(codes).astype(np.float32)

    def _edges(self, column: NDArray) -> NDArray:
        values = np.unique(column)
        if len(values) <= self.n_codes:
            return (values[1:] + values[:-1]) / 2
        inner = np.linspace(0, 1, self.n_codes + 1)[1:-1]
        return np.unique(np.quantile(column, inner, method="inverted_cdf"))
