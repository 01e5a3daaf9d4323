"""The figures with intervals: rows drawn again, class by class, the same for all methods."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setconv.report.evaluation import Codes, Floats
from setconv.report.intervals import effective, wilson

FIGURES = ("spec", "sens", "precision", "f1", "g_mean", "auc", "ap")

_CELLS = 4_000_000  # numbers that are held at a time
_WORK = 100_000_000  # rows that are ranked in all; beyond it there are fewer repeats
_FEWEST = 100


@dataclass(frozen=True)
class Answers:
    """What one method says about the rows; a method without scores has None."""

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


def count_repeats(n_rankings: int, wanted: int) -> int:
    """Return how often rows are drawn again: fewer times where very many are to be ranked.

    ``n_rankings`` is the number of rows, times that of methods and classes.
    """
    return min(wanted, max(_FEWEST, _WORK // n_rankings))


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
        low, high = _safe(values[i], _interval(replicates[i]), ranking.sizes(weights))
        gap = values[0] - values[i]
        gap_low, gap_high = np.where(
            np.isnan(gap), np.nan, _interval(replicates[0] - replicates[i])
        )
        found.append(Measured(values[i], low, high, gap, gap_low, gap_high))
    return found


def _safe(values: Floats, drawn: Floats, sizes: Floats) -> Floats:
    """Return lower and upper bounds of which none has lost its width.

    Shares have Wilson's. Where all draws of another figure are alike, it has what the bounds of
    its shares give, or Wilson's for as many rows as the smaller side has.
    """
    bounds = drawn.copy()
    bounds[..., :3] = wilson(values[:, :3], sizes)
    spec, sens, precision = (bounds[..., f] for f in range(3))
    wide = bounds.copy()
    wide[..., FIGURES.index("f1")] = ratio(2 * precision * sens, precision + sens, 0.0)
    wide[..., FIGURES.index("g_mean")] = np.sqrt(spec * sens)
    wide[..., 5:] = wilson(values[:, 5:], sizes[:, :2].min(axis=1, keepdims=True))
    alike = np.round(bounds[0], 3) == np.round(bounds[1], 3)
    return np.where(np.isnan(values), np.nan, np.where(alike, wide, bounds))


def _interval(replicates: Floats) -> Floats:
    bounds: Floats = np.quantile(replicates, [0.025, 0.975], axis=0)
    return bounds


def _draw(rng: np.random.Generator, strata: list[NDArray[np.int64]], n_rows: int) -> Floats:
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
        sens, spec = ratio(tp, tp + fn), ratio(tn, tn + fp)
        has_rows = tp + fn > 0
        precision = np.where(has_rows | (fp > 0), ratio(tp, tp + fp, 0.0), np.nan)
        f1 = np.where(has_rows, ratio(2 * tp, 2 * tp + fp + fn), np.nan)
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
        return np.stack([effective(weights @ b, weights**2 @ b) for b in bases], axis=1)


class _Order:
    """Rows from the highest score of a class to the lowest, equal scores together."""

    def __init__(self, is_class: NDArray[np.bool_], scores: Floats) -> None:
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
        auc = ratio(above, positive * negative)
        ap = (ours * ratio(tp, tp + fp, 0.0)).sum(axis=1)
        ap = np.where(negative > 0, ratio(ap, positive), np.nan)
        return np.stack([auc, ap], axis=1)


def ratio(above: Floats, below: Floats, otherwise: float = np.nan) -> Floats:
    """Divide, with ``otherwise`` where there is nothing to divide by."""
    empty = np.full(np.shape(below), otherwise)
    quotient: Floats = np.divide(above, below, out=empty, where=below > 0)
    return quotient
