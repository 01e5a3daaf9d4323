"""What a model is worth on labelled rows, in numbers.

`evaluate` asks the model once; everything else follows from its `Evaluation`. `measure_methods`
gives the figures of each class with their intervals, for the model and the baselines beside it.
`roc`, `precision_recall` and `reliability` are the curves, and `explore` knows for each threshold
how many alarms there would be.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix, precision_recall_curve, roc_curve

from setconv.decisions.objective import weights_to_prior
from setconv.decisions.rule import Predictions
from setconv.errors import DataError
from setconv.explain import Codes, Flags, Floats, by_class, count_rows
from setconv.metrics import arithmetic, intervals
from setconv.report.words import readable


@dataclass(frozen=True)
class Evaluation:
    """A model's answers on labelled rows, with class numbers for labels.

    Attributes
    ----------
    labels : tuple
        The classes, in the order of the columns.
    codes : int64 array
        The true classes of all rows that were given.
    rows : int64 array of shape (n_rows,)
        Which of them are judged.
    predicted : int64 array of shape (n_rows,)
    scores, values, probabilities : float64 arrays of shape (n_rows, n_classes)
        ``values`` decide: of two classes the sign, of more the largest.
    weights : float64 array of shape (n_rows,)
        What a row counts in every figure, 1 on average.
    train_counts : int64 array of shape (n_classes,) or None
        Rows of each class in training, if the model knows.
    prior : float64 array of shape (n_classes,) or None
        The prevalence that was set for the model, to which rows are weighted.
    own_prevalence : bool
        Whether a prevalence was set but rows of a class are missing, so that they cannot be
        weighted to it.
    units : int64 array of shape (n_rows,) or None
        Rows of equal numbers belong together, and count as one observation.
    left_out : bool array of shape (n_members, n_rows) or None
        Of training rows: the members that a row was kept from, which judge it.
    """

    labels: tuple[Any, ...]
    codes: Codes
    rows: Codes
    predicted: Codes
    scores: Floats
    values: Floats
    probabilities: Floats
    weights: Floats
    train_counts: Codes | None = None
    prior: Floats | None = None
    own_prevalence: bool = False
    units: Codes | None = None
    left_out: Flags | None = None

    @property
    def n_rows(self) -> int:
        """Rows that are judged."""
        return len(self.rows)

    @property
    def binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.labels) == 2

    @property
    def out_of_fold(self) -> bool:
        """Whether these are training rows, each judged by members that left it out."""
        return self.left_out is not None

    @property
    def weighted(self) -> bool:
        """Whether some rows count more than others."""
        return bool((self.weights != 1).any())

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The labels as the page shows them."""
        return tuple(readable(label, 40) for label in self.labels)

    @cached_property
    def truth(self) -> Codes:
        """The true classes of the rows that are judged."""
        return self.codes[self.rows]

    @cached_property
    def counts(self) -> Codes:
        """Rows of each class among those that are judged."""
        return np.bincount(self.truth, minlength=len(self.labels))

    @cached_property
    def by_rarity(self) -> tuple[int, ...]:
        """All classes: those of the minority first, the rarest at the head."""
        return (*self.minority, *(c for c in range(len(self.labels)) if c not in self.minority))

    @cached_property
    def minority(self) -> tuple[int, ...]:
        """The classes with fewer rows than an equal share, in training if that is known.

        The rarest comes first. If all are equally frequent it is the last one alone.
        """
        counts = self.counts if self.train_counts is None else self.train_counts
        order = sorted(range(len(counts)), key=lambda c: (counts[c], -c))
        below = tuple(c for c in order if counts[c] * len(counts) < counts.sum())
        return below or (order[0],)

    @property
    def main(self) -> int:
        """The class that the page speaks of first: the rarest."""
        return self.minority[0]

    @property
    def unjudged(self) -> tuple[int, ...]:
        """Classes that no member left a row of out: they have no figures."""
        return tuple(np.flatnonzero(self.counts == 0).tolist()) if self.out_of_fold else ()

    def comparable(self, c: int) -> bool:
        """Whether a class, and another one beside it, is judged."""
        return c not in self.unjudged and len(self.unjudged) < len(self.labels) - 1

    def mean(self, values: Floats | Flags) -> float:
        """Return the mean of a value of each row, or the share of flagged rows, by weight."""
        return float(np.average(values, weights=self.weights))

    @property
    def chances(self) -> Floats:
        """The probabilities of the main class."""
        return self.probabilities[:, self.main]

    def members_of(self, places: Codes | None) -> Flags | None:
        """Return the members that speak of some judged rows; None: all of them."""
        return None if self.left_out is None or places is None else self.left_out[:, places]

    def confusion(self, weights: Floats | None = None) -> Any:
        """Return the rows, or their weight, of each true class by what they are taken for."""
        classes = range(len(self.labels))
        return confusion_matrix(self.truth, self.predicted, labels=classes, sample_weight=weights)


def evaluate(
    model: Any, X: Any, y: Any, *, predictions: Predictions | None, out_of_fold: bool
) -> Evaluation:
    """Ask the model about the rows once, or its members about training rows that they left out."""
    labels = tuple(model.classes_.tolist())
    codes = encode_labels(y, count_rows(X), labels, "y")
    if out_of_fold:
        found = model.predict_out_of_fold()
    else:
        found = model.predictions(X) if predictions is None else predictions
    _check_predictions(found, codes, model.classes_)
    truth, prior = codes[found.rows], getattr(model, "prior_", None)
    own_prevalence = prior is not None and not out_of_fold and len(np.unique(truth)) < len(labels)
    weights = np.ones(len(truth)) if found.weights is None else found.weights
    if own_prevalence:
        prior = None
    elif prior is not None and found.weights is None:
        weights = weights_to_prior(truth, prior)
    return Evaluation(
        labels=labels,
        codes=codes,
        rows=found.rows,
        predicted=np.searchsorted(model.classes_, found.labels),
        scores=by_class(found.scores),
        values=by_class(found.decision_values),
        probabilities=found.probabilities,
        weights=weights / weights.mean(),
        train_counts=getattr(model, "class_counts_", None),
        prior=prior,
        own_prevalence=own_prevalence,
        units=found.units,
        left_out=found.left_out,
    )


def _check_predictions(found: Predictions, codes: Codes, classes: NDArray[Any]) -> None:
    """Refuse predictions that are of other rows."""
    if found.left_out is None:
        if len(found) != len(codes) or not np.isin(found.labels, classes).all():
            raise DataError(
                f"predictions, of {len(found)} rows, are not what this model says of X, which has "
                f"{len(codes)}: pass its own.",
                parameter="predictions",
            )
    elif not np.array_equal(
        np.asarray(found.truth), classes[codes[found.rows[found.rows < len(codes)]]]
    ):
        raise DataError(
            "out_of_fold=True is for the rows that the model was fitted to, in their order; these "
            "are others. Leave it out to judge the model on them.",
            parameter="out_of_fold",
        )


def encode_labels(y: Any, n_rows: int, classes: tuple[Any, ...], name: str) -> Codes:
    """Return the labels of rows as class numbers, one for each row."""
    labels = arithmetic.plain_labels(y, name)
    if not labels or len(labels) != n_rows:
        raise DataError(
            f"{name} has {len(labels)} labels but there are {n_rows} rows: pass as many labels as "
            "rows, and at least one.",
            parameter=name,
        )
    return arithmetic.encode(labels, classes, name)


@dataclass(frozen=True)
class Method:
    """What one method says about the judged rows; a method without scores has None."""

    name: str
    predicted: Codes
    scores: Floats | None


def baseline_answers(baselines: Mapping[str, Any], evaluation: Evaluation) -> list[Method]:
    """Check the baselines: predictions and scores on the same rows."""
    found = []
    y = [evaluation.labels[code] for code in evaluation.codes]
    for name, given in baselines.items():
        try:
            predictions, scores = given
            rows = arithmetic.check_rows(y, predictions, classes=evaluation.labels)
            columns = None if scores is None else arithmetic.check_columns(scores, rows, "scores")
        except (TypeError, ValueError) as error:
            raise DataError(
                f"baselines[{name!r}]: {error}",
                parameter="baselines",
                hint="Pass a pair, (predictions, scores), of the rows of X; scores may be None.",
            ) from error
        judged = evaluation.rows
        ranked = None if columns is None else columns[judged]
        found.append(Method(readable(name, 40), rows.predicted[judged], ranked))
    return found


FIGURES = (
    "specificity", "sensitivity", "precision", "f1", "g_mean", "auc", "average_precision",
)  # fmt: skip


class Figure(NamedTuple):
    """A figure of one class against the rest, by one method.

    Attributes
    ----------
    value : float
        nan where the rows leave it undefined.
    low, high : float
        95 % interval, see `setconv.metrics.intervals`.
    gap, gap_low, gap_high : float
        The figure of the first method minus this one, and its interval from the same draws.
    """

    value: float
    low: float
    high: float
    gap: float
    gap_low: float
    gap_high: float

    @property
    def defined(self) -> bool:
        """Whether the rows say what it is."""
        return math.isfinite(self.value)

    @property
    def verdict(self) -> str:
        """Whether the first method is better: only where the interval of the gap excludes 0."""
        return "better" if self.gap_low > 0 else "worse" if self.gap_high < 0 else ""


Measured = list[dict[str, Figure]]  # of each class, by name


def measure_methods(evaluation: Evaluation, methods: Sequence[Method]) -> list[Measured]:
    """Measure all methods, one class against the rest, with 95 % intervals.

    All have the same draws of the rows. A figure that the rows leave undefined is nan. Classes
    that are not judged have no figures, and where a single other one is left, all that is known of
    it is its sensitivity.
    """
    unjudged, classes = list(evaluation.unjudged), tuple(range(len(evaluation.labels)))
    weights = evaluation.weights if evaluation.weighted else None
    measured: list[Measured] = []
    first: Any = None
    for method in methods:
        rows = arithmetic.Rows(classes, evaluation.truth, method.predicted, weights)
        values = arithmetic.figures_by_class(rows, rows.confusion(), method.scores)
        for name, of in values.items():
            of[unjudged] = np.nan
            if len(unjudged) == len(evaluation.labels) - 1 and name != "sensitivity":
                of[:] = np.nan
        answers = intervals.Answers(rows.predicted, method.scores)
        draws, _ = intervals.figures_of_draws(rows, answers, evaluation.units)
        sizes = intervals.Sizes.of(rows, evaluation.units)
        first = first or (values, draws)
        ours, our_draws = first
        measured.append([{} for _ in evaluation.labels])
        for name in FIGURES:
            gap = ours[name] - values[name]
            bounds = intervals.bounds_of(name, values[name], draws[name], sizes)
            gap_bounds = intervals.student_gap(gap, our_draws[name] - draws[name], sizes.smaller)
            figures = np.stack([values[name], *bounds, gap, *gap_bounds], axis=-1)
            for of_class, figure in zip(measured[-1], figures.tolist(), strict=True):
                of_class[name] = Figure._make(figure)
    return measured


class Curve(NamedTuple):
    """Points of a line."""

    x: Floats
    y: Floats


_CURVE_POINTS = 300


def roc(is_class: Flags, scores: Floats, weights: Floats) -> Curve:
    """Return false alarms against rows found."""
    fpr, tpr, _ = roc_curve(is_class, scores, sample_weight=weights)
    kept = _thinned(fpr, tpr, _CURVE_POINTS)
    return Curve(fpr[kept], tpr[kept])


def precision_recall(is_class: Flags, scores: Floats, weights: Floats) -> Curve:
    """Return recall against precision, without the point at recall 0 that no threshold has."""
    precision, recall, _ = precision_recall_curve(is_class, scores, sample_weight=weights)
    recall, precision = recall[-2::-1], precision[-2::-1]
    kept = _thinned(recall, precision, _CURVE_POINTS)
    return Curve(recall[kept], precision[kept])


def _thinned(x: Floats, y: Floats, limit: int) -> Codes:
    """Return which points of a line are kept: at equal distances along it, and both ends."""
    if len(x) <= limit:
        return np.arange(len(x))
    walked = np.r_[0, np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))]
    at = np.searchsorted(walked, np.linspace(0, walked[-1], limit))
    return np.unique(np.r_[0, np.minimum(at, len(x) - 1), len(x) - 1])


@dataclass(frozen=True)
class Bin:
    """Rows whose probability lies between two bounds.

    Attributes
    ----------
    low, high : float
        The bounds.
    n_rows : int
    said : float
        The mean probability, by weight.
    seen : float
        The share of rows that are of the class, by weight.
    seen_low, seen_high : float
        Its 95 % interval (Wilson).
    """

    low: float
    high: float
    n_rows: int
    said: float
    seen: float
    seen_low: float
    seen_high: float

    @property
    def off(self) -> float:
        """How far what was said is from what was seen."""
        return abs(self.said - self.seen)


_BINS = 10


def reliability(evaluation: Evaluation) -> list[Bin]:
    """Return ten equal bins of the main class's probability, but for those without rows.

    Where the class cannot be judged there are none.
    """
    if not evaluation.comparable(evaluation.main):
        return []
    chances, is_class = evaluation.chances, evaluation.truth == evaluation.main
    number = np.minimum((chances * _BINS).astype(np.int64), _BINS - 1)
    all_weights, every = evaluation.weights, np.ones(evaluation.n_rows, dtype=np.bool_)
    weighted = intervals.WeightedRows.of(evaluation.truth, all_weights, evaluation.units)
    found = []
    for b in np.unique(number).tolist():
        inside = number == b
        weights = all_weights[inside]
        said = float(np.average(chances[inside], weights=weights))
        seen = float(np.average(is_class[inside], weights=weights))
        units = None if evaluation.units is None else evaluation.units[inside]
        size = intervals.effective_size(weights, units)
        if evaluation.weighted:
            size = weighted.size(inside, is_class, every)
        low, high = intervals.wilson(seen, size)
        n = int(inside.sum())
        found.append(Bin(b / _BINS, (b + 1) / _BINS, n, said, seen, float(low), float(high)))
    return found


@dataclass(frozen=True)
class Explorer:
    """Shifts of the model's own threshold of one class against the rest.

    Attributes
    ----------
    name : str
        The class.
    cuts : list of float
        Shifts, falling: an alarm is a margin of at least the cut. Those above 0 are the model's
        own alarms. Before the first one there is no alarm at all, and the last one finds all rows.
    rows : dict of str to list
        "tp" and "fp": alarms that are right and wrong, with 0 in front for no alarm; one longer
        than ``cuts``.
    weights : dict of str to list, or None
        The same by weight, for the rates; None if all rows count the same.
    probability : list of float or None
        That of the alarm nearest to each cut, where the score alone decides it.
    own : int
        The place in "tp" that is the model's own decision.
    """

    name: str
    cuts: list[float]
    rows: dict[str, list[int]]
    weights: dict[str, list[float]] | None
    probability: list[float] | None
    own: int


_CUTS = 2000  # thresholds of one class
_ALL_CUTS = 8000  # of all classes
_FEWEST_CUTS = 100


def explore(evaluation: Evaluation) -> dict[int, Explorer]:
    """Return the thresholds of each class, the rarest class first; of two classes, of one."""
    classes = (evaluation.main,) if evaluation.binary else evaluation.by_rarity
    limit = min(_CUTS, max(_FEWEST_CUTS, _ALL_CUTS // len(classes)))
    return {c: _explorer(evaluation, c, limit) for c in classes if evaluation.comparable(c)}


def _explorer(evaluation: Evaluation, c: int, limit: int) -> Explorer:
    is_class = evaluation.truth == c
    margin = _margins(evaluation, c)
    order = np.argsort(-margin, kind="stable")
    ends = np.flatnonzero(np.r_[np.diff(margin[order]) != 0, True])
    cuts = margin[order[ends]]
    own = int((cuts > 0).sum())
    ranks = np.linspace(0, np.ptp(cuts), len(cuts))
    kept = np.union1d(_thinned(ranks, cuts, limit - 3), max(own - 1, 0))

    def alarms(counted: NDArray[Any]) -> dict[str, list[Any]]:
        sides = {"tp": np.where(is_class, counted, 0), "fp": np.where(is_class, 0, counted)}
        sums = {name: np.cumsum(side[order])[ends[kept]] for name, side in sides.items()}
        return {name: [0, *of.round(6).tolist()] for name, of in sums.items()}

    probability = None
    if evaluation.binary and not evaluation.out_of_fold:
        probability = evaluation.probabilities[order[ends[kept]], c].round(6).tolist()
    rows = alarms(np.ones(evaluation.n_rows, dtype=np.int64))
    weights = alarms(evaluation.weights) if evaluation.weighted else None
    place = 0 if own == 0 else int(np.searchsorted(kept, own - 1)) + 1
    return Explorer(evaluation.names[c], cuts[kept].tolist(), rows, weights, probability, place)


_ABOVE = np.nextafter(0, 1)  # of exact ties, the rows that the model decided for the class


def _margins(evaluation: Evaluation, c: int) -> Floats:
    """Return how far each row is from the decision on a class: above 0 exactly where it is taken.

    Of two classes it is the decision value; of more, that of the class minus the largest of the
    others.
    """
    found = evaluation.values[:, c]
    if not evaluation.binary:
        found = found - np.delete(evaluation.values, c, axis=1).max(axis=1)
    taken = evaluation.predicted == c
    # A tie is 0 for all its classes, and only one of them is decided for.
    return np.where(taken, np.maximum(found, _ABOVE), np.minimum(found, 0.0))
