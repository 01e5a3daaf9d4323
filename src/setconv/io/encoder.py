"""`FeatureEncoder`: from a table of numbers, categories and gaps to a matrix.

Fitting chooses an encoding for each column (`NumberEncoding`, `CategoryEncoding`, `VectorEncoding`)
or leaves it out; transforming lets each write its columns of the matrix, one after the other.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from setconv.errors import DataError, NotFittedError, ParameterError
from setconv.io.columns import (
    are_dates,
    are_numbers,
    as_numbers,
    as_table,
    is_date,
    is_number,
    is_text,
    is_vector,
    known_texts,
    plain,
    without_missing,
)
from setconv.messages import count_of, did_you_mean, excerpt, listed

_MISSING_NAME = "(missing)"
_OTHER_NAME = "(other)"
_NEARLY = 0.9  # share of numbers in a column of strings that is worth a note
_ENOUGH = 20  # values that tell a free text by how many of them are distinct
_ROWS = 16384  # encoded at once
_CACHE_LINE = 16  # floats


class FeatureEncoder(TransformerMixin, BaseEstimator):
    """Turn the feature columns of a table into a float32 matrix.

    - Numbers, and strings that all are numbers: missing values ("", NA, nan, null, ?) become the
      median of training; a column that had any in training gets a second one that says where.
    - Categories: one column for each of the most frequent, one for all others (also those that
      training did not see), and one for missing values if training had any.
    - True and false: 1 and 0. Dates: days since 1970-01-01. Lists of numbers: a column a place.
    - Left out: columns that are constant, whose strings differ in (almost) every row, or whose
      type cannot be a feature.

    Parameters
    ----------
    max_categories : int, default=30
        Categories of a column that get a column of their own.

    Attributes
    ----------
    notes_ : list of str
        Plain sentences on what was filled, encoded and left out.
    feature_names_in_ : ndarray of str
        All columns of the training table.
    n_features_in_ : int
    """

    def __init__(self, max_categories: int = 30) -> None:
        self.max_categories = max_categories

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Learn medians and categories.

        Parameters
        ----------
        X : pyarrow table, pandas or polars frame, or dict of columns
        y : ignored

        Returns
        -------
        self
        """
        if self.max_categories < 1:
            raise ParameterError(f"max_categories={self.max_categories!r}: at least 1 is needed.")
        table = as_table(X)
        if table.num_rows == 0:
            raise DataError("The table has no rows. Give at least two.")
        encodings: list[Encoding] = []
        notes: list[str] = []
        for name in table.column_names:
            encoding, said = _choose_encoding(name, table[name], self.max_categories)
            notes += said
            if encoding is not None:
                encodings.append(encoding)
        if not encodings:
            raise DataError(
                f"No column of {listed(table.column_names)} can be a feature: {' '.join(notes)}"
            )
        self._set(encodings, notes, table.column_names)
        return self

    def transform(self, X: Any, *, first_row: int = 1) -> NDArray[np.float32]:
        """Return the matrix; a row's numbers do not depend on the other rows.

        Parameters
        ----------
        X : pyarrow table, pandas or polars frame, or dict of columns
            With the columns that `fit` used, in any order; others are ignored.
        first_row : int, default=1
            Number of the first row, for messages on later batches of a file.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out), float32
        """
        encodings = self._fitted()
        table = as_table(X)
        known = table.column_names
        for encoding in encodings:
            if encoding.name not in known:
                raise DataError(
                    f"There is no column {encoding.name!r}, which the model was trained with."
                    f"{did_you_mean(encoding.name, known)} The columns are {listed(known)}."
                )
        out = np.empty((table.num_rows, len(self._names())), np.float32)
        start = 0
        for batch in table.select([encoding.name for encoding in encodings]).to_batches(_ROWS):
            self._write(batch, out[start : start + len(batch)], first_row + start)
            start += len(batch)
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the names of the columns of the matrix: "age", "city=Rome", "city=(other)"."""
        return np.array(self._names(), dtype=object)

    def describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fitted encoder as JSON-able data and arrays; `restore` takes them."""
        encodings = self._fitted()
        config = {
            "max_categories": self.max_categories,
            "columns_in": [str(name) for name in self.feature_names_in_],
            "columns": [_describe(encoding) for encoding in encodings],
            "notes": list(self.notes_),
        }
        medians = [getattr(encoding, "median", np.nan) for encoding in encodings]
        return config, {"medians": np.array(medians, dtype=np.float64)}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:
        """Return the encoder that was described.

        Parameters
        ----------
        config : dict
        arrays : dict of str to ndarray

        Returns
        -------
        FeatureEncoder
        """
        encoder = cls(max_categories=config["max_categories"])
        encodings = [
            _restore(one, float(median))
            for one, median in zip(config["columns"], arrays["medians"], strict=True)
        ]
        encoder._set(encodings, list(config["notes"]), config["columns_in"])
        return encoder

    def _set(self, encodings: list[Encoding], notes: list[str], names: list[str]) -> None:
        self._encodings = encodings
        self.notes_ = notes
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)

    def _write(self, batch: pa.RecordBatch, out: NDArray[np.float32], first_row: int) -> None:
        place = 0
        waiting: list[NDArray[Any]] = []
        for encoding, column in zip(self._encodings, batch.columns, strict=True):
            if isinstance(encoding, VectorEncoding):
                _write_columns(waiting, out[:, place - len(waiting) : place])
                waiting = []
                out[:, place : place + encoding.width] = encoding.matrix(column, first_row)
                place += encoding.width
            else:
                made = encoding.columns(column, first_row)
                waiting += made
                place += len(made)
        _write_columns(waiting, out[:, place - len(waiting) : place])

    def _names(self) -> list[str]:
        return [name for encoding in self._fitted() for name in encoding.names]

    def _fitted(self) -> list[Encoding]:
        if not hasattr(self, "_encodings"):
            raise NotFittedError("This FeatureEncoder is not fitted yet. Call fit first.")
        return self._encodings


def _write_columns(columns: list[NDArray[Any]], out: NDArray[np.float32]) -> None:
    """Write columns side by side into a matrix of rows, a cache line of them at a time."""
    for place in range(0, len(columns), _CACHE_LINE):
        group = np.array(columns[place : place + _CACHE_LINE])
        out[:, place : place + _CACHE_LINE] = group.T


def _choose_encoding(name: str, column: Any, max_categories: int) -> _Choice:
    """Return what becomes of a column, None if it is left out, and notes on it."""
    column = plain(column)
    kind = column.type
    if is_vector(kind):
        return _encoding_of_vectors(name, column)
    if is_number(kind):
        return _encoding_of_numbers(name, column, "number")
    if pa.types.is_boolean(kind):
        return _encoding_of_numbers(name, column, "boolean")
    if is_date(kind):
        return _encoding_of_numbers(name, column, "date")
    if pa.types.is_null(kind):
        return None, [f"{name}: left out, because all its values are missing."]
    if is_text(kind):
        return _encoding_of_texts(name, column, max_categories)
    return None, [f"{name}: left out, because values of type {kind} cannot be features."]


def _encoding_of_texts(name: str, column: Any, max_categories: int) -> _Choice:
    known = known_texts(column)
    if len(known) == 0:
        return None, [f"{name}: left out, because all its values are missing."]
    numeric = are_numbers(known)
    if pc.all(numeric).as_py():
        return _encoding_of_numbers(name, column, "number")
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(known))
    if pc.all(pc.is_in(lower, pa.array(["true", "false"], lower.type))).as_py():
        return _encoding_of_numbers(name, column, "boolean")
    if are_dates(known):
        return _encoding_of_numbers(name, column, "date")
    encoding, notes = _encoding_of_categories(name, column, max_categories)
    share = pc.mean(pc.cast(numeric, pa.uint8())).as_py()
    if share >= _NEARLY:
        bad = known.filter(pc.invert(numeric))
        notes.append(
            f"{name}: not taken as numbers, because {len(bad)} of {len(known)} values are not, "
            f"such as {excerpt(bad[0].as_py())}."
        )
    return encoding, notes


def _encoding_of_numbers(name: str, column: Any, kind: str) -> _Choice:
    numbers = as_numbers(column, kind, name, 1)
    missing = np.isnan(numbers)
    n_missing = int(missing.sum())
    known = numbers[~missing] if n_missing else numbers
    if len(known) == 0:
        return None, [f"{name}: left out, because all its values are missing."]
    if not n_missing and known.min() == known.max():
        return None, [f"{name}: left out, because it is {known[0]:g} in every row."]
    median = float(np.median(known))
    notes = []
    if kind == "date":
        notes.append(f"{name}: dates became days since 1970-01-01.")
    if n_missing:
        notes.append(
            f"{name}: {count_of(n_missing, 'missing value was', 'missing values were')} filled "
            f"with the median {median:g}, and a second column says where."
        )
    return NumberEncoding(name, kind, median, n_missing > 0), notes


def _encoding_of_categories(name: str, column: Any, max_categories: int) -> _Choice:
    texts = _as_categories(column)
    n_missing = texts.null_count
    counts = pc.value_counts(texts.drop_null())
    # Equally frequent ones in the order of the alphabet: the order of the rows must not matter.
    found = sorted(
        ((one["counts"], one["values"]) for one in counts.to_pylist()),
        key=lambda pair: (-pair[0], pair[1]),
    )
    n_known = len(texts) - n_missing
    if len(found) == n_known and n_known > 1:
        return None, [f"{name}: left out, because it has another value in every row."]
    if n_known >= _ENOUGH and 2 * len(found) > n_known:
        return None, [
            f"{name}: left out, because {len(found)} of its {n_known} values are distinct, as in a "
            "free text."
        ]
    if len(found) == 1 and not n_missing:
        return None, [f"{name}: left out, because it is {excerpt(found[0][1])} in every row."]
    kept = [value for _, value in found[:max_categories]]
    encoding = CategoryEncoding(name, kept, n_missing > 0)
    if len(found) > len(kept):
        notes = [
            f"{name}: the {len(kept)} most frequent of {len(found)} categories became a column "
            "each, the others share one."
        ]
    else:
        notes = [f"{name}: {count_of(len(kept), 'category', 'categories')} became a column each."]
    if n_missing:
        notes.append(
            f"{name}: {count_of(n_missing, 'missing value is', 'missing values are')} a category "
            "of their own."
        )
    return encoding, notes


def _encoding_of_vectors(name: str, column: Any) -> _Choice:
    width = pc.max(pc.list_value_length(column)).as_py()
    if not width:
        raise DataError(f"The column {name!r} has only empty lists. Leave it out.")
    return VectorEncoding(name, width), []


def _as_categories(column: Any) -> Any:
    """Return values of any type as strings, null where missing."""
    column = plain(column)
    texts = column if is_text(column.type) else pc.cast(column, pa.large_string())
    return without_missing(texts)


@dataclass(frozen=True)
class NumberEncoding:
    """A column of numbers; missing ones become the median.

    Parameters
    ----------
    name : str
    kind : {"number", "boolean", "date"}
    median : float
    indicator : bool
        Whether a second column says which values were missing.
    """

    name: str
    kind: str
    median: float
    indicator: bool

    @property
    def names(self) -> list[str]:
        """Names of the columns that come out."""
        return [self.name, f"{self.name}={_MISSING_NAME}"] if self.indicator else [self.name]

    def columns(self, column: pa.Array, first_row: int) -> list[NDArray[Any]]:
        """Return the columns that come out, each of one float per row."""
        numbers = as_numbers(plain(column), self.kind, self.name, first_row)
        if numbers.dtype != np.float32:
            with np.errstate(over="ignore"):  # found just below, with its row
                numbers = numbers.astype(np.float32)
        if np.isfinite(numbers).all():
            return [numbers, np.zeros(len(numbers), np.float32)] if self.indicator else [numbers]
        missing = np.isnan(numbers)
        infinite = np.flatnonzero(np.isinf(numbers))
        if len(infinite):
            raise DataError(
                f"The column {self.name!r} has a value in row {first_row + int(infinite[0])} that "
                "is infinite or too large. Correct it, or leave the field empty if it is missing."
            )
        filled = np.where(missing, np.float32(self.median), numbers)
        return [filled, missing.astype(np.float32)] if self.indicator else [filled]


@dataclass(frozen=True)
class CategoryEncoding:
    """A column of categories: one column for each, one for all others, one for missing.

    Parameters
    ----------
    name : str
    categories : list of str
        The most frequent first.
    indicator : bool
        Whether missing is a category of its own; else it is one of the others.
    """

    name: str
    categories: list[str]
    indicator: bool
    kind: ClassVar[str] = "category"

    @property
    def names(self) -> list[str]:
        """Names of the columns that come out."""
        extra = [_OTHER_NAME, _MISSING_NAME] if self.indicator else [_OTHER_NAME]
        return [f"{self.name}={one}" for one in [*self.categories, *extra]]

    def columns(self, column: pa.Array, first_row: int) -> list[NDArray[Any]]:  # noqa: ARG002
        """Return the columns that come out, each of one float per row."""
        texts = _as_categories(column)
        known = pa.array(self.categories, pa.large_string())
        found = pc.fill_null(pc.index_in(texts, value_set=known), len(self.categories))
        codes = found.to_numpy(zero_copy_only=False)
        if self.indicator:
            absent = np.asarray(pc.is_null(texts), dtype=bool)
            codes = np.where(absent, len(self.categories) + 1, codes)
        return [(codes == code).astype(np.float32) for code in range(len(self.names))]


@dataclass(frozen=True)
class VectorEncoding:
    """A column of lists of numbers, such as embeddings: one column for each place.

    Parameters
    ----------
    name : str
    width : int
    """

    name: str
    width: int
    kind: ClassVar[str] = "vector"

    @property
    def names(self) -> list[str]:
        """Names of the columns that come out."""
        return [f"{self.name}[{place}]" for place in range(self.width)]

    def matrix(self, column: pa.Array, first_row: int) -> NDArray[Any]:
        """Return the lists as a matrix."""
        if not is_vector(column.type):
            raise DataError(
                f"The column {self.name!r} is {column.type} here, but held lists of {self.width} "
                "numbers in training. Give it the same type."
            )
        lengths = pc.fill_null(pc.list_value_length(column), -1)
        wrong = pc.index(pc.equal(lengths, self.width), False).as_py()
        if wrong >= 0:
            found = lengths[wrong].as_py()
            raise DataError(
                f"The column {self.name!r} has {'no list' if found < 0 else f'a list of {found}'} "
                f"in row {first_row + wrong}, but lists of {self.width} numbers elsewhere. Give "
                "every row a list of the same length, or remove the row."
            )
        values = as_numbers(column.flatten(), "number", self.name, first_row)
        numbers = values.reshape(len(column), self.width)
        finite = np.isfinite(numbers)
        if not finite.all():
            row = int(np.flatnonzero(~finite.all(axis=1))[0])
            raise DataError(
                f"The column {self.name!r} has a missing or infinite number in the list of row "
                f"{first_row + row}. Remove the row, or encode it again."
            )
        return numbers


Encoding = NumberEncoding | CategoryEncoding | VectorEncoding
_Choice = tuple[Encoding | None, list[str]]  # and notes on the column


def _describe(encoding: Encoding) -> dict[str, Any]:
    """Return an encoding as JSON-able data, but for its median."""
    config = {"kind": encoding.kind, **asdict(encoding)}
    config.pop("median", None)
    return config


def _restore(config: dict[str, Any], median: float) -> Encoding:
    """Return the encoding that `_describe` described."""
    kind, fields = config["kind"], {key: one for key, one in config.items() if key != "kind"}
    if kind == CategoryEncoding.kind:
        return CategoryEncoding(**fields)
    if kind == VectorEncoding.kind:
        return VectorEncoding(**fields)
    return NumberEncoding(kind=kind, median=median, **fields)
