"""Two classes: the threshold on the score that is best for a criterion."""

from __future__ import annotations

import numpy as np

from setconv.decisions.criteria import binary_criterion
from setconv.decisions.cuts import Floats, RankedRows
from setconv.decisions.evidence import Evidence
from setconv.decisions.kernel import kernel_threshold
from setconv.decisions.objective import Criterion
from setconv.decisions.resampling import has_enough_rows, resamples

# A resample costs some passes over the rows; more than these numbers is time without effect.
_RESAMPLES = 100
_RESAMPLED_ROWS = 20_000_000


def choose_threshold(
    evidence: Evidence,
    kind: Criterion,
    *,
    positive: int,
    powers: Floats,
    seed: int = 0,
) -> float:
    """Choose the threshold t of "class 1 if score > t".

    With more than 2,000 rows of the rarer class it is the best of all cuts on the rows, in the
    middle of a gap between scores. With fewer it is `kernel_threshold` for "balanced", else the
    mean of that and of the best cuts of 100 bootstrap resamples, fewer beyond 200,000 rows.

    Parameters
    ----------
    evidence : Evidence
        Of two classes; its weights are those of the criterion.
    kind : {"balanced", "f1", "mcc"}
    positive : int
        The class whose F1 counts.
    powers : float array of shape (2,)
        The powers of the recalls in "balanced", summing to one.
    seed : int

    Returns
    -------
    float
        0 when one class has no rows.
    """
    if not evidence.seen.all():
        return 0.0
    rows = RankedRows(evidence.scores[:, 0], evidence.codes == 1)
    weights = evidence.weights[rows.order]

    def criterion(weights: Floats) -> Floats:
        return binary_criterion(kind, rows.counts(weights), positive, powers)

    if has_enough_rows(evidence.codes):
        return rows.best(criterion(weights))
    smoothed = kernel_threshold(evidence, kind, positive=positive, powers=powers)
    if smoothed is not None and kind == "balanced":
        return smoothed
    count = int(np.clip(_RESAMPLED_ROWS // len(weights), 10, _RESAMPLES))
    curves = (
        criterion(weights * drawn) for drawn in resamples(rows.sides.astype(np.int64), count, seed)
    )
    bagged = float(np.mean([rows.best(curve) for curve in curves]))
    return bagged if smoothed is None else (bagged + smoothed) / 2
