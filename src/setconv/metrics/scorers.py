"""The metrics as scorers for scikit-learn's model selection."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# Private, but the only base whose scorers share one prediction in a dictionary of scorers
# (a text model would otherwise read every row ten times) and take routed weights.
from sklearn.metrics._scorer import _BaseScorer

from setconv.metrics import _figures as figures
from setconv.metrics._inputs import FloatArray, Label, Rows, check_columns, check_rows, plain_labels

__all__ = ["scorers"]

_FROM_LABELS = (
    "g_mean",
    "macro_f1",
    "f1",
    "sensitivity",
    "specificity",
    "balanced_accuracy",
    "mcc",
)
_FROM_SCORES = ("auc", "average_precision")
_FROM_PROBABILITIES = ("neg_brier",)


def scorers(*, positive: Any = None) -> dict[str, Callable[..., float]]:
    """Scorers for ``scoring=`` in ``cross_validate``, ``GridSearchCV`` and their like.

    Higher is better for all: g_mean, macro_f1, f1, sensitivity, specificity, auc,
    average_precision, balanced_accuracy, mcc, neg_brier. Pass one,
    ``scoring=scorers()["g_mean"]``, or all, ``scoring=scorers()`` with ``refit="g_mean"``.

    Parameters
    ----------
    positive : label, optional
        The class that f1, sensitivity, specificity, auc and average_precision speak of. By
        default, with two classes, the rarest of the rows scored (among equals the last); with
        more, each of the five is the mean over the classes, one against the rest, so f1 is then
        macro_f1. Name it when the classes are about equal, lest it change from fold to fold.

    Notes
    -----
    Means over classes and G-mean take the classes that have rows in the fold: all candidates see
    the same rows, so the comparison is fair where :func:`report` would say nan. A fold with one
    class only scores nan: stratify the folds. auc and average_precision use
    ``decision_function`` or else ``predict_proba``, neg_brier ``predict_proba``; without these
    methods, or when the fold has a class that the estimator never saw, they are nan.
    ``sample_weight`` is used when scikit-learn routes it.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = make_classification(weights=[0.9], class_sep=3, flip_y=0, random_state=0)
    >>> cross_val_score(LogisticRegression(), X, y, scoring=scorers()["g_mean"], cv=3).round(2)
    array([1., 1., 1.])
    """
    names = (*_FROM_LABELS, *_FROM_SCORES, *_FROM_PROBABILITIES)
    return {name: _Scorer(name, positive) for name in names}


@dataclass(frozen=True)
class _Answer:
    """What an estimator said of the rows: labels, scores or probabilities; None if it cannot."""

    values: Any
    classes: tuple[Label, ...] | None


@dataclass(frozen=True)
class _Figure:
    """One figure of an answer. A class, not a closure, so that it pickles for ``n_jobs``."""

    name: str
    positive: Any

    def __call__(
        self, y_true: Any, y_pred: _Answer, sample_weight: npt.ArrayLike | None = None
    ) -> float:
        if y_pred.values is None:
            return math.nan
        labels = y_pred.values if self.name in _FROM_LABELS else None
        rows = check_rows(
            y_true, labels, classes=_all_classes(y_true, y_pred), sample_weight=sample_weight
        )
        if self.name in _FROM_LABELS:
            return self._from_labels(rows)
        if y_pred.classes is not None and len(rows.classes) > len(y_pred.classes):
            return math.nan
        if self.name == "neg_brier":
            columns = check_columns(y_pred.values, rows, "probabilities")
            return -figures.overall_brier(figures.brier_by_class(rows, columns))
        columns = check_columns(y_pred.values, rows, "scores")
        measure = {
            "auc": figures.auc_by_class,
            "average_precision": figures.average_precision_by_class,
        }[self.name]
        return self._of_interest(rows, measure(rows, columns))

    def _from_labels(self, rows: Rows) -> float:
        matrix = figures.confusion(rows)
        by_class = figures.one_vs_rest(matrix)
        seen = rows.totals > 0
        if self.name == "g_mean":
            return figures.geometric_mean(by_class["sensitivity"][seen])
        if self.name == "balanced_accuracy":
            return figures.mean(by_class["sensitivity"][seen])
        if self.name == "macro_f1":
            return figures.mean(by_class["f1"][seen])
        if self.name == "mcc":
            return figures.overall_mcc(matrix)
        return self._of_interest(rows, by_class[self.name])

    def _of_interest(self, rows: Rows, values: FloatArray) -> float:
        if self.positive is not None:
            return float(values[rows.position(self.positive)])
        seen = rows.totals > 0
        if len(values) > 2 or seen.sum() < 2:
            return figures.mean(values[seen])
        return float(values[rows.position(None)])


def _all_classes(y_true: Any, answer: _Answer) -> Any:
    """Return the estimator's classes in its order, then those that only the fold has."""
    if answer.classes is None:
        return None
    new = set(plain_labels(y_true, "y_true")) - set(answer.classes)
    return (*answer.classes, *sorted(new, key=repr))


class _Scorer(_BaseScorer):  # type: ignore[misc]
    """A scorer that knows the estimator's classes, which ``make_scorer`` does not pass on."""

    def __init__(self, name: str, positive: Any) -> None:
        # "predict" is only what the shared cache counts by; _score asks for what it needs.
        super().__init__(_Figure(name, positive), 1, {}, "predict")

    def __repr__(self) -> str:
        figure = self._score_func
        inside = "" if figure.positive is None else f"positive={figure.positive!r}"
        return f"setconv.metrics.scorers({inside})[{figure.name!r}]"

    def _score(
        self, method_caller: Callable[..., Any], estimator: Any, X: Any, y_true: Any, **kwargs: Any
    ) -> float:
        name = self._score_func.name
        methods = ["predict"]
        if name in _FROM_SCORES:
            methods = ["decision_function", "predict_proba"]
        elif name in _FROM_PROBABILITIES:
            methods = ["predict_proba"]
        method = next((method for method in methods if hasattr(estimator, method)), None)
        known = getattr(estimator, "classes_", None)
        classes = None if known is None else tuple(plain_labels(np.asarray(known), "classes_"))
        # One class trained on: scikit-learn refuses the columns, and they say nothing anyway.
        mute = method is None or (method != "predict" and classes is not None and len(classes) < 2)
        values = None if mute else method_caller(estimator, method, X)
        figure: float = self._score_func(y_true, _Answer(values, classes), **kwargs)
        return figure
