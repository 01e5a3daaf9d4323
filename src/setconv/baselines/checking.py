"""What every classifier here checks before it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from setconv.errors import LabelError

FLOATS = [np.float64, np.float32]


def check_training_rows(
    estimator: Any, X: Any, y: Any, *, binary: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check rows and labels; return rows, codes of the classes 0..C-1, and the classes.

    Parameters
    ----------
    estimator : estimator
        The one that learns; its ``n_features_in_`` is set.
    X : array-like of shape (n, d)
        Rows; single precision stays single.
    y : array-like of shape (n,)
        Labels of any kind.
    binary : bool, default=False
        Whether more than two classes are an error.
    """
    X, y = validate_data(estimator, X, y, dtype=FLOATS)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    check_class_number(type(estimator).__name__, classes, binary=binary)
    return X, codes, classes


def check_class_number(name: str, classes: np.ndarray, *, binary: bool = False) -> None:
    """Raise unless there are two classes, or more where the method takes more."""
    if len(classes) < 2:
        raise LabelError(
            f"{name} needs at least two classes; the labels have one class: {classes.tolist()}. "
            f"Add rows of another class."
        )
    if binary and len(classes) > 2:
        raise LabelError(
            f"Only binary classification is supported. The type of the target is multiclass. "
            f"{name} is defined for two classes and the labels have {len(classes)}: wrap it, "
            f"sklearn.multiclass.OneVsRestClassifier({name}(...))."
        )


def require_rows(
    codes: np.ndarray, classes: np.ndarray, minimum: int, purpose: str, what_to_do: str
) -> None:
    """Raise if a class has fewer rows than ``minimum``; the message names it and its rows."""
    counts = np.bincount(codes, minlength=len(classes))
    for label, count in zip(classes.tolist(), counts.tolist(), strict=True):
        if count < minimum:
            rows = "1 row" if count == 1 else f"{count} rows"
            raise LabelError(
                f"class {label!r} has {rows}; {purpose} needs at least {minimum} of each class. "
                f"{what_to_do}"
            )
