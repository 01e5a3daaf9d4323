"""One figure a function; the conventions are those of :mod:`setconv.metrics`.

All take ``classes`` (the class order; by default the sorted labels seen) and ``sample_weight``.
"""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from setconv.metrics import _figures as figures
from setconv.metrics._inputs import FloatArray, Rows, check_columns, check_rows

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
    y_true: Labels,
    y_pred: Labels,
    *,
    positive: Any = None,
    classes: Maybe = None,
    sample_weight: Maybe = None,
) -> float:
    """Spec = TN / (TN + FP) of the class ``positive``, by default the rarest."""
    return _of_class(
        "specificity",
        check_rows(y_true, y_pred, classes=classes, sample_weight=sample_weight),
        positive,
    )


def sensitivity(
    y_true: Labels,
    y_pred: Labels,
    *,
    positive: Any = None,
    classes: Maybe = None,
    sample_weight: Maybe = None,
) -> float:
    """Sens = TP / (TP + FN) of the class ``positive``, by default the rarest."""
    return _of_class(
        "sensitivity",
        check_rows(y_true, y_pred, classes=classes, sample_weight=sample_weight),
        positive,
    )


def f1(
    y_true: Labels,
    y_pred: Labels,
    *,
    positive: Any = None,
    classes: Maybe = None,
    sample_weight: Maybe = None,
) -> float:
    """F1 = 2 precision recall / (precision + recall) of ``positive``, by default the rarest."""
    return _of_class(
        "f1", check_rows(y_true, y_pred, classes=classes, sample_weight=sample_weight), positive
    )


def macro_f1(
    y_true: Labels,
    y_pred: Labels,
    *,
    classes: Maybe = None,
    sample_weight: Maybe = None,
) -> float:
    """Average the F1 of the class over all classes."""
    rows = check_rows(y_true, y_pred, classes=classes, sample_weight=sample_weight)
    return figures.mean(_by_class(rows)["f1"])


def g_mean(
    y_true: Labels,
    y_pred: Labels,
    *,
    positive: Any = None,
    classes: Maybe = None,
    sample_weight: Maybe = None,
) -> float:
    """G-mean = sqrt(Spec Sens) of ``positive``; by default the geometric mean of all recalls.

    For two classes these are the same.
    """
    rows = check_rows(y_true, y_pred, classes=classes, sample_weight=sample_weight)
    if positive is not None:
        return _of_class("g_mean", rows, positive)
    return figures.geometric_mean(_by_class(rows)["sensitivity"])


def balanced_accuracy(
    y_true: Labels,
    y_pred: Labels,
    *,
    positive: Any = None,
    classes: Maybe = None,
    sample_weight: Maybe = None,
) -> float:
    """(Spec + Sens) / 2 of ``positive``; by default the mean of all recalls.

    For two classes these are the same.
    """
    rows = check_rows(y_true, y_pred, classes=classes, sample_weight=sample_weight)
    if positive is not None:
        return _of_class("balanced_accuracy", rows, positive)
    return figures.mean(_by_class(rows)["sensitivity"])


def mcc(
    y_true: Labels,
    y_pred: Labels,
    *,
    positive: Any = None,
    classes: Maybe = None,
    sample_weight: Maybe = None,
) -> float:
    """Matthews correlation of truth and prediction: of ``positive``, or over all classes.

    (TP TN - FP FN) / sqrt((TP + FP)(TP + FN)(TN + FP)(TN + FN)). For two classes both agree.
    """
    rows = check_rows(y_true, y_pred, classes=classes, sample_weight=sample_weight)
    if positive is not None:
        return _of_class("mcc", rows, positive)
    return figures.overall_mcc(figures.confusion(rows))


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
    rows = check_rows(y_true, None, classes=classes, sample_weight=sample_weight)
    values = figures.auc_by_class(rows, check_columns(score, rows, "scores"))
    return float(values[rows.position(positive)])


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
    rows = check_rows(y_true, None, classes=classes, sample_weight=sample_weight)
    values = figures.average_precision_by_class(rows, check_columns(score, rows, "scores"))
    return float(values[rows.position(positive)])


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
    rows = check_rows(y_true, None, classes=classes, sample_weight=sample_weight)
    values = figures.brier_by_class(rows, check_columns(probability, rows, "probabilities"))
    if positive is None:
        return figures.overall_brier(values)
    return float(values[rows.position(positive)])


def _by_class(rows: Rows) -> dict[str, FloatArray]:
    return figures.one_vs_rest(figures.confusion(rows))


def _of_class(name: str, rows: Rows, positive: Any) -> float:
    return float(_by_class(rows)[name][rows.position(positive)])
