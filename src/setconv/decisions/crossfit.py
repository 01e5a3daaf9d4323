"""Decisions and probabilities of the out-of-fold rows by rules that have not seen them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.decisions.cuts import Codes, Floats
from setconv.decisions.resampling import Method
from setconv.decisions.rule import DEFAULT_METHOD, fit_rule
from setconv.errors import DataError


def cross_fit(
    scores: Any,
    codes: Codes,
    weights: Any,
    folds: Codes,
    *,
    class_weights: Any = None,
    objective: Any = "balanced",
    classes: Any,
    positive: int,
    prior: Any = None,
    method: Method = DEFAULT_METHOD,
    seed: int = 0,
) -> tuple[NDArray[np.int64], Floats]:
    """Decide on the rows of each fold by the rule that the other folds give.

    A report on these decisions does not judge a threshold, or a calibrator, by the rows that it
    was chosen on.

    Parameters
    ----------
    folds : int array of shape (n_rows,)
        The fold of each row.
    scores, codes, weights, class_weights, objective, classes, positive, prior, method, seed
        As for `fit_rule`.

    Returns
    -------
    codes : int array of shape (n_rows,)
    probabilities : float array of shape (n_rows, n_classes)
    """
    scores, codes = np.asarray(scores, dtype=np.float64), np.asarray(codes)
    folds = np.asarray(folds)
    weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)
    if folds.shape != codes.shape or len(np.unique(folds)) < 2:
        raise DataError(
            f"folds have shape {folds.shape} and {len(np.unique(folds))} numbers: pass the fold "
            f"of each of the {len(codes)} rows, at least two different ones."
        )
    decided = np.empty(len(codes), dtype=np.int64)
    probabilities = np.empty((len(codes), len(classes)))
    for fold in np.unique(folds):
        here = folds == fold
        with warnings.catch_warnings():
            # fit_rule on all rows says the same once, with the figures that count.
            warnings.simplefilter("ignore", UserWarning)
            rule = fit_rule(
                scores[~here],
                codes[~here],
                weights[~here],
                class_weights,
                objective,
                classes=classes,
                positive=positive,
                prior=prior,
                method=method,
                seed=seed,
            )
        decided[here] = rule.decide(scores[here])
        probabilities[here] = rule.probabilities(scores[here])
    return decided, probabilities
