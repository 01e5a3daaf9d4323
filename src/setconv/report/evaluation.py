"""What is judged: the rows, their classes, and what the model says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, LabelError
from setconv.explain.rows import count_rows
from setconv.explain.scoring import by_class, class_scores, plain_classes
from setconv.report.wording import readable

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Evaluation:
    """A model's answers on labelled rows, with class numbers for labels.

    Attributes
    ----------
    labels : tuple
        The classes, in the order of the columns.
    names : tuple of str
        The labels as the page shows them.
    truth, predicted : int64 arrays of shape (n_rows,)
    scores, probabilities : float64 arrays of shape (n_rows, n_classes)
    counts : int64 array of shape (n_classes,)
        Rows of each class among those judged.
    train_counts : int64 array of shape (n_classes,) or None
        Rows of each class in training, if the model knows.
    minority : tuple of int
        The minority classes, the rarest first; never empty.
    out_of_fold : bool
        Whether these are training rows, each judged by members that left it out.
    """

    labels: tuple[Any, ...]
    names: tuple[str, ...]
    truth: Codes
    predicted: Codes
    scores: Floats
    probabilities: Floats
    counts: Codes
    train_counts: Codes | None
    minority: tuple[int, ...]
    out_of_fold: bool = False

    @property
    def n_rows(self) -> int:
        """Rows that are judged."""
        return len(self.truth)

    @property
    def binary(self) -> bool:
        """Whether there are two classes."""
        return len(self.labels) == 2

    @property
    def main(self) -> int:
        """The class that the page speaks of first: the rarest."""
        return self.minority[0]


def evaluate(model: Any, X: Any, y: Any, *, out_of_fold: bool = False) -> Evaluation:
    """Ask the model about the rows, or its members about the training rows that they left out."""
    labels = tuple(plain_classes(model))
    truth = encode(y, labels, "y")
    if len(truth) != count_rows(X):
        raise DataError(
            f"X has {count_rows(X)} rows but y has {len(truth)}: pass one label for each row."
        )
    if not len(truth):
        raise DataError("X has no rows: there is nothing to report on; pass at least one.")
    counts = np.bincount(truth, minlength=len(labels))
    known = getattr(model, "class_counts_", None)
    train_counts = None if known is None else np.asarray(known, dtype=np.int64)
    return Evaluation(
        labels=labels,
        names=tuple(readable(label, 40) for label in labels),
        truth=truth,
        predicted=encode(model.predict(X), labels, "the prediction"),
        scores=class_scores(model, X),
        probabilities=np.asarray(model.predict_proba(X), dtype=np.float64),
        counts=counts,
        train_counts=train_counts,
        minority=minority_classes(counts if train_counts is None else train_counts),
        out_of_fold=out_of_fold,
    )


def _ask(
    model: Any, X: Any, truth: Codes, labels: tuple[Any, ...], out_of_fold: bool
) -> tuple[Codes, Floats, Floats]:
    """Return predicted class numbers, probabilities and scores (n_rows, n_classes)."""
    if not out_of_fold:
        predicted = encode(model.predict(X), labels, "the prediction")
        return predicted, np.asarray(model.predict_proba(X), np.float64), class_scores(model, X)
    answers = model.predict_out_of_fold()
    if not np.array_equal(encode(answers.truth, labels, "y"), truth):
        raise DataError(
            "out_of_fold=True is for the rows that the model was fitted to, in their order; these "
            "are others. Leave it out to judge the model on them."
        )
    predicted = encode(answers.predicted, labels, "the prediction")
    return predicted, answers.probabilities, by_class(answers.scores)


def minority_classes(counts: Codes) -> tuple[int, ...]:
    """Return the classes with fewer rows than an equal share, the rarest first.

    If all are equally frequent it is the last one alone.
    """
    order = sorted(range(len(counts)), key=lambda c: (counts[c], -c))
    below = tuple(c for c in order if counts[c] * len(counts) < counts.sum())
    return below or (order[0],)


def encode(labels: Any, classes: tuple[Any, ...], name: str) -> Codes:
    """Return labels as class numbers."""
    number = {label: code for code, label in enumerate(classes)}
    values = labels if hasattr(labels, "ndim") else np.asarray(labels, dtype=object)
    if getattr(values, "ndim", 1) != 1:
        raise DataError(f"{name} has {values.ndim} dimensions: pass one label for each row.")
    plain = [one.item() if isinstance(one, np.generic) else one for one in values.tolist()]
    unknown = [row for row, label in enumerate(plain) if not _known(label, number)]
    if unknown:
        raise LabelError(
            f"{name} has the label {plain[unknown[0]]!r} in row {unknown[0]}, and "
            f"{len(unknown) - 1} more rows with labels that the model does not know: it knows "
            f"{list(classes[:8])!r}. Drop or correct these rows (1 and '1' differ)."
        )
    return np.array([number[label] for label in plain], dtype=np.int64)


def _known(label: Any, number: dict[Any, int]) -> bool:
    try:
        return label in number
    except TypeError:  # a list or another thing that cannot be a label
        return False
