"""The arithmetic behind every metric: labels are checked and counted, and figures come out.

`check_rows` and `check_columns` read what the user passes, `figures_by_class` gives each figure as
an array over the classes, and `overall_figures` makes one figure of all classes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import average_precision_score, roc_auc_score

from setconv.errors import DataError, LabelError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
Label = str | int | float | bool

# Wide enough for float16 and float32 probabilities, far below any honest mistake.
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Rows:
    """Checked rows: labels as positions in ``classes``; ``weight`` is None when all are 1."""

    classes: tuple[Label, ...]
    truth: IntArray
    predicted: IntArray
    weight: FloatArray | None

    @property
    def counts(self) -> IntArray:
        """Rows of truth a class, weights left aside."""
        return np.bincount(self.truth, minlength=len(self.classes))

    @property
    def totals(self) -> FloatArray:
        """Weight of truth a class."""
        totals = np.bincount(self.truth, weights=self.weight, minlength=len(self.classes))
        return totals.astype(np.float64)

    def confusion(self) -> FloatArray:
        """Return the weight of the rows of truth i predicted as j, in cell (i, j)."""
        c = len(self.classes)
        cell = self.truth * c + self.predicted
        flat = np.bincount(cell, weights=self.weight, minlength=c * c)
        return flat.reshape(c, c).astype(np.float64)

    def position(self, positive: Any) -> int:
        """Return the position of the class of interest, by default the rarest that has rows.

        Rarest is counted in rows, not weights: class-balancing weights would make every class
        equally rare. Among equals the last in class order is taken.
        """
        if positive is None:
            counts = np.where(self.counts > 0, self.counts, len(self.truth) + 1)
            return len(counts) - 1 - int(np.argmin(counts[::-1]))
        if positive not in self.classes:
            raise LabelError(
                f"positive={positive!r} is not one of the classes {show(self.classes)}: "
                "name one of them (the type counts: '1' is not 1)."
            )
        return self.classes.index(positive)


def check_rows(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    classes: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> Rows:
    """Labels of any kind as class numbers; without ``classes`` they are the labels seen."""
    truth = plain_labels(y_true, "y_true")
    predicted = plain_labels(y_pred, "y_pred")
    if not truth:
        raise DataError("y_true is empty: there is nothing to measure; pass at least one row.")
    if len(predicted) != len(truth):
        raise DataError(
            f"y_pred has {len(predicted)} rows but y_true has {len(truth)}: "
            "pass one prediction for each row of y_true."
        )
    names = _class_order(classes, truth, predicted)
    number = {name: i for i, name in enumerate(names)}
    weight = None if sample_weight is None else _weight(sample_weight, len(truth))
    return Rows(
        classes=names,
        truth=_encode(truth, number, "y_true"),
        predicted=_encode(predicted, number, "y_pred"),
        weight=weight,
    )


def _class_order(classes: Any, truth: list[Label], predicted: list[Label]) -> tuple[Label, ...]:
    if classes is None:
        seen = {*truth, *predicted}
        try:
            return tuple(sorted(seen))
        except TypeError as error:
            raise LabelError(
                f"y_true and y_pred mix strings and numbers, {show(seen)}: "
                "convert both to one type (1 and '1' are different labels)."
            ) from error
    names = tuple(plain_labels(classes, "classes"))
    if not names or len(set(names)) != len(names):
        raise LabelError(f"classes={show(names)} must name each class once: pass distinct labels.")
    return names


def _encode(labels: list[Label], number: dict[Label, int], name: str) -> IntArray:
    unknown = set(labels) - set(number)
    if unknown:
        raise LabelError(
            f"{name} has labels {show(unknown)} that are not among the classes "
            f"{show(number)}: add them to classes= or correct them (1 and '1' differ)."
        )
    return np.fromiter((number[label] for label in labels), dtype=np.intp, count=len(labels))


def _weight(sample_weight: npt.ArrayLike, n: int) -> FloatArray:
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"sample_weight is not numeric ({error}): pass floats.") from error
    if weight.shape != (n,):
        raise DataError(f"sample_weight has shape {weight.shape}: pass one weight a row, ({n},).")
    if not np.isfinite(weight).all() or weight.min() < 0 or weight.sum() <= 0:
        raise DataError(
            "sample_weight must be finite, not negative and not all zero: "
            "correct the weights or leave sample_weight out."
        )
    return weight


def plain_labels(values: Any, name: str) -> list[Label]:
    """Labels as plain Python values, so that 1, np.int64(1) and 1.0 meet and '1' does not."""
    # object keeps ['a', nan] and [1, '1'] as they are; numpy would turn both into strings.
    array = values if hasattr(values, "ndim") else np.asarray(values, dtype=object)
    if array.ndim != 1:
        raise DataError(
            f"{name} has shape {tuple(np.shape(array))}: pass one label a row, shape (n,); "
            "a column becomes one with .ravel(), one-hot rows with .argmax(axis=1)."
        )
    items = array.tolist() if hasattr(array, "tolist") else list(array)
    kinds = set(map(type, items))
    if any(issubclass(kind, np.generic) for kind in kinds):
        items = [item.item() if isinstance(item, np.generic) else item for item in items]
        kinds = set(map(type, items))
    for kind in kinds:
        if not issubclass(kind, (str, int, float)):
            row = next(i for i, item in enumerate(items) if type(item) is kind)
            raise LabelError(
                f"{name} has a label {items[row]!r} of type {kind.__name__} in row {row}: "
                "labels are strings, integers or booleans; drop the rows without a label."
            )
    if any(issubclass(kind, float) for kind in kinds):
        for row, item in enumerate(items):
            if isinstance(item, float) and not item.is_integer():
                raise LabelError(
                    f"{name} has {item!r} in row {row}, which is not a label: drop rows without "
                    "a label, and pass scores as scores= or probabilities=, not as y_pred."
                )
    return items


def show(labels: Any) -> str:
    """Write a few labels for a message."""
    listed = sorted(labels, key=repr) if isinstance(labels, set) else list(labels)
    return "[" + ", ".join(map(repr, listed[:8])) + (", ...]" if len(listed) > 8 else "]")


def check_columns(values: npt.ArrayLike, rows: Rows, name: str) -> FloatArray:
    """Scores or probabilities (``name`` tells which) as a column a class."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} are not numbers ({error}): pass an array of floats.") from error
    n, c = len(rows.truth), len(rows.classes)
    if array.ndim not in (1, 2):
        raise DataError(f"{name} have shape {array.shape}: pass (n,) or (n, {c}).")
    if len(array) != n:
        raise DataError(f"{name} have {len(array)} rows but y_true has {n}: pass one for each row.")
    if (array.ndim == 1 and c > 2) or (array.ndim == 2 and array.shape[1] != c):
        raise DataError(
            f"{name} have shape {array.shape} but there are {c} classes, {show(rows.classes)}: "
            f"pass shape ({n}, {c}){' or (n,)' if c == 2 else ''} with columns in that order, or "
            "name every class of the columns with classes= (for a classifier, its classes_)."
        )
    bad = ~np.isfinite(array.reshape(n, -1)).all(axis=1)
    if bad.any():
        raise DataError(
            f"{name} are not finite in {int(bad.sum())} of {n} rows, first in row "
            f"{int(np.argmax(bad))}: look for overflow in the model or missing features there."
        )
    if name == "probabilities":
        _check_probabilities(array, rows)
    if array.ndim == 2:
        return array
    if c == 1:  # nobody can say whose figures these are, and one class has no ranking anyway
        return np.full((n, 1), np.nan)
    return np.column_stack([1.0 - array if name == "probabilities" else -array, array])


def _check_probabilities(array: FloatArray, rows: Rows) -> None:
    outside = (array < -_TOLERANCE) | (array > 1 + _TOLERANCE)
    if outside.any():
        raise DataError(
            f"probabilities range from {array.min():.3g} to {array.max():.3g}: they lie in "
            "[0, 1]; pass other figures as scores=."
        )
    if array.ndim == 2:
        off = np.abs(array.sum(axis=1) - 1.0)
        if off.max() > _TOLERANCE:
            row = int(np.argmax(off))
            raise DataError(
                f"probabilities of row {row} sum to {array[row].sum():.3g} over the classes "
                f"{show(rows.classes)}: normalise each row, or pass them as scores=."
            )


def figures_by_class(
    rows: Rows,
    matrix: FloatArray,
    scores: npt.ArrayLike | None = None,
    probabilities: npt.ArrayLike | None = None,
) -> dict[str, FloatArray]:
    """Every figure of each class against the rest, an array over the classes each.

    AUC and average precision come from the scores, or else the probabilities; the Brier score from
    the probabilities. What nothing was passed for is nan.
    """
    found = _one_vs_rest(matrix)
    found |= dict.fromkeys(("auc", "average_precision", "brier"), np.full(len(matrix), np.nan))
    ranking = None
    if probabilities is not None:
        ranking = check_columns(probabilities, rows, "probabilities")
        found["brier"] = _brier(rows, ranking)
    if scores is not None:
        ranking = check_columns(scores, rows, "scores")
    if ranking is not None:
        found["auc"] = _ranked(rows, ranking, roc_auc_score)
        found["average_precision"] = _ranked(rows, ranking, average_precision_score)
    return found


def _one_vs_rest(matrix: FloatArray) -> dict[str, FloatArray]:
    """Every figure that needs decisions only."""
    tp, fn, fp, tn = _counts(matrix)
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


def _counts(matrix: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return TP, FN, FP and TN of each class against the rest, as in the paper's Table 3."""
    # Cells are added, never subtracted from a total: an empty side is exactly 0, whatever weights.
    rest = 1.0 - np.eye(len(matrix))
    off = matrix * rest
    return np.diag(matrix), off.sum(axis=1), off.sum(axis=0), ((rest @ matrix) * rest).sum(axis=1)


def _ranked(rows: Rows, columns: FloatArray, measure: Callable[..., float]) -> FloatArray:
    """Area under a curve over the ranking, of each class against the rest."""
    totals = rows.totals
    values = np.full(len(totals), np.nan)
    for c in range(len(totals)):
        # Asked only where the ranking exists, so scikit-learn has nothing to warn about.
        if totals[c] > 0 and np.delete(totals, c).sum() > 0:
            values[c] = measure(rows.truth == c, columns[:, c], sample_weight=rows.weight)
    return values


def _brier(rows: Rows, columns: FloatArray) -> FloatArray:
    """Mean squared error of the probability of each class; defined for a class without rows."""
    error = (columns - (rows.truth[:, None] == np.arange(len(rows.classes)))) ** 2
    mean: FloatArray = np.average(error, axis=0, weights=rows.weight)
    return mean


def overall_figures(
    by_class: dict[str, FloatArray], matrix: FloatArray, judged: Any = slice(None)
) -> dict[str, Any]:
    """Return one figure of all classes each; means are over the classes ``judged``."""
    recalls, brier = by_class["sensitivity"][judged], by_class["brier"]
    return {
        "accuracy": float(np.trace(matrix) / matrix.sum()),
        "balanced_accuracy": mean(recalls),
        "macro_f1": mean(by_class["f1"][judged]),
        "g_mean": _geometric_mean(recalls),
        "macro_auc": mean(by_class["auc"][judged]),
        "mcc": _overall_mcc(matrix),
        # The errors of two classes are equal: one is taken.
        "brier": float(brier.sum() / (2 if len(brier) == 2 else 1)),
    }


def mean(values: FloatArray) -> float:
    """Average over classes: nan when one of them is, or when there are no two to compare."""
    return float(np.mean(values)) if len(values) > 1 else math.nan


def _geometric_mean(values: FloatArray) -> float:
    """Return the geometric mean, nan as in ``mean``; roots first, so nothing underflows."""
    return float(np.prod(values ** (1 / len(values)))) if len(values) > 1 else math.nan


def _overall_mcc(matrix: FloatArray) -> float:
    """Correlate truth and prediction over all classes (R_K); for two classes it is the MCC."""
    tp, fn, fp, tn = _counts(matrix / matrix.sum())
    of_truth, of_guess = (tp + fn) @ (tn + fp), (tp + fp) @ (tn + fn)
    if of_truth == 0:
        return math.nan
    if of_guess == 0:
        return 0.0
    return float((tp * tn - fp * fn).sum() / (np.sqrt(of_truth) * np.sqrt(of_guess)))
