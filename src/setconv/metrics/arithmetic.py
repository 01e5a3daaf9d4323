"""The arithmetic behind every metric: labels are checked and counted, and figures come out.

`Counts` has the figures of a class against the rest, of one confusion matrix or of many at once.
`check_rows` and `check_columns` read what the user passes, `figures_by_class` gives each figure as
an array over the classes, and `overall_figures` makes one figure of all classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from setconv.data import as_floats, check_range
from setconv.errors import DataError, LabelError
from setconv.messages import listed

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Label = str | int | float | bool
Maybe = ArrayLike | None

# Wide enough for float16 and float32 probabilities, far below any honest mistake.
_TOLERANCE = 1e-3


class Counts(NamedTuple):
    """Weight of true and false decisions for a class against the rest, as in the paper's Table 3.

    Arrays of one shape, a cell for each confusion matrix: the classes of a report, the cuts of a
    ranking. A figure that the truth leaves undefined is nan; what a decision does badly is 0.
    """

    tp: FloatArray
    fn: FloatArray
    fp: FloatArray
    tn: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray) -> Counts:
        """Return the counts of each class against the rest, of confusion matrices (..., C, C)."""
        # Cells are added, never subtracted from a total: an empty side is exactly 0.
        rest = 1.0 - np.eye(matrix.shape[-1])
        off = matrix * rest
        tn = ((rest @ matrix) * rest).sum(axis=-1)
        tp = np.diagonal(matrix, axis1=-2, axis2=-1)
        return cls(tp, off.sum(axis=-1), off.sum(axis=-2), tn)

    def swapped(self) -> Counts:
        """Return the same decisions, seen from the rest."""
        return Counts(self.tn, self.fp, self.fn, self.tp)

    @property
    def sensitivity(self) -> FloatArray:
        """TP / (TP + FN), the recall."""
        return ratio(self.tp, self.tp + self.fn)

    @property
    def specificity(self) -> FloatArray:
        """TN / (TN + FP)."""
        return ratio(self.tn, self.tn + self.fp)

    @property
    def precision(self) -> FloatArray:
        """TP / (TP + FP); 0 where a class with rows is never decided for."""
        defined = (self.tp + self.fn > 0) | (self.fp > 0)
        return np.where(defined, ratio(self.tp, self.tp + self.fp, 0.0), np.nan)

    @property
    def f1(self) -> FloatArray:
        """2 precision recall / (precision + recall)."""
        found = ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn)
        return np.where(self.tp + self.fn > 0, found, np.nan)

    @property
    def g_mean(self) -> FloatArray:
        """The geometric mean of specificity and sensitivity."""
        return np.asarray(np.sqrt(self.specificity * self.sensitivity))

    @property
    def balanced_accuracy(self) -> FloatArray:
        """The mean of specificity and sensitivity."""
        return np.asarray((self.specificity + self.sensitivity) / 2)

    @property
    def mcc(self) -> FloatArray:
        """Matthews correlation; 0 where all rows are decided alike."""
        tp, fn, fp, tn = self
        # A root a side: the product of four large sides would overflow.
        sides = np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn)
        defined = (tp + fn > 0) & (tn + fp > 0)
        return np.where(defined, ratio(tp * tn - fp * fn, sides, 0.0), np.nan)

    def figures(self) -> dict[str, FloatArray]:
        """Return every figure of decisions by name."""
        names = ("specificity", "sensitivity", "precision", "f1", "g_mean", "balanced_accuracy")
        found = {name: getattr(self, name) for name in names}
        # Rounding may bring it a last digit beyond.
        return found | {"mcc": np.clip(self.mcc, -1.0, 1.0)}


def ratio(above: FloatArray, below: FloatArray, otherwise: float = math.nan) -> FloatArray:
    """Divide; where ``below`` is 0 the result is ``otherwise``."""
    out = np.full(np.shape(below), otherwise)
    return np.asarray(np.divide(above, below, out=out, where=np.greater(below, 0)))


def rarest(counts: NDArray[Any]) -> int:
    """Return the class with the fewest rows, of those that have rows; among equals the last."""
    known = np.where(counts > 0, counts, np.inf)
    return len(known) - 1 - int(np.argmin(known[::-1]))


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

    def confusion(self) -> FloatArray:
        """Return the weight of the rows of truth i predicted as j, in cell (i, j)."""
        c = len(self.classes)
        flat = np.bincount(self.truth * c + self.predicted, self.weight, minlength=c * c)
        return flat.reshape(c, c).astype(np.float64)

    def position(self, positive: Any) -> int:
        """Return the position of the class of interest, by default the rarest that has rows.

        Rarest is counted in rows, not weights: class-balancing weights would make every class
        equally rare.
        """
        return rarest(self.counts) if positive is None else find_class(positive, self.classes)


def find_class(label: Any, classes: tuple[Label, ...]) -> int:
    """Return the position of a class."""
    try:
        return {one: place for place, one in enumerate(classes)}[label]
    except (KeyError, TypeError) as error:  # TypeError: what has no hash is no label
        why = f"{label!r} is not one of the classes {listed(classes)} (1 and '1' differ)."
        raise LabelError(why, parameter="positive") from error


def check_rows(
    y_true: ArrayLike, y_pred: ArrayLike, *, classes: Maybe = None, sample_weight: Maybe = None
) -> Rows:
    """Labels of any kind as class numbers; without ``classes`` they are the labels seen."""
    truth, predicted = plain_labels(y_true, "y_true"), plain_labels(y_pred, "y_pred")
    if not truth or len(predicted) != len(truth):
        found = f"y_true has {len(truth)} rows and y_pred has {len(predicted)}"
        raise DataError(f"{found}: pass a prediction for each row.", parameter="y_pred")
    names = _class_order({*truth, *predicted} if classes is None else classes)
    weight = None
    if sample_weight is not None:
        weight = _numbers(sample_weight, "sample_weight", (len(truth),))
        if weight.min() < 0 or not weight.any():
            raise DataError("Weights are not negative, nor all 0.", parameter="sample_weight")
        check_range(weight)
    return Rows(names, encode(truth, names, "y_true"), encode(predicted, names, "y_pred"), weight)


def encode(labels: list[Label], classes: Sequence[Label], name: str) -> IntArray:
    """Return labels as positions in ``classes``: the one way from labels to class numbers."""
    number = {label: i for i, label in enumerate(classes)}
    unknown = [row for row, label in enumerate(labels) if label not in number]
    if unknown:
        found = f"{name} has {labels[unknown[0]]!r} in row {unknown[0]}"
        raise LabelError(
            f"{found}, and {len(unknown) - 1} more rows that are none of the classes "
            f"{listed(classes)}: 1 and '1' differ, for example.",
            parameter=name,
            row=unknown[0],
        )
    return np.array([number[label] for label in labels], dtype=np.intp)


def _class_order(classes: Any) -> tuple[Label, ...]:
    """Return the classes as they are given; a set of labels is sorted."""
    if isinstance(classes, set):
        classes = sorted(classes, key=lambda label: (isinstance(label, str), label))
    names = tuple(plain_labels(classes, "classes"))
    if len({isinstance(name, str) for name in names}) != 1 or len(set(names)) != len(names):
        why = "name each class once, by strings or by numbers (1 and '1' are different labels)"
        raise LabelError(f"The classes are {listed(names)}: {why}.", parameter="classes")
    return names


def plain_labels(values: Any, name: str) -> list[Label]:
    """Labels as plain Python values, so that 1, np.int64(1) and 1.0 meet and '1' does not."""
    # object keeps ['a', nan] and [1, '1'] as they are; numpy would turn both into strings.
    array = values if hasattr(values, "ndim") else np.asarray(values, dtype=object)
    if array.ndim != 1:
        hint = "A column becomes one with .ravel(), one-hot rows with .argmax(axis=1)."
        why = f"{name} has shape {tuple(np.shape(array))}: pass one label a row, shape (n,)."
        raise DataError(why, parameter=name, hint=hint)
    labels = [label.item() if isinstance(label, np.generic) else label for label in array]
    for row, label in enumerate(labels):
        if not (label.is_integer() if isinstance(label, float) else isinstance(label, str | int)):
            hint = "Drop rows without a label; scores are passed as scores= or probabilities=."
            why = f"{name} has {label!r} in row {row}: labels are strings, integers or booleans."
            raise LabelError(why, parameter=name, row=row, hint=hint)
    return labels


def _numbers(values: ArrayLike, name: str, *shapes: tuple[int, ...]) -> FloatArray:
    """Return finite numbers that have one of these shapes."""
    try:
        array = as_floats(values)
    except ValueError as error:
        raise DataError(f"{name} must be numbers: {error}", parameter=name) from error
    if array.shape not in shapes:
        hint = "A row for each of y_true, and a column for each class, in the order of classes=."
        why = f"{name} must have shape {' or '.join(map(str, shapes))}, not {array.shape}."
        raise DataError(why, parameter=name, hint=hint)
    for row in np.flatnonzero(~np.isfinite(array.reshape(len(array), -1)).all(axis=1)).tolist():
        hint = "Look for overflow in the model or missing features there."
        raise DataError(f"{name} of row {row} is not finite.", parameter=name, row=row, hint=hint)
    return array


def check_columns(values: ArrayLike, rows: Rows, name: str) -> FloatArray:
    """Scores or probabilities (``name`` tells which) as a column a class."""
    n, c = len(rows.truth), len(rows.classes)
    array = _numbers(values, name, (n, c), *[(n,)] * (c <= 2))
    if array.ndim == 1:
        # Of one class nobody can say whose figures these are, and there is no ranking anyway.
        rest = np.nan if c == 1 else (1.0 - array if name == "probabilities" else -array)
        array = np.column_stack([rest, array]) if c == 2 else np.full((n, 1), rest)
    if name == "probabilities":
        off = (array < -_TOLERANCE).any(axis=1) | (np.abs(array.sum(axis=1) - 1) > _TOLERANCE)
        for row in np.flatnonzero(off).tolist():
            found = f"probabilities of row {row} are {array[row].tolist()}"
            why = f"{found}: they lie in [0, 1] and sum to 1 over the classes."
            hint = "Normalise each row, or pass them as scores=."
            raise DataError(why, parameter=name, row=row, hint=hint)
    return array


def figures_by_class(
    rows: Rows, matrix: FloatArray, scores: Maybe = None, probabilities: Maybe = None
) -> dict[str, FloatArray]:
    """Every figure of each class against the rest, an array over the classes each.

    AUC and average precision come from the scores, or else the probabilities; the Brier score from
    the probabilities. What nothing was passed for is nan.
    """
    counts = Counts.of(matrix)
    found = counts.figures()
    areas = {"auc": roc_auc_score, "average_precision": average_precision_score}
    found |= {name: np.full(len(matrix), np.nan) for name in (*areas, "brier")}
    ranking = None
    if probabilities is not None:
        ranking = check_columns(probabilities, rows, "probabilities")
        # Defined for a class without rows too.
        error = (ranking - (rows.truth[:, None] == np.arange(len(matrix)))) ** 2
        found["brier"] = np.average(error, axis=0, weights=rows.weight)
    if scores is not None:
        ranking = check_columns(scores, rows, "scores")
    if ranking is not None:
        for c in np.flatnonzero((counts.tp + counts.fn > 0) & (counts.tn + counts.fp > 0)):
            own = rows.truth == c
            for name, area in areas.items():
                found[name][c] = area(own, ranking[:, c], sample_weight=rows.weight)
    return found


def overall_figures(
    by_class: dict[str, FloatArray], matrix: FloatArray, judged: Any = slice(None)
) -> dict[str, Any]:
    """Return one figure of all classes each; means are over the classes ``judged``.

    Of many confusion matrices (..., C, C) at once each figure is an array.
    """
    of = {name: values[..., judged] for name, values in by_class.items()}
    recalls, brier = of["sensitivity"], by_class["brier"]
    n_judged, n_classes = recalls.shape[-1], brier.shape[-1]
    # Roots first, so that nothing underflows.
    g_mean = np.prod(recalls ** (1 / max(n_judged, 1)), axis=-1)
    tp, _, _, _ = Counts.of(matrix)
    return {
        "accuracy": tp.sum(axis=-1) / matrix.sum(axis=(-2, -1)),
        "balanced_accuracy": mean(recalls),
        "macro_f1": mean(of["f1"]),
        "g_mean": g_mean if n_judged > 1 else np.full_like(g_mean, math.nan),
        "macro_auc": mean(of["auc"]),
        "mcc": _overall_mcc(matrix),
        # The errors of two classes are equal: one is taken.
        "brier": brier.sum(axis=-1) / (2 if n_classes == 2 else 1),
    }


def mean(values: FloatArray) -> Any:
    """Average over classes: nan when one of them is, or when there are no two to compare."""
    return values.mean(axis=-1) if values.shape[-1] > 1 else np.full(values.shape[:-1], math.nan)


def _overall_mcc(matrix: FloatArray) -> Any:
    """Correlate truth and prediction over all classes (R_K); for two classes it is the MCC."""
    tp, fn, fp, tn = Counts.of(matrix / matrix.sum(axis=(-2, -1), keepdims=True))
    of_truth, of_guess = ((a * b).sum(axis=-1) for a, b in ((tp + fn, tn + fp), (tp + fp, tn + fn)))
    hits = (tp * tn - fp * fn).sum(axis=-1)
    found = ratio(hits, np.sqrt(of_truth) * np.sqrt(of_guess), 0.0)
    return np.where(of_truth > 0, np.clip(found, -1.0, 1.0), np.nan)
