"""What each feature adds to the score of a class, by occlusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setconv.errors import DataError
from setconv.explain.rows import like, to_matrix
from setconv.explain.scoring import Model, asked_classes, class_scores, plain_classes

_CELLS = 4_000_000  # numbers that are scored at a time


@dataclass(frozen=True)
class FeatureContributions:
    """What each feature adds to the score of a class, row by row.

    Attributes
    ----------
    classes : tuple
        The class asked about, one a row.
    names : tuple of str
        The features.
    scores : float64 array of shape (n_rows,)
        The score of the class.
    values : float64 array of shape (n_rows, n_features)
        The score minus the score with the feature at its background value: positive where the
        feature speaks for the class. They need not add up to the score.
    """

    classes: tuple[Any, ...]
    names: tuple[str, ...]
    scores: NDArray[np.float64]
    values: NDArray[np.float64]


def feature_contributions(
    model: Model,
    x_rows: Any,
    *,
    background: ArrayLike,
    class_: Any = None,
    feature_names: Sequence[Any] | None = None,
    scores: ArrayLike | None = None,
) -> FeatureContributions:
    """Measure by occlusion what each feature adds to the score of a class.

    One feature at a time is replaced by its background value, and the row is scored again.

    Parameters
    ----------
    model : fitted classifier
        With the interface of `setconv.SetConvClassifier`.
    x_rows : array-like of shape (n_rows, n_features)
    background : array-like of shape (n_features,)
        The usual value of each feature: its mean or median over the training rows.
    class_ : label, optional
        The class whose score is explained, against the rest; by default the one that the model
        predicts for the row.
    feature_names : sequence of str, optional
        By default the columns of ``x_rows``, else ``feature_names_in_`` of the model, else
        "feature 0" and so on.
    scores : array-like of shape (n_rows,), optional
        The scores of the class, if they are known: then only the changed rows are scored.

    Returns
    -------
    FeatureContributions
    """
    rows = to_matrix(x_rows)
    usual = np.asarray(background, dtype=np.float64)
    if rows.ndim != 2:
        raise DataError(f"x_rows has shape {rows.shape}: pass rows of features, (n, n_features).")
    if usual.shape != rows.shape[1:]:
        raise DataError(
            f"background has shape {usual.shape} but there are {rows.shape[1]} features: pass one "
            "value for each, for example np.median(X_train, axis=0)."
        )
    names = name_features(model, x_rows, rows.shape[1], feature_names)
    if not len(rows):
        return FeatureContributions((), names, np.empty(0), np.empty(rows.shape))
    asked = asked_classes(model, x_rows, len(rows), class_)
    if scores is None:
        scores = class_scores(model, x_rows)[np.arange(len(rows)), asked]
    whole = np.asarray(scores, dtype=np.float64)
    values = np.empty(rows.shape)
    step = max(1, _CELLS // rows.size)
    for start in range(0, rows.shape[1], step):
        columns = np.arange(start, min(start + step, rows.shape[1]))
        occluded = _occlude(rows, usual, columns)
        changed = class_scores(model, like(x_rows, occluded.reshape(-1, rows.shape[1])))
        changed = changed.reshape(len(columns), len(rows), -1)
        values[:, columns] = whole[:, None] - changed[:, np.arange(len(rows)), asked].T
    classes = plain_classes(model)
    return FeatureContributions(tuple(classes[one] for one in asked), names, whole, values)


def name_features(
    model: Model, X: Any, n_features: int, given: Sequence[Any] | None
) -> tuple[str, ...]:
    """Return the names of the features: given, of the frame, of the model, or numbers."""
    known = [given, getattr(X, "columns", None), getattr(model, "feature_names_in_", None)]
    for names in known:
        if names is None:
            continue
        if len(names) != n_features:
            raise DataError(
                f"feature_names has {len(names)} names but there are {n_features} features: pass "
                "one for each column."
            )
        return tuple(str(name) for name in names)
    return tuple(f"feature {number}" for number in range(n_features))


def _occlude(
    rows: NDArray[np.float64], usual: NDArray[np.float64], columns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the rows once for each of the columns, that column at its usual value."""
    copies = np.repeat(rows[None], len(columns), axis=0)
    copies[np.arange(len(columns)), :, columns] = usual[columns, None]
    return copies
