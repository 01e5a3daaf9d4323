"""The metrics for scikit-learn's model selection."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from setconv.metrics import _figures as figures
from setconv.metrics._inputs import FloatArray, check_columns, check_rows, plain_labels

__all__ = ["scorers"]

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
