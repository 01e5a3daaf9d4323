"""Rows from wherever the user has them: arrays and matrices, or files larger than memory."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from tqdm import tqdm

from setconv import inputs
from setconv.errors import DataError, ParameterError
from setconv.rows import Matrix, row_slices
from setconv.storage import Batch, is_stored, open_source, read_batches

# Rows of up to so many bytes are read into memory: training is then as fast as it can be.
IN_MEMORY = 1 << 28
_BATCH = 8192


@contextmanager
def rows_of(estimator: Any, X: Any, y: Any, *, reset: bool) -> Iterator[tuple[Matrix, Any]]:
    """Give rows, checked, and their labels, as they are; files are closed in the end.

    Parameters
    ----------
    estimator : SetConvClassifier
        Gets ``n_features_in_`` and ``feature_names_in_`` with ``reset``, is compared with them
        without. Its ``scratch_dir`` and ``progress`` are used.
    X : array-like, sparse matrix, or what `setconv.storage.open_source` takes
    y : array-like or str
        A string is the name of a column of a file.
    reset : bool
    """
    if not is_stored(X):
        yield inputs.check_rows(estimator, X, reset=reset), y
        return
    label = y if isinstance(y, str) else None
    columns = None if reset else known_columns(estimator)
    with _bar(estimator.progress, "reading") as moved:
        source = open_source(X, columns, label, estimator.scratch_dir, moved)
    with source:
        if reset:
            _remember_columns(estimator, source.rows.shape[1], source.names)
        else:
            _compare_columns(estimator, source.rows.shape[1])
        rows = source.rows[:] if source.rows.nbytes <= IN_MEMORY else source.rows
        if reset and label is None and y is not None:
            _refuse_label_column(rows, y, source.names)
        yield rows, y if label is None else source.labels


def batches_of(estimator: Any, X: Any, keep: Sequence[str] = ()) -> Iterator[Batch]:
    """Yield the rows of X for a prediction, checked: all at once, or files batch by batch.

    Parameters
    ----------
    estimator : SetConvClassifier
    X : array-like, sparse matrix, or what `setconv.storage.read_batches` takes
    keep : sequence of str
        Columns of a file that come with each batch.
    """
    if not is_stored(X):
        if keep:
            raise ParameterError(f"keep={list(keep)!r}: only a file or a table has named columns.")
        yield Batch(inputs.check_rows(estimator, X, reset=False))
        return
    with _bar(estimator.progress, "predicting") as moved:
        for batch in read_batches(X, known_columns(estimator), _BATCH, keep, moved):
            _compare_columns(estimator, batch.rows.shape[1])
            yield batch


def known_columns(estimator: Any) -> list[str] | None:
    """Return the names of the columns that the estimator was fitted on, if it knows any."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _refuse_label_column(rows: Matrix, y: Any, names: Sequence[str] | None) -> None:
    """Refuse a file in which a column of the features is the labels that are to be learned."""
    labels = np.asarray(y)
    if labels.dtype.kind not in "biuf" or labels.shape != rows.shape[:1]:
        return
    same = np.ones(rows.shape[1], dtype=np.bool_)
    for part in row_slices(rows.shape[0], _BATCH):
        same &= (rows[part] == labels[part, None]).all(axis=0)
        if not same.any():
            return
    column = int(np.flatnonzero(same)[0])
    name = f"{column}" if names is None else f"{names[column]!r}"
    raise DataError(
        f"Column {name} of X is equal to y, so the labels would be learned from themselves: name "
        "the column as y, or take it out of X."
    )


def _remember_columns(estimator: Any, width: int, names: Sequence[str] | None) -> None:
    estimator.n_features_in_ = width
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def _compare_columns(estimator: Any, width: int) -> None:
    if width != estimator.n_features_in_:
        raise DataError(
            f"X has {width} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input: give it the columns that it was "
            "fitted on."
        )


@contextmanager
def _bar(progress: Any, what: str) -> Iterator[Callable[[int, int], None]]:
    shown = sys.stderr.isatty() if progress == "auto" else bool(progress)
    with tqdm(desc=f"SetConv {what}", unit="row", unit_scale=True, disable=not shown) as bar:

        def move(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield move
