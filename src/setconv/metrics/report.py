"""All figures of a prediction as one small typed object: what `report` measures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from setconv.errors import DataTypeError
from setconv.messages import needed
from setconv.metrics import arithmetic
from setconv.metrics.arithmetic import Label, Rows, check_columns
from setconv.metrics.intervals import Answers, Bounds, intervals
from setconv.sampling import check_groups

if TYPE_CHECKING:
    import pandas as pd

# For everything that shows decisions beside probabilities.
WHY_NOT_THE_LARGEST = (
    "A decision serves the objective, so it may differ from the largest probability: a rare class "
    "is worth an alarm long before it is the likelier one."
)


def _figure(heading: str) -> Any:
    """Return a field for a figure, nan by default, with its heading wherever it is shown."""
    return field(default=math.nan, metadata={"heading": heading})


@dataclass(frozen=True)
class ClassMetrics:
    """The figures of one class against the rest; ``n_rows`` counts its rows in ``y_true``.

    ``intervals`` has the 95 % interval of each figure by its name, (low, high), where the report
    was asked for them: ``report["fire"].intervals["auc"]``.
    """

    n_rows: int = field(metadata={"heading": "rows"})
    specificity: float = _figure("Spec")
    sensitivity: float = _figure("Sens")
    precision: float = _figure("Precision")
    f1: float = _figure("F1")
    g_mean: float = _figure("G-mean")
    auc: float = _figure("AUC")
    average_precision: float = _figure("AP")
    balanced_accuracy: float = _figure("Bal. acc.")
    mcc: float = _figure("MCC")
    brier: float = _figure("Brier")
    intervals: Mapping[str, Bounds] = field(default_factory=dict)


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
    intervals : mapping of str to (float, float)
        The 95 % intervals of the figures over all classes, where they were asked for; those of a
        class are in its ``intervals``. See `setconv.metrics.intervals`.
    weighted : bool
        Whether rows count by weights.
    prior : mapping of class to float, or None
        The prevalence that the rows were weighted to, if they were.
    unjudged : mapping of class to str
        Classes without figures, and why: no row of them was kept from the model.
    notes : tuple of str
        What else to know about the rows.
    """

    classes: tuple[Label, ...]
    positive: Label
    per_class: Mapping[Label, ClassMetrics]
    confusion: npt.NDArray[Any]
    accuracy: float = _figure("Accuracy")
    balanced_accuracy: float = _figure("Bal. acc.")
    macro_f1: float = _figure("Macro F1")
    g_mean: float = _figure("G-mean")
    macro_auc: float = _figure("Macro AUC")
    mcc: float = _figure("MCC")
    brier: float = _figure("Brier")
    intervals: Mapping[str, Bounds] = field(default_factory=dict)
    weighted: bool = False
    prior: Mapping[Label, float] | None = None
    unjudged: Mapping[Label, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.confusion.setflags(write=False)

    def __getitem__(self, label: Any) -> ClassMetrics:
        return self.per_class[self.classes[arithmetic.find_class(label, self.classes)]]

    def __eq__(self, other: object) -> bool:
        # Through to_dict, because nan differs from itself and an array has no single answer.
        if not isinstance(other, Report):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def remarks(self) -> list[str]:
        """Return in sentences what to know before reading the figures."""
        reasons = set(self.unjudged.values())
        if len(self.unjudged) == len(self.classes) and len(reasons) == 1:
            return [f"The model is not judged: {reasons.pop()}.", *self.notes]
        said = [f"{label!r} is not judged: {why}." for label, why in self.unjudged.items()]
        if self.prior is not None:
            shares = ", ".join(f"{label} {share:.4g}" for label, share in self.prior.items())
            said.append(f"The rows are weighted to the prevalence that was set ({shares}).")
        if self.weighted:
            said.append("Rows count by their sample weights, within each class.")
        return [*said, *self.notes]

    def five(self) -> dict[str, float]:
        """Return the five metrics of the paper, of ``positive`` and in the paper's order."""
        of = self[self.positive]
        figures = (of.specificity, of.sensitivity, of.f1, of.g_mean, of.auc)
        return dict(zip(("spec", "sens", "f1", "g_mean", "auc"), figures, strict=True))

    def to_frame(self) -> pd.DataFrame:
        """One row a class, one column a figure (needs pandas).

        With intervals there are two more columns a figure, as in ``auc_low`` and ``auc_high``.
        """
        with needed("Report.to_frame", "pandas", "frames"):
            import pandas as pd
        rows = []
        for label in self.classes:
            figures = asdict(self.per_class[label])
            for name, bounds in figures.pop("intervals").items():
                figures |= dict(zip((f"{name}_low", f"{name}_high"), bounds, strict=True))
            rows.append(figures)
        return pd.DataFrame(rows, index=pd.Index(list(self.classes), name="class"))

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, dictionaries and numbers, ready for JSON; nan becomes None."""
        per_class = [
            {"class": c} | _none_for_nan(vars(of)) | {"intervals": _plain_bounds(of.intervals)}
            for c, of in self.per_class.items()
        ]
        changed = {
            "intervals": _plain_bounds(self.intervals),
            "classes": list(self.classes),
            "per_class": per_class,
            "confusion": self.confusion.tolist(),
            "prior": None if self.prior is None else list(self.prior.values()),
            "unjudged": [{"class": c, "reason": why} for c, why in self.unjudged.items()],
            "notes": list(self.notes),
        }
        return _none_for_nan(vars(self) | changed)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Report:
        """Read the report that :meth:`to_dict` wrote."""
        classes, prior, matrix = data["classes"], data["prior"], np.asarray(data["confusion"])
        per_class = {of["class"]: ClassMetrics(**_read(of)) for of in data["per_class"]}
        if matrix.shape != (len(classes),) * 2 or matrix.dtype.kind not in "if":
            raise ValueError("wrong: confusion")
        if list(per_class) != classes or data["positive"] not in classes:
            raise ValueError("wrong: classes of the report")
        changed = {
            "classes": tuple(classes),
            "per_class": per_class,
            "confusion": matrix,
            "prior": None if prior is None else dict(zip(classes, prior, strict=True)),
            "unjudged": {one["class"]: str(one["reason"]) for one in data["unjudged"]},
            "notes": tuple(map(str, data["notes"])),
        }
        return cls(**_read(data) | changed)

    def __str__(self) -> str:
        table = [["", "class", *_BY_CLASS.values()]]
        for label, of in self.per_class.items():
            mark = "*" if label == self.positive else ""
            table.append([mark, str(label), *(_show_number(getattr(of, n)) for n in _BY_CLASS)])
            if of.intervals:
                table.append(["", "  95 %", *(show_bounds(of.intervals.get(n)) for n in _BY_CLASS)])
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [f"positive class: {self.positive!r} (*)"]
        for mark, name, *cells in table:
            start = f"{mark.ljust(widths[0])} {name.ljust(widths[1])}"
            lines.append(" ".join([start, *map(str.rjust, cells, widths[2:])]))
        overall = []
        for name, heading in _OVERALL.items():
            said = f"{heading} {_show_number(getattr(self, name))}"
            bounds = show_bounds(self.intervals.get(name))
            overall.append(f"{said} ({bounds})" if bounds else said)
        lines += ["all classes: " + ", ".join(overall[:4]), "  " + ", ".join(overall[4:])]
        return "\n".join(lines + self.remarks())


def _headings(of: type[ClassMetrics | Report]) -> dict[str, str]:
    return {one.name: one.metadata["heading"] for one in fields(of) if one.metadata}


_BY_CLASS, _OVERALL = _headings(ClassMetrics), _headings(Report)
# The heading of each figure wherever one is shown.
HEADINGS = _BY_CLASS | _OVERALL


def _none_for_nan(figures: Mapping[str, Any]) -> dict[str, Any]:
    # Nothing but nan differs from itself.
    return {name: None if value != value else value for name, value in figures.items()}


def _plain_bounds(bounds: Mapping[str, Bounds]) -> dict[str, list[float] | None]:
    return {name: None if low != low else [low, high] for name, (low, high) in bounds.items()}


def _read(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return figures as `to_dict` wrote them; None is nan again."""
    known = {k: value for k, value in plain.items() if value is not None and k != "class"}
    bounds = plain["intervals"].items()
    figures = [known.get(name, 0.0) for name in HEADINGS]
    figures += [one for _, pair in bounds for one in pair or ()]
    pairs = all(pair is None or len(pair) == 2 for _, pair in bounds)
    if not pairs or not all(type(one) in (int, float) for one in figures):
        raise ValueError("wrong: figures")
    return known | {"intervals": {n: tuple(b or (math.nan, math.nan)) for n, b in bounds}}


def _show_number(number: float) -> str:
    if isinstance(number, int):
        return str(number)
    return "-" if math.isnan(number) else f"{number:.3f}"


_SHORT = {"0.000": "0", "1.000": "1"}


def show_bounds(bounds: Bounds | None) -> str:
    """Return an interval for a table, ".712-.834"; nothing where there is none."""
    if bounds is None or math.isnan(bounds[0]):
        return ""
    shown = map("{:.3f}".format, bounds)
    low, high = (_SHORT.get(one, one.replace("0.", ".", 1)) for one in shown)
    return f"{low}-{high}" if bounds[0] >= 0 else f"{low} to {high}"


def report(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    scores: npt.ArrayLike | None = None,
    *,
    probabilities: npt.ArrayLike | None = None,
    classes: npt.ArrayLike | None = None,
    positive: Any = None,
    sample_weight: npt.ArrayLike | None = None,
    confidence_intervals: bool = False,
    groups: npt.ArrayLike | None = None,
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
        Between 1e-120 and 1e120, or 0.
    confidence_intervals : bool, default=False
        Whether to add the 95 % interval of every figure (`setconv.metrics.intervals`).
    groups : array-like of shape (n,), optional
        For the intervals: rows of one group count as one observation, such as copies of a row.

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
      class rows  Spec  Sens Precision    F1 G-mean   AUC    AP Bal. acc.   MCC Brier
    * fire     2 0.833 0.500     0.500 0.500  0.645 0.917 0.833     0.667 0.333 0.131
      no       6 0.500 0.833     0.833 0.833  0.645 0.917 0.976     0.667 0.333 0.131
    all classes: Accuracy 0.750, Bal. acc. 0.667, Macro F1 0.667, G-mean 0.645
      Macro AUC 0.917, MCC 0.333, Brier 0.131
    >>> r["fire"].sensitivity
    0.5
    """
    rows = arithmetic.check_rows(y_true, y_pred, classes=classes, sample_weight=sample_weight)
    given: Any = {"positive": positive, "confidence_intervals": confidence_intervals}
    return report_of(rows, scores, probabilities, **given, groups=groups)


def report_of(
    rows: Rows,
    scores: npt.ArrayLike | None = None,
    probabilities: npt.ArrayLike | None = None,
    *,
    positive: Any = None,
    confidence_intervals: bool = False,
    groups: npt.ArrayLike | None = None,
) -> Report:
    """Measure a prediction whose labels are class numbers already; see `report`."""
    chosen, matrix = rows.position(positive), rows.confusion()
    by_class = arithmetic.figures_by_class(rows, matrix, scores, probabilities)
    all_classes = arithmetic.overall_figures(by_class, matrix).items()
    overall = {name: float(one) for name, one in all_classes}
    of_classes: list[dict[str, Bounds]] = [{} for _ in rows.classes]
    sure: Mapping[str, Bounds] = {}
    if confidence_intervals:
        given = {"scores": scores, "probabilities": probabilities}
        columns = {n: check_columns(one, rows, n) for n, one in given.items() if one is not None}
        chances = columns.get("probabilities")
        answers = Answers(rows.predicted, columns.get("scores", chances), chances)
        units = check_groups(groups, len(rows.truth))
        of_classes, sure = intervals(rows, answers, by_class, overall, units)
    per_class = {}
    for c, label in enumerate(rows.classes):
        figures: dict[str, Any] = {name: float(values[c]) for name, values in by_class.items()}
        per_class[label] = ClassMetrics(int(rows.counts[c]), **figures, intervals=of_classes[c])
    weighted = rows.weight is not None
    confusion = matrix if weighted else matrix.astype(np.int64)
    known: Any = overall | {"intervals": sure, "weighted": weighted}
    return Report(rows.classes, rows.classes[chosen], per_class, confusion, **known)


def without_figures(found: Report, unjudged: Mapping[Label, str]) -> Report:
    """Return a report in which classes of which no row was judged have no figures.

    Over all classes there are none then either, and where no other class is left, all that
    remains of a class is its sensitivity.
    """
    if not unjudged:
        return found
    alone = len(found.classes) - len(unjudged) == 1
    per_class = dict(found.per_class)
    for label, of in found.per_class.items():
        if label in unjudged:
            per_class[label] = ClassMetrics(of.n_rows)
        elif alone:
            known = {n: b for n, b in of.intervals.items() if n == "sensitivity"}
            per_class[label] = ClassMetrics(of.n_rows, sensitivity=of.sensitivity, intervals=known)
    nothing: dict[str, Any] = dict.fromkeys(_OVERALL, math.nan)
    return replace(found, per_class=per_class, unjudged=unjudged, intervals={}, **nothing)


def report_of_nothing(
    classes: Sequence[Label], positive: Label, unjudged: Mapping[Label, str]
) -> Report:
    """Return the report of a model that no row can judge, without any figure."""
    per_class = {c: ClassMetrics(n_rows=0) for c in classes}
    confusion = np.zeros((len(classes), len(classes)), dtype=np.int64)
    return Report(tuple(classes), positive, per_class, confusion, unjudged=unjudged)


def minimum_of_five(report: Report) -> float:
    """Return the worst of the five metrics, the authors' criterion of model selection.

    For two classes min(macro F1, G-mean, AUC, Spec, Sens), the last four of the class
    ``positive``; F1 is the macro one, as in the authors' code. For more classes each of the five
    is first averaged over the classes, one against the rest. It is nan when one of the five is,
    so the report needs scores or probabilities.
    """
    if not isinstance(report, Report):
        raise DataTypeError(
            f"A report is expected, not {type(report).__name__}: give what `report` returns.",
            parameter="report",
        )
    two = len(report.classes) == 2
    of = [report[report.positive]] if two else list(report.per_class.values())
    names = ("g_mean", "auc", "specificity", "sensitivity")
    five = [np.mean([getattr(one, name) for one in of]) for name in names]
    return float(np.min([report.macro_f1, *five]))  # np.min keeps nan, min() would lose it
