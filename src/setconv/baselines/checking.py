"""What every classifier here checks before it learns."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from setconv.errors import LabelError, ParameterError

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
            f"{name} is defined for two classes and the labels have {len(classes)}: take one class "
            f"against the rest, sklearn.multiclass.OneVsRestClassifier(...)."
        )


def check_number(
    name: str,
    value: Any,
    low: float,
    high: float,
    closed: Literal["neither", "left", "both"] = "neither",
) -> None:
    """Refuse what is no number in the interval, of which the ends named by ``closed`` are part."""
    inside = isinstance(value, (int, float, np.number)) and (
        low < value < high
        or (closed != "neither" and value == low)
        or (closed == "both" and value == high)
    )
    if not inside:
        first, last = "(" if closed == "neither" else "[", "]" if closed == "both" else ")"
        raise ParameterError(f"{name}={value!r}: give a number in {first}{low:g}, {high:g}{last}.")
