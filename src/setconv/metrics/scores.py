"""The metrics for scikit-learn's model selection."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from setconv.metrics import _arithmetic as figures
from setconv.metrics._arithmetic import FloatArray, check_columns, check_rows, plain_labels
from setconv.metrics.report import report

# ---------- metrics.measures

Labels = npt.ArrayLike
Maybe = npt.ArrayLike | None


def specificity(
    y_true: Labels, y_pred: Labels, *, positive: Any = None, sample_weight: Maybe = None
) -> float:
    """Spec = TN / (TN + FP) of the class ``positive``, by default the rarest."""
    return _of_class("specificity", positive, y_true, y_pred, sample_weight=sample_weight)


def sensitivity(
    y_true: Labels, y_pred: Labels, *, positive: Any = None, sample_weight: Maybe = None
) -> float:
    """Sens = TP / (TP + FN) of the class ``positive``, by default the rarest."""
    return _of_class("sensitivity", positive, y_true, y_pred, sample_weight=sample_weight)


def f1(
    y_true: Labels, y_pred: Labels, *, positive: Any = None, sample_weight: Maybe = None
) -> float:
    """F1 = 2 precision recall / (precision + recall) of ``positive``, by default the rarest."""
    return _of_class("f1", positive, y_true, y_pred, sample_weight=sample_weight)


def macro_f1(y_true: Labels, y_pred: Labels, *, sample_weight: Maybe = None) -> float:
    """Average the F1 of the class over all classes."""
    return report(y_true, y_pred, sample_weight=sample_weight).macro_f1


def g_mean(
    y_true: Labels, y_pred: Labels, *, positive: Any = None, sample_weight: Maybe = None
) -> float:
    """G-mean = sqrt(Spec Sens) of ``positive``; by default the geometric mean of all recalls.

    For two classes these are the same.
    """
    return _of_all("g_mean", positive, y_true, y_pred, sample_weight=sample_weight)


def balanced_accuracy(
    y_true: Labels, y_pred: Labels, *, positive: Any = None, sample_weight: Maybe = None
) -> float:
    """(Spec + Sens) / 2 of ``positive``; by default the mean of all recalls.

    For two classes these are the same.
    """
    return _of_all("balanced_accuracy", positive, y_true, y_pred, sample_weight=sample_weight)


def mcc(
    y_true: Labels, y_pred: Labels, *, positive: Any = None, sample_weight: Maybe = None
) -> float:
    """Matthews correlation of truth and prediction: of ``positive``, or over all classes.

    (TP TN - FP FN) / sqrt((TP + FP)(TP + FN)(TN + FP)(TN + FN)). For two classes both agree.
    """
    return _of_all("mcc", positive, y_true, y_pred, sample_weight=sample_weight)


def auc(
    y_true: Labels,
    score: npt.ArrayLike,
    *,
    positive: Any = None,
    classes: Maybe = None,
    sample_weight: Maybe = None,
) -> float:
    """Area under the ROC curve of ``positive`` against the rest, by default the rarest class.

    A 1-D ``score`` is that of ``classes[1]`` even when ``positive`` is ``classes[0]``.
    """
    # No decision is asked for: the truth stands in for it.
    given = {"scores": score, "classes": classes, "sample_weight": sample_weight}
    return _of_class("auc", positive, y_true, y_true, **given)


def average_precision(
    y_true: Labels,
    score: npt.ArrayLike,
    *,
    positive: Any = None,
    classes: Maybe = None,
    sample_weight: Maybe = None,
) -> float:
    """Average precision of ``positive`` against the rest, by default the rarest class.

    A 1-D ``score`` is that of ``classes[1]`` even when ``positive`` is ``classes[0]``.
    """
    given = {"scores": score, "classes": classes, "sample_weight": sample_weight}
    return _of_class("average_precision", positive, y_true, y_true, **given)


def brier(
    y_true: Labels,
    probability: npt.ArrayLike,
    *,
    positive: Any = None,
    classes: Maybe = None,
    sample_weight: Maybe = None,
) -> float:
    """Mean squared error of the probability of ``positive``; by default over all classes.

    Over all classes it is the mean of ``sum_c (p_c - [truth is c])**2``, halved for two classes,
    where the two terms are equal: there it is the error of one class, as in scikit-learn.
    """
    given = {"probabilities": probability, "classes": classes, "sample_weight": sample_weight}
    return _of_all("brier", positive, y_true, y_true, **given)


def _of_class(name: str, positive: Any, y_true: Any, y_pred: Any, **given: Any) -> float:
    found = report(y_true, y_pred, positive=positive, **given)
    return float(getattr(found[found.positive], name))


def _of_all(name: str, positive: Any, y_true: Any, y_pred: Any, **given: Any) -> float:
    found = report(y_true, y_pred, positive=positive, **given)
    return float(getattr(found if positive is None else found[positive], name))


# ---------- metrics.scorers

_OF_ONE_CLASS = ("f1", "sensitivity", "specificity", "auc", "average_precision")


def scorers(estimator: Any, X: Any, y: npt.ArrayLike, *, positive: Any = None) -> dict[str, float]:
    """Score a fitted classifier: what ``scoring=`` takes in ``cross_validate`` and its like.

    Higher is better for all: g_mean, macro_f1, balanced_accuracy, mcc, neg_brier, f1,
    sensitivity, specificity, auc, average_precision. A search takes one of them as ``refit``:
    ``GridSearchCV(clf, grid, scoring=scorers, refit="g_mean")``.

    Parameters
    ----------
    estimator : fitted classifier
    X : rows
    y : array-like of shape (n_rows,)
    positive : label, optional
        The class that f1, sensitivity, specificity, auc and average_precision speak of. By
        default, with two classes, the rarest of the rows scored (among equals the last); with
        more, each of the five is the mean over the classes, one against the rest, so f1 is then
        macro_f1. Name it when the classes are about equal, lest it change from fold to fold:
        ``scoring=functools.partial(scorers, positive="fraud")``.

    Returns
    -------
    dict of str to float

    Notes
    -----
    Means over classes and G-mean take the classes that have rows in the fold: all candidates see
    the same rows, so the comparison is fair where :func:`report` would say nan. A fold with one
    class only scores nan: stratify the folds. auc and average_precision use
    ``decision_function`` or else ``predict_proba``, neg_brier ``predict_proba``; without these
    methods, or when the fold has a class that the estimator never saw, they are nan.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_validate
    >>> X, y = make_classification(weights=[0.9], class_sep=3, flip_y=0, random_state=0)
    >>> cross_validate(LogisticRegression(), X, y, scoring=scorers, cv=3)["test_g_mean"].round(2)
    array([1., 1., 1.])
    """
    known = plain_labels(np.asarray(estimator.classes_), "classes_")
    unseen = sorted(set(plain_labels(y, "y")) - set(known), key=repr)
    rows = check_rows(y, estimator.predict(X), classes=[*known, *unseen])
    matrix, seen = figures.confusion(rows), rows.totals > 0
    by_class = figures.one_vs_rest(matrix)
    by_class |= dict.fromkeys(("auc", "average_precision"), np.full(len(seen), math.nan))
    brier = math.nan
    # One class trained on: scikit-learn refuses the columns, and they say nothing anyway.
    if len(known) > 1 and not unseen:
        ranking = None
        if hasattr(estimator, "predict_proba"):
            ranking = check_columns(estimator.predict_proba(X), rows, "probabilities")
            brier = figures.overall_brier(figures.brier_by_class(rows, ranking))
        if hasattr(estimator, "decision_function"):
            ranking = check_columns(estimator.decision_function(X), rows, "scores")
        if ranking is not None:
            by_class["auc"] = figures.auc_by_class(rows, ranking)
            by_class["average_precision"] = figures.average_precision_by_class(rows, ranking)

    def of_interest(values: FloatArray) -> float:
        if positive is None and (len(values) > 2 or seen.sum() < 2):
            return figures.mean(values[seen])
        return float(values[rows.position(positive)])

    return {
        "g_mean": figures.geometric_mean(by_class["sensitivity"][seen]),
        "macro_f1": figures.mean(by_class["f1"][seen]),
        "balanced_accuracy": figures.mean(by_class["sensitivity"][seen]),
        "mcc": figures.overall_mcc(matrix),
        "neg_brier": -brier,
        **{name: of_interest(by_class[name]) for name in _OF_ONE_CLASS},
    }


__all__ = [
    "auc",
    "average_precision",
    "balanced_accuracy",
    "brier",
    "f1",
    "g_mean",
    "macro_f1",
    "mcc",
    "scorers",
    "sensitivity",
    "specificity",
]
