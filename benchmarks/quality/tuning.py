"""Threshold tuning by scikit-learn, without fitting the same model twice."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.metrics import make_scorer
from sklearn.model_selection import TunedThresholdClassifierCV

from benchmarks.quality.measures import f1, g_mean
from benchmarks.quality.splits import Fold, Index

SCORERS = {"g_mean": make_scorer(g_mean), "f1": make_scorer(f1)}
_MOST_THRESHOLDS = 500


@dataclass
class Bench:
    """The rows of a task, dense or sparse, and what was fitted and answered on them, by number."""

    X: Any
    y: Index
    groups: Index | None
    fits: dict[bytes, Any] = field(default_factory=dict)
    answers: dict[tuple[bytes, bytes], NDArray] = field(default_factory=dict)

    def __deepcopy__(self, memo: dict) -> Self:
        # scikit-learn's clone copies parameters; the memory is to be shared.
        return self

    def fit(self, estimator: Any, rows: Index) -> Any:
        """Return the estimator fitted on these rows; groups go along if it takes them."""
        key = rows.tobytes()
        if key not in self.fits:
            extra = {}
            if self.groups is not None and "groups" in inspect.signature(estimator.fit).parameters:
                extra["groups"] = self.groups[rows]
            self.fits[key] = clone(estimator).fit(self.X[rows], self.y[rows], **extra)
        return self.fits[key]

    def scores(self, fitted_on: Index, rows: Index) -> NDArray[np.float64]:
        """Return the scores of class 1 by the model that was fitted on ``fitted_on``."""
        key = (fitted_on.tobytes(), rows.tobytes())
        if key not in self.answers:
            self.answers[key] = scores_of(self.fits[key[0]], self.X[rows])
        return self.answers[key]


class ByNumber(ClassifierMixin, BaseEstimator):
    """A classifier of row numbers: one column, the rows of a `Bench`."""

    def __init__(self, estimator: Any, bench: Bench) -> None:
        self.estimator = estimator
        self.bench = bench

    def fit(self, X: NDArray, y: NDArray) -> Self:
        self.rows_ = np.ascontiguousarray(X[:, 0])
        self.bench.fit(self.estimator, self.rows_)
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X: NDArray) -> NDArray[np.float64]:
        return self.bench.scores(self.rows_, np.ascontiguousarray(X[:, 0]))


def scores_of(model: Any, X: NDArray) -> NDArray[np.float64]:
    """Return a score of class 1 for each row: the decision function, or else the probability.

    Where a model has a raw score apart from its decision function, that is the score.
    """
    if hasattr(model, "predictions"):
        return np.asarray(model.predictions(X).scores, dtype=np.float64)
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(X), dtype=np.float64)
    return np.asarray(model.predict_proba(X)[:, 1], dtype=np.float64)


def tuned_thresholds(
    estimator: Any, bench: Bench, train: Index, splits: list[Fold]
) -> dict[str, float]:
    """Return the threshold for each metric, or none if the scores are constant in a fold.

    ``splits`` number the rows of ``train``. At a threshold that is best for either metric the next
    row down is a minority row; so the candidates lie between a minority row and the row below it,
    in out-of-fold scores. Even steps between the extremes, the default, would miss most of them
    where scores crowd at one end.
    """
    number, y = train[:, None], bench.y[train]
    out = np.empty(len(train))
    for inside, outside in splits:
        bench.fit(estimator, train[inside])
        out[outside] = bench.scores(train[inside], train[outside])
    candidates = _candidates(out, y)
    if np.isclose(candidates[0], candidates[-1]):
        return {}
    found = {}
    for name, scorer in SCORERS.items():
        tuned = TunedThresholdClassifierCV(
            ByNumber(estimator, bench),
            scoring=scorer,
            response_method="decision_function",
            thresholds=candidates,
            cv=splits,
        )
        found[name] = float(tuned.fit(number, y).best_threshold_)
    return found


def _candidates(scores: NDArray[np.float64], y: NDArray) -> NDArray[np.float64]:
    values = np.unique(scores)
    above = np.searchsorted(values, np.unique(scores[y == 1]))
    between = (values[above] + values[np.maximum(above - 1, 0)]) / 2
    if len(between) > _MOST_THRESHOLDS:
        between = np.quantile(between, np.linspace(0, 1, _MOST_THRESHOLDS))
    return between
