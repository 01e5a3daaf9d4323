"""Labels, weights and groups of rows that come in from the user, checked and made into arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from setconv.errors import DataError, LabelError, ParameterError

Array = NDArray[Any]


def check_labels(y: Any, n_rows: int) -> Array:
    """Return y as a 1-D array of labels of one type."""
    if y is None:
        raise LabelError(
            "requires y to be passed, but the target y is None: give a label for each row."
        )
    try:
        # A list may mix strings, numbers and nan, which numpy would make strings all.
        given = y if hasattr(y, "dtype") or hasattr(y, "__array__") else _as_objects(y)
        labels: Array = column_or_1d(given, warn=True)
        _refuse_missing(labels)
        labels = _with_one_type(labels)
        with warnings.catch_warnings():
            # scikit-learn warns where many labels are unique; that is no error here.
            warnings.simplefilter("ignore", UserWarning)
            check_classification_targets(labels)
    except LabelError:
        raise
    except (ValueError, TypeError) as error:
        raise LabelError(str(error)) from error
    if len(labels) != n_rows:
        raise LabelError(f"X has {n_rows} rows but y has {len(labels)} labels.")
    return labels


def check_classes(classes: Any) -> Array:
    """Return the announced classes, sorted."""
    if np.ndim(classes) != 1:
        raise LabelError(f"classes={classes!r}: give the list of all labels that will occur.")
    return encode_labels(check_labels(classes, len(classes)))[0]


def _refuse_missing(labels: Array) -> None:
    if labels.dtype.kind not in "Of":
        return
    missing = [row for row, label in enumerate(labels) if _is_missing(label)]
    if missing:
        raise LabelError(
            f"Input y contains NaN: no label in row {missing[0]} ({len(missing)} missing in all). "
            "Do remove those rows or label them."
        )


def _is_missing(label: Any) -> bool:
    if label is None or type(label).__name__ == "NAType":  # pandas.NA, which has no truth value
        return True
    return bool(label != label)


def _with_one_type(labels: Array) -> Array:
    """Return integers and bools of an object array as what they are; refuse a mixture."""
    if labels.dtype.kind != "O":
        return labels
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    kinds = {type(label) for label in plain}
    if len(kinds) > 1 and not kinds <= {int, float}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise LabelError(f"y mixes labels of different types ({names}): make them all one type.")
    return np.array(plain) if kinds <= {int, float, bool} else labels


def _as_objects(y: Any) -> Any:
    objects = np.asarray(y, dtype=object)
    return objects if objects.ndim == 1 else y


def warn_of_equal_counts(classes: Array, codes: NDArray[np.int64]) -> None:
    """Say what resampling in front of the fit does, where the data looks like it."""
    counts = np.bincount(codes)
    if counts.min() == counts.max():
        warnings.warn(
            f"All {len(classes)} classes have exactly {counts[0]:,} rows. If that was made by "
            "SMOTE or another sampler, the out-of-fold figures are too good, for made-up rows tell "
            "of the rows of other folds: fit the rows as they were collected; classes need no "
            "balancing here.",
            UserWarning,
            stacklevel=2,
        )


def encode_labels(labels: Array) -> tuple[Array, NDArray[np.int64]]:
    """Return the sorted classes and the class number of each row; at least two classes."""
    classes, codes = np.unique(labels, return_inverse=True)
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
        raise ParameterError(
            f'class_weight={class_weight!r}: give None, "balanced" or a dict from class to weight.'
        )
    unknown = [label for label in class_weight if label not in classes.tolist()]
    if unknown:
        raise ParameterError(
            f"class_weight names classes that are not in y: {unknown}; the classes are "
            f"{classes.tolist()[:10]}."
        )
    try:
        weights = np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
    except (ValueError, TypeError) as error:
        raise ParameterError(f"class_weight={class_weight!r}: weights must be numbers.") from error
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ParameterError(f"class_weight={class_weight!r}: weights must be positive and finite.")
    return weights
