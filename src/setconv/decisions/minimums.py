"""Minimums of recall and precision: the threshold that keeps one, and how sure that is.

Without a confidence a minimum is kept on average over fits, and how many of them miss it follows
from the number of rows. With one it is kept in that share of fits: a recall by the order statistic
of the rows of the class, a precision by exact tests in a fixed sequence (Angelopoulos et al.,
"Learn then test", 2021), each valid whatever the scores are. `promises` says from labels alone what
so many rows can keep.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrik, betainc, betaincinv

from setconv.decisions.objective import Floats, Grounds, Objective, OutOfFoldScores
from setconv.decisions.thresholds import RankedScores
from setconv.errors import LabelError, ParameterError
from setconv.metrics.arithmetic import check_rows, plain_labels, rarest
from setconv.metrics.intervals import WeightedRows, effective_size, wilson
from setconv.sampling import check_groups

Flags = NDArray[np.bool_]


# Why no confidence can be stated.
SHARED = (
    "groups have copies of rows in common, so that not even one row a group stands alone. Leave "
    "out the copies, or the confidence."
)
FORWARD = (
    "with time later rows are not taken to be like earlier ones, so that nothing is sure of them. "
    "Leave out the confidence, or the time."
)


class Minimum(NamedTuple):
    """A threshold for the margins of a class, and what is known of the minimum that was asked for.

    Attributes
    ----------
    threshold : float
        A row is decided for the class if its margin exceeds it.
    met : bool
        Whether the rows say that the minimum is kept, on average or with its confidence.
    may_miss : float or None
        The share of such fits that miss it.
    problem : str or None
        Why it is not met.
    """

    threshold: float
    met: bool
    may_miss: float | None = None
    problem: str | None = None


def choose_minimum(
    grounds: Grounds, objective: Objective, prior: Floats | None
) -> tuple[Floats, Minimum]:
    """Return the thresholds that keep the minimum of one class (those of the others stay 0).

    With a confidence rows are to stand alone: of each group, and of copies, one row is taken.
    """
    target = grounds.positive if objective.target is None else objective.target
    rows, thresholds = grounds.evidence, np.zeros(grounds.evidence.scores.shape[1])
    # Alarms for rows of a class that has none here would not be counted.
    judged = rows.seen[target] and (objective.kind == "recall" or rows.seen.all())
    if not rows.seen[target]:
        return thresholds, nothing_known(objective)
    if objective.confidence is not None and grounds.doubt:
        return thresholds, Minimum(0.0, met=False, problem=f"{objective}: {grounds.doubt}")
    if objective.confidence is not None:
        rows = rows.one_a_unit(grounds.seed)
    known = (_margins(rows.scores, target), rows.codes == target)
    if objective.kind == "recall":
        found = threshold_for_recall(*known, rows, objective)
    elif objective.confidence is None:
        if prior is not None:
            rows = rows.weighed(prior / grounds.train_prior)
        found = threshold_for_precision(*known, rows, objective)
    else:
        wanted = grounds.train_prior if prior is None else prior
        if np.allclose(rows.prior, wanted, rtol=1e-9) and np.allclose(rows.weights, 1, atol=1e-9):
            found = threshold_by_tests(*known, objective)
        else:
            rows = rows.weighed(wanted / rows.prior)
            found = threshold_by_rates(*known, rows, objective, float(wanted[target]))
    if len(thresholds) == 1 and target == 0:
        # Class 0 is decided on at the threshold itself too, hence the next float below.
        thresholds[0] = np.nextafter(-found.threshold, -np.inf)
    else:
        thresholds[target if len(thresholds) > 1 else 0] = found.threshold
    return thresholds, found._replace(met=found.met and bool(judged))


def nothing_known(objective: Objective) -> Minimum:
    """Return what is known where a class has no rows; only a confidence is refused for it."""
    why = f"{objective}: a class has no row that was kept from the model."
    return Minimum(0.0, met=False, problem=None if objective.confidence is None else why)


def _margins(scores: Floats, target: int) -> Floats:
    """Return what decides for a class where it exceeds the threshold."""
    if scores.shape[1] == 1:
        return scores[:, 0] if target == 1 else -scores[:, 0]
    return np.asarray(scores[:, target] - np.delete(scores, target, axis=1).max(axis=1))


def threshold_for_recall(
    margins: Floats, member: Flags, rows: OutOfFoldScores, objective: Objective
) -> Minimum:
    """Return the highest threshold that keeps a recall, just under an order statistic.

    The share of new rows of the class that lie below the k-th smallest of its n rows has the
    distribution Beta(k, n + 1 - k), whatever that of the scores is. In expectation it is
    k / (n + 1), so on average k = floor((n + 1)(1 - level)) keeps the recall. With a confidence k
    is the largest with P(Beta(k, n + 1 - k) <= 1 - level) at least that. The threshold lies in the
    middle of the gap to the next lower score of any row. Unequal weights count as so many rows as
    have the same effective size, (sum w)^2 / sum w^2.

    Parameters
    ----------
    margins : float array of shape (n_rows,)
    member : bool array of shape (n_rows,)
        Whether a row is of the class.
    rows : OutOfFoldScores
        The same rows, for their weights and units.
    objective : Objective
    """
    level, confidence = _stated(objective)
    ranked = RankedScores(margins, member)
    own = np.sort(margins[member])
    weight = rows.weights[ranked.order][ranked.sides]
    size = float(weight.sum() ** 2 / (weight**2).sum())
    # Sums of equal weights are to be the whole numbers that they stand for.
    ranks = np.cumsum(weight) * (size / weight.sum()) - 1e-9
    if confidence is None:
        allowed = ranks <= (size + 1) * (1 - level)
    else:
        allowed = betainc(ranks, size + 1 - ranks, 1 - level) >= confidence
    place = max(int(np.count_nonzero(allowed)) - 1, 0)
    # What belongs together says it once.
    alone = effective_size(rows.weights[member], None if rows.units is None else rows.units[member])
    rank = ranks[place] * alone / size
    return Minimum(
        ranked.threshold(int(np.searchsorted(ranked.values, own[place]))),
        met=bool(allowed[0]),
        may_miss=float(1 - betainc(rank, alone + 1 - rank, 1 - level)),
        problem=None if allowed[0] else too_few_rows(objective, size),
    )


def _stated(objective: Objective) -> tuple[float, float | None]:
    assert objective.level is not None
    return objective.level, objective.confidence


def too_few_rows(objective: Objective, size: float) -> str | None:
    """Say why so many rows of the class cannot keep a minimum recall; None if they can."""
    level, confidence = _stated(objective)
    if confidence is None:
        needed = math.ceil(level / (1 - level) - 1e-9) if level < 1 else math.inf
        stands = size / (size + 1)
    else:
        needed, stands = rows_for_recall(level, confidence), (1 - confidence) ** (1 / max(size, 1))
    if size >= needed - 1e-6:
        return None
    return (
        f"{objective} takes {needed:,} rows of the class that were kept from the model (copies and "
        f"groups count once), and there are {size:.4g}: to find all of them stands for a recall of "
        f"{stands:.3f}. Ask for less, or add rows."
    )


def rows_for_recall(level: float, confidence: float, missed: int = 0) -> int:
    """Return how many rows of a class show a recall if at most so many of them are missed.

    Examples
    --------
    >>> [rows_for_recall(0.95, 0.9, missed) for missed in (0, 1, 2)]
    [45, 77, 105]
    """
    sure = range(missed + 1, 10**9)
    return sure[bisect_left(sure, confidence, key=lambda n: _chance(missed, n, level))]


def _chance(missed: int, n: int, level: float) -> float:
    """Return the chance that a recall under the level would have missed more of n rows."""
    return float(betainc(missed + 1, n - missed, 1 - level))


def threshold_for_precision(
    margins: Floats, member: Flags, rows: OutOfFoldScores, objective: Objective
) -> Minimum:
    """Return the lowest threshold, so the highest recall, with at least this precision.

    Cuts that decide for fewer than five rows count only if no other reaches the precision. If
    none does, it is the cut of highest precision, of equals the one with more rows. How many fits
    miss it is Jeffreys' posterior of the precision of so many alarms, which knows nothing of the
    choice of the cut.

    Parameters
    ----------
    margins, member, rows, objective
        As in `threshold_for_recall`.
    """
    level, _ = _stated(objective)
    ranked = RankedScores(margins, member)
    # The last cut decides for no row: it has no precision.
    decided = len(margins) - ranked.places[:-1]
    precision = ranked.counts(rows.weights[ranked.order]).precision[:-1]
    good = precision >= level - 1e-12
    # A precision seen on fewer than five rows says next to nothing.
    solid = decided >= min(5, int(decided[0]))
    met = bool((good & solid).any())
    if good.any():
        cut = int(np.argmax(good & solid if met else good))
    else:
        cut = int(np.argmax(np.where(solid, precision, -1.0)))
    alarms = np.zeros(len(margins), dtype=np.bool_)
    alarms[ranked.order[ranked.places[cut] :]] = True
    if _classes_differ(rows):
        every = np.ones(len(margins), dtype=np.bool_)
        size = WeightedRows.of(rows.codes, rows.weights, rows.units).size(alarms, member, every)
    else:
        units = None if rows.units is None else rows.units[alarms]
        size = effective_size(rows.weights[alarms], units)
    right = size * float(precision[cut])
    may_miss = float(betainc(right + 0.5, size - right + 0.5, level))
    why = (
        f"{objective}: the out-of-fold rows reach {precision[cut]:.3f}, on {decided[cut]} rows "
        "decided for the class. Ask for less, or expect few finds."
    )
    return Minimum(ranked.threshold(cut), met, may_miss, problem=None if met else why)


def _classes_differ(rows: OutOfFoldScores) -> bool:
    """Whether a row of one class counts more than a row of another, on average."""
    counts = np.bincount(rows.codes, minlength=rows.n_classes)[rows.seen]
    means = rows.totals[rows.seen] / counts
    return not np.allclose(means, means[0], rtol=1e-9)


# Wrong alarms that the first test allows. With none, one early error ends the sequence; with more,
# the first test needs more alarms than few rows of the class can give.
_WRONG = 1
_EVERY = 1000  # numbers of alarms that are all looked at; beyond, one in a hundred


def alarm_counts(level: float, confidence: float, most: int) -> NDArray[np.int64]:
    """Return the numbers of alarms that are tested, the fewest first.

    They are the least numbers that show the precision with 1, 2, 3 ... wrong alarms, and depend on
    nothing else: the sequence is fixed before any label is seen.

    Examples
    --------
    >>> alarm_counts(0.8, 0.9, 50).tolist()
    [18, 25, 32, 38, 45]
    """
    steps = _EVERY * 1.01 ** np.arange(1 + max(0.0, math.log(most / _EVERY, 1.01)) if most else 0)
    counts = np.concatenate([np.arange(1, _EVERY), steps.astype(np.int64)])
    counts = np.unique(counts[counts <= most])
    wrong = np.nan_to_num(np.floor(bdtrik(1 - confidence, counts, 1 - level)), nan=-1.0)
    wrong += _chance_of_fewer(wrong + 1, counts, level) <= 1 - confidence  # rounding
    return np.asarray(counts[(wrong >= _WRONG) & (np.diff(wrong, prepend=-1.0) > 0)])


def _chance_of_fewer(wrong: Any, alarms: Any, level: float) -> Any:
    """Return P(Bin(alarms, 1 - level) <= wrong): of an exact test whether the precision is less."""
    right = np.asarray(alarms - wrong, dtype=np.float64)
    return np.where(right > 0, betainc(np.maximum(right, 1e-9), wrong + 1.0, level), 1.0)


def threshold_by_tests(margins: Floats, member: Flags, objective: Objective) -> Minimum:
    """Return the lowest threshold whose precision passes its exact test, and so did all before it.

    The labels of the a rows with the largest margins are as those of any a alarms at the score of
    the row after them: the number of right ones is binomial. So each number of `alarm_counts` is
    tested, the fewest first, until one fails; that any of those that passed is wrong has at most
    the chance of one test, 1 - confidence. If the first fails the minimum is not met, and the
    threshold is the one with the highest lower bound among all that could have been tested.
    """
    level, confidence = _stated(objective)
    assert confidence is not None
    ranked = RankedScores(margins, member)
    alarms = len(margins) - ranked.places
    # Of equal margins none or all are alarms: the cut with at most so many.
    counts = alarm_counts(level, confidence, len(margins))
    cuts = np.unique(len(alarms) - np.searchsorted(alarms[::-1], counts, side="right"))[::-1]
    cuts = cuts[alarms[cuts] > 0]
    if not len(cuts):
        return _not_shown(objective, threshold_at(ranked, max(len(alarms) - 2, 0)), 0, 0)
    tp = ranked.counts(np.ones(len(margins))).tp[cuts]
    wrong = alarms[cuts] - tp
    passed = _chance_of_fewer(wrong, alarms[cuts], level) <= 1 - confidence
    last = len(cuts) if passed.all() else int(np.argmin(passed))
    if not last:
        surest = int(np.argmax(lower_share(tp, alarms[cuts], 1 - confidence)))
        threshold = threshold_at(ranked, cuts[surest])
        return _not_shown(objective, threshold, int(alarms[cuts[0]]), int(wrong[0]))
    return Minimum(threshold_at(ranked, cuts[last - 1]), met=True, may_miss=1 - confidence)


def threshold_at(ranked: RankedScores, cut: int) -> float:
    """Return the score of the row after the last alarm: where the test knows the precision."""
    return float(ranked.values[cut - 1]) if cut else ranked.threshold(0)


def _not_shown(objective: Objective, threshold: float, alarms: int, wrong: int) -> Minimum:
    level, confidence = _stated(objective)
    assert confidence is not None
    least = alarm_counts(level, confidence, 10**9)[0]
    said = f"of the {alarms} surest alarms on out-of-fold rows {wrong} are wrong" if alarms else ""
    problem = (
        f"{objective} cannot be shown: it takes at least {least:,} alarms with at most {_WRONG} "
        f"wrong, and {said or 'there are not so many rows'}. Ask for less, or add rows."
    )
    return Minimum(threshold, met=False, problem=problem)


def lower_share(right: Any, n: Any, error: float) -> Any:
    """Return Clopper and Pearson's lower bound of a share; n need not be whole."""
    some = np.maximum(right, 1e-9)
    return np.where(right > 0, betaincinv(some, n - right + 1.0, error), 0.0)


def upper_share(right: Any, n: Any, error: float) -> Any:
    """Return Clopper and Pearson's upper bound of a share; n need not be whole."""
    return 1 - lower_share(n - right, n, error)


def threshold_by_rates(
    margins: Floats, member: Flags, rows: OutOfFoldScores, objective: Objective, share: float
) -> Minimum:
    """Return the lowest threshold whose precision, at a share of the class, is shown by its rates.

    Where the rows do not have the prevalence in question, because one was set, rows have weights,
    some were left aside, or a row stands for others, alarms cannot be counted as they come. At the
    k-th largest margin of the class the recall is at least Clopper and Pearson's bound for k of n
    rows, and the rate of false alarms at most that for those at or above it, each with half of the
    error; both give the least precision that is plausible. The numbers k are tested in a fixed
    sequence, from the first that allows a false alarm on (or none, where none can be allowed),
    until one fails. Unequal weights count by their effective size.

    Parameters
    ----------
    margins, member, rows, objective
        As in `threshold_for_recall`; of each class the rows stand alone.
    share : float
        Of the class, where the model is used.
    """
    level, confidence = _stated(objective)
    assert confidence is not None
    half, weights = (1 - confidence) / 2, rows.weights
    order = np.argsort(-margins[member], kind="stable")
    own, own_weights = margins[member][order], weights[member][order]
    size, rest = effective_size(own_weights), effective_size(weights[~member])
    if rows.n_classes > 2 and _classes_differ(rows):
        # All false alarms may be of the class whose rows count most.
        rest = min(rest, WeightedRows.of(rows.codes, weights, None).size(~member, ~member, ~member))
    found = np.cumsum(own_weights) * (size / own_weights.sum())
    recall = lower_share(found, size, half)

    def least_precision(false: Any) -> Any:
        alarms = (1 - share) * upper_share(np.minimum(false, rest), rest, half)
        return share * recall / (share * recall + alarms)

    sorted_rest = np.argsort(margins[~member], kind="stable")
    below = np.append(0.0, np.cumsum(weights[~member][sorted_rest]))
    under = np.searchsorted(margins[~member][sorted_rest], own, side="left")
    false = (below[-1] - below[under]) * (rest / below[-1])
    # Nothing so far has looked at which scores are whose: a first k that sizes alone decide.
    starts = [np.flatnonzero(least_precision(float(n)) >= level) for n in (_WRONG, 0)]
    first = next((int(one[0]) for one in starts if len(one)), None)
    shown = least_precision(false)
    passed = np.zeros(0, dtype=np.bool_) if first is None else shown[first:] >= level
    last = len(passed) if passed.all() else int(np.argmin(passed))
    place = int(np.argmax(shown)) if first is None or not last else first + last - 1
    threshold = float(np.nextafter(own[place], -np.inf))
    if last:
        return Minimum(threshold, met=True, may_miss=1 - confidence)
    highest = float(least_precision(0.0).max())
    problem = (
        f"{objective} cannot be shown at a share of {share:.4g} of the class: {size:.4g} rows of "
        f"it and {rest:.4g} others could show at most {highest:.3f}, without a false alarm. Ask "
        "for less, or add rows."
    )
    return Minimum(threshold, met=False, problem=problem)


@dataclass(frozen=True)
class Promises:
    """What so many rows of the rarest class can keep, whatever the model: see `promises`.

    Attributes
    ----------
    label : label
        The rarest class.
    n_rows : int
        Its rows, or groups of rows.
    confidence : float
    recall, precision : float
        The largest minimum that can be asked for with the confidence.
    margin : float
        Half of the 95 % interval of a recall of one half.
    """

    label: Any
    n_rows: int
    confidence: float
    recall: float
    precision: float
    margin: float

    def __str__(self) -> str:
        needed = [
            f"{rows_for_recall(level, self.confidence):,} for a recall of {level:g}"
            for level in (0.8, 0.9, 0.95, 0.99)
            if level > self.recall
        ]
        return (
            f"{self.n_rows:,} rows of {self.label!r} can promise a recall of at most "
            f"{self.recall:.3f} and a precision of at most {self.precision:.3f} @ "
            f"{100 * self.confidence:.10g}%; a recall of 0.5 would be known to ±{self.margin:.2f}."
            + (f" More takes more rows: {', '.join(needed)}." if needed else "")
        )


def promises(y: ArrayLike, *, groups: ArrayLike | None = None, confidence: float = 0.9) -> Promises:
    """Say from labels alone what can be promised after a fit to them, whatever the model.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        The labels.
    groups : array-like of shape (n_rows,), optional
        Rows of one group count once.
    confidence : float, default=0.9
        As in the objective "recall>=0.95 @ 90%".

    Returns
    -------
    Promises

    Examples
    --------
    >>> from setconv import promises
    >>> print(promises(["fire"] * 40 + ["no"] * 900))
    40 rows of 'fire' can promise a recall of at most 0.944 and a precision of at most 0.908 @ 90%;
    a recall of 0.5 would be known to ±0.15. More takes more rows: 45 for a recall of 0.95, 230 for
    a recall of 0.99.
    """
    labels = plain_labels(y, "y")
    if len(set(labels)) < 2:
        raise LabelError("y needs rows of two classes: one of them is rare.", parameter="y")
    rows = check_rows(labels, labels)
    return promises_of(rows.classes, rows.truth, groups, confidence)


def promises_of(
    classes: Sequence[Any], codes: NDArray[Any], groups: Any = None, confidence: float = 0.9
) -> Promises:
    """Say what can be promised of rows whose classes have these numbers; see `promises`."""
    if not 0.5 <= confidence < 1:
        why = f"confidence={confidence!r}: give a share from 0.5 to under 1 (90% is 0.9)."
        raise ParameterError(why, parameter="confidence")
    counts, units = np.bincount(codes), check_groups(groups, len(codes))
    rare = rarest(counts)
    size = int(counts[rare]) if units is None else len(np.unique(units[codes == rare]))
    low, high = wilson(0.5, size)
    return Promises(
        classes[rare],
        size,
        confidence,
        recall=(1 - confidence) ** (1 / size),
        # All rows found, with as many wrong alarms as the first test allows.
        precision=float(betaincinv(size, _WRONG + 1, 1 - confidence)),
        margin=float(high - low) / 2,
    )
