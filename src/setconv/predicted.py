"""What a model says of rows, as one object; and as columns of a table, for files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError
from setconv.needs import needed
from setconv.storage import Batch

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of rows, from one pass over them.

    Attributes
    ----------
    labels : array of shape (n_rows,)
        The decisions.
    probabilities : float64 array of shape (n_rows, n_classes)
    scores : float64 array of shape (n_rows,) or (n_rows, n_classes)
        Of the second of two classes, or of each: the log-odds of the heads for equally frequent
        classes, averaged over the members. No objective, threshold or prior changes them.
    decision_values : float64 array of the same shape
        What decides: the score minus the threshold. Its sign, or the argmax, gives the label.
    rows : int64 array of shape (n_rows,)
        Which of the rows that were given these are, counted from 0.
    truth : array of shape (n_rows,), optional
        The true labels, where they are known.
    weights : float64 array of shape (n_rows,), optional
        What a row counts in a report on these predictions: its sample weight within its class, and
        the prevalence that was set. None: all the same.
    left_out : bool array of shape (n_members, n_rows), optional
        Of training rows: the members that a row was kept from, which say all of this.
    """

    labels: NDArray[Any]
    probabilities: NDArray[np.float64]
    scores: NDArray[np.float64]
    decision_values: NDArray[np.float64]
    rows: NDArray[np.int64]
    truth: NDArray[Any] | None = None
    weights: NDArray[np.float64] | None = None
    left_out: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.labels)


def column_names(model: Any) -> list[str]:
    """Return the names of the columns: the label, then the probability of each class."""
    return ["predicted_label", *(f"probability_{label}" for label in model.classes_.tolist())]


def check_kept(model: Any, kept: Iterable[str]) -> None:
    """Refuse columns to keep whose names the predictions need."""
    clash = set(kept) & set(column_names(model))
    if clash:
        raise DataError(
            f"The input has a column {min(clash)!r}, which the output needs: do not keep it, or "
            "rename it."
        )


Answer = Callable[[Any], Predictions]


def predicted_columns(
    model: Any, rows: Any, answer: Answer, present: NDArray[np.bool_] | None = None
) -> dict[str, Any]:
    """Return label and probabilities as Arrow arrays; null where a row is not present.

    Parameters
    ----------
    model : fitted classifier
    rows : what the model predicts
        Those that are present.
    answer : callable
        From rows to `Predictions`.
    present : bool array, optional
        All by default.
    """
    with needed("predicting to a file", "pyarrow", "cli"):
        import pyarrow as pa

    if present is None:
        present = np.ones(rows.shape[0], dtype=np.bool_)
    labels = np.full(len(present), None, dtype=object)
    probabilities = np.full((len(present), len(model.classes_)), np.nan)
    if present.any():
        found = answer(rows)
        labels[present], probabilities[present] = found.labels.tolist(), found.probabilities
    kind = pa.array(model.classes_.tolist()).type
    columns = [pa.array(labels, type=kind)]
    columns += [pa.array(column, from_pandas=True) for column in probabilities.T]
    return dict(zip(column_names(model), columns, strict=True))


def predicted_tables(model: Any, batches: Iterable[Batch], answer: Answer) -> Iterator[pa.Table]:
    """Yield for each batch the columns that it keeps, and its predictions."""
    with needed("predicting to a file", "pyarrow", "cli"):
        import pyarrow as pa

    for batch in batches:
        kept = {} if batch.extra is None else {n: batch.extra[n] for n in batch.extra.column_names}
        yield pa.table(kept | predicted_columns(model, batch.rows, answer))
