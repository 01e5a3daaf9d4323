"""What comes in from the user: rows, labels and weights, checked and made into arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from setconv.errors import DataError, LabelError

Array = NDArray[Any]


def check_rows(estimator: Any, X: Any, *, reset: bool) -> Array:
    """Return X as a float32 or float64 array with finite values.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_`` and ``feature_names_in_`` with ``reset``, is compared with them
        without.
    X : array-like of shape (n_rows, n_features)
    reset : bool
    """
    _refuse_text_columns(X)
    narrow = getattr(X, "dtype", None) in (np.float16, np.float32)
    try:
        rows: Array = validate_data(
            estimator,
            X,
            reset=reset,
            dtype=np.float32 if narrow else np.float64,
            ensure_all_finite=False,
        )
    except (ValueError, TypeError) as error:
        if type(error) is TypeError:
            raise
        raise DataError(str(error)) from error
    _refuse_non_finite(rows, getattr(estimator, "feature_names_in_", None))
    return rows


def _refuse_text_columns(X: Any) -> None:
    """Name the columns of a data frame that are not numbers."""
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "dtypes") or getattr(X, "ndim", 2) != 2:
        return
    bad = []
    for name in columns:
        column = np.asarray(X[name])
        if column.dtype.kind in "biuf":
            continue
        try:
            column.astype(np.float64)
        except (ValueError, TypeError):
            bad.append(str(name))
    if bad:
        raise DataError(
            f"X has columns that are not numbers: {', '.join(map(repr, bad))}. Encode them first, "
            "for instance with sklearn.preprocessing.OneHotEncoder in a ColumnTransformer."
        )


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


def check_labels(y: Any, n_rows: int) -> Array:
    """Return y as a 1-D array of labels."""
    if y is None:
        raise LabelError(
            "requires y to be passed, but the target y is None: give a label for each row."
        )
    try:
        labels: Array = column_or_1d(y, warn=True)
        with warnings.catch_warnings():
            # scikit-learn warns where many labels are unique; that is no error here.
            warnings.simplefilter("ignore", UserWarning)
            check_classification_targets(labels)
    except (ValueError, TypeError) as error:
        raise LabelError(str(error)) from error
    if len(labels) != n_rows:
        raise LabelError(f"X has {n_rows} rows but y has {len(labels)} labels.")
    if labels.dtype.kind == "O":
        missing = [row for row, label in enumerate(labels) if label is None or label != label]
        if missing:
            raise LabelError(
                f"y has no label in row {missing[0]} ({len(missing)} missing in all): remove "
                "those rows or label them."
            )
    return labels


def encode_labels(labels: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return the sorted classes and the class number of each row; at least two classes."""
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in labels})
        raise LabelError(
            f"y mixes labels of different types ({', '.join(kinds)}): make them all one type."
        ) from error
    if len(classes) < 2:
        raise LabelError(
            f"y has only one class ({classes[0]!r}) in {len(labels)} rows: a classifier needs "
            "rows of at least two classes."
        )
    return classes, codes


def encode_known_labels(labels: Array, classes: Array, where: str) -> NDArray[np.int64]:
    """Return the class number of each row; a label outside ``classes`` is an error."""
    known = np.isin(labels, classes)
    if not known.all():
        strange = np.unique(labels[~known])[:5].tolist()
        first = int(np.flatnonzero(~known)[0])
        raise LabelError(
            f"{where} has labels that are not among the classes {classes.tolist()[:10]}: {strange} "
            f"(first in row {first}). Fit anew with all classes, or remove these rows."
        )
    return np.searchsorted(classes, labels).astype(np.int64)


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Return the weights of the rows, ones by default."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (ValueError, TypeError) as error:
        raise DataError(f"sample_weight must be numbers: {error}") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise DataError(
            f"sample_weight has shape {weights.shape}: Sample weights must be 1D, one for each of "
            f"the {n_rows} rows."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        first = int(np.flatnonzero(~np.isfinite(weights) | (weights < 0))[0])
        raise DataError(
            f"sample_weight is {weights[first]} in row {first}: weights must be finite and not "
            "negative."
        )
    if not weights.any():
        raise DataError("sample_weight is zero for every row: give at least one positive weight.")
    return weights


def check_groups(groups: ArrayLike | None, n_rows: int) -> Array | None:
    """Return the group of each row, if there are groups."""
    if groups is None:
        return None
    array = np.asarray(groups)
    if array.shape != (n_rows,):
        raise DataError(
            f"groups has shape {array.shape}: give one group for each of {n_rows} rows."
        )
    return array


def check_class_weight(class_weight: Any, classes: Array) -> NDArray[np.float64]:
    """Return one weight a class; None and "balanced" are all ones (see the classifier)."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return np.ones(len(classes))
    if not isinstance(class_weight, dict):
        raise DataError(
            f'class_weight={class_weight!r}: give None, "balanced" or a dict from class to weight.'
        )
    unknown = [label for label in class_weight if label not in classes.tolist()]
    if unknown:
        raise DataError(
            f"class_weight names classes that are not in y: {unknown}; the classes are "
            f"{classes.tolist()[:10]}."
        )
    weights = np.array([class_weight.get(label, 1.0) for label in classes.tolist()], dtype=float)
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise DataError(f"class_weight={class_weight!r}: weights must be positive and finite.")
    return weights
