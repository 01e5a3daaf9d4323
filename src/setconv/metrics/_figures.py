"""The arithmetic: confusion matrix and columns in, one figure a class or one in all out."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from setconv.metrics._inputs import FloatArray, Rows


def confusion(rows: Rows) -> FloatArray:
    """Weight of the rows of truth i predicted as j, in cell (i, j)."""
    c = len(rows.classes)
    cell = rows.truth * c + rows.predicted
    flat = np.bincount(cell, weights=rows.weight, minlength=c * c)
    return flat.reshape(c, c).astype(np.float64)


def counts(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return TP, FN, FP and TN of each class against the rest, as in the paper's Table 3."""
    # Cells are added, never subtracted from a total: an empty side is exactly 0, whatever weights.
    rest = 1.0 - np.eye(len(matrix))
    off = matrix * rest
    return np.diag(matrix), off.sum(axis=1), off.sum(axis=0), ((rest @ matrix) * rest).sum(axis=1)


def one_vs_rest(matrix: FloatArray) -> dict[str, FloatArray]:
    """Every figure that needs decisions only, an array over the classes each."""
    tp, fn, fp, tn = counts(matrix)
    nan = np.full(len(matrix), np.nan)
    has_rows, has_rest = tp + fn > 0, tn + fp > 0

    def ratio(above: FloatArray, below: FloatArray, otherwise: FloatArray) -> FloatArray:
        return np.divide(above, below, out=otherwise.copy(), where=below > 0)

    specificity = ratio(tn, tn + fp, nan)
    sensitivity = ratio(tp, tp + fn, nan)
    sides = [np.sqrt(side) for side in (tp + fp, tp + fn, tn + fp, tn + fn)]
    mcc = ratio(tp * tn - fp * fn, np.prod(sides, axis=0), np.zeros_like(tp))
    return {
        "specificity": specificity,
        "sensitivity": sensitivity,
        "precision": ratio(tp, tp + fp, np.where(has_rows, 0.0, np.nan)),
        "f1": np.where(has_rows, ratio(2 * tp, 2 * tp + fp + fn, nan), np.nan),
        "g_mean": np.sqrt(specificity * sensitivity),
        "balanced_accuracy": (specificity + sensitivity) / 2,
        "mcc": np.where(has_rows & has_rest, mcc, np.nan),
    }


def overall_mcc(matrix: FloatArray) -> float:
    """Correlate truth and prediction over all classes (R_K); for two classes it is the MCC."""
    tp, fn, fp, tn = counts(matrix / matrix.sum())
    of_truth, of_guess = (tp + fn) @ (tn + fp), (tp + fp) @ (tn + fn)
    if of_truth == 0:
        return math.nan
    if of_guess == 0:
        return 0.0
    return float((tp * tn - fp * fn).sum() / (np.sqrt(of_truth) * np.sqrt(of_guess)))


def auc_by_class(rows: Rows, columns: FloatArray) -> FloatArray:
    """Area under the ROC curve of each class against the rest."""
    return _ranked(rows, columns, roc_auc_score)


def average_precision_by_class(rows: Rows, columns: FloatArray) -> FloatArray:
    """Average precision of each class against the rest."""
    return _ranked(rows, columns, average_precision_score)


def brier_by_class(rows: Rows, columns: FloatArray) -> FloatArray:
    """Mean squared error of the probability of each class; defined for a class without rows."""
    error = (columns - (rows.truth[:, None] == np.arange(len(rows.classes)))) ** 2
    mean: FloatArray = np.average(error, axis=0, weights=rows.weight)
    return mean


def overall_brier(by_class: FloatArray) -> float:
    """Sum the errors of all classes; of two, whose errors are equal, take one."""
    return float(by_class.sum() / (2 if len(by_class) == 2 else 1))


def mean(values: FloatArray) -> float:
    """Average over classes: nan when one of them is, or when there are no two to compare."""
    return float(np.mean(values)) if len(values) > 1 else math.nan


def geometric_mean(values: FloatArray) -> float:
    """Return the geometric mean, nan as in ``mean``; roots first, so nothing underflows."""
    return float(np.prod(values ** (1 / len(values)))) if len(values) > 1 else math.nan


def _ranked(rows: Rows, columns: FloatArray, measure: Callable[..., float]) -> FloatArray:
    totals = rows.totals
    values = np.full(len(totals), np.nan)
    for c in range(len(totals)):
        # Asked only where the ranking exists, so scikit-learn has nothing to warn about.
        if totals[c] > 0 and np.delete(totals, c).sum() > 0:
            values[c] = measure(rows.truth == c, columns[:, c], sample_weight=rows.weight)
    return values
