"""`FeatureEncoder`: from a table of numbers, categories and gaps to a matrix.

Fitting chooses an encoding for each column (`NumberEncoding`, `CategoryEncoding`, `VectorEncoding`)
or leaves it out; transforming lets each write its columns of the matrix, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow.types import is_boolean, is_null
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from setconv.data import from_plain
from setconv.errors import DataError
from setconv.io.columns import (
    Numbers,
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
from setconv.messages import check_integer, count_of, excerpt, listed, require_column, shown_day

_MISSING_NAME = "(missing)"
_OTHER_NAME = "(other)"
_NEARLY = 0.9  # share of numbers in a column of strings that is worth a note
_ENOUGH = 20  # values that tell a free text by how many of them are distinct
_WIDEST = 1 << 20  # columns of a vector
_ROWS = 4096  # encoded at once: a wide matrix of them fits into a cache

Matrix = NDArray[np.float32]


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
        check_integer("max_categories", self.max_categories, least=1)
        table = as_table(X)
        if table.num_rows == 0:
            raise DataError("The table has no rows. Give at least two.")
        encodings: list[Encoding] = []
        notes: list[str] = []
        for name in table.column_names:
            try:
                with _read(name):
                    encoding, said = _choose_encoding(name, table[name], self.max_categories)
                encodings.append(encoding)
                notes += [f"{name}: {sentence}." for sentence in said]
            except _LeftOutError as reason:
                notes.append(f"{name}: left out, because {reason}.")
        if not encodings:
            raise DataError(
                f"No column of {listed(table.column_names)} can be a feature: {' '.join(notes)}"
            )
        self._set(encodings, notes, table.column_names)
        return self

    @classmethod
    def of_numbers(cls, names: Sequence[str]) -> Self:
        """Return a fitted encoder that takes columns of numbers as they are; it fills no gaps."""
        encoder = cls()
        encoder._set([NumberEncoding(str(name), "number", None) for name in names], [], names)
        return encoder

    def transform(self, X: Any, *, rows: Numbers | None = None) -> Matrix:
        """Return the matrix; a row's numbers do not depend on the other rows.

        Parameters
        ----------
        X : pyarrow table, pandas or polars frame, or dict of columns
            With the columns that `fit` used, in any order; others are ignored.
        rows : sequence of int or None, default=None
            What messages call the rows; None: by their numbers from 1 on.

        Returns
        -------
        ndarray of shape (n_rows, n_features_out), float32
        """
        encodings = self._fitted()
        table = as_table(X)
        called = range(1, table.num_rows + 1) if rows is None else rows
        names = [require_column(one.name, table.column_names, "X") for one in encodings]
        ends = np.cumsum([0, *(len(one.names) for one in encodings)])
        out, start = np.empty((table.num_rows, ends[-1]), np.float32), 0
        for batch in table.select(names).to_batches(_ROWS):
            part = slice(start, start + len(batch))
            places = np.split(out[part], ends[1:-1], axis=1)
            for encoding, column, into in zip(encodings, batch.columns, places, strict=False):
                with _read(encoding.name):
                    encoding.write(column, called[part], into)
            start = part.stop
        return out

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:  # noqa: ARG002
        """Return the names of the columns of the matrix: "age", "city=Rome", "city=(other)"."""
        return np.array([name for one in self._fitted() for name in one.names], dtype=object)

    def describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the fitted encoder as JSON-able data and arrays; `restore` takes them."""
        config = {
            "max_categories": self.max_categories,
            "columns_in": [str(name) for name in self.feature_names_in_],
            "columns": [asdict(encoding) for encoding in self._fitted()],
            "notes": list(self.notes_),
        }
        return config, {}

    @classmethod
    def restore(cls, config: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Self:  # noqa: ARG003
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
        classes = [_OTHER_KINDS.get(one["kind"], NumberEncoding) for one in config["columns"]]
        encodings = list(map(from_plain, classes, config["columns"]))
        kinds = {one.kind for one in encodings} - set(_OTHER_KINDS) - {"number", "boolean", "date"}
        widths = [one.width for one in encodings if isinstance(one, VectorEncoding)]
        if kinds or any(not 0 < width <= _WIDEST for width in widths):
            raise ValueError("wrong: columns")
        if {one.name for one in encodings} - set(config["columns_in"]):
            raise ValueError("wrong: columns_in")
        encoder._set(encodings, list(map(str, config["notes"])), config["columns_in"])
        return encoder

    def _set(self, encodings: Sequence[Encoding], notes: list[str], names: Sequence[str]) -> None:
        self._columns = [asdict(encoding) for encoding in encodings]  # plain, for pickle and skops
        self.notes_ = notes
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)

    def _fitted(self) -> list[Encoding]:
        check_is_fitted(self, "_columns")
        return [_OTHER_KINDS.get(one["kind"], NumberEncoding)(**one) for one in self._columns]


@contextmanager
def _read(name: str) -> Iterator[None]:
    """Name the column of values that pyarrow cannot take for what they are to be."""
    try:
        yield
    except pa.ArrowException as error:
        raise DataError(
            f"The column {name!r} cannot be read: {error}. Give it the type that it had in "
            "training, numbers or strings.",
            column=name,
        ) from error


class _LeftOutError(Exception):
    """A column cannot be a feature, for this reason."""


_KINDS = {is_number: "number", is_null: "number", is_boolean: "boolean", is_date: "date"}


def _choose_encoding(name: str, column: Any, max_categories: int) -> tuple[Encoding, list[str]]:
    """Return what becomes of a column, and notes on it."""
    column = plain(column)
    if is_vector(column.type):
        width = pc.max(pc.list_value_length(column)).as_py()
        if not width:
            raise _LeftOutError("it has only empty lists")
        return VectorEncoding(name, width), []
    if is_text(column.type):
        return _encoding_of_texts(name, column, max_categories)
    for holds, kind in _KINDS.items():
        if holds(column.type):
            return _encoding_of_numbers(name, column, kind)
    raise _LeftOutError(f"values of type {column.type} cannot be features")


def _encoding_of_texts(name: str, column: Any, max_categories: int) -> tuple[Encoding, list[str]]:
    known = known_texts(column)
    numeric = are_numbers(known)
    lower = pc.utf8_lower(pc.utf8_trim_whitespace(known))
    if pc.all(numeric).as_py() or not len(known):
        return _encoding_of_numbers(name, column, "number")
    if pc.all(pc.is_in(lower, pa.array(["true", "false"], lower.type))).as_py():
        return _encoding_of_numbers(name, column, "boolean")
    if are_dates(known):
        return _encoding_of_numbers(name, column, "date")
    encoding, notes = _encoding_of_categories(name, column, max_categories)
    bad = known.filter(pc.invert(numeric))
    if len(bad) <= (1 - _NEARLY) * len(known):
        notes.append(
            f"not taken as numbers, because {len(bad)} of {len(known)} values are not, such as "
            f"{excerpt(bad[0].as_py())}"
        )
    return encoding, notes


def _encoding_of_numbers(name: str, column: Any, kind: str) -> tuple[Encoding, list[str]]:
    numbers = as_numbers(column, kind, name, range(1, len(column) + 1))
    missing = np.isnan(numbers)
    n_missing = int(missing.sum())
    known = numbers[~missing] if n_missing else numbers
    if len(known) == 0:
        raise _LeftOutError("all its values are missing")
    shown = shown_day if kind == "date" else "{:g}".format
    if not n_missing and known.min() == known.max():
        raise _LeftOutError(f"it is {shown(known[0])} in every row")
    median = float(np.median(known))
    notes = ["dates became days since 1970-01-01"] if kind == "date" else []
    if n_missing:
        were = count_of(n_missing, "missing value was", "missing values were")
        filled = f"{were} filled with the median {shown(median)}"
        notes.append(f"{filled}, and a second column says where")
    return NumberEncoding(name, kind, median, n_missing > 0), notes


def _encoding_of_categories(name: str, column: Any, most: int) -> tuple[Encoding, list[str]]:
    known = known_texts(column)
    n_missing, n_known = len(column) - len(known), len(known)
    counts = pc.value_counts(known).to_pylist()
    # Equally frequent ones in the order of the alphabet: the order of the rows must not matter.
    found = [one["values"] for one in sorted(counts, key=lambda c: (-c["counts"], c["values"]))]
    if len(found) == n_known and n_known > 1:
        raise _LeftOutError("it has another value in every row")
    if n_known >= _ENOUGH and 2 * len(found) > n_known:
        raise _LeftOutError(f"{len(found)} of its {n_known} values are distinct, as in a free text")
    if len(found) == 1 and not n_missing:
        raise _LeftOutError(f"it is {excerpt(found[0])} in every row")
    kept = found[:most]
    notes = [f"{count_of(len(kept), 'category', 'categories')} became a column each"]
    if len(found) > len(kept):
        frequent = f"the {len(kept)} most frequent of {len(found)} categories"
        notes = [f"{frequent} became a column each, the others share one"]
    if n_missing:
        are = count_of(n_missing, "missing value is", "missing values are")
        notes.append(f"{are} a category of their own")
    return CategoryEncoding(name, kept, n_missing > 0), notes


@dataclass(frozen=True)
class NumberEncoding:
    """A column of numbers; missing ones become the median.

    Parameters
    ----------
    name : str
    kind : {"number", "boolean", "date"}
    median : float or None
        None to refuse missing ones.
    indicator : bool, default=False
        Whether a second column says which values were missing.
    """

    name: str
    kind: str
    median: float | None
    indicator: bool = False

    @property
    def names(self) -> list[str]:
        """Names of the columns that come out."""
        return [self.name, f"{self.name}={_MISSING_NAME}"] if self.indicator else [self.name]

    def write(self, column: pa.Array, rows: Numbers, out: Matrix) -> None:
        """Write what becomes of a column; ``rows`` are what messages call its rows."""
        numbers = as_numbers(plain(column), self.kind, self.name, rows)
        with np.errstate(over="ignore"):  # found just below, with its row
            out[:, 0] = numbers
        missing = np.isnan(out[:, 0])
        bad = np.flatnonzero(np.isinf(out[:, 0]) | (missing & (self.median is None)))
        if len(bad):
            raise DataError(
                f"The column {self.name!r} has no number in row {rows[bad[0]]}, or one that is "
                "infinite or too large. Correct it, or leave the field empty if it is missing.",
                row=int(rows[bad[0]]),
                column=self.name,
            )
        out[missing, 0] = self.median
        out[:, 1:] = missing[:, None]  # of the indicator, if there is one


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
    kind: str = "category"

    @property
    def names(self) -> list[str]:
        """Names of the columns that come out."""
        extra = [_OTHER_NAME, _MISSING_NAME] if self.indicator else [_OTHER_NAME]
        return [f"{self.name}={one}" for one in [*self.categories, *extra]]

    def write(self, column: pa.Array, rows: Numbers, out: Matrix) -> None:  # noqa: ARG002
        """Write what becomes of a column."""
        texts = without_missing(pc.cast(plain(column), pa.large_string()))
        known = pa.array(self.categories, pa.large_string())
        found = pc.fill_null(pc.index_in(texts, value_set=known), len(self.categories))
        codes = found.to_numpy(zero_copy_only=False)
        if self.indicator:
            absent = np.asarray(pc.is_null(texts), dtype=bool)
            codes = np.where(absent, len(self.categories) + 1, codes)
        out[:] = codes[:, None] == np.arange(out.shape[1])


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
    kind: str = "vector"

    @property
    def names(self) -> list[str]:
        """Names of the columns that come out."""
        return [f"{self.name}[{place}]" for place in range(self.width)]

    def write(self, column: pa.Array, rows: Numbers, out: Matrix) -> None:
        """Write what becomes of a column; ``rows`` are what messages call its rows."""
        if not is_vector(column.type):
            raise DataError(
                f"The column {self.name!r} is {column.type} here, but held lists of {self.width} "
                "numbers in training. Give it the same type.",
                column=self.name,
            )
        lengths = pc.fill_null(pc.list_value_length(column), -1)
        bad = pc.index(pc.equal(lengths, self.width), False).as_py()
        if bad < 0:
            out[:] = as_numbers(column.flatten(), "number", self.name, rows).reshape(out.shape)
            bad = int(np.argmin(np.isfinite(out).all(axis=1)))
            if np.isfinite(out[bad]).all():
                return
        raise DataError(
            f"The column {self.name!r} has no list of {self.width} numbers in row {rows[bad]}: it "
            "is missing, of another length, or has gaps or infinite numbers. Mend or remove the "
            "row.",
            row=int(rows[bad]),
            column=self.name,
        )


Encoding = NumberEncoding | CategoryEncoding | VectorEncoding
_OTHER_KINDS: dict[str, Any] = {"category": CategoryEncoding, "vector": VectorEncoding}
