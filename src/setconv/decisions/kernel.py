"""A threshold by smoothed counts: every row's score is spread by a normal kernel."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from setconv.decisions.criteria import binary_criterion
from setconv.decisions.cuts import Counts, Floats
from setconv.decisions.evidence import Evidence
from setconv.decisions.objective import Criterion
from setconv.decisions.resampling import ENOUGH_ROWS

_WIDTH = 1.06
_CANDIDATES = 200


def kernel_threshold(
    evidence: Evidence, kind: Criterion, *, positive: int, powers: Floats
) -> float | None:
    """Return the threshold with the best criterion of smoothed counts.

    The share of a class above a threshold is the mean of Phi((score - threshold) / h) over its
    rows: the limit of a bootstrap that adds a little noise to each score. The bandwidth h is the
    normal reference rule, 1.06 min(s, IQR / 1.349) n^(-1/5), within each class. A class with
    over 2,000 rows is counted as it is.

    Parameters
    ----------
    evidence, kind, positive, powers
        As in `choose_threshold`; both classes have rows.

    Returns
    -------
    float or None
        None when the scores of a class do not vary, so that there is nothing to smooth by.
    """
    scores = evidence.scores[:, 0]
    parts = [(scores[evidence.codes == c], evidence.weights[evidence.codes == c]) for c in (0, 1)]
    widths = [_bandwidth(*part) for part in parts]
    if min(widths) <= 0:
        return None

    def criterion(candidates: Floats) -> Floats:
        above, below = zip(
            *(_sides(*part, h, candidates) for part, h in zip(parts, widths, strict=True)),
            strict=True,
        )
        return binary_criterion(
            kind, Counts(above[1], below[1], above[0], below[0]), positive, powers
        )

    # Even steps for the smooth stretches, quantiles for scores with far outliers.
    shares = np.linspace(0, 1, _CANDIDATES)
    candidates = np.unique(
        np.concatenate(
            [
                np.linspace(scores.min(), scores.max(), _CANDIDATES),
                *(np.quantile(part[0], shares) for part in parts),
            ]
        )
    )
    best = int(np.argmax(criterion(candidates)))
    low, high = candidates[max(best - 1, 0)], candidates[min(best + 1, len(candidates) - 1)]
    finer = np.linspace(low, high, _CANDIDATES)
    return float(finer[np.argmax(criterion(finer))])


def _bandwidth(scores: Floats, weights: Floats) -> float:
    mean = np.average(scores, weights=weights)
    spread = float(np.sqrt(np.average((scores - mean) ** 2, weights=weights)))
    quarter, three = np.quantile(scores, [0.25, 0.75])
    middle = float(three - quarter) / 1.349
    size = float(weights.sum() ** 2 / (weights**2).sum())
    return float(_WIDTH * (min(spread, middle) if middle > 0 else spread) * size**-0.2)


def _sides(
    scores: Floats, weights: Floats, width: float, candidates: Floats
) -> tuple[Floats, Floats]:
    """Return the weight of a class above and below each candidate."""
    if len(scores) > ENOUGH_ROWS:
        order = np.argsort(scores)
        sums = np.append(0.0, np.cumsum(weights[order]))
        below = sums[np.searchsorted(scores[order], candidates, side="right")]
        return sums[-1] - below, below
    steps = (scores - candidates[:, None]) / width
    return ndtr(steps) @ weights, ndtr(-steps) @ weights
