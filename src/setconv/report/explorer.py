"""What the threshold explorer knows: for each threshold, how many alarms, and how many right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setconv.report.evaluation import Codes, Evaluation, Floats

_POINTS = 2000  # thresholds of one class
_ALL_POINTS = 8000  # of all classes
_FEWEST = 100


@dataclass(frozen=True)
class Explorer:
    """Thresholds of one class against the rest.

    Attributes
    ----------
    name : str
        The class.
    positives, negatives : int
        Rows of the class and of the rest.
    cuts : list of float
        Thresholds, falling: an alarm is a score of at least the cut. Before the first one there is
        no alarm at all.
    tp, fp : list of int
        Alarms that are right and wrong, with 0 in front for no alarm; one longer than ``cuts``.
    probability : list of float or None
        The probability of the class at each cut, where the score alone decides it.
    own : int
        The place in ``tp`` that stands for the model's own decision.
    """

    name: str
    positives: int
    negatives: int
    cuts: list[float]
    tp: list[int]
    fp: list[int]
    probability: list[float] | None
    own: int

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the page's program."""
        return dict(vars(self))


def explore(evaluation: Evaluation) -> list[Explorer]:
    """Return the thresholds of each class, the rarest class first; of two classes, of one."""
    classes = list(evaluation.minority)
    if not evaluation.binary:
        classes += [c for c in range(len(evaluation.labels)) if c not in classes]
    limit = min(_POINTS, max(_FEWEST, _ALL_POINTS // len(classes)))
    return [_of_class(evaluation, c, limit) for c in classes]


def _of_class(evaluation: Evaluation, c: int, limit: int) -> Explorer:
    scores = evaluation.scores[:, c]
    is_class = evaluation.truth == c
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    ends = np.flatnonzero(np.r_[ordered[1:] != ordered[:-1], True])
    tp = np.cumsum(is_class[order])[ends]
    alarms = ends + 1
    # Two classes: the model's alarms are the highest scores. More: it compares the classes'
    # scores with one another, and the threshold with as many alarms stands for it.
    n_own = int((evaluation.predicted == c).sum())
    own = int(np.argmin(np.abs(np.r_[0, alarms] - n_own)))
    kept = _kept(ordered[ends], own, limit)
    probability = None
    if evaluation.binary:
        probability = evaluation.probabilities[order[ends[kept]], c].round(6).tolist()
    return Explorer(
        name=evaluation.names[c],
        positives=int(is_class.sum()),
        negatives=int((~is_class).sum()),
        cuts=ordered[ends[kept]].tolist(),
        tp=[0, *tp[kept].tolist()],
        fp=[0, *(alarms - tp)[kept].tolist()],
        probability=probability,
        own=0 if own == 0 else int(np.searchsorted(kept, own - 1)) + 1,
    )


def _kept(cuts: Floats, own: int, limit: int) -> Codes:
    """Return which of the falling cuts are kept: even in rank and in score, and the model's own."""
    if len(cuts) <= limit:
        return np.arange(len(cuts))
    half = limit // 2 - 2
    by_rank = np.linspace(0, len(cuts) - 1, half).round().astype(np.int64)
    by_score = np.searchsorted(-cuts, -np.linspace(cuts[0], cuts[-1], half))
    return np.unique(np.r_[by_rank, np.minimum(by_score, len(cuts) - 1), max(own - 1, 0)])
