"""One figure each, as functions of labels; and all of them for scikit-learn's model selection.

Each function gives the figure that a `Report` has under its name, over all classes unless
``positive`` names one; where a report has it of single classes only, that of one class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setconv.errors import DataError
from setconv.metrics import arithmetic
from setconv.metrics.arithmetic import Maybe
from setconv.metrics.report import report


def specificity(
    y_true: ArrayLike, y_pred: ArrayLike, *, positive: Any = None, sample_weight: Maybe = None
) -> float:
    """Spec = TN / (TN + FP) of the class ``positive``, by default the rarest."""
    return _figure("specificity", y_true, y_pred, positive, sample_weight=sample_weight)


def sensitivity(
    y_true: ArrayLike, y_pred: ArrayLike, *, positive: Any = None, sample_weight: Maybe = None
) -> float:
    """Sens = TP / (TP + FN) of the class ``positive``, by default the rarest."""
    return _figure("sensitivity", y_true, y_pred, positive, sample_weight=sample_weight)


def f1(
    y_true: ArrayLike, y_pred: ArrayLike, *, positive: Any = None, sample_weight: Maybe = None
) -> float:
    """F1 = 2 precision recall / (precision + recall) of ``positive``, by default the rarest."""
    return _figure("f1", y_true, y_pred, positive, sample_weight=sample_weight)


def macro_f1(y_true: ArrayLike, y_pred: ArrayLike, *, sample_weight: Maybe = None) -> float:
    """Average the F1 of the class over all classes."""
    return _figure("macro_f1", y_true, y_pred, None, sample_weight=sample_weight)


def g_mean(
    y_true: ArrayLike, y_pred: ArrayLike, *, positive: Any = None, sample_weight: Maybe = None
) -> float:
    """G-mean = sqrt(Spec Sens) of ``positive``; by default the geometric mean of all recalls.

    For two classes these are the same.
    """
    return _figure("g_mean", y_true, y_pred, positive, sample_weight=sample_weight)


def balanced_accuracy(
    y_true: ArrayLike, y_pred: ArrayLike, *, positive: Any = None, sample_weight: Maybe = None
) -> float:
    """(Spec + Sens) / 2 of ``positive``; by default the mean of all recalls.

    For two classes these are the same.
    """
    return _figure("balanced_accuracy", y_true, y_pred, positive, sample_weight=sample_weight)


def mcc(
    y_true: ArrayLike, y_pred: ArrayLike, *, positive: Any = None, sample_weight: Maybe = None
) -> float:
    """Matthews correlation of truth and prediction: of ``positive``, or over all classes.

    (TP TN - FP FN) / sqrt((TP + FP)(TP + FN)(TN + FP)(TN + FN)). For two classes both agree.
    """
    return _figure("mcc", y_true, y_pred, positive, sample_weight=sample_weight)


def auc(
    y_true: ArrayLike,
    score: ArrayLike,
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
    return _figure("auc", y_true, y_true, positive, **given)


def average_precision(
    y_true: ArrayLike,
    score: ArrayLike,
    *,
    positive: Any = None,
    classes: Maybe = None,
    sample_weight: Maybe = None,
) -> float:
    """Average precision of ``positive`` against the rest, by default the rarest class.

    A 1-D ``score`` is that of ``classes[1]`` even when ``positive`` is ``classes[0]``.
    """
    given = {"scores": score, "classes": classes, "sample_weight": sample_weight}
    return _figure("average_precision", y_true, y_true, positive, **given)


def brier(
    y_true: ArrayLike,
    probability: ArrayLike,
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
    return _figure("brier", y_true, y_true, positive, **given)


def _figure(name: str, y_true: Any, y_pred: Any, positive: Any, **given: Any) -> float:
    for what in ("scores", "probabilities"):
        if given.get(what, 0) is None:
            raise DataError(f"{name} needs {what}, which are None: pass them.", parameter=what)
    found = report(y_true, y_pred, positive=positive, **given)
    overall = positive is None and hasattr(found, name)
    return float(getattr(found if overall else found[found.positive], name))


def scorers(estimator: Any, X: Any, y: ArrayLike, *, positive: Any = None) -> dict[str, float]:
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
    known = arithmetic.plain_labels(np.asarray(estimator.classes_), "classes_")
    unseen = sorted(set(arithmetic.plain_labels(y, "y")) - set(known), key=repr)
    rows = arithmetic.check_rows(y, estimator.predict(X), classes=[*known, *unseen])
    matrix, seen = rows.confusion(), rows.counts > 0
    scores = probabilities = None
    # One class trained on: scikit-learn refuses the columns, and they say nothing anyway.
    if len(known) > 1 and not unseen:
        if hasattr(estimator, "predict_proba"):
            probabilities = estimator.predict_proba(X)
        if hasattr(estimator, "decision_function"):
            scores = estimator.decision_function(X)
    by_class = arithmetic.figures_by_class(rows, matrix, scores, probabilities)
    overall = arithmetic.overall_figures(by_class, matrix, seen)
    averaged = positive is None and (len(seen) > 2 or seen.sum() < 2)
    chosen = rows.position(positive)
    of = {n: by_class[n] for n in ("f1", "sensitivity", "specificity", "auc", "average_precision")}
    return {
        **{n: float(overall[n]) for n in ("g_mean", "macro_f1", "balanced_accuracy", "mcc")},
        "neg_brier": -float(overall["brier"]),
        **{n: float(arithmetic.mean(v[seen]) if averaged else v[chosen]) for n, v in of.items()},
    }
