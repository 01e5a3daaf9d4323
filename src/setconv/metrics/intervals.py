"""How sure figures are: 95 % intervals from rows that might as well have been drawn.

Shares (specificity, sensitivity, precision, accuracy) have Wilson's interval; what weights do to it
`WeightedRows` knows. For all other figures rows are drawn again, class by class, with whatever
belongs together (groups, copies) drawn as one; the interval is Student's, on the scale of the
log-odds, with the standard error of the draws. `draw_weights` gives the draws, `figures_of_draws`
every figure of each of them, and `wilson` and `student` the bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, stdtrit

from setconv.metrics.arithmetic import Counts, FloatArray, IntArray, Rows, overall_figures, ratio
from setconv.sampling import bootstrap_weights, draw_by_class

DRAWS = 200
# Rows times classes of which draws are made. Beyond it there are fewer rows, with more weight: the
# standard error is that of a smaller sample, so the interval is a little wide.
_MOST = 40_000
_CELLS = 100_000  # numbers of draws at a time, which stay near the processor
_Z = 1.959963984540054  # of a 95 % interval
Bounds = tuple[float, float]
Figures = dict[str, FloatArray]  # by name


def wilson(share: Any, n: Any) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's 95 % interval of a share among ``n`` rows; all from 0 to 1 if there is none.

    ``n`` need not be whole: see `effective_size`.
    """
    centre = (n * share + _Z**2 / 2) / (n + _Z**2)
    half = _Z * np.sqrt(n * share * (1 - share) + _Z**2 / 4) / (n + _Z**2)
    return np.clip(centre - half, 0, share), np.clip(centre + half, share, 1)


def effective_size(weights: FloatArray, units: IntArray | None = None) -> float:
    """Return how many rows of equal weight that stand alone tell as much: (sum w)^2 / sum w^2.

    Rows of one unit count together, as if they all said the same. Rows of weight 0 do not count.
    """
    shares = weights / max(weights.max(initial=0.0), np.finfo(np.float64).tiny)  # no overflow
    together = shares if units is None else np.bincount(units, shares)
    return float(ratio(np.square(together.sum()), np.square(together).sum(), 0.0))


class WeightedRows(NamedTuple):
    """Rows of which some count more than others: how sure a share of them is.

    Attributes
    ----------
    codes : int array of shape (n_rows,)
        Their classes.
    weights : float array of shape (n_rows,)
    units : int array of shape (n_rows,)
        Rows of equal numbers count together.
    tied : int array of shape (n_rows,)
        The same of each class for itself.
    """

    codes: IntArray
    weights: FloatArray
    units: IntArray
    tied: IntArray

    @classmethod
    def of(cls, codes: Any, weights: FloatArray, units: IntArray | None) -> WeightedRows:
        """Return the rows with what belongs together numbered."""
        alone = np.arange(len(codes))
        if units is None:
            return cls(codes, weights, alone, alone)
        own = units * (int(codes.max()) + 1) + codes
        return cls(codes, weights, units, np.unique(own, return_inverse=True)[1])

    def size(self, flags: Any, right: Any, could: Any) -> float:
        """Return how many rows of equal weight know a share as well as these do.

        The share p of the flagged rows that are right is a ratio of sums, so its variance is
        sum w^2 (right - p)^2 / (sum w)^2, and p (1 - p) over that is the size. What a row
        of a class weighs is taken to say nothing of whether it is right. One more row of the
        heaviest class that could have been flagged is counted as right, and one as wrong: where
        none of its rows is seen to be wrong, that says no more than their number does.

        Parameters
        ----------
        flags, right, could : bool arrays of shape (n_rows,)
        """
        most = max(self.weights[could].max(initial=0.0), np.finfo(np.float64).tiny)
        shares = self._replace(weights=self.weights / most)  # squares of huge ones would overflow
        heaviest = float(ratio(*shares.sums(could), 0.0).max())
        squares, weights = shares.sums(flags)
        hits = np.bincount(self.codes, shares.weights * (flags & right), len(weights))
        total = weights.sum() + 2 * heaviest
        p = float(ratio(hits.sum() + heaviest, total, 0.5))
        spread = (1 - p) ** 2 * hits + p**2 * (weights - hits)
        variance = (ratio(squares, weights, 0.0) * spread).sum()
        variance += heaviest**2 * ((1 - p) ** 2 + p**2)
        known = float(ratio(p * (1 - p) * total**2, variance, 2.0)) - 2
        return min(max(known, 0.0), float(np.count_nonzero(np.bincount(self.units[flags]))))

    def sums(self, flags: Any) -> tuple[FloatArray, FloatArray]:
        """Return the sums of w^2 and of w over the flagged rows of each class, by units."""
        n_classes, weights = int(self.codes.max()) + 1, self.weights[flags]
        together = np.bincount(self.tied[flags], weights)[self.tied[flags]]
        squares, sums = (
            np.bincount(self.codes[flags], one, n_classes).astype(np.float64)
            for one in (weights * together, weights)
        )
        # Units of several classes: their rows may all be right, or all be wrong.
        whole = np.square(np.bincount(self.units[flags], weights)).sum()
        return squares * ratio(whole, squares.sum(), 1.0), sums


def student(value: Any, replicates: FloatArray, n: Any, least: float = 0.0) -> FloatArray:
    """Return the 95 % interval of figures between ``least`` and 1, (2, ...).

    Parameters
    ----------
    value : float array of shape (...)
    replicates : float array of shape (n_draws, ...)
    n : float array of shape (...)
        Rows of the smallest class that a figure depends on: draws of so few vary less than new
        rows would, by (n - 1) / n, and their spread is known with n - 1 degrees of freedom.
    least : float
        The least that the figure can be.
    """
    freedom = np.maximum(n - 1, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = (value - least) / (1 - least)
        # A draw of groups may lack a class; what the rows themselves leave open stays so.
        known = np.where(np.isnan(value), 0.0, replicates)
        spread = np.nanstd(known, axis=0) / (1 - least) * np.sqrt(1 + 1 / freedom)
        # By the slope of the log-odds, which have no bounds.
        half = stdtrit(np.maximum(freedom, 1e-3), 0.975) * spread / (share * (1 - share))
        middle = np.log(share) - np.log1p(-share)
        low, high = expit(middle - half), expit(middle + half)
    # No draw says anything else: as sure as the same share of so many rows.
    flat = ~(spread > 1e-9) | ~np.isfinite(half)
    bounds = np.where(flat, wilson(np.clip(share, 0, 1), n), (low, high))
    return np.where(np.isnan(value), np.nan, least + (1 - least) * bounds)


def student_gap(gap: Any, replicates: FloatArray, n: Any) -> FloatArray:
    """Return the 95 % interval of differences between figures of the same rows; as `student`."""
    freedom = np.maximum(n - 1, 1e-3)
    known = np.where(np.isnan(gap), 0.0, replicates)
    half = stdtrit(freedom, 0.975) * np.nanstd(known, axis=0) * np.sqrt(1 + 1 / freedom)
    return np.stack([gap - half, gap + half])


class Drawn(NamedTuple):
    """Rows to draw from: which, and what each of them counts."""

    rows: IntArray
    weights: FloatArray


def rows_to_draw(rows: Rows) -> Drawn:
    """Return all rows, or of many a part of each class, with the weight of the whole."""
    # Of the largest one: products of huge weights would overflow.
    weights = np.ones(len(rows.truth)) if rows.weight is None else rows.weight / rows.weight.max()
    most = max(_MOST // len(rows.classes), 2000)
    if len(weights) <= most:
        return Drawn(np.arange(len(weights)), weights)
    counts = rows.counts
    # The same of each class at first: the rare ones are what is uncertain.
    sizes = np.minimum(counts, most // len(counts))
    sizes += (counts - sizes) * (most - sizes.sum()) // (counts - sizes).sum()
    kept = draw_by_class(rows.truth, sizes, np.random.default_rng(0))
    factors = ratio(counts.astype(np.float64), sizes.astype(np.float64), 1.0)
    return Drawn(kept, weights[kept] * factors[rows.truth[kept]])


def draw_weights(rows: Rows, drawn: Drawn, units: IntArray | None) -> Iterator[FloatArray]:
    """Yield the weights of the rows in draws with replacement, (n_draws, n_rows) at a time.

    Each draw has as many rows of every class as there are, or as many units of each kind: a unit
    is of the rarest class that it has rows of. The draws are always the same.
    """
    rng = np.random.default_rng(0)
    strata, numbers = rows.truth[drawn.rows], np.arange(len(drawn.rows))
    if units is not None:
        numbers = np.unique(units[drawn.rows], return_inverse=True)[1]
        by_rarity = np.argsort(rows.counts, kind="stable")
        kinds = np.full(numbers.max() + 1, len(by_rarity))
        np.minimum.at(kinds, numbers, np.argsort(by_rarity)[strata])
        strata = by_rarity[kinds]
    size = max(1, _CELLS // len(drawn.rows))
    for start in range(0, DRAWS, size):
        stop = min(start + size, DRAWS)
        draws = [bootstrap_weights(strata, rng)[numbers] for _ in range(start, stop)]
        yield np.stack(draws) * drawn.weights


class Answers(NamedTuple):
    """What one method says of rows: decisions, and columns of scores and of probabilities."""

    predicted: IntArray
    ranking: FloatArray | None
    probabilities: FloatArray | None = None


def figures_of_draws(rows: Rows, said: Answers, units: IntArray | None) -> tuple[Figures, Figures]:
    """Return every figure of each draw: by class (n_draws, n_classes), and overall (n_draws,)."""
    drawn = rows_to_draw(rows)
    n_classes, here = len(rows.classes), drawn.rows
    truth = rows.truth[here]
    cells = truth * n_classes + said.predicted[here]
    own = truth[:, None] == np.arange(n_classes)
    orders = []
    if said.ranking is not None:
        orders = [Order(own[:, c], said.ranking[here, c]) for c in range(n_classes)]
    errors = None if said.probabilities is None else (said.probabilities[here] - own) ** 2
    parts = []
    for weights in draw_weights(rows, drawn, units):
        flat = [np.bincount(cells, one, minlength=n_classes**2) for one in weights]
        matrix = np.stack(flat).reshape(-1, n_classes, n_classes).astype(np.float64)
        by_class = Counts.of(matrix).figures()
        others = ("auc", "average_precision", "brier")
        by_class |= {name: np.full(matrix.shape[:2], np.nan) for name in others}
        for c, order in enumerate(orders):
            by_class["auc"][:, c], by_class["average_precision"][:, c] = order.areas(weights)
        if errors is not None:
            by_class["brier"] = weights @ errors / weights.sum(axis=1, keepdims=True)
        parts.append((by_class, overall_figures(by_class, matrix)))
    by_class, overall = zip(*parts, strict=True)
    return tuple(  # type: ignore[return-value]
        {name: np.concatenate([one[name] for one in part]) for name in part[0]}
        for part in (by_class, overall)
    )


class Order:
    """Rows from the highest score of a class to the lowest, equal scores together."""

    def __init__(self, is_class: Any, scores: FloatArray) -> None:
        self.order = np.argsort(-scores, kind="stable")
        ordered = scores[self.order]
        self.starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
        self.is_class = is_class[self.order].astype(np.float64)

    def areas(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return AUC and average precision for draws (n_draws, n_rows)."""
        ordered = weights[:, self.order]
        ours = np.add.reduceat(ordered * self.is_class, self.starts, axis=1)
        rest = np.add.reduceat(ordered, self.starts, axis=1) - ours
        tp, fp = np.cumsum(ours, axis=1), np.cumsum(rest, axis=1)
        positive, negative = tp[:, -1], fp[:, -1]
        above = (ours * (negative[:, None] - fp + rest / 2)).sum(axis=1)
        ap = (ours * ratio(tp, tp + fp, 0.0)).sum(axis=1)
        ap = np.where(negative > 0, ratio(ap, positive), np.nan)
        return ratio(above, positive * negative), ap


def intervals(
    rows: Rows, said: Answers, by_class: Figures, overall: dict[str, float], units: IntArray | None
) -> tuple[list[dict[str, Bounds]], dict[str, Bounds]]:
    """Return the intervals of figures, `figures_by_class` and `overall_figures`, on these rows.

    Those of each class come first, and then those over all classes.
    """
    replicates, over_all = figures_of_draws(rows, said, units)
    sizes = Sizes.of(rows, units)
    found = {n: bounds_of(n, values, replicates[n], sizes) for n, values in by_class.items()}
    fewest = sizes.sensitivity.min()
    whole = {n: student(v, over_all[n], fewest, _least(n)) for n, v in overall.items()}
    whole["accuracy"] = np.array(wilson(overall["accuracy"], sizes.every))
    of_classes = [
        {name: (float(low[c]), float(high[c])) for name, (low, high) in found.items()}
        for c in range(len(rows.classes))
    ]
    return of_classes, {name: (float(low), float(high)) for name, (low, high) in whole.items()}


class Sizes(NamedTuple):
    """How many rows that stand alone the shares of each class rest on: (n_classes,) each."""

    specificity: FloatArray
    sensitivity: FloatArray
    precision: FloatArray
    every: float

    @classmethod
    def of(cls, rows: Rows, units: IntArray | None) -> Sizes:
        """Count the rows that are not of a class, that are, and that are decided for it."""
        every = np.ones(len(rows.truth), dtype=np.bool_)
        weighted = None if rows.weight is None else WeightedRows.of(rows.truth, rows.weight, units)

        def size(flags: Any, right: Any, could: Any) -> float:
            if weighted is None:
                return effective_size(every[flags] * 1.0, None if units is None else units[flags])
            return weighted.size(flags, right, could)

        own = [(rows.truth == c, rows.predicted == c) for c in range(len(rows.classes))]
        return cls(
            specificity=np.array([size(~true, ~said, ~true) for true, said in own]),
            sensitivity=np.array([size(true, said, true) for true, said in own]),
            precision=np.array([size(said, true, every) for true, said in own]),
            every=size(every, rows.truth == rows.predicted, every),
        )

    @property
    def smaller(self) -> FloatArray:
        """The rows of each class or of the rest, whichever are fewer."""
        return np.minimum(self.specificity, self.sensitivity)


def bounds_of(name: str, values: FloatArray, replicates: FloatArray, sizes: Sizes) -> Any:
    """Return the interval of a figure of each class, (2, n_classes)."""
    if name in ("specificity", "sensitivity", "precision"):
        return wilson(values, getattr(sizes, name))
    return student(values, replicates, sizes.smaller, _least(name))


def _least(name: str) -> float:
    return -1.0 if name == "mcc" else 0.0
