"""What is asked of a model, and its scores with a column for each class."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from setconv.errors import LabelError


class Model(Protocol):
    """A fitted classifier with the interface of `setconv.SetConvClassifier`."""

    classes_: Any
    representatives_: Any

    def predict(self, X: Any) -> Any:
        """Return the class of each row."""

    def predictions(self, X: Any) -> Any:
        """Return what it says of rows; ``scores`` is (n_rows,) of the second class, or of each."""

    def transform(self, X: Any) -> Any:
        """Return the learned embedding of each row."""


def plain_classes(model: Model) -> list[Any]:
    """Return the labels as plain Python values."""
    return list(np.asarray(model.classes_).tolist())


def class_scores(model: Model, X: Any) -> NDArray[np.float64]:
    """Return the score of each class against the rest, (n_rows, n_classes)."""
    return by_class(np.asarray(model.predictions(X).scores, dtype=np.float64))


def by_class(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a column of scores for each class.

    Of two classes the first one's score is minus that of the second.
    """
    return np.column_stack([-scores, scores]) if scores.ndim == 1 else scores


def class_number(model: Model, class_: Any) -> int:
    """Return the column of a class."""
    classes = plain_classes(model)
    label = class_.item() if isinstance(class_, np.generic) else class_
    if label not in classes:
        raise LabelError(
            f"class_={label!r} is not one of the model's classes {classes[:8]!r}: name one of "
            "them (the type counts: '1' is not 1), or leave class_ out for the predicted one."
        )
    return classes.index(label)


def asked_classes(model: Model, X: Any, n_rows: int, class_: Any) -> NDArray[np.int64]:
    """Return for each row the column of the class that is asked about, by default the predicted."""
    if class_ is not None:
        return np.full(n_rows, class_number(model, class_))
    number = {label: column for column, label in enumerate(plain_classes(model))}
    predicted = np.asarray(model.predict(X)).tolist()
    return np.array([number[label] for label in predicted], dtype=np.int64)
