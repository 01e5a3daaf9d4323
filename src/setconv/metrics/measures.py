"""One figure a function; the conventions are those of :mod:`setconv.metrics`.

Each gives what :func:`setconv.metrics.report` has under its name, and all take ``sample_weight``.
Those of scores and probabilities take ``classes`` too: the order of the columns, by default the
sorted labels seen.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from setconv.metrics.report import report

__all__ = [
    "auc",
    "average_precision",
    "balanced_accuracy",
    "brier",
    "f1",
    "g_mean",
    "macro_f1",
    "mcc",
    "sensitivity",
    "specificity",
]

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
