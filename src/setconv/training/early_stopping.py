"""Validation rows: which rows they are, and what the model is worth on them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from setconv.episodes import head_sides
from setconv.errors import DataError
from setconv.metrics.report import minimum_of_five, report
from setconv.sampling import assign_folds, draw_by_class

Indices = NDArray[np.int64]


def split_validation(
    codes: Indices, fraction: float, units: NDArray[Any] | None, seed: int
) -> tuple[Indices, Indices]:
    """Split rows into training and validation rows, stratified, with units kept together.

    Without units every class of two or more rows is on both sides and a class of one row stays
    in training. With them the validation part is one of several folds, which leaves every class in
    training and shows most classes in validation.

    Returns
    -------
    train, validation : sorted int64 arrays
    """
    if units is not None:
        return _split_units(codes, fraction, units, seed)
    sizes = [min(max(1, round(fraction * n)), n - 1) for n in np.bincount(codes).tolist()]
    validation = draw_by_class(codes, sizes, np.random.default_rng(seed))
    if not len(validation):
        raise DataError(
            "No validation part can be split off: every class has a single row. Give X_val and "
            "y_val, or set early_stopping=False."
        )
    return np.setdiff1d(np.arange(len(codes)), validation), validation


def _split_units(
    codes: Indices, fraction: float, units: NDArray[Any], seed: int
) -> tuple[Indices, Indices]:
    folds = assign_folds(codes, max(2, round(1 / fraction)), units, np.random.default_rng(seed))

    def classes(rows: NDArray[np.bool_]) -> int:
        return len(np.unique(codes[rows]))

    spared = [fold for fold in np.unique(folds) if classes(folds != fold) == len(np.unique(codes))]
    if not spared:
        raise DataError(
            "No validation part can be split off with groups, and copies of rows, kept together: "
            "without it some class has no rows left. Give X_val and y_val, or set "
            "early_stopping=False."
        )
    best = max(spared, key=lambda fold: classes(folds == fold))
    return np.flatnonzero(folds != best), np.flatnonzero(folds == best)


def monitored_figure(monitor: str, scores: NDArray[np.float64], codes: Indices) -> float:
    """Return the figure that picks the best weights; higher is better.

    ``"loss"`` is minus the training loss's counterpart: cross-entropy, both sides of a head and
    all heads weighing the same. It also stands in for a figure that is not defined because a class
    has no validation rows.
    """
    n_classes = 2 if scores.shape[1] == 1 else scores.shape[1]
    figure = np.nan
    if monitor != "loss":
        said = scores[:, 0] if n_classes == 2 else scores
        decided = (said > 0).astype(int) if n_classes == 2 else np.argmax(said, axis=1)
        found = report(codes, decided, said, classes=np.arange(n_classes))
        figure = {
            "auc": found.macro_auc,
            "average_precision": found[found.positive].average_precision,
            "g_mean": found.g_mean,
            "macro_f1": found.macro_f1,
            "minimum_of_five": minimum_of_five(found),
        }[monitor]
    loss = _balanced_loss(scores, head_sides(codes, n_classes))
    return -loss if np.isnan(figure) else float(figure)


def _balanced_loss(scores: NDArray[np.float64], sides: NDArray[np.int8]) -> float:
    losses = -log_expit(np.where(sides == 1, scores.T, -scores.T))
    heads = [
        np.mean([one[side == which].mean() for which in (0, 1) if (side == which).any()])
        for one, side in zip(losses, sides, strict=True)
    ]
    return float(np.mean(heads))
