"""Rows that come in from the user, checked and made into arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse, vstack
from sklearn.utils.validation import validate_data

from setconv.errors import DataError, DataTypeError

Array = NDArray[Any]


def check_rows(estimator: Any, X: Any, *, reset: bool) -> Array | csr_matrix:
    """Return X as a float32 or float64 array or csr matrix with finite values.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_`` and ``feature_names_in_`` with ``reset``, is compared with them
        without.
    X : array-like or scipy sparse matrix of shape (n_rows, n_features)
    reset : bool
    """
    _refuse_text_columns(X)
    if getattr(X, "dtype", None) == np.float16:
        X = X.astype(np.float32)
    try:
        rows: Any = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=np.float32 if _is_float32(X) else np.float64,
            ensure_all_finite=False,
        )
    except TypeError as error:
        raise DataTypeError(str(error)) from error
    except ValueError as error:
        raise DataError(f"{error}{_name_text_column(X)}") from error
    if issparse(rows):
        return _tidy_sparse(rows)
    _refuse_non_finite(rows, getattr(estimator, "feature_names_in_", None))
    checked: Array = rows
    return checked


def _tidy_sparse(rows: Any) -> csr_matrix:
    """Return a csr matrix whose rows are sorted and name each column once."""
    tidy = csr_matrix(rows)
    if not tidy.has_canonical_format:
        tidy = tidy.copy()  # the user's own stays as it is
        tidy.sum_duplicates()
    if not np.isfinite(tidy.data).all():
        place = int(np.flatnonzero(~np.isfinite(tidy.data))[0])
        row = int(np.searchsorted(tidy.indptr, place, side="right")) - 1
        kind = "NaN" if np.isnan(tidy.data[place]) else "infinity"
        raise DataError(
            f"Input X contains {kind} (first in row {row}, column {tidy.indices[place]}). Remove "
            "or replace such values first."
        )
    return tidy


def _refuse_text_columns(X: Any) -> None:
    """Name the columns of a data frame that are not numbers."""
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "dtypes") or getattr(X, "ndim", 2) != 2:
        return
    bad = []
    for name in columns:
        column = np.asarray(X[name])
        if column.dtype.kind in "mM" or not _is_numeric(column):
            bad.append(str(name))
    if bad:
        raise DataError(
            f"X has columns that are not numbers: {', '.join(map(repr, bad))}. Encode them first, "
            "for instance with sklearn.preprocessing.OneHotEncoder in a ColumnTransformer."
        )


def _is_float32(X: Any) -> bool:
    """Whether an array, or every column of a pandas or polars frame, is float32."""
    kinds = X.dtypes if hasattr(X, "dtypes") else [getattr(X, "dtype", None)]
    return all(str(kind).lower() == "float32" for kind in kinds)


def _is_numeric(column: Array) -> bool:
    if column.dtype.kind in "biuf":
        return True
    try:
        column.astype(np.float64)
    except (ValueError, TypeError):
        return False
    return True


def _name_text_column(X: Any) -> str:
    """Say which column of an array is not numbers, if that is what is wrong."""
    try:
        array = np.asarray(X)
    except ValueError:
        return ""
    if array.dtype.kind not in "OUS" or array.ndim != 2:
        return ""
    for number, column in enumerate(array.T):
        if not _is_numeric(column):
            return f" (column {number} is not numbers: Encode it first)"
    return ""


def _refuse_non_finite(rows: Array, names: Array | None) -> None:
    # A sum is finite if all its terms are (but for overflow): a cheap first look.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum(dtype=np.float64)):
            return
    finite = np.isfinite(rows)
    if finite.all():
        return
    row, column = (int(place) for place in np.argwhere(~finite)[0])
    kind = "NaN" if np.isnan(rows[row, column]) else "infinity"
    label = f"column {column}" if names is None else f"column {names[column]!r}"
    raise DataError(
        f"Input X contains {kind} (first in row {row}, {label}; {int((~finite).sum())} values are "
        "NaN or inf in all). Remove or impute them first, for instance with "
        "sklearn.impute.SimpleImputer in a Pipeline."
    )


def stack_rows(parts: Sequence[Array | csr_matrix]) -> Array | csr_matrix:
    """Return all rows of the parts; sparse if any of them is."""
    if any(issparse(part) for part in parts):
        return csr_matrix(vstack([csr_matrix(part) for part in parts]))
    return np.concatenate(list(parts))


@contextmanager
def columns_kept_on_error(estimator: Any) -> Iterator[None]:
    """Give the estimator its old column names back if a new fit fails."""
    names = ("n_features_in_", "feature_names_in_")
    before = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    try:
        yield
    except BaseException:
        for name in names:
            if name in before:
                setattr(estimator, name, before[name])
            elif hasattr(estimator, name):
                delattr(estimator, name)
        raise
