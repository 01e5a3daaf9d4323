"""Hyper-parameters chosen inside the training rows, as the paper does for its baselines."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError
from setconv.experiment.protocol.study import SearchRule
from setconv.metrics import scorers

__all__ = ["searched"]


def searched(
    estimator: Any,
    grid: dict[str, list[Any]],
    rule: SearchRule,
    labels: NDArray[Any],
    groups: NDArray[Any] | None,
    seed: int,
) -> Any:
    """Return a grid search around the estimator, over folds that groups do not cross.

    Parameters
    ----------
    estimator : classifier
    grid : dict of str to list
    rule : SearchRule
    labels, groups : arrays of the training rows
    seed : int
    """
    from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold

    fewest = int(np.unique(labels, return_counts=True)[1].min())
    folds = min(rule.folds, fewest)
    if folds < 2:
        raise DataError("a class has one training row: nothing can be chosen by cross-validation.")
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splits = list(kind(folds, shuffle=True, random_state=seed).split(labels, labels, groups))
    values = {name: [_plain(value) for value in choices] for name, choices in grid.items()}
    scoring = partial(_score, rule.metric)
    return GridSearchCV(estimator, values, scoring=scoring, cv=splits, error_score="raise")


# All figures as they are would do too, but a search warns of those that a method has not.
def _score(metric: str, estimator: Any, X: Any, y: NDArray[Any]) -> float:
    return scorers(estimator, X, y)[metric]


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
