"""All figures of a prediction as one small typed object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setconv.errors import DataError, LabelError, MissingDependencyError
from setconv.metrics import _figures as figures
from setconv.metrics._inputs import Label, check_columns, check_rows, show

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ClassMetrics", "Report", "minimum_of_five", "report"]

_OVERALL = ("accuracy", "balanced_accuracy", "macro_f1", "g_mean", "macro_auc", "mcc", "brier")
_HEADINGS = {
    "n_rows": "rows",
    "specificity": "spec",
    "sensitivity": "sens",
    "precision": "prec",
    "average_precision": "ap",
    "balanced_accuracy": "bal_acc",
}


@dataclass(frozen=True)
class ClassMetrics:
    """The figures of one class against the rest; ``n_rows`` counts its rows in ``y_true``."""

    n_rows: int
    specificity: float
    sensitivity: float
    precision: float
    f1: float
    g_mean: float
    auc: float
    average_precision: float
    balanced_accuracy: float
    mcc: float
    brier: float


@dataclass(frozen=True, eq=False)
class Report:
    """What :func:`report` measured.

    Attributes
    ----------
    classes : tuple
        The classes, in the order of ``confusion`` and of the columns of scores.
    positive : label
        The class of interest.
    per_class : mapping of class to ClassMetrics
        Each class against the rest; also ``report[label]``.
    confusion : ndarray of shape (C, C)
        Rows are the truth, columns the prediction; integers, or floats with weights.
    accuracy, balanced_accuracy, macro_f1, g_mean, macro_auc, mcc, brier : float
        Over all classes: share of right rows, mean recall, mean F1, geometric mean of the
        recalls, mean AUC, Matthews correlation, Brier score (see :func:`setconv.metrics.brier`).
    """

    classes: tuple[Label, ...]
    positive: Label
    per_class: Mapping[Label, ClassMetrics]
    confusion: npt.NDArray[Any]
    accuracy: float
    balanced_accuracy: float
    macro_f1: float
    g_mean: float
    macro_auc: float
    mcc: float
    brier: float

    def __getitem__(self, label: Any) -> ClassMetrics:
        if label not in self.classes:
            raise LabelError(
                f"the report has no class {label!r}: it has {show(self.classes)}; "
                "name one of them (the type counts: '1' is not 1)."
            )
        return self.per_class[label]

    def __eq__(self, other: object) -> bool:
        # Through to_dict, because nan differs from itself and an array has no single answer.
        if not isinstance(other, Report):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def five(self) -> dict[str, float]:
        """Return the five metrics of the paper, of ``positive`` and in the paper's order."""
        of = self[self.positive]
        return {
            "spec": of.specificity,
            "sens": of.sensitivity,
            "f1": of.f1,
            "g_mean": of.g_mean,
            "auc": of.auc,
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a class, one column a figure (needs pandas)."""
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingDependencyError(
                'Report.to_frame needs pandas: pip install "setconv[frames]"; '
                "Report.to_dict gives the same figures without it."
            ) from error
        rows = [asdict(self.per_class[label]) for label in self.classes]
        return pd.DataFrame(rows, index=pd.Index(list(self.classes), name="class"))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dictionaries and numbers, ready for JSON; nan becomes None."""
        per_class = []
        for label in self.classes:
            of = asdict(self.per_class[label])
            per_class.append({"class": label, **{name: _to_json(of[name]) for name in of}})
        return {
            "classes": list(self.classes),
            "positive": self.positive,
            "per_class": per_class,
            "confusion": self.confusion.tolist(),
            **{name: _to_json(getattr(self, name)) for name in _OVERALL},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """Read the report that :meth:`to_dict` wrote."""
        names = [field.name for field in fields(ClassMetrics)]
        try:
            per_class = {
                of["class"]: ClassMetrics(**{name: _from_json(of[name]) for name in names})
                for of in data["per_class"]
            }
            return cls(
                classes=tuple(data["classes"]),
                positive=data["positive"],
                per_class={label: per_class[label] for label in data["classes"]},
                confusion=_fixed(np.asarray(data["confusion"])),
                **{name: _from_json(data[name]) for name in _OVERALL},
            )
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"this is not a report ({type(error).__name__}: {error}): "
                "pass what Report.to_dict returned, whole."
            ) from error

    def __str__(self) -> str:
        names = [field.name for field in fields(ClassMetrics)]
        table = [["", "class", *(_HEADINGS.get(name, name) for name in names)]]
        for label in self.classes:
            of = asdict(self.per_class[label])
            mark = "*" if label == self.positive else ""
            table.append([mark, str(label), *(_show_number(of[name]) for name in names)])
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [f"positive class: {self.positive!r} (*)"]
        for line in table:
            cells = [line[0].ljust(widths[0]), line[1].ljust(widths[1])]
            cells += [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
            lines.append(" ".join(cells).rstrip())
        overall = [f"{name} {_show_number(getattr(self, name))}" for name in _OVERALL]
        lines += ["all classes: " + ", ".join(overall[:4]), "  " + ", ".join(overall[4:])]
        return "\n".join(lines)


def report(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    scores: npt.ArrayLike | None = None,
    *,
    probabilities: npt.ArrayLike | None = None,
    classes: npt.ArrayLike | None = None,
    positive: Any = None,
    sample_weight: npt.ArrayLike | None = None,
) -> Report:
    """Measure a prediction: every figure of every class, and over all classes.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        Labels: strings, integers or booleans.
    scores : array-like of shape (n,) or (n, C), optional
        Higher is likelier. 1-D scores are those of ``classes[1]`` (of two), as in
        ``decision_function``. AUC and average precision come from them.
    probabilities : array-like of shape (n,) or (n, C), optional
        The Brier score comes from them, and without ``scores`` AUC and average precision too.
    classes : array-like, optional
        All classes, in the order of the columns; by default the sorted labels seen. A
        classifier's ``classes_`` is right here.
    positive : label, optional
        The class of interest; by default the class with the fewest rows in ``y_true``, among
        equals the last in class order.
    sample_weight : array-like of shape (n,), optional
        A row of weight 2 counts as two rows, except in ``n_rows`` and the choice of ``positive``.

    Returns
    -------
    Report

    Notes
    -----
    For class ``c`` against the rest, with TP, FN, FP, TN as in the paper's Table 3::

        Spec = TN / (TN + FP)         Sens = TP / (TP + FN)
        precision = TP / (TP + FP)    F1 = 2 precision Sens / (precision + Sens)
        G-mean = sqrt(Spec Sens)      balanced accuracy = (Spec + Sens) / 2

    A figure that ``y_true`` leaves undefined is nan, and so is every mean over classes that
    includes it. A class with rows that is never predicted has precision 0 and F1 0.

    Examples
    --------
    >>> from setconv.metrics import report
    >>> truth = ["no", "no", "no", "no", "no", "no", "fire", "fire"]
    >>> guess = ["no", "no", "no", "no", "no", "fire", "fire", "no"]
    >>> fire = [0.1, 0.2, 0.1, 0.3, 0.2, 0.7, 0.9, 0.4]
    >>> r = report(truth, guess, probabilities=[[p, 1 - p] for p in fire])
    >>> print(r)
    positive class: 'fire' (*)
      class rows  spec  sens  prec    f1 g_mean   auc    ap bal_acc   mcc brier
    * fire     2 0.833 0.500 0.500 0.500  0.645 0.917 0.833   0.667 0.333 0.131
      no       6 0.500 0.833 0.833 0.833  0.645 0.917 0.976   0.667 0.333 0.131
    all classes: accuracy 0.750, balanced_accuracy 0.667, macro_f1 0.667, g_mean 0.645
      macro_auc 0.917, mcc 0.333, brier 0.131
    >>> r["fire"].sensitivity
    0.5
    """
    rows = check_rows(y_true, y_pred, classes=classes, sample_weight=sample_weight)
    chosen = rows.position(positive)
    matrix = figures.confusion(rows)
    unknown = np.full(len(rows.classes), math.nan)
    auc = average_precision = brier = unknown
    chances = None
    if probabilities is not None:
        chances = check_columns(probabilities, rows, "probabilities")
        brier = figures.brier_by_class(rows, chances)
    ranking = chances if scores is None else check_columns(scores, rows, "scores")
    if ranking is not None:
        auc = figures.auc_by_class(rows, ranking)
        average_precision = figures.average_precision_by_class(rows, ranking)
    by_class = figures.one_vs_rest(matrix)
    by_class |= {"auc": auc, "average_precision": average_precision, "brier": brier}
    per_class = {
        label: ClassMetrics(
            n_rows=int(rows.counts[c]),
            **{name: float(values[c]) for name, values in by_class.items()},
        )
        for c, label in enumerate(rows.classes)
    }
    return Report(
        classes=rows.classes,
        positive=rows.classes[chosen],
        per_class=per_class,
        confusion=_fixed(matrix.astype(np.int64) if rows.weight is None else matrix),
        accuracy=float(np.trace(matrix) / matrix.sum()),
        balanced_accuracy=figures.mean(by_class["sensitivity"]),
        macro_f1=figures.mean(by_class["f1"]),
        g_mean=figures.geometric_mean(by_class["sensitivity"]),
        macro_auc=figures.mean(auc),
        mcc=figures.overall_mcc(matrix),
        brier=figures.overall_brier(brier),
    )


def minimum_of_five(report: Report) -> float:
    """Return the worst of the five metrics, the authors' criterion of model selection.

    For two classes min(macro F1, G-mean, AUC, Spec, Sens), the last four of the class
    ``positive``; F1 is the macro one, as in the authors' code. For more classes each of the five
    is first averaged over the classes, one against the rest. It is nan when one of the five is,
    so the report needs scores or probabilities.
    """
    if len(report.classes) == 2:
        of = [report[report.positive]]
    else:
        of = [report.per_class[label] for label in report.classes]
    five = [report.macro_f1]
    for name in ("g_mean", "auc", "specificity", "sensitivity"):
        five.append(float(np.mean([getattr(one, name) for one in of])))
    return float(np.min(five))  # np.min keeps nan, min() would lose it


def _fixed(matrix: npt.NDArray[Any]) -> npt.NDArray[Any]:
    matrix.setflags(write=False)
    return matrix


def _to_json(number: float) -> float | None:
    return None if math.isnan(number) else number


def _from_json(number: Any) -> Any:
    return math.nan if number is None else number


def _show_number(number: float) -> str:
    if isinstance(number, int):
        return str(number)
    return "-" if math.isnan(number) else f"{number:.3f}"
