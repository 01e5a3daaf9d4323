"""What becomes of one column: a number, categories, or a vector of numbers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from setconv.errors import DataError
from setconv.records.values import as_numbers, is_text, is_vector, plain, without_missing

Floats = NDArray[np.float32]

MISSING_NAME = "(missing)"
OTHER_NAME = "(other)"
_CACHE_LINE = 16  # floats


@dataclass(frozen=True)
class NumberPlan:
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
        return [self.name, f"{self.name}={MISSING_NAME}"] if self.indicator else [self.name]

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
class CategoryPlan:
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
        extra = [OTHER_NAME, MISSING_NAME] if self.indicator else [OTHER_NAME]
        return [f"{self.name}={one}" for one in [*self.categories, *extra]]

    def columns(self, column: pa.Array, first_row: int) -> list[NDArray[Any]]:  # noqa: ARG002
        """Return the columns that come out, each of one float per row."""
        texts = as_categories(column)
        known = pa.array(self.categories, pa.large_string())
        found = pc.fill_null(pc.index_in(texts, value_set=known), len(self.categories))
        codes = found.to_numpy(zero_copy_only=False)
        if self.indicator:
            absent = np.asarray(pc.is_null(texts), dtype=bool)
            codes = np.where(absent, len(self.categories) + 1, codes)
        return [(codes == code).astype(np.float32) for code in range(len(self.names))]


@dataclass(frozen=True)
class VectorPlan:
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


Plan = NumberPlan | CategoryPlan | VectorPlan


def as_categories(column: Any) -> Any:
    """Return values of any type as strings, null where missing."""
    column = plain(column)
    texts = column if is_text(column.type) else pc.cast(column, pa.large_string())
    return without_missing(texts)


def described(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON-able data, but for its median."""
    config = {"kind": plan.kind, **asdict(plan)}
    config.pop("median", None)
    return config


def restored(config: dict[str, Any], median: float) -> Plan:
    """Return the plan that was `described`."""
    kind, fields = config["kind"], {key: one for key, one in config.items() if key != "kind"}
    if kind == CategoryPlan.kind:
        return CategoryPlan(**fields)
    if kind == VectorPlan.kind:
        return VectorPlan(**fields)
    return NumberPlan(kind=kind, median=median, **fields)


def write_columns(columns: list[NDArray[Any]], out: Floats) -> None:
    """Write columns side by side into a matrix of rows, a cache line of them at a time."""
    for place in range(0, len(columns), _CACHE_LINE):
        group = np.array(columns[place : place + _CACHE_LINE])
        out[:, place : place + _CACHE_LINE] = group.T
