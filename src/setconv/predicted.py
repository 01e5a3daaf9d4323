"""Predictions as columns of a table, for files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError
from setconv.needs import needed
from setconv.storage import Batch

if TYPE_CHECKING:
    import pyarrow as pa


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


Answer = Callable[[Any], tuple[NDArray[Any], NDArray[np.float64]]]


def predicted_columns(
    model: Any,
    rows: Any,
    present: NDArray[np.bool_] | None = None,
    answer: Answer | None = None,
) -> dict[str, Any]:
    """Return label and probabilities as Arrow arrays; null where a row is not present.

    Parameters
    ----------
    model : fitted classifier
    rows : what the model predicts
        Those that are present.
    present : bool array, optional
        All by default.
    answer : callable, optional
        From rows to labels and probabilities; the model's `predict_with_proba` by default.
    """
    with needed("predicting to a file", "pyarrow", "cli"):
        import pyarrow as pa

    if present is None:
        present = np.ones(rows.shape[0], dtype=np.bool_)
    labels = np.full(len(present), None, dtype=object)
    probabilities = np.full((len(present), len(model.classes_)), np.nan)
    if present.any():
        decided, found = (answer or model.predict_with_proba)(rows)
        labels[present], probabilities[present] = decided.tolist(), found
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
        yield pa.table(kept | predicted_columns(model, batch.rows, answer=answer))
