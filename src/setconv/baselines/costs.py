"""The weight of each class: in a loss, in a decision, and in what is set aside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from setconv.errors import ParameterError


def class_costs(cost: Any, codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the weight of each class.

    Parameters
    ----------
    cost : {"balanced", "none", "posterior"}, dict or array-like of shape (C,)
        As in `CostSensitiveDMLPClassifier`.
    codes : ndarray of shape (n,)
        The class of each row, 0..C-1.
    classes : ndarray of shape (C,)
        The labels.

    Returns
    -------
    weights : ndarray of shape (C,)
        Positive numbers.
    """
    if isinstance(cost, str):
        if cost not in ("balanced", "none", "posterior"):
            raise ParameterError(
                f'cost={cost!r}: give "balanced", "none", "posterior", or a weight for each class.'
            )
        counts = np.bincount(codes, minlength=len(classes))
        return np.ones(len(classes)) if cost == "none" else len(codes) / (len(classes) * counts)
    if isinstance(cost, Mapping):
        missing = [label for label in classes.tolist() if label not in cost]
        if missing:
            raise ParameterError(f"cost has no weight for the classes {missing}: add them.")
        cost = [cost[label] for label in classes.tolist()]
    try:
        weights = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError):
        raise ParameterError(f"cost={cost!r}: give a number for each class.") from None
    if weights.shape != classes.shape:
        raise ParameterError(
            f"cost has the shape {weights.shape} and there are {len(classes)} classes, "
            f"{classes.tolist()}: give one weight for each, in this order."
        )
    if not (np.isfinite(weights) & (weights > 0)).all():
        raise ParameterError(f"cost={weights.tolist()}: give positive finite weights.")
    return weights


def corrected_posterior(probabilities: np.ndarray, costs: np.ndarray) -> np.ndarray:
    """Return ``p_c w_c / sum_k p_k w_k``, whose largest is the decision of least risk."""
    weighted = probabilities * costs
    return np.asarray(weighted / weighted.sum(axis=1, keepdims=True))


def stratified_share(
    codes: np.ndarray, fraction: float, random: np.random.RandomState
) -> np.ndarray:
    """Draw a share of the rows of each class, rounded, as a mask over the rows."""
    drawn = np.zeros(len(codes), dtype=bool)
    for code in np.unique(codes):
        members = random.permutation(np.flatnonzero(codes == code))
        drawn[members[: int(fraction * len(members) + 0.5)]] = True
    return drawn
