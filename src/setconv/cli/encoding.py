"""Rows as the classifier inside a model takes them; messages name them as the file does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


def load_model(
    folder: Path, device: str, objective: str | None = None, prior: float | None = None
) -> Any:
    """Return a saved model, set for another objective or prevalence where one is given."""
    from setconv.loading import load

    model = load(folder, device=device)
    if objective is not None:
        model.set_objective(objective)
    if prior is not None:
        model.set_prior(prior)
    return model


def takes_texts(model: Any) -> bool:
    """Whether a model takes texts, not features."""
    return getattr(model, "takes", None) == "texts"


def inside(model: Any) -> Any:
    """Return what is judged and explained: of a model of tables the classifier of encoded rows."""
    return model if takes_texts(model) else getattr(model, "classifier_", model)


def encoded(model: Any, X: Any, numbers: NDArray[np.int64]) -> Any:
    """Return rows as `inside` takes them: texts as they are, a table as a matrix."""
    if takes_texts(model):
        return X
    encoder = getattr(model, "encoder_", None)
    return encode_rows(_matrix if encoder is None else encoder.transform, X, numbers)


def encode_rows(
    encode: Callable[..., NDArray[Any]], table: pa.Table, numbers: NDArray[np.int64]
) -> NDArray[Any]:
    """Return the matrix of a table; a value that cannot be used is named by its row of the file.

    Parameters
    ----------
    encode : callable
        From a table and its ``first_row`` to a matrix.
    table : pyarrow.Table
    numbers : int64 array of shape (n_rows,)
        The row of the file that each row is, counted from 1.
    """
    try:
        return encode(table, first_row=int(numbers[0]))
    except DataError:
        # The message counts on from the first row. If rows were left out, it is wrong: say it of
        # the part in sequence that fails. There may be many parts, so never without need.
        starts = np.flatnonzero(np.diff(numbers, prepend=-1) != 1)
        for start, size in zip(starts, np.diff(starts, append=len(numbers)), strict=True):
            encode(table.slice(start, size), first_row=int(numbers[start]))
        raise


def feature_names(model: Any, columns: Sequence[str]) -> list[str] | None:
    """Return the names of what `encoded` makes of columns; None of texts."""
    if takes_texts(model):
        return None
    encoder = getattr(model, "encoder_", None)
    return list(columns if encoder is None else encoder.get_feature_names_out())


def _matrix(table: pa.Table, *, first_row: int) -> NDArray[np.float32]:
    from setconv.records.values import as_numbers, plain

    matrix = np.empty((table.num_rows, table.num_columns), dtype=np.float32)
    for place, name in enumerate(table.column_names):
        column = plain(table[name].combine_chunks())
        with np.errstate(over="ignore"):  # found just below, with its row
            matrix[:, place] = as_numbers(column, "number", name, first_row)
        bad = np.flatnonzero(~np.isfinite(matrix[:, place]))
        if len(bad):
            raise DataError(
                f"The column {name!r} has no number, or one too large, in row "
                f"{first_row + int(bad[0])}: the model takes numbers, without gaps."
            )
    return matrix
