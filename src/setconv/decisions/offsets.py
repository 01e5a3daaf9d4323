"""More than two classes: a threshold a class, so that argmax(score - threshold) is best."""

from __future__ import annotations

import numpy as np

from setconv.decisions.ascent import Problem, ascend
from setconv.decisions.criteria import binary_criterion
from setconv.decisions.cuts import Floats, RankedRows
from setconv.decisions.evidence import Evidence, thin
from setconv.decisions.objective import Criterion
from setconv.decisions.resampling import has_enough_rows, resamples

# Coordinate ascent sorts the rows some hundred times.
_MOST_ROWS = 20_000
_LEAST_OF_A_CLASS = 500
_RESAMPLES = 25
_RESAMPLED_ROWS = 100_000


def choose_offsets(evidence: Evidence, kind: Criterion, *, powers: Floats, seed: int = 0) -> Floats:
    """Choose the thresholds t of "the class of the largest score - t".

    Each class in turn gets the threshold that is best while the others stay, over all its cuts,
    until nothing is gained; from three starts, of which the best result counts. Beyond 20,000
    rows a sample is used, drawn class by class, with at least 500 rows of each class that has
    so many. With up to 2,000 rows of the rarest class the thresholds of some bootstrap resamples
    (25, fewer beyond 4,000 rows) are averaged, each an ascent that starts at the result on all
    rows.

    Parameters
    ----------
    evidence : Evidence
        Its weights are those of the criterion.
    kind : {"balanced", "f1", "mcc"}
        "f1" is the mean over the classes.
    powers : float array of shape (n_classes,)
        The powers of the recalls in "balanced".
    seed : int

    Returns
    -------
    float array of shape (n_classes,)
        With mean 0 over the classes that have rows; 0 for those that have none.
    """
    noisy = not has_enough_rows(evidence.codes)
    evidence = thin(evidence, _MOST_ROWS, _LEAST_OF_A_CLASS, seed)
    thresholds = np.zeros(evidence.n_classes)
    seen = np.flatnonzero(evidence.seen)
    if len(seen) < 2:
        return thresholds
    codes = np.searchsorted(seen, evidence.codes)
    scores = np.ascontiguousarray(evidence.scores[:, seen].T)
    problem = Problem(scores, codes, evidence.weights, kind, powers[seen] / powers[seen].sum())
    results = [ascend(problem, start) for start in _starts(problem)]
    best = max(results, key=lambda result: result[1])[0]
    if noisy:
        count = int(np.clip(_RESAMPLED_ROWS // len(codes), 5, _RESAMPLES))
        moved = [
            ascend(problem._replace(weights=evidence.weights * drawn), best)[0]
            for drawn in resamples(codes, count, seed)
        ]
        best = np.mean(moved, axis=0)
    thresholds[seen] = best
    return thresholds


def margins_of(scores: Floats, target: int) -> Floats:
    """Return by how much the score of a class exceeds the largest of the others."""
    return np.asarray(scores[:, target] - np.delete(scores, target, axis=1).max(axis=1))


def _starts(problem: Problem) -> list[Floats]:
    """Return zero, each class's best cut against the rest, and the middle between both means."""
    alone, middle = np.zeros((2, len(problem.scores)))
    for c, column in enumerate(problem.scores):
        member = problem.codes == c
        rows = RankedRows(column, member)
        counts = rows.counts(problem.weights[rows.order])
        alone[c] = rows.best(binary_criterion(problem.kind, counts, 1, np.full(2, 0.5)))
        middle[c] = (column[member].mean() + column[~member].mean()) / 2
    return [np.zeros_like(alone), alone, middle]
