"""What a model is worth on labelled rows, in numbers.

`evaluate` asks the model once; everything else follows from its `Evaluation`. `measure` gives the
figures of each class with their intervals, for the model and the baselines beside it. `roc`,
`precision_recall` and `reliability` are the curves, and `explore` knows for each threshold how many
alarms there would be.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve, roc_curve

from setconv.decisions.objective import weights_to_prior
from setconv.decisions.rule import Predictions
from setconv.errors import DataError, LabelError
from setconv.explain import by_class, count_rows, plain_classes
from setconv.report.words import readable

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FIGURES = ("spec", "sens", "precision", "f1", "g_mean", "auc", "ap")


@dataclass(frozen=True)
class Evaluation:
    """A model's answers on labelled rows, with class numbers for labels.

    Attributes
    ----------
    labels : tuple
        The classes, in the order of the columns.
    names : tuple of str
        The labels as the page shows them.
    codes : int64 array
        The true classes of all rows that were given.
    rows : int64 array of shape (n_rows,)
        Which of them are judged.
    truth, predicted : int64 arrays of shape (n_rows,)
    scores, values, probabilities : float64 arrays of shape (n_rows, n_classes)
        ``values`` decide: of two classes the sign, of more the largest.
    weights : float64 array of shape (n_rows,)
        What a row counts in every figure, 1 on average.
    counts : int64 array of shape (n_classes,)
        Rows of each class among those judged.
    train_counts : int64 array of shape (n_classes,) or None
        Rows of each class in training, if the model knows.
    minority : tuple of int
        The minority classes, the rarest first; never empty.
    prior : float64 array of shape (n_classes,) or None
        The prevalence that was set for the model, to which rows are weighted.
    own_prevalence : bool
        Whether a prevalence was set but rows of a class are missing, so that they cannot be
        weighted to it.
    left_out : bool array of shape (n_members, n_rows) or None
        Of training rows: the members that a row was kept from, which judge it.
    """

    labels: tuple[Any, ...]
    names: tuple[str, ...]
    codes: Codes
    rows: Codes
    truth: Codes
    predicted: Codes
    scores: Floats
    values: Floats
    probabilities: Floats
    weights: Floats
    counts: Codes
    train_counts: Codes | None
    minority: tuple[int, ...]
    prior: Floats | None = None
    own_prevalence: bool = False
    left_out: Flags | None = None

    @property
    def n_rows(self) -> int:
        """Rows that are judged."""
        return len(self.truth)

    @property
    def binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.labels) == 2

    @property
    def main(self) -> int:
        """The class that the page speaks of first: the rarest."""
        return self.minority[0]

    @property
    def out_of_fold(self) -> bool:
        """Whether these are training rows, each judged by members that left it out."""
        return self.left_out is not None

    @property
    def weighted(self) -> bool:
        """Whether some rows count more than others."""
        return bool((self.weights != 1).any())

    @property
    def unjudged(self) -> tuple[int, ...]:
        """Classes that no member left a row of out: they have no figures."""
        return tuple(np.flatnonzero(self.counts == 0).tolist()) if self.out_of_fold else ()

    def comparable(self, c: int) -> bool:
        """Whether a class, and another one beside it, is judged."""
        return c not in self.unjudged and len(self.unjudged) < len(self.labels) - 1

    def share(self, flags: Flags) -> float:
        """Return the share of rows by weight."""
        return float(self.weights[flags].sum() / self.weights.sum())

    def members_of(self, places: Codes) -> Flags | None:
        """Return the members that speak of some judged rows; None: all of them."""
        return None if self.left_out is None else self.left_out[:, places]


def evaluate(
    model: Any, X: Any, y: Any, *, predictions: Predictions | None, out_of_fold: bool
) -> Evaluation:
    """Ask the model about the rows once, or its members about training rows that they left out."""
    labels = tuple(plain_classes(model))
    codes = encode(y, labels, "y")
    if len(codes) != count_rows(X):
        raise DataError(
            f"X has {count_rows(X)} rows but y has {len(codes)}: pass one label for each row."
        )
    if not len(codes):
        raise DataError("X has no rows: there is nothing to report on; pass at least one.")
    if out_of_fold:
        found = model.predict_out_of_fold()
    else:
        found = model.predictions(X) if predictions is None else predictions
    rows = np.asarray(found.rows, dtype=np.int64)
    _check_rows(found, codes, labels)
    truth = codes[rows]
    counts = np.bincount(truth, minlength=len(labels))
    known = getattr(model, "class_counts_", None)
    train_counts = None if known is None else np.asarray(known, dtype=np.int64)
    prior = getattr(model, "prior_", None)
    own_prevalence = prior is not None and not out_of_fold and not counts.all()
    prior = None if own_prevalence else prior
    return Evaluation(
        labels=labels,
        names=tuple(readable(label, 40) for label in labels),
        codes=codes,
        rows=rows,
        truth=truth,
        predicted=encode(found.labels, labels, "the prediction"),
        scores=by_class(np.asarray(found.scores, dtype=np.float64)),
        values=by_class(np.asarray(found.decision_values, dtype=np.float64)),
        probabilities=np.asarray(found.probabilities, dtype=np.float64),
        weights=_row_weights(found.weights, prior, truth),
        counts=counts,
        train_counts=train_counts,
        minority=minority_classes(counts if train_counts is None else train_counts),
        prior=prior,
        own_prevalence=own_prevalence,
        left_out=found.left_out,
    )


def _check_rows(found: Predictions, codes: Codes, labels: tuple[Any, ...]) -> None:
    """Refuse predictions that are of other rows."""
    if found.left_out is None:
        if len(found) != len(codes):
            raise DataError(
                f"predictions are of {len(found)} rows but X has {len(codes)}: pass those of X."
            )
        return
    inside = found.rows.max(initial=-1) < len(codes)
    if not inside or not np.array_equal(encode(found.truth, labels, "y"), codes[found.rows]):
        raise DataError(
            "out_of_fold=True is for the rows that the model was fitted to, in their order; these "
            "are others. Leave it out to judge the model on them."
        )


def _row_weights(given: Floats | None, prior: Floats | None, truth: Codes) -> Floats:
    """Return what each row counts: as given, or so that classes have the prevalence that was set.

    The mean is 1.
    """
    if given is None and prior is None:
        return np.ones(len(truth))
    weights = weights_to_prior(truth, np.asarray(prior)) if given is None else np.asarray(given)
    return np.asarray(weights / weights.mean(), dtype=np.float64)


def minority_classes(counts: Codes) -> tuple[int, ...]:
    """Return the classes with fewer rows than an equal share, the rarest first.

    If all are equally frequent it is the last one alone.
    """
    order = sorted(range(len(counts)), key=lambda c: (counts[c], -c))
    below = tuple(c for c in order if counts[c] * len(counts) < counts.sum())
    return below or (order[0],)


def encode(labels: Any, classes: tuple[Any, ...], name: str) -> Codes:
    """Return labels as class numbers."""
    number = {label: code for code, label in enumerate(classes)}
    values = labels if hasattr(labels, "ndim") else np.asarray(labels, dtype=object)
    if getattr(values, "ndim", 1) != 1:
        raise DataError(f"{name} has {values.ndim} dimensions: pass one label for each row.")
    plain = [one.item() if isinstance(one, np.generic) else one for one in values.tolist()]
    unknown = [row for row, label in enumerate(plain) if not _is_known(label, number)]
    if unknown:
        raise LabelError(
            f"{name} has the label {plain[unknown[0]]!r} in row {unknown[0]}, and "
            f"{len(unknown) - 1} more rows with labels that the model does not know: it knows "
            f"{list(classes[:8])!r}. Drop or correct these rows (1 and '1' differ)."
        )
    return np.array([number[label] for label in plain], dtype=np.int64)


def _is_known(label: Any, number: dict[Any, int]) -> bool:
    try:
        return label in number
    except TypeError:  # a list or another thing that cannot be a label
        return False


@dataclass(frozen=True)
class Answers:
    """What one method says about the judged rows; a method without scores has None."""

    predicted: Codes
    scores: Floats | None


@dataclass(frozen=True)
class Measured:
    """Figures of one method.

    Attributes
    ----------
    values : float64 array of shape (n_classes, n_figures)
    low, high : float64 arrays of shape (n_classes, n_figures)
        95 % interval: Wilson's for the shares, else percentiles of the draws.
    gap, gap_low, gap_high : float64 arrays of shape (n_classes, n_figures)
        The first method minus this one, and its interval from the same draws.
    """

    values: Floats
    low: Floats
    high: Floats
    gap: Floats
    gap_low: Floats
    gap_high: Floats

    def of_class(self, c: int) -> dict[str, float]:
        """Return the figures of a class by their names."""
        return dict(zip(FIGURES, self.values[c].tolist(), strict=True))


def baseline_answers(baselines: Mapping[str, Any], evaluation: Evaluation) -> dict[str, Answers]:
    """Check the baselines: predictions and scores on the same rows."""
    found = {}
    for name, given in baselines.items():
        try:
            predictions, scores = given
        except (TypeError, ValueError) as error:
            raise DataError(
                f"baselines[{name!r}]: pass a pair, (predictions, scores); scores may be None."
            ) from error
        predicted = encode(predictions, evaluation.labels, f"baselines[{name!r}]")
        n_rows = len(evaluation.codes)
        if len(predicted) != n_rows:
            raise DataError(
                f"baselines[{name!r}] has {len(predicted)} predictions but X has {n_rows} rows: "
                "predict the same rows."
            )
        judged = evaluation.rows
        columns = None if scores is None else _score_columns(scores, name, evaluation)[judged]
        found[name] = Answers(predicted[judged], columns)
    return found


def _score_columns(scores: Any, name: str, evaluation: Evaluation) -> Floats:
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 1 and evaluation.binary:
        values = np.column_stack([-values, values])
    shape = (len(evaluation.codes), len(evaluation.labels))
    if values.shape != shape or not np.isfinite(values).all():
        raise DataError(
            f"baselines[{name!r}]: the scores have shape {np.shape(scores)}; pass finite numbers "
            f"of shape {shape}{' or (n,), of the second class' if evaluation.binary else ''}."
        )
    return values


_WORK = 100_000_000  # rows that are ranked in all; beyond it there are fewer repeats
_FEWEST_REPEATS = 100


def count_repeats(n_rankings: int, wanted: int) -> int:
    """Return how often rows are drawn again: fewer times where very many are to be ranked.

    ``n_rankings`` is the number of rows, times that of methods and classes.
    """
    return min(wanted, max(_FEWEST_REPEATS, _WORK // n_rankings))


_CELLS = 4_000_000  # numbers that are held at a time


def measure(
    truth: Codes,
    n_classes: int,
    methods: Sequence[Answers],
    *,
    weights: Floats,
    repeats: int,
    seed: int,
    ranked: Collection[int],
    unjudged: Collection[int] = (),
) -> list[Measured]:
    """Measure all methods, one class against the rest, with 95 % intervals.

    Draws are stratified: each has as many rows of every class as there are. A figure that the
    rows leave undefined is nan, and so are AUC and average precision of classes that are not
    among ``ranked``. Classes that are ``unjudged`` have no figures, and where a single other one
    is left, all that is known of it is its sensitivity.
    """
    rankings = [_Rankings(truth, n_classes, method, ranked) for method in methods]
    values = [ranking.figures(weights[None])[0] for ranking in rankings]
    for of_method in values:
        of_method[list(unjudged)] = np.nan
        if len(unjudged) == n_classes - 1:
            of_method[:, [f for f, name in enumerate(FIGURES) if name != "sens"]] = np.nan
    drawn: list[list[Floats]] = [[] for _ in methods]
    rng = np.random.default_rng(seed)
    strata = [np.flatnonzero(truth == c) for c in range(n_classes)]
    size = max(1, _CELLS // len(truth))
    for start in range(0, repeats, size):
        draws = np.stack(
            [_draw(rng, strata, len(truth)) for _ in range(start, min(start + size, repeats))]
        )
        for ranking, parts in zip(rankings, drawn, strict=True):
            parts.append(ranking.figures(draws * weights))
    replicates = [np.concatenate(parts) for parts in drawn]
    found = []
    for i, ranking in enumerate(rankings):
        low, high = _bounds(values[i], _percentiles(replicates[i]), ranking.sizes(weights))
        gap = values[0] - values[i]
        gap_low, gap_high = np.where(
            np.isnan(gap), np.nan, _percentiles(replicates[0] - replicates[i])
        )
        found.append(Measured(values[i], low, high, gap, gap_low, gap_high))
    return found


def _draw(rng: np.random.Generator, strata: list[Codes], n_rows: int) -> Floats:
    """Return how often each row is drawn."""
    weights = np.zeros(n_rows)
    for rows in strata:
        if len(rows):
            weights[rows] = np.bincount(
                rng.integers(len(rows), size=len(rows)), minlength=len(rows)
            )
    return weights


class _Rankings:
    """One method's decisions and orders of the rows, made once for all draws."""

    def __init__(
        self, truth: Codes, n_classes: int, method: Answers, ranked: Collection[int]
    ) -> None:
        classes = np.arange(n_classes)
        self.is_class = truth[:, None] == classes
        self.flagged = method.predicted[:, None] == classes
        self.orders = [
            None
            if method.scores is None or c not in ranked
            else _Order(self.is_class[:, c], method.scores[:, c])
            for c in range(n_classes)
        ]

    def figures(self, weights: Floats) -> Floats:
        """Return the figures for draws (n_draws, n_rows): (n_draws, n_classes, n_figures)."""
        # Cells are added, never subtracted from a total: an empty one is exactly 0.
        is_class, flagged = self.is_class, self.flagged
        tp, fn = weights @ (is_class & flagged), weights @ (is_class & ~flagged)
        fp, tn = weights @ (~is_class & flagged), weights @ ~(is_class | flagged)
        sens, spec = _ratio(tp, tp + fn), _ratio(tn, tn + fp)
        has_rows = tp + fn > 0
        precision = np.where(has_rows | (fp > 0), _ratio(tp, tp + fp, 0.0), np.nan)
        f1 = np.where(has_rows, _ratio(2 * tp, 2 * tp + fp + fn), np.nan)
        ranked = [
            np.full((len(weights), 2), np.nan) if order is None else order.areas(weights)
            for order in self.orders
        ]
        auc, ap = np.stack(ranked, axis=1).transpose(2, 0, 1)
        found = np.stack([spec, sens, precision, f1, np.sqrt(spec * sens), auc, ap], axis=-1)
        return found.round(12)  # sums of weights differ in the last digit, and 1 is to be 1

    def sizes(self, weights: Floats) -> Floats:
        """Return how many rows of equal weight each share rests on, (n_classes, 3)."""
        bases = (~self.is_class, self.is_class, self.flagged)
        return np.stack([_effective_size(weights @ b, weights**2 @ b) for b in bases], axis=1)


class _Order:
    """Rows from the highest score of a class to the lowest, equal scores together."""

    def __init__(self, is_class: Flags, scores: Floats) -> None:
        self.order = np.argsort(-scores, kind="stable")
        ordered = scores[self.order]
        self.starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        self.is_class = is_class[self.order].astype(np.float64)

    def areas(self, weights: Floats) -> Floats:
        """Return AUC and average precision for draws, (n_draws, 2)."""
        ordered = weights[:, self.order]
        ours = np.add.reduceat(ordered * self.is_class, self.starts, axis=1)
        rest = np.add.reduceat(ordered, self.starts, axis=1) - ours
        tp, fp = np.cumsum(ours, axis=1), np.cumsum(rest, axis=1)
        positive, negative = tp[:, -1], fp[:, -1]
        above = (ours * (negative[:, None] - fp + rest / 2)).sum(axis=1)
        auc = _ratio(above, positive * negative)
        ap = (ours * _ratio(tp, tp + fp, 0.0)).sum(axis=1)
        ap = np.where(negative > 0, _ratio(ap, positive), np.nan)
        return np.stack([auc, ap], axis=1)


def _percentiles(replicates: Floats) -> Floats:
    """Return the lower and upper bounds that 95 % of the draws lie between."""
    bounds: Floats = np.quantile(replicates, [0.025, 0.975], axis=0)
    return bounds


def _bounds(values: Floats, drawn: Floats, sizes: Floats) -> Floats:
    """Return lower and upper bounds of which none has lost its width.

    Shares have Wilson's. Where all draws of another figure are alike, it has what the bounds of
    its shares give, or Wilson's for as many rows as the smaller side has.
    """
    bounds = drawn.copy()
    bounds[..., :3] = _wilson(values[:, :3], sizes)
    spec, sens, precision = (bounds[..., f] for f in range(3))
    wide = bounds.copy()
    wide[..., FIGURES.index("f1")] = _ratio(2 * precision * sens, precision + sens, 0.0)
    wide[..., FIGURES.index("g_mean")] = np.sqrt(spec * sens)
    wide[..., 5:] = _wilson(values[:, 5:], sizes[:, :2].min(axis=1, keepdims=True))
    alike = np.round(bounds[0], 3) == np.round(bounds[1], 3)
    return np.where(np.isnan(values), np.nan, np.where(alike, wide, bounds))


def _ratio(above: Floats, below: Floats, otherwise: float = np.nan) -> Floats:
    """Divide, with ``otherwise`` where there is nothing to divide by."""
    empty = np.full(np.shape(below), otherwise)
    quotient: Floats = np.divide(above, below, out=empty, where=below > 0)
    return quotient


_Z = 1.959963984540054  # of a 95 % interval


def _wilson(share: Any, n: Any) -> tuple[Floats, Floats]:
    """Return Wilson's 95 % interval of a share among ``n`` rows; all from 0 to 1 if there is none.

    ``n`` need not be whole: see `_effective_size`.
    """
    share, n = np.asarray(share, dtype=np.float64), np.asarray(n, dtype=np.float64)
    centre = (n * share + _Z**2 / 2) / (n + _Z**2)
    half = _Z * np.sqrt(n * share * (1 - share) + _Z**2 / 4) / (n + _Z**2)
    return np.clip(centre - half, 0, share), np.clip(centre + half, share, 1)


def _effective_size(total: Any, squares: Any) -> Floats:
    """Return how many rows of equal weight tell as much as weights of this sum and sum of squares.

    Without weights it is the number of rows.
    """
    below = np.asarray(squares, dtype=np.float64)
    found: Floats = np.divide(np.square(total), below, out=np.zeros(below.shape), where=below > 0)
    return found


class Curve(NamedTuple):
    """Points of a line."""

    x: Floats
    y: Floats


def roc(is_class: Flags, scores: Floats, weights: Floats) -> Curve:
    """Return false alarms against rows found."""
    fpr, tpr, _ = roc_curve(is_class, scores, sample_weight=weights)
    return _thinned(fpr, tpr)


def precision_recall(is_class: Flags, scores: Floats, weights: Floats) -> Curve:
    """Return recall against precision, without the point at recall 0 that no threshold has."""
    precision, recall, _ = precision_recall_curve(is_class, scores, sample_weight=weights)
    return _thinned(recall[:-1][::-1], precision[:-1][::-1])


_CURVE_POINTS = 300


def _thinned(x: Floats, y: Floats) -> Curve:
    """Return points at equal distances along the line, of those that there are."""
    if len(x) <= _CURVE_POINTS:
        return Curve(x, y)
    walked = np.r_[0, np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))]
    at = np.searchsorted(walked, np.linspace(0, walked[-1], _CURVE_POINTS))
    kept = np.unique(np.r_[0, np.minimum(at, len(x) - 1), len(x) - 1])
    return Curve(x[kept], y[kept])


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


_BINS = 10


def reliability(is_class: Flags, probability: Floats, weights: Floats) -> list[Bin]:
    """Return ten equal bins of the probability, but for those without rows."""
    number = np.minimum((probability * _BINS).astype(np.int64), _BINS - 1)
    found = []
    for b in np.unique(number):
        inside = number == b
        weight = weights[inside]
        said, seen = (
            float(np.average(part[inside], weights=weight)) for part in (probability, is_class)
        )
        low, high = _wilson(seen, _effective_size(weight.sum(), np.square(weight).sum()))
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
    positives, negatives : int
        Rows of the class and of the rest.
    cuts : list of float
        Shifts, falling: an alarm is a margin of at least the cut. Those above 0 are the model's
        own alarms. Before the first one there is no alarm at all.
    tp, fp : list of int
        Alarms that are right and wrong, with 0 in front for no alarm; one longer than ``cuts``.
    weighted : dict or None
        ``positives``, ``negatives``, ``tp`` and ``fp`` by weight, for the rates.
    probability : list of float or None
        That of the alarm nearest to each cut, where the score alone decides it.
    own : int
        The place in ``tp`` that is the model's own decision.
    """

    name: str
    positives: int
    negatives: int
    cuts: list[float]
    tp: list[int]
    fp: list[int]
    weighted: dict[str, Any] | None
    probability: list[float] | None
    own: int


_CUTS = 2000  # thresholds of one class
_ALL_CUTS = 8000  # of all classes
_FEWEST_CUTS = 100


def explore(evaluation: Evaluation) -> list[Explorer]:
    """Return the thresholds of each class, the rarest class first; of two classes, of one."""
    classes = list(evaluation.minority)
    if not evaluation.binary:
        classes += [c for c in range(len(evaluation.labels)) if c not in classes]
    limit = min(_CUTS, max(_FEWEST_CUTS, _ALL_CUTS // len(classes)))
    return [_explorer(evaluation, c, limit) for c in classes if evaluation.comparable(c)]


def _explorer(evaluation: Evaluation, c: int, limit: int) -> Explorer:
    is_class = evaluation.truth == c
    margin = _margins(evaluation, c)
    order = np.argsort(-margin, kind="stable")
    ordered = margin[order]
    ends = np.flatnonzero(np.r_[ordered[1:] != ordered[:-1], True])
    own = int((ordered[ends] > 0).sum())
    kept = _kept_cuts(ordered[ends], own, limit)

    def sums(counted: Floats) -> list[float]:
        return [0, *np.cumsum(counted[order])[ends[kept]].tolist()]

    weighted = None
    if evaluation.weighted:
        tp, fp = (
            np.round(sums(np.where(side, evaluation.weights, 0)), 6).tolist()
            for side in (is_class, ~is_class)
        )
        weighted = {"positives": tp[-1], "negatives": fp[-1], "tp": tp, "fp": fp}
    probability = None
    if evaluation.binary and not evaluation.out_of_fold:
        probability = evaluation.probabilities[order[ends[kept]], c].round(6).tolist()
    return Explorer(
        name=evaluation.names[c],
        positives=int(is_class.sum()),
        negatives=int((~is_class).sum()),
        cuts=ordered[ends[kept]].tolist(),
        tp=[int(n) for n in sums(is_class.astype(np.float64))],
        fp=[int(n) for n in sums((~is_class).astype(np.float64))],
        weighted=weighted,
        probability=probability,
        own=0 if own == 0 else int(np.searchsorted(kept, own - 1)) + 1,
    )


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


def _kept_cuts(cuts: Floats, own: int, limit: int) -> Codes:
    """Return which of the falling cuts are kept: even in rank and value, and the model's own."""
    if len(cuts) <= limit:
        return np.arange(len(cuts))
    half = limit // 2 - 2
    by_rank = np.linspace(0, len(cuts) - 1, half).round().astype(np.int64)
    by_value = np.searchsorted(-cuts, -np.linspace(cuts[0], cuts[-1], half))
    return np.unique(np.r_[by_rank, np.minimum(by_value, len(cuts) - 1), max(own - 1, 0)])
