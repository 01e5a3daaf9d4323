"""What the threshold explorer knows: for each threshold, how many alarms, and how many right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setconv.report.evaluation import Codes, Evaluation, Floats

_POINTS = 2000  # thresholds of one class
_ALL_POINTS = 8000  # of all classes
_FEWEST = 100
_ABOVE = np.nextafter(0, 1)  # of exact ties, the rows that the model decided for the class


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


def explore(evaluation: Evaluation) -> list[Explorer]:
    """Return the thresholds of each class, the rarest class first; of two classes, of one."""
    classes = list(evaluation.minority)
    if not evaluation.binary:
        classes += [c for c in range(len(evaluation.labels)) if c not in classes]
    limit = min(_POINTS, max(_FEWEST, _ALL_POINTS // len(classes)))
    return [_of_class(evaluation, c, limit) for c in classes if evaluation.comparable(c)]


def margins(evaluation: Evaluation, c: int) -> Floats:
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


def _of_class(evaluation: Evaluation, c: int, limit: int) -> Explorer:
    is_class = evaluation.truth == c
    margin = margins(evaluation, c)
    order = np.argsort(-margin, kind="stable")
    ordered = margin[order]
    ends = np.flatnonzero(np.r_[ordered[1:] != ordered[:-1], True])
    own = int((ordered[ends] > 0).sum())
    kept = _kept(ordered[ends], own, limit)

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


def _kept(cuts: Floats, own: int, limit: int) -> Codes:
    """Return which of the falling cuts are kept: even in rank and value, and the model's own."""
    if len(cuts) <= limit:
        return np.arange(len(cuts))
    half = limit // 2 - 2
    by_rank = np.linspace(0, len(cuts) - 1, half).round().astype(np.int64)
    by_value = np.searchsorted(-cuts, -np.linspace(cuts[0], cuts[-1], half))
    return np.unique(np.r_[by_rank, np.minimum(by_value, len(cuts) - 1), max(own - 1, 0)])
