"""Two classes: the threshold on the score that is best for a criterion."""

from __future__ import annotations

import numpy as np

from setconv.decisions.criteria import binary_criterion
from setconv.decisions.cuts import Floats, RankedRows
from setconv.decisions.evidence import Evidence
from setconv.decisions.kernel import kernel_threshold
from setconv.decisions.objective import Criterion
from setconv.decisions.resampling import Method, effective_method, resamples

# A resample costs some passes over the rows; more than these numbers is time without effect.
_RESAMPLES = 100
_RESAMPLED_ROWS = 20_000_000


def choose_threshold(
    evidence: Evidence,
    kind: Criterion,
    *,
    positive: int,
    powers: Floats,
    method: Method = "smooth",
    seed: int = 0,
) -> float:
    """Choose the threshold t of "class 1 if score > t".

    Parameters
    ----------
    evidence : Evidence
        Of two classes; its weights are those of the criterion.
    kind : {"balanced", "f1", "mcc"}
    positive : int
        The class whose F1 counts.
    powers : float array of shape (2,)
        The powers of the recalls in "balanced", summing to one.
    method : {"smooth", "exact", "bagged", "mean_criterion"}
        "exact": the best of all cuts on the rows. "bagged" and "mean_criterion" look at 100
        bootstrap resamples of the rows, fewer beyond 200,000 rows: the mean of their best
        thresholds, or the cut with the best mean criterion. "smooth": for "balanced"
        `kernel_threshold`, else the mean of that and "bagged". With more than 2,000 rows of the
        rarer class all are "exact".
    seed : int

    Returns
    -------
    float
        For "exact" and "mean_criterion" in the middle of a gap between scores. 0 when one class
        has no rows.
    """
    if not evidence.seen.all():
        return 0.0
    rows = RankedRows(evidence.scores[:, 0], evidence.codes == 1)
    weights = evidence.weights[rows.order]

    def criterion(weights: Floats) -> Floats:
        return binary_criterion(kind, rows.counts(weights), positive, powers)

    method = effective_method(method, evidence.codes)
    if method == "exact":
        return rows.best(criterion(weights))
    smoothed = None
    if method == "smooth":
        smoothed = kernel_threshold(evidence, kind, positive=positive, powers=powers)
        if smoothed is not None and kind == "balanced":
            return smoothed
    count = int(np.clip(_RESAMPLED_ROWS // len(weights), 10, _RESAMPLES))
    curves = (
        criterion(weights * drawn) for drawn in resamples(rows.sides.astype(np.int64), count, seed)
    )
    if method == "mean_criterion":
        total = np.zeros(len(rows.values) + 1)
        for curve in curves:
            total += curve
        return rows.best(total / count)
    bagged = float(np.mean([rows.best(curve) for curve in curves]))
    return bagged if smoothed is None else (bagged + smoothed) / 2
