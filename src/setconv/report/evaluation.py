"""What is judged: the rows, their classes, and what the model says about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.decisions.prior import weights_to_prior
from setconv.errors import DataError, LabelError
from setconv.explain.rows import count_rows
from setconv.explain.scoring import by_class, plain_classes
from setconv.predicted import Predictions
from setconv.report.wording import readable

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Evaluation:
    """A model's answers on labelled rows, with class numbers for labels.

    Attributes
    ----------
    labels : tuple
        The classes, in the order of the columns.
    names : tuple of str
        The labels as the page shows them.
    codes : int64 array
        The true classes of all rows that were given.
    rows : int64 array of shape (n_rows,)
        Which of them are judged.
    truth, predicted : int64 arrays of shape (n_rows,)
    scores, values, probabilities : float64 arrays of shape (n_rows, n_classes)
        ``values`` decide: of two classes the sign, of more the largest.
    weights : float64 array of shape (n_rows,)
        What a row counts in every figure, 1 on average.
    counts : int64 array of shape (n_classes,)
        Rows of each class among those judged.
    train_counts : int64 array of shape (n_classes,) or None
        Rows of each class in training, if the model knows.
    minority : tuple of int
        The minority classes, the rarest first; never empty.
    prior : float64 array of shape (n_classes,) or None
        The prevalence that was set for the model, to which rows are weighted.
    own_prevalence : bool
        Whether a prevalence was set but rows of a class are missing, so that they cannot be
        weighted to it.
    left_out : bool array of shape (n_members, n_rows) or None
        Of training rows: the members that a row was kept from, which judge it.
    """

    labels: tuple[Any, ...]
    names: tuple[str, ...]
    codes: Codes
    rows: Codes
    truth: Codes
    predicted: Codes
    scores: Floats
    values: Floats
    probabilities: Floats
    weights: Floats
    counts: Codes
    train_counts: Codes | None
    minority: tuple[int, ...]
    prior: Floats | None = None
    own_prevalence: bool = False
    left_out: Flags | None = None

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

    @property
    def out_of_fold(self) -> bool:
        """Whether these are training rows, each judged by members that left it out."""
        return self.left_out is not None

    @property
    def weighted(self) -> bool:
        """Whether some rows count more than others."""
        return bool((self.weights != 1).any())

    @property
    def unjudged(self) -> tuple[int, ...]:
        """Classes that no member left a row of out: they have no figures."""
        return tuple(np.flatnonzero(self.counts == 0).tolist()) if self.out_of_fold else ()

    def comparable(self, c: int) -> bool:
        """Whether a class, and another one beside it, is judged."""
        return c not in self.unjudged and len(self.unjudged) < len(self.labels) - 1

    def share(self, flags: Flags) -> float:
        """Return the share of rows by weight."""
        return float(self.weights[flags].sum() / self.weights.sum())

    def members_of(self, places: Codes) -> Flags | None:
        """Return the members that speak of some judged rows; None: all of them."""
        return None if self.left_out is None else self.left_out[:, places]


def evaluate(
    model: Any, X: Any, y: Any, *, predictions: Predictions | None, out_of_fold: bool
) -> Evaluation:
    """Ask the model about the rows once, or its members about training rows that they left out."""
    labels = tuple(plain_classes(model))
    codes = encode(y, labels, "y")
    if len(codes) != count_rows(X):
        raise DataError(
            f"X has {count_rows(X)} rows but y has {len(codes)}: pass one label for each row."
        )
    if not len(codes):
        raise DataError("X has no rows: there is nothing to report on; pass at least one.")
    if out_of_fold:
        found = model.predict_out_of_fold()
    else:
        found = model.predictions(X) if predictions is None else predictions
    rows = np.asarray(found.rows, dtype=np.int64)
    _check_rows(found, codes, labels)
    truth = codes[rows]
    counts = np.bincount(truth, minlength=len(labels))
    known = getattr(model, "class_counts_", None)
    train_counts = None if known is None else np.asarray(known, dtype=np.int64)
    prior = getattr(model, "prior_", None)
    own_prevalence = prior is not None and not out_of_fold and not counts.all()
    prior = None if own_prevalence else prior
    return Evaluation(
        labels=labels,
        names=tuple(readable(label, 40) for label in labels),
        codes=codes,
        rows=rows,
        truth=truth,
        predicted=encode(found.labels, labels, "the prediction"),
        scores=by_class(np.asarray(found.scores, dtype=np.float64)),
        values=by_class(np.asarray(found.decision_values, dtype=np.float64)),
        probabilities=np.asarray(found.probabilities, dtype=np.float64),
        weights=_weights(found.weights, prior, truth),
        counts=counts,
        train_counts=train_counts,
        minority=minority_classes(counts if train_counts is None else train_counts),
        prior=prior,
        own_prevalence=own_prevalence,
        left_out=found.left_out,
    )


def _check_rows(found: Predictions, codes: Codes, labels: tuple[Any, ...]) -> None:
    """Refuse predictions that are of other rows."""
    if found.left_out is None:
        if len(found) != len(codes):
            raise DataError(
                f"predictions are of {len(found)} rows but X has {len(codes)}: pass those of X."
            )
        return
    inside = found.rows.max(initial=-1) < len(codes)
    if not inside or not np.array_equal(encode(found.truth, labels, "y"), codes[found.rows]):
        raise DataError(
            "out_of_fold=True is for the rows that the model was fitted to, in their order; these "
            "are others. Leave it out to judge the model on them."
        )


def _weights(given: Floats | None, prior: Floats | None, truth: Codes) -> Floats:
    """Return what each row counts: as given, or so that classes have the prevalence that was set.

    The mean is 1.
    """
    if given is None and prior is None:
        return np.ones(len(truth))
    weights = weights_to_prior(truth, np.asarray(prior)) if given is None else np.asarray(given)
    return np.asarray(weights / weights.mean(), dtype=np.float64)


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
