"""What a user gives, checked: rows, labels, weights, times and texts, also from files.

`open_rows` gives a fit its rows and labels, `iter_batches` a prediction its rows. Both take arrays,
sparse matrices and data frames, which `check_rows` makes plain, or files, which may be larger than
memory. The checks of labels and of what else comes with each row follow, and `check_texts`, with
which every encoder of texts begins; every error says which row or column is wrong and what to do.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from numbers import Integral, Real
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix, issparse, vstack
from sklearn.utils import column_or_1d
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from tqdm import tqdm

from setconv.data import Features, as_floats, check_range, collected, count_each, unmasked
from setconv.errors import DataError, DataTypeError, LabelError, ParameterError, SetConvError
from setconv.io.disk import Batch, not_finite, show_bytes
from setconv.io.opening import open_source, read_batches
from setconv.messages import excerpt, is_missing, is_shown, listed
from setconv.metrics.arithmetic import encode
from setconv.sampling import is_many

Array = NDArray[Any]

_HELD = "256MB"  # rows of so many bytes are read into memory: training is then fastest
_BATCH = 8192  # rows of a file at a time
_SIZE = re.compile(r"(\d+(?:\.\d*)?)\s*([KMG]?)B?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def memory_limit() -> int:
    """Return how many bytes of rows are read into memory: SETCONV_IN_MEMORY, such as "2GB"."""
    given = os.environ.get("SETCONV_IN_MEMORY", _HELD)
    found = _SIZE.fullmatch(given.strip())
    if found is None:
        raise ParameterError(
            f"The environment variable SETCONV_IN_MEMORY is {given!r}: give a number of bytes, "
            'such as 500000000, "500MB" or "2GB".'
        )
    return int(float(found[1]) * _UNITS[found[2].upper()])


def _is_stored(X: Any) -> bool:
    """Whether X is a source of rows that `setconv.io` opens rather than an array to hold.

    That is a path, what pyarrow or `setconv.io` made, or a large C-ordered memmap of float32 or
    float64; any other memmap is an array.
    """
    if isinstance(X, np.memmap):
        in_file = getattr(X, "_mmap", None) is not None and X.mode != "c" and X.flags.c_contiguous
        plain = X.ndim == 2 and X.dtype in (np.dtype(np.float32), np.dtype(np.float64))
        return bool(in_file and plain and X.nbytes > memory_limit())
    made_by = type(X).__module__
    return isinstance(X, str | os.PathLike) or made_by.startswith(("pyarrow.", "setconv.io."))


@dataclass(frozen=True)
class Labels:
    """The labels of rows.

    Attributes
    ----------
    names : array of shape (n_labels,)
        The distinct ones, sorted.
    codes : int array of shape (n_rows,)
        The place in ``names`` of each row's label.
    """

    names: Array
    codes: NDArray[Any]

    @classmethod
    def of(cls, values: Array, codes: Array | None = None) -> Labels:
        """Return labels that are given one by one or, with ``codes``, by their places."""
        names, places = np.unique(values, return_inverse=True)
        return cls(names, places if codes is None else places.astype(codes.dtype)[codes])

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of rows of each."""
        return count_each(self.codes, len(self.names))

    def take(self, chosen: NDArray[Any]) -> Labels:
        """Return the labels of chosen rows."""
        return Labels(self.names, self.codes[chosen])

    def encoded(self, classes: Array, parameter: str = "y") -> NDArray[np.int64]:
        """Return the class number of each row, as `setconv.metrics.arithmetic.encode` does."""
        numbers = {label: number for number, label in enumerate(classes.tolist())}
        table = np.array([numbers.get(name, -1) for name in self.names.tolist()])
        found: NDArray[np.int64] = table[self.codes]
        if found.min(initial=0) < 0:  # which says where
            encode(self.names[self.codes].tolist(), classes.tolist(), parameter)
        return found


def open_rows(
    estimator: Any, X: Any, y: Any, *, reset: bool, time: Any = None, looks: str = ""
) -> tuple[Features, Labels, Array | None]:
    """Return rows, their labels and times, all checked; files are read to their end in each pass.

    Parameters
    ----------
    estimator : SetConvClassifier
        Gets ``n_features_in_`` and ``feature_names_in_`` with ``reset``, is compared with them
        without. Its ``progress`` is used.
    X : array-like, sparse matrix, or what `setconv.io.open_source` takes
    y : array-like, Labels or str
        A string is the name of a column of a file.
    reset : bool
    time : array-like, str or None
        As ``y``.
    looks : str
        The parameter for which all rows are looked at again and again, if there is one: rows are
        then in memory.
    """
    X = collected(X)
    if not _is_stored(X):
        rows = check_rows(estimator, X, reset=reset)
        return rows, check_labels(y, rows.shape[0]), check_time(time, rows.shape[0])
    label, when = (one if isinstance(one, str) else None for one in (y, time))
    columns = None if reset else _known_columns(estimator)
    source = open_source(X, columns, label, when, partial(_bar, estimator.progress, "reading"))
    n_rows, width = source.rows.shape
    stays = source.rows.nbytes > memory_limit()
    if stays and looks:
        raise ParameterError(
            f"{looks} looks at all training rows again and again, and these, "
            f"{show_bytes(source.rows.nbytes)}, are read from disk. Leave it out: members judge "
            "out of fold without it. Or let the environment variable SETCONV_IN_MEMORY name more "
            "bytes than that.",
            parameter=looks,
        )
    if reset:
        _remember_columns(estimator, width, source.names)
    else:
        _compare_columns(estimator, width)
    labels = check_labels(y if label is None else Labels.of(*source.labels()), n_rows)
    moments = check_time(time if when is None else source.times(), n_rows)
    if stays:
        return source.rows, labels, moments
    rows = source.rows.whole()
    if reset and label is None:
        column = LabelColumn(labels, source.names)
        column.add(slice(0, n_rows), rows)
        column.refuse()
    return rows, labels, moments


def iter_batches(estimator: Any, X: Any, keep: Sequence[str] = ()) -> Iterator[Batch]:
    """Yield the rows of X for a prediction, checked: all at once, or files batch by batch.

    Parameters
    ----------
    estimator : SetConvClassifier
    X : array-like, sparse matrix, or what `setconv.io.read_batches` takes
    keep : sequence of str
        Columns of a file that come with each batch.
    """
    X = collected(X)
    if not _is_stored(X):
        if keep:
            raise ParameterError(
                f"keep={list(keep)!r}: only a file or a table has named columns.", parameter="keep"
            )
        yield Batch(check_rows(estimator, X, reset=False))
        return
    with _bar(estimator.progress, "predicting") as moved:
        for batch in read_batches(X, _known_columns(estimator), _BATCH, keep, moved):
            _compare_columns(estimator, batch.rows.shape[1])
            yield batch


def _known_columns(estimator: Any) -> list[str] | None:
    """Return the names of the columns that the estimator was fitted on, if it knows any."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _remember_columns(estimator: Any, width: int, names: Sequence[str] | None) -> None:
    estimator.n_features_in_ = width
    vars(estimator).pop("feature_names_in_", None)
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)


def _compare_columns(estimator: Any, width: int) -> None:
    if width != estimator.n_features_in_:
        raise DataError(
            f"X has {width} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input: give it the columns that it was "
            "fitted on."
        )


class LabelColumn:
    """Look in a pass over rows of a file for a column that is the labels that are to be learned.

    Parameters
    ----------
    labels : Labels
    names : sequence of str or None
        Of the columns.
    """

    def __init__(self, labels: Labels, names: Any) -> None:
        self._labels, self._names = labels, names
        self._same: Any = labels.names.dtype.kind in "biuf"

    def add(self, part: slice, rows: Array) -> None:
        """Look at rows, which have these numbers."""
        if np.any(self._same):
            labels = self._labels
            self._same &= (rows == labels.names[labels.codes[part], None]).all(axis=0)

    def refuse(self) -> None:
        """Refuse the rows if they have such a column."""
        if not np.any(self._same):
            return
        column = int(np.flatnonzero(self._same)[0])
        name = column if self._names is None else str(self._names[column])
        raise DataError(
            f"Column {name!r} of X is equal to y, so the labels would be learned from themselves: "
            "name the column as y, or take it out of X.",
            column=name,
        )


@contextmanager
def _bar(progress: Any, what: str) -> Iterator[Callable[[int, int], None]]:
    shown = is_shown(progress)
    with tqdm(desc=f"SetConv {what}", unit="row", unit_scale=True, disable=not shown) as bar:

        def move(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield move


@contextmanager
def columns_kept_on_error(estimator: Any) -> Iterator[None]:
    """Give the estimator its old column names back if a new fit fails."""
    names = ("n_features_in_", "feature_names_in_")
    before = {name: value for name, value in vars(estimator).items() if name in names}
    try:
        yield
    except BaseException:
        for name in names:
            vars(estimator).pop(name, None)
        vars(estimator).update(before)
        raise


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
    try:
        X = unmasked(X)
        _refuse_text_columns(X)
        if getattr(X, "dtype", None) == np.float16:
            X = X.astype(np.float32)
        rows: Any = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=np.float32 if _is_float32(X) else np.float64,
            ensure_all_finite=False,
        )
    except (SetConvError, MemoryError):
        raise
    except TypeError as error:
        raise DataTypeError(str(error)) from error
    except Exception as error:  # whatever X, of whichever library, fails with as an array
        raise DataError(str(error)) from error
    if issparse(rows):
        return _tidy_sparse(rows)
    places, names = not_finite(rows), getattr(estimator, "feature_names_in_", None)
    if len(places):
        row, column = (int(place) for place in places[0])
        name = column if names is None else str(names[column])
        _refuse_value(rows[row, column], row, name, len(places))
    checked: Array = rows
    return checked


def _refuse_text_columns(X: Any) -> None:
    """Name the columns of a frame or an array that are not numbers, or the first missing one."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        columns: list[tuple[Any, Array]] = [(str(one), np.asarray(X[one])) for one in X.columns]
    elif isinstance(X, np.ndarray) and X.dtype.kind not in "biufcV" and X.ndim == 2:
        columns = list(enumerate(X.T))
    else:
        return
    # A name that occurs twice gives two columns, which scikit-learn refuses.
    found = {name: _why_not_numbers(one) for name, one in columns if one.ndim == 1}
    bad = {name: why for name, why in found.items() if why is not None}
    if bad:
        first, why = next(iter(bad.items()))
        raise (DataTypeError if isinstance(why, TypeError) else DataError)(
            f"X has columns that are not numbers: {', '.join(map(repr, bad))} ({why}).",
            column=first,
            hint="Encode them first, for instance with sklearn.preprocessing.OneHotEncoder in a "
            "ColumnTransformer.",
        )
    for name, one in columns:
        if one.dtype.kind == "O" and (missing := _missing_in(one)):
            _refuse_value(np.nan, missing[0], name, len(missing))


def _why_not_numbers(column: Array) -> Exception | None:
    if column.dtype.kind in "biufcV":
        return None
    known: Array = column
    if column.dtype.kind == "O":
        known = np.delete(column, _missing_in(column))
    kinds = {type(one) for one in known.tolist()} if known.dtype.kind == "O" else set()
    if known.dtype.kind in "mM" or kinds & {np.datetime64, np.timedelta64}:
        return ValueError("dates and times")
    try:
        known.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        return error
    return None


def _missing_in(column: Array) -> list[int]:
    return [row for row, one in enumerate(column) if is_missing(one)]


def _is_float32(X: Any) -> bool:
    """Whether an array, or every column of a pandas or polars frame, is float32."""
    kinds = X.dtypes if hasattr(X, "columns") else [getattr(X, "dtype", None)]
    return all(str(kind).lower() == "float32" for kind in kinds)


def _tidy_sparse(rows: Any) -> csr_matrix:
    """Return a csr matrix whose rows are sorted and name each column once."""
    tidy = csr_matrix(rows)
    if not tidy.has_canonical_format:
        tidy = tidy.copy()  # the user's own stays as it is
        tidy.sum_duplicates()
    finite = np.isfinite(tidy.data)
    if not finite.all():
        place = int(np.flatnonzero(~finite)[0])
        row = int(np.searchsorted(tidy.indptr, place, side="right")) - 1
        _refuse_value(tidy.data[place], row, int(tidy.indices[place]), int((~finite).sum()))
    return tidy


def _refuse_value(value: float, row: int, column: int | str, count: int) -> NoReturn:
    kind = "NaN" if np.isnan(value) else "infinity"
    raise DataError(
        f"Input X contains {kind} (first in row {row}, column {column!r}; {count} values are NaN "
        "or inf in all).",
        row=row,
        column=column,
        hint="Remove or impute them first, for instance with sklearn.impute.SimpleImputer in a "
        "Pipeline.",
    )


def stack_rows(parts: Sequence[Array | csr_matrix]) -> Array | csr_matrix:
    """Return all rows of the parts; sparse if any of them is."""
    if any(issparse(part) for part in parts):
        return csr_matrix(vstack([csr_matrix(part) for part in parts]))
    return np.concatenate(list(parts))


def check_labels(y: Any, n_rows: int) -> Labels:
    """Return y as labels of one type."""
    if y is None:
        raise LabelError(
            "requires y to be passed, but the target y is None: give a label for each row.",
            parameter="y",
        )
    labels = y if isinstance(y, Labels) else None
    values = _check_label_values(y if labels is None else labels.names)
    labels = Labels.of(values) if labels is None else replace(labels, names=values)
    if len(labels) != n_rows:
        raise LabelError(f"X has {n_rows} rows but y has {len(labels)} labels.", parameter="y")
    return labels


def _check_label_values(y: Any) -> Array:
    """Return labels as a 1-D array of one type."""
    try:
        y = unmasked(collected(y))
        if not hasattr(y, "dtype") and not hasattr(y, "__array__"):
            # A list may mix strings, numbers and nan, which numpy would make strings all.
            objects = np.asarray(y, dtype=object)
            y = objects if objects.ndim == 1 else y
        labels: Array = column_or_1d(y, warn=True)
        if labels.dtype.kind in "mMV":
            raise LabelError(
                f"y is {labels.dtype}: labels are strings, integers or bools.", parameter="y"
            )
        _refuse_missing(labels)
        labels = _with_one_type(labels)
        with warnings.catch_warnings():
            # scikit-learn warns where many labels are unique; that is no error here.
            warnings.simplefilter("ignore", UserWarning)
            check_classification_targets(labels)
    except (ValueError, TypeError, RuntimeError, ArithmeticError) as error:
        if isinstance(error, LabelError):
            raise
        raise LabelError(str(error), parameter="y") from error
    return labels


def _refuse_missing(labels: Array) -> None:
    if labels.dtype.kind not in "Of":
        return
    missing = [row for row, label in enumerate(labels) if is_missing(label)]
    if missing:
        raise LabelError(
            f"Input y contains NaN: no label in row {missing[0]} ({len(missing)} missing in all).",
            parameter="y",
            row=missing[0],
            hint="Do remove those rows or label them.",
        )


def _with_one_type(labels: Array) -> Array:
    """Return integers and bools of an object array as what they are; refuse a mixture."""
    if labels.dtype.kind != "O":
        return labels
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    kinds = {type(label) for label in plain}
    if len(kinds) > 1 and not kinds <= {int, float}:
        names = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise LabelError(
            f"y mixes labels of different types ({names}): make them all one type.", parameter="y"
        )
    if not kinds <= {int, float, bool}:
        return labels
    array = np.array(plain)
    if array.dtype.kind == "O":
        row = next(n for n, one in enumerate(plain) if not -(2**63) <= one < 2**64)
        raise LabelError(
            f"y has {excerpt(plain[row])} in row {row}, more than 64 bits: give strings.",
            parameter="y",
            row=row,
        )
    return array


def check_classes(classes: Any) -> Array:
    """Return the announced classes, sorted."""
    try:
        return encode_labels(check_labels(classes, len(classes)))[0]
    except (TypeError, LabelError) as error:  # TypeError: of what has no length
        raise LabelError(
            f"classes={excerpt(classes)}: give the list of all labels that will occur, two or "
            "more, of one type.",
            parameter="classes",
        ) from error


def encode_labels(labels: Labels) -> tuple[Array, NDArray[Any]]:
    """Return the sorted classes that occur and the class number of each row; at least two."""
    there = count_each(labels.codes, len(labels.names)) > 0
    classes = labels.names[there]
    if len(classes) < 2:
        raise LabelError(
            f"y has only one class ({listed(classes.tolist())}) in {len(labels)} rows: a "
            "classifier needs rows of at least two classes, of a weight over 0.",
            parameter="y",
        )
    if not there.all():
        labels = Labels(classes, (np.cumsum(there) - 1)[labels.codes])
    # In as little as it takes, where there are many.
    kind = np.min_scalar_type(len(classes)) if is_many(len(labels)) else np.int64
    return classes, labels.codes.astype(kind, copy=False)


def warn_of_equal_counts(classes: Array, codes: NDArray[np.int64]) -> None:
    """Say what resampling in front of the fit does, where the data looks like it."""
    counts = count_each(codes)
    if counts.min() == counts.max():
        warnings.warn(
            f"All {len(classes)} classes have exactly {counts[0]:,} rows. If that was made by "
            "SMOTE or another sampler, the out-of-fold figures are too good, for made-up rows tell "
            "of the rows of other folds: fit the rows as they were collected; classes need no "
            "balancing here.",
            UserWarning,
            stacklevel=2,
        )


def check_weights(sample_weight: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Return the weights of the rows, ones by default."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        given = as_floats(sample_weight)
        weights = np.full(n_rows, float(given)) if given.ndim == 0 else given
    except ValueError as error:
        raise _wrong_weights(f"must be numbers: {error}") from error
    if weights.shape != (n_rows,):
        raise _wrong_weights(
            f"has shape {weights.shape}: Sample weights must be 1D, one for each of the {n_rows} "
            "rows."
        )
    wrong = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(wrong):
        first = int(wrong[0])
        raise _wrong_weights(
            f"is {weights[first]} in row {first}: weights must be finite and not negative.", first
        )
    if not weights.any():
        raise _wrong_weights("is zero for every row: give at least one positive weight.")
    check_range(weights)
    return weights


def _wrong_weights(what: str, row: int | None = None) -> DataError:
    return DataError(f"sample_weight {what}", parameter="sample_weight", row=row)


def check_time(time: Any, n_rows: int, rows: Sequence[int] | Array | None = None) -> Array | None:
    """Return when each row was, as numbers or datetimes of numpy's, if there are times.

    Parameters
    ----------
    time : array-like of numbers, datetimes or ISO 8601 strings, or None
    n_rows : int
    rows : sequence of int, optional
        What messages call the rows; by default their numbers from 0.
    """
    if time is None:
        return None
    try:
        array = np.asarray(unmasked(collected(time)))
    except (TypeError, ValueError, RuntimeError) as error:
        raise DataError(f"time cannot be read: {error}", parameter="time") from error
    if array.shape != (n_rows,):
        raise DataError(
            f"time has shape {array.shape}: give one moment for each of {n_rows} rows; only a file "
            "has columns that can be named.",
            parameter="time",
        )
    moments, kinds = array, {"numbers"}
    if array.dtype.kind in "iufM":
        missing = np.flatnonzero(np.isnat(array) if array.dtype.kind == "M" else np.isnan(array))
    else:
        read = [_moment(one) for one in array.tolist()]
        missing = np.flatnonzero([one is None for one in read])
        moments, kinds = np.array([one[1] for one in read if one]), {one[0] for one in read if one}
    if len(missing):
        row = int(missing[0])
        number, value = row if rows is None else int(rows[row]), str(array[row])[:40] or "empty"
        raise DataError(
            f"time is {value} in row {number} ({len(missing)} such rows): give each a number, a "
            "date, or an ISO 8601 string such as 2024-01-31T12:30:00.",
            parameter="time",
            row=number,
        )
    if len(kinds) > 1:
        named = " and ".join(sorted(kinds))
        raise DataError(f"time mixes {named}: make them all one kind.", parameter="time")
    return moments


def _moment(value: Any) -> tuple[str, float] | None:
    """Return what kind of time a value is, and as a number; None if it is none."""
    try:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                value = datetime.fromisoformat(value.strip())
        if isinstance(value, np.datetime64):
            value = value.astype("datetime64[us]").item()
        if is_missing(value):
            return None
        if not isinstance(value, date):
            return "numbers", float(value)
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        kind = "dates without a zone" if value.tzinfo is None else "dates with a time zone"
        since = value - datetime(1970, 1, 1, tzinfo=None if value.tzinfo is None else UTC)
        return kind, since // timedelta(microseconds=1)
    except (TypeError, ValueError, RuntimeError, ArithmeticError):
        return None


def check_class_weight(class_weight: Any, classes: Array) -> NDArray[np.float64]:
    """Return one weight a class; None and "balanced" are all ones (see the classifier)."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return np.ones(len(classes))
    labels = classes.tolist()
    try:
        unknown = set(class_weight) - set(labels)
        weights = np.array([float(class_weight.get(label, 1.0)) for label in labels])
        wrong = not (np.isfinite(weights) & (weights > 0)).all()
    except (ValueError, TypeError, AttributeError, RuntimeError, OverflowError):
        unknown, wrong = set(), True
    if unknown or wrong:
        found = f" has classes that are not in y, {labels[:10]}" if unknown else ""
        raise ParameterError(
            f'class_weight={class_weight!r}{found}: give None, "balanced" or a dict from class to '
            "a positive, finite number.",
            parameter="class_weight",
        )
    return weights


def check_texts(texts: Any) -> list[str]:
    """Return the texts as a list of strings that have something in them.

    Parameters
    ----------
    texts : sequence of str
        A list, a tuple, a numpy array, or a column of pandas, polars or pyarrow.
    """
    texts = collected(texts)
    _refuse_what_holds_no_texts(texts)
    # numpy, pandas, polars and pyarrow each have a word for a list of plain values.
    named = [name for name in ("to_pylist", "to_list", "tolist") if hasattr(texts, name)]
    rows = getattr(texts, named[0])() if named else list(texts)
    if not rows:
        raise DataError("There are no texts: give at least one.")
    problems = [_problem_of(text) for text in rows]
    for problem in _PROBLEMS:
        wrong = [row for row, found in enumerate(problems) if found == problem]
        if wrong:
            numbers = ", ".join(map(str, wrong[:5])) + ", ..." * (len(wrong) > 5)
            raise (DataTypeError if problem == "no strings" else DataError)(
                f"{len(wrong)} of {len(rows)} texts are {problem} (row{'s' * (len(wrong) > 1)} "
                f"{numbers}), the first {rows[wrong[0]]!r:.40}.",
                row=wrong[0],
                hint="Remove these rows, or give their texts as strings.",
            )
    return [_with_whole_characters(text) for text in rows]


_PROBLEMS = ("missing", "no strings", "empty or only white space")


def _problem_of(text: Any) -> str | None:
    if isinstance(text, str):
        return None if text.strip() else "empty or only white space"
    return "missing" if np.ndim(text) == 0 and is_missing(text) else "no strings"


def _refuse_what_holds_no_texts(texts: Any) -> None:
    n_dimensions = getattr(texts, "ndim", 1)
    if isinstance(texts, (str, bytes)):
        found, hint = f"a single {type(texts).__name__}", "a list of strings, [text] for one"
    elif hasattr(texts, "columns") or hasattr(texts, "column_names"):
        found, hint = "a table", 'one column of it, such as table["text"]'
    elif n_dimensions != 1:
        found, hint = f"an array of {n_dimensions} dimensions", "one dimension, such as one column"
    elif isinstance(texts, (Mapping, Set)) or not isinstance(texts, Iterable):
        found, hint = f"a {type(texts).__name__}", "a list of strings"
    else:
        return
    raise DataTypeError(f"Got {found} where texts are expected.", hint=f"Give {hint}.")


def _with_whole_characters(text: str) -> str:
    """Return the text; halves of characters (lone surrogates), which UTF-8 lacks, are replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def at_least(number: int) -> Interval:
    """Allow integers from a number on, in a table of what parameters may be; a bool is none."""
    return _Integers(Integral, number, None, closed="left")


class _Integers(Interval):  # type: ignore[misc]  # scikit-learn has no types
    def is_satisfied_by(self, value: Any) -> bool:
        return not isinstance(value, bool) and bool(super().is_satisfied_by(value))


def between(low: float, high: float | None, closed: str = "neither") -> Interval:
    """Allow numbers in an interval, of which the ends that ``closed`` names are part."""
    return Interval(Real, low, high, closed=closed)


def one_of(*names: str) -> StrOptions:
    """Allow these strings."""
    return StrOptions(set(names))


def check_parameter(estimator: Any, name: str, value: Any, allowed: list[Any]) -> None:
    """Refuse a value of a parameter that is nothing of what is allowed."""
    owner = type(estimator).__name__
    try:
        validate_parameter_constraints({name: allowed}, {name: value}, owner)
    except InvalidParameterError as error:
        raise ParameterError(str(error), parameter=name) from None
