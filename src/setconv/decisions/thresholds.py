"""The thresholds that serve a criterion best on the out-of-fold scores.

Of two classes it is the threshold of the best criterion (`choose_threshold`), of more one threshold
a class (`class_offsets`). Where rows are few, what is best on them is noise in part: it is
smoothed, or averaged over bootstrap resamples. `RankedScores` has all cuts between scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from setconv.decisions.calibration import Calibrator
from setconv.decisions.objective import Codes, Floats, OutOfFoldScores
from setconv.metrics.arithmetic import Counts
from setconv.sampling import bootstrap_weights

# With more rows of the rarest class the cut that is best on them is hardly noisy.
ENOUGH_ROWS = 2000


class Criterion(NamedTuple):
    """What is maximised over the cuts.

    Attributes
    ----------
    kind : {"balanced", "f1", "mcc"}
        With more than two classes "f1" is the mean over them.
    powers : float array of shape (n_classes,)
        The powers of the recalls in "balanced", summing to one.
    positive : int
        The class of two whose F1 counts.
    """

    kind: Literal["balanced", "f1", "mcc"]
    powers: Floats
    positive: int = 1

    def of_two(self, counts: Counts) -> Floats:
        """Return the criterion of every cut between two classes; counts are seen from class 1."""
        if self.positive == 0:
            counts = counts.swapped()
        if self.kind == "balanced":
            own, other = self.powers[self.positive], self.powers[1 - self.positive]
            return np.asarray(counts.sensitivity**own * counts.specificity**other)
        return counts.f1 if self.kind == "f1" else counts.mcc


# Sums of the same weights in another order differ by less, honest differences by more.
_TIE = 1e-11


class RankedScores:
    """Rows sorted by score once; every choice of weights is then a cumulative sum.

    Cut j decides for side 1 from the distinct score j upwards: cut 0 takes all rows, cut
    ``n_values`` none.

    Parameters
    ----------
    scores : float array of shape (n_rows,)
    sides : bool array of shape (n_rows,)
        Whether a row truly belongs to side 1.
    tolerance : float
        Scores no further apart count as one: differences of scores carry rounding errors.

    Attributes
    ----------
    order : int array of shape (n_rows,)
        Sorts the rows.
    sides : bool array of shape (n_rows,)
        In sorted order.
    values : float array of shape (n_values,)
        The distinct scores, ascending.
    places : int array of shape (n_values + 1,)
        The first row, in sorted order, that each cut takes.
    """

    def __init__(self, scores: Floats, sides: NDArray[np.bool_], tolerance: float = 0.0) -> None:
        self.order = np.argsort(scores, kind="stable")
        ranked = scores[self.order]
        self.sides = sides[self.order]
        apart = ranked[1:] > ranked[:-1] + tolerance
        self._starts = np.flatnonzero(np.append(True, apart))
        self.places = np.append(self._starts, len(ranked))
        self.values: Floats = ranked[self._starts]
        m = len(self.values)
        gap = (self.values[-1] - self.values[0]) / (m - 1) if m > 1 else 1.0
        # Beyond the last row there is no gap to take the middle of: take an average one.
        self._edges = np.concatenate([[self.values[0] - gap], self.values, [self.values[-1] + gap]])

    def counts(self, weights: Floats) -> Counts:
        """Count every cut; ``weights`` are in sorted order."""
        side1 = np.where(self.sides, weights, 0.0)
        side0 = weights - side1
        if len(self.values) < len(weights):
            side1 = np.add.reduceat(side1, self._starts)
            side0 = np.add.reduceat(side0, self._starts)
        # Both directions are added up, never subtracted, so an empty side is exactly 0.
        return Counts(sums_above(side1), sums_below(side1), sums_above(side0), sums_below(side0))

    def threshold(self, first: int, last: int | None = None) -> float:
        """Return the middle of the gap at a cut, or of all gaps from cut ``first`` to ``last``."""
        last = first if last is None else last
        low, high = self._edges[first], self._edges[last + 1]
        middle = float(low + (high - low) / 2)
        # Between neighbouring floats there is no middle; "score > threshold" needs the lower.
        return middle if middle < high else float(low)

    def best(self, criterion: Floats) -> float:
        """Return the threshold of the largest criterion; of several, the middle of the widest."""
        top = float(criterion.max())
        good = np.concatenate([[False], criterion >= top - _TIE * max(1.0, abs(top)), [False]])
        steps = np.diff(good.astype(np.int8))
        first, last = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1
        widest = int(np.argmax(self._edges[last + 1] - self._edges[first]))
        return self.threshold(int(first[widest]), int(last[widest]))


def sums_above(weights: Floats) -> Floats:
    """Return the sum from each place to the end, and 0 after it: (n + 1,)."""
    return np.append(np.cumsum(weights[::-1])[::-1], 0.0)


def sums_below(weights: Floats) -> Floats:
    """Return 0, and the sum up to each place: (n + 1,)."""
    return np.append(0.0, np.cumsum(weights))


def steadied(cut: float, rows: OutOfFoldScores, calibrator: Calibrator, powers: Floats) -> float:
    """Draw the best cut of few rows towards the one that the calibrated probabilities give.

    That is where both classes, weighed by their powers, are equally likely if they are equally
    frequent. It has two parameters instead of the whole distribution of the scores behind it, so
    it varies less; it counts like 20 rows of the rarer class. Where scores hardly tell the classes
    apart it can lie far beyond all of them, and is not followed there.
    """
    even = np.full(2, 0.5)
    probable = calibrator.score_at(float(np.log(powers[0]) - np.log(powers[1])), even)
    share = 20 / (20 + int(np.bincount(rows.codes).min()))
    steadied = (1 - share) * cut + share * probable
    column = rows.scores[:, 0]
    # Outside of these all rows would be of one class: the worst decision for "balanced".
    return steadied if column.min() <= steadied < column.max() else cut


def choose_threshold(evidence: OutOfFoldScores, criterion: Criterion, *, seed: int = 0) -> float:
    """Choose the threshold t of "class 1 if score > t"; both classes have rows.

    With more than 2,000 rows of the rarer class it is the best of all cuts on the rows, in the
    middle of a gap between scores. With fewer it is `smoothed_threshold` for "balanced", else the
    mean of that and of the best cuts of 100 bootstrap resamples, fewer beyond 200,000 rows.
    """
    rows = RankedScores(evidence.scores[:, 0], evidence.codes == 1)
    weights = evidence.weights[rows.order]

    def best(weights: Floats) -> float:
        return rows.best(criterion.of_two(rows.counts(weights)))

    if _has_enough_rows(evidence.codes):
        return best(weights)
    smoothed = smoothed_threshold(evidence, criterion)
    if smoothed is not None and criterion.kind == "balanced":
        return smoothed
    # A resample costs some passes over the rows; more than these are time without effect.
    count = int(np.clip(20_000_000 // len(weights), 10, 100))
    generator, codes = np.random.default_rng(seed), rows.sides.astype(np.int64)
    cuts = [best(weights * bootstrap_weights(codes, generator)) for _ in range(count)]
    bagged = float(np.mean(cuts))
    return bagged if smoothed is None else (bagged + smoothed) / 2


# Thresholds tried by `smoothed_threshold`, over all scores and then around the best.
_CANDIDATES = 200


def smoothed_threshold(evidence: OutOfFoldScores, criterion: Criterion) -> float | None:
    """Return the threshold with the best criterion of smoothed counts; both classes have rows.

    The share of a class above a threshold is the mean of Phi((score - threshold) / h) over its
    rows: the limit of a bootstrap that adds a little noise to each score. The bandwidth h is the
    normal reference rule, 1.06 min(s, IQR / 1.349) n^(-1/5), within each class. A class with
    over 2,000 rows is counted as it is.

    Returns
    -------
    float or None
        None when the scores of a class do not vary, so that there is nothing to smooth by.
    """
    scores = evidence.scores[:, 0]
    parts = [(scores[evidence.codes == c], evidence.weights[evidence.codes == c]) for c in (1, 0)]
    smooth = [(*part, _bandwidth(*part)) for part in parts]
    if min(width for *_, width in smooth) <= 0:
        return None

    def best_of(candidates: Floats) -> int:
        own, other = (_above_and_below(*part, candidates) for part in smooth)
        return int(np.argmax(criterion.of_two(Counts(*own, *other))))

    # Even steps for the smooth stretches, quantiles for scores with far outliers.
    steps = np.linspace(scores.min(), scores.max(), _CANDIDATES)
    shares = np.linspace(0, 1, _CANDIDATES)
    candidates = np.unique([steps, *(np.quantile(part, shares) for part, _ in parts)])
    best = best_of(candidates)
    low, high = candidates[max(best - 1, 0)], candidates[min(best + 1, len(candidates) - 1)]
    finer = np.linspace(low, high, _CANDIDATES)
    return float(finer[best_of(finer)])


def _bandwidth(scores: Floats, weights: Floats) -> float:
    mean = np.average(scores, weights=weights)
    spread = float(np.sqrt(np.average((scores - mean) ** 2, weights=weights)))
    quarter, three = np.quantile(scores, [0.25, 0.75])
    middle = float(three - quarter) / 1.349
    size = float(weights.sum() ** 2 / (weights**2).sum())
    return float(1.06 * (min(spread, middle) if middle > 0 else spread) * size**-0.2)


def _above_and_below(
    scores: Floats, weights: Floats, width: float, candidates: Floats
) -> tuple[Floats, Floats]:
    """Return the weight of a class above and below each candidate."""
    if len(scores) > ENOUGH_ROWS:
        order = np.argsort(scores)
        sums = sums_below(weights[order])
        below = sums[np.searchsorted(scores[order], candidates, side="right")]
        return sums[-1] - below, below
    steps = (scores - candidates[:, None]) / width
    return ndtr(steps) @ weights, ndtr(-steps) @ weights


_FEW_CLASSES = 10  # up to which each resample is followed to its end


def class_offsets(evidence: OutOfFoldScores, criterion: Criterion, *, seed: int = 0) -> Floats:
    """Choose the thresholds t of "the class of the largest score - t".

    Each class in turn gets the threshold that is best while the others stay, over all its cuts,
    until nothing is gained; from three starts, of which the best result counts. Beyond 20,000
    rows a sample is used, drawn class by class, with at least 500 rows of each class that has
    so many. With up to 2,000 rows of the rarest class the thresholds of some bootstrap resamples
    (25, fewer beyond 4,000 rows) are averaged, each an ascent that starts at the result on all
    rows. Beyond 10 classes, where ascents take many rounds, each is one round that starts where
    the one before has ended.

    Returns
    -------
    float array of shape (n_classes,)
        With mean 0 over the classes that have rows; 0 for those that have none.
    """
    thresholds = np.zeros(evidence.n_classes)
    seen = np.flatnonzero(evidence.seen)
    if len(seen) < 2:
        return thresholds
    noisy = not _has_enough_rows(evidence.codes)
    # Coordinate ascent sorts the rows some hundred times.
    evidence = evidence.thinned(20_000, 500, seed)
    powers = criterion.powers[seen]
    problem = Problem(
        scores=np.ascontiguousarray(evidence.scores[:, seen].T),
        codes=np.searchsorted(seen, evidence.codes),
        weights=evidence.weights,
        criterion=Criterion(criterion.kind, powers / powers.sum()),
    )
    results = [coordinate_ascent(problem, start) for start in _starts(problem)]
    best = max(results, key=lambda result: result[1])[0]
    if noisy:
        count = int(np.clip(100_000 // len(evidence), 5, 25))
        generator, moved = np.random.default_rng(seed), []
        for _ in range(count):
            drawn = evidence.weights * bootstrap_weights(problem.codes, generator)
            drawn_problem = problem._replace(weights=drawn)
            if len(seen) <= _FEW_CLASSES:
                moved.append(coordinate_ascent(drawn_problem, best)[0])
            else:
                moved.append(coordinate_ascent(drawn_problem, moved[-1] if moved else best, 1)[0])
        best = np.mean(moved, axis=0)
    thresholds[seen] = best
    return thresholds


class Problem(NamedTuple):
    """The rows and what is to be maximised on them; every class has rows.

    Attributes
    ----------
    scores : float array of shape (n_classes, n_rows)
    codes : int array of shape (n_rows,)
    weights : float array of shape (n_rows,)
    criterion : Criterion
    """

    scores: Floats
    codes: Codes
    weights: Floats
    criterion: Criterion


def _starts(problem: Problem) -> list[Floats]:
    """Return zero, each class's best cut against the rest, and the middle between both means."""
    alone, middle = np.zeros((2, len(problem.scores)))
    against_rest = problem.criterion._replace(powers=np.full(2, 0.5))
    for c, column in enumerate(problem.scores):
        member = problem.codes == c
        rows = RankedScores(column, member)
        alone[c] = rows.best(against_rest.of_two(rows.counts(problem.weights[rows.order])))
        middle[c] = (column[member].mean() + column[~member].mean()) / 2
    return [np.zeros_like(alone), alone, middle]


# A step that gains less is none: far below what any sample of rows can tell.
_GAIN = 1e-6


def coordinate_ascent(problem: Problem, start: Floats, rounds: int = 10) -> tuple[Floats, float]:
    """Return the thresholds (n_classes,), with mean 0, and the criterion that they reach."""
    thresholds = start.copy()
    values = problem.scores - thresholds[:, None]
    n_classes, reached, idle = len(values), -np.inf, 0
    for _ in range(rounds):
        for c, rival, best_other in _rivals(values):
            # Nothing has moved since this class was looked at.
            if idle == n_classes:
                return thresholds - thresholds.mean(), reached
            rows, curve = _cuts_of(problem, c, rival, best_other)
            best = float(curve.max())
            idle += 1
            if best > reached + _GAIN:
                reached, thresholds[c], idle = best, rows.best(curve), 1
                values[c] = problem.scores[c] - thresholds[c]
    return thresholds - thresholds.mean(), reached


def _rivals(values: Floats) -> Iterator[tuple[int, Codes, Floats]]:
    """Yield each class, the best of the other classes for each row, and its value.

    Between two steps the values of the class may change. The best of the classes behind is known
    beforehand, that of those before is kept: a round costs one pass over the values, not one a
    class.
    """
    numbers = np.arange(len(values))[:, None]
    behind = np.maximum.accumulate(values[::-1], axis=0)[::-1]
    first = np.where(values == behind, numbers, len(values))
    first = np.minimum.accumulate(first[::-1], axis=0)[::-1]
    before, owner = np.full(values.shape[1], -np.inf), np.zeros(values.shape[1], dtype=np.int64)
    for c in range(len(values)):
        if c + 1 < len(values):
            # Of equal ones the first counts.
            led = before >= behind[c + 1]
            yield c, np.where(led, owner, first[c + 1]), np.where(led, before, behind[c + 1])
        else:
            yield c, owner, before
        owner = np.where(values[c] > before, c, owner)
        before = np.maximum(values[c], before)


def _cuts_of(
    problem: Problem, c: int, rival: Codes, best_other: Floats
) -> tuple[RankedScores, Floats]:
    """Return the cuts of one class against its best rivals, and the criterion of each."""
    # Differences of scores that are equal but for rounding are one cut.
    rounding = 1e-13 * float(np.abs(best_other).max())
    rows = RankedScores(problem.scores[c] - best_other, problem.codes == c, rounding)
    order = rows.order
    n_classes = len(problem.scores)
    flips = _Flips(c, rival[order], problem.codes[order], problem.weights[order], n_classes)
    return rows, _criterion_of_all(problem, flips)[rows.places]


class _Flips:
    """What changes when rows leave a class for their rivals, in the order of their margins.

    Only the figures of the class and of one rival change with each row, so a sum over all classes
    follows in one pass over the rows, however many classes there are.
    """

    def __init__(self, c: int, rival: Codes, codes: Codes, weights: Floats, n_classes: int) -> None:
        self._own = np.full(len(codes) + 1, c)
        self._own_decided = sums_above(weights)
        self._own_right = sums_above(np.where(codes == c, weights, 0.0))
        self._others = np.delete(np.arange(n_classes), c)
        self._group = np.argsort(rival.astype(np.int16), kind="stable")
        self._rival = rival[self._group]
        self._first = np.append(True, self._rival[1:] != self._rival[:-1])
        self._decided = self._within(weights)
        self._right = self._within(np.where(codes == rival, weights, 0.0))

    def _within(self, weights: Floats) -> Floats:
        """Return the cumulative sum within the rows of each rival."""
        sums = np.cumsum(weights[self._group])
        starts = np.flatnonzero(self._first)
        before = np.concatenate([[0.0], sums[starts[1:] - 1]])
        lengths = np.diff(np.append(starts, len(sums)))
        return np.asarray(sums - np.repeat(before, lengths))

    def total(self, term: Callable[[Floats, Floats, Codes], Floats]) -> Floats:
        """Sum term(right, decided, class) over the classes, after 0, 1, ... rows have left."""
        zeros = np.zeros(len(self._rival))
        after = term(self._right, self._decided, self._rival)
        before = np.append(0.0, after[:-1])
        before[self._first] = term(zeros, zeros, self._rival)[self._first]
        change = np.empty_like(after)
        change[self._group] = after - before
        none = np.zeros(len(self._others))
        start = term(none, none, self._others).sum()
        own = term(self._own_right, self._own_decided, self._own)
        return np.asarray(own + start + np.append(0.0, np.cumsum(change)))


# Keeps the other recalls in sight while one of the classes has none yet.
_NO_RECALL = 1e-12


def _criterion_of_all(problem: Problem, flips: _Flips) -> Floats:
    """Return the criterion over all classes, after 0, 1, ... rows have left."""
    truth = np.bincount(problem.codes, problem.weights, minlength=len(problem.scores))
    kind, powers, _ = problem.criterion
    if kind == "f1":
        shares = flips.total(lambda right, decided, c: 2 * right / (decided + truth[c]))
        return np.asarray(shares / len(truth))
    if kind == "balanced":
        logs = flips.total(
            lambda right, _, c: powers[c] * np.log(np.maximum(right / truth[c], _NO_RECALL))
        )
        return np.exp(logs)
    # R_K, the correlation over all classes, on shares of the rows.
    total = truth.sum()
    share = truth / total
    hits = flips.total(lambda right, decided, c: (right - share[c] * decided) / total)
    spread = 1 - flips.total(lambda _, decided, __: (decided / total) ** 2)
    below = np.sqrt(np.maximum(spread, 0.0) * (1 - (share**2).sum()))
    return np.asarray(np.divide(hits, below, out=np.zeros_like(hits), where=below > 1e-9))


def _has_enough_rows(codes: Codes) -> bool:
    """Whether every class that has rows has more than `ENOUGH_ROWS` of them."""
    counts = np.bincount(codes)
    return bool(counts[counts > 0].min() > ENOUGH_ROWS)
