"""What the numerics ask of rows, wherever these lie, and of the learned parts of a model.

First what other libraries' columns are as plain arrays, and the weights that can be compared.
`Matrix` is satisfied by arrays, csr matrices and rows on disk, and no module here knows a file.
What is learned from all rows is learned in passes over them in their order: `row_blocks` gives the
rows, and `BlockSums` merges what blocks of them add up to. `Rows` are features with their classes,
weights and groups. A `Part` is learned, and is nothing but arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from types import UnionType
from typing import (
    Any,
    ClassVar,
    Generic,
    Literal,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from setconv.errors import DataError

CHUNK = 8192  # rows at a time
# Rows whose sums are made apart and merged, in their order: these numbers depend on the number of
# rows alone, so whoever makes the sums, and wherever the rows lie, comes to the same result.
MERGED = 1 << 16
_Plain = TypeVar("_Plain")


def collected(values: Any) -> Any:
    """Return a LazyFrame of polars as the frame that it stands for, and all else as it is."""
    if type(values).__name__ != "LazyFrame" or not hasattr(values, "collect"):
        return values
    try:
        return values.collect()
    except Exception as error:  # whatever its query fails with
        raise DataError(f"The LazyFrame cannot be collected: {error}") from error


def unmasked(values: Any) -> Any:
    """Return a masked array as objects that are None where it is masked, and all else as it is."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    plain: NDArray[Any] = values.data
    if values.mask.any():
        plain = plain.astype(object)
        plain[values.mask] = None
    return plain


def as_floats(values: Any) -> NDArray[np.float64]:
    """Return numbers as an array of float64, NaN for None; what is no number is a ValueError."""
    try:
        array = np.asarray(unmasked(collected(values)))
        if array.dtype.kind in "cmMV":
            raise ValueError(f"they are {array.dtype}")
        return array.astype(np.float64)
    except (TypeError, RuntimeError, ArithmeticError) as error:
        raise ValueError(str(error)) from error


_EXTREME = 1e120  # squares and ratios of weights up to here are numbers


def check_range(weights: NDArray[np.float64]) -> None:
    """Refuse weights, which are finite and not negative, that are too large or small to compare."""
    wrong = np.flatnonzero((weights > _EXTREME) | ((weights > 0) & (weights < 1 / _EXTREME)))
    if len(wrong):
        row = int(wrong[0])
        raise DataError(
            f"sample_weight is {weights[row]} in row {row}: give weights from {1 / _EXTREME:g} to "
            f"{_EXTREME:g}, or 0.",
            parameter="sample_weight",
            row=row,
            hint="Only their ratios count: divide all by the largest, and make the tiniest 0.",
        )


class Matrix(Protocol):
    """Rows and columns of numbers, of which slices of rows and rows by number can be had."""

    @property
    def shape(self) -> Any:
        """Number of rows and of columns."""

    def __getitem__(self, key: Any, /) -> Any:
        """Return the rows of a slice or of an array of row numbers, as an array or csr matrix."""


@runtime_checkable
class StoredRows(Protocol):
    """Rows that are not in memory: they are read in their order, as often as it takes."""

    shape: tuple[int, int]

    def blocks(self, size: int) -> Iterator[NDArray[Any]]:
        """Yield all rows, so many at a time; each block is good until the next is asked for."""

    def subset(self, chosen: NDArray[Any]) -> StoredRows:
        """Return the rows of these numbers, which ascend; none is read yet."""

    def whole(self) -> NDArray[Any]:
        """Return all rows as an array."""


Features: TypeAlias = Matrix | StoredRows


def row_blocks(features: Features, size: int = CHUNK) -> Iterator[tuple[slice, Any]]:
    """Yield all rows in their order, so many at a time, with where they are: one pass."""
    parts = gen_batches(features.shape[0], size)
    if isinstance(features, StoredRows):
        yield from zip(parts, features.blocks(size), strict=True)
    else:
        for part in parts:
            yield part, features[part]


class Mergeable(Protocol):
    """What rows add up to; sums of some rows and of others are merged."""

    def add(self, *rows: Any) -> None:
        """Add rows."""

    def merge(self, other: Self) -> None:
        """Add the sums of rows that come after these."""


_Sums = TypeVar("_Sums", bound=Mergeable)


class BlockSums(Generic[_Sums]):
    """Sums over all rows, made by blocks of `MERGED` rows that are merged in their order.

    Parameters
    ----------
    empty : callable
        Makes the sums of no rows.
    """

    def __init__(self, empty: Callable[[], _Sums]) -> None:
        self._empty = empty
        self._total: _Sums | None = None
        self._block = empty()

    def add(self, part: slice, *rows: Any) -> None:
        """Add rows, of which ``part`` has the numbers; a block does not end among them."""
        if part.start and part.start % MERGED == 0:
            self._total, self._block = self.total(), self._empty()
        self._block.add(*rows)

    def total(self) -> _Sums:
        """Return the sums over all rows."""
        if self._total is None:
            return self._block
        self._total.merge(self._block)
        return self._total


@dataclass(frozen=True)
class Rows:
    """Rows with what belongs to each of them.

    Attributes
    ----------
    features : Features
    codes : int array of shape (n_rows,)
        Class numbers.
    weights : float64 array of shape (n_rows,)
        Within a class; their mean is 1 in each.
    groups : int64 array of shape (n_rows,), optional
        Equal for rows of one group that the user named.
    units : int64 array of shape (n_rows,), optional
        Rows of equal numbers stay on one side of a split: groups and copies.
    shares : float64 array of shape (n_rows,), optional
        One over the number of copies of a row.
    crossing : int array of shape (n_rows,), optional
        Equal for copies that need not be on one side: see `setconv.sampling.Ties`.
    numbers : int64 array of shape (n_rows,), optional
        Which of the rows that the user gave these are; None: all of them, in their order.
    moments : int64 array of shape (n_rows,), optional
        When, as numbers from 0 on without gaps: rows are then judged forward in time.
    buckets : uint8 array of shape (n_rows,), optional
        Of many rows: equal for rows that stay on one side of a split. Units are then groups alone.
    natural : bool
        Whether many rows are alike because few different ones are possible.
    """

    features: Features
    codes: NDArray[Any]
    weights: NDArray[np.float64]
    groups: NDArray[np.int64] | None = None
    units: NDArray[np.int64] | None = None
    shares: NDArray[np.float64] | None = None
    crossing: NDArray[Any] | None = None
    numbers: NDArray[np.int64] | None = None
    moments: NDArray[np.int64] | None = None
    buckets: NDArray[np.uint8] | None = None
    natural: bool = False

    def take(self, chosen: NDArray[np.int64]) -> Rows:
        """Return the rows of these numbers; those that are not in memory stay where they are."""
        taken: dict[str, Any] = {"numbers": chosen, "features": choose(self.features, chosen)}
        for name, values in vars(self).items():
            if isinstance(values, np.ndarray) and name != "features":
                taken[name] = values[chosen]
        return replace(self, **taken)

    @property
    def weights_once(self) -> NDArray[np.float64]:
        """The weights for what is learned without labels, in which copies count as one row."""
        return self.weights if self.shares is None else self.weights * self.shares


def choose(features: Features, chosen: NDArray[np.int64]) -> Any:
    """Return chosen rows, by number; of those that are not in memory none is read yet."""
    return features.subset(chosen) if isinstance(features, StoredRows) else features[chosen]


def count_each(numbers: NDArray[Any], size: int = 0) -> NDArray[np.int64]:
    """Return how often each number from 0 on occurs, up to ``size`` of them at least.

    `numpy.bincount` alone would make eight bytes of each of many small numbers.
    """
    largest = int(numbers.max()) if len(numbers) else -1
    counts = np.zeros(max(size, largest + 1), dtype=np.int64)
    for start in range(0, len(numbers), MERGED):
        counts += np.bincount(numbers[start : start + MERGED], minlength=len(counts))
    return counts


def joined(parts: Iterator[NDArray[Any]], n_rows: int = 0) -> NDArray[Any]:
    """Return arrays end to end, of which all but one block of memory is let go as they come.

    ``n_rows`` is how many rows there are, where that is known: the block is then made once. Many
    small arrays that are kept between large temporary ones would fragment the heap.
    """
    rows, done = next(parts), -1
    for part in parts:
        done = len(rows) if done < 0 else done
        if done + len(part) > len(rows):
            height = n_rows if done + len(part) <= n_rows else 2 * done + len(part)
            grown = np.empty((height, *rows.shape[1:]), rows.dtype)
            grown[:done] = rows[:done]
            rows = grown
        rows[done : done + len(part)] = part
        done += len(part)
    return rows if done < 0 else rows[:done]


def count_heads(n_classes: int) -> int:
    """Return the number of heads: one for two classes, else one a class (section 3.4)."""
    return 1 if n_classes == 2 else n_classes


@dataclass(frozen=True)
class Part:
    """A learned part of a model that is nothing but its fields, which are arrays and numbers.

    Attributes
    ----------
    kind : str
        Its name in a model's files.
    """

    kind: ClassVar[str]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the fields by name, as a model's files keep them."""
        return {one.name: np.asarray(getattr(self, one.name), order="C") for one in fields(self)}

    @classmethod
    def restore(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the part that has these fields; an array without dimensions is a number."""
        return cls(**{name: one if one.ndim else one.item() for name, one in arrays.items()})


def from_plain(cls: type[_Plain], plain: Mapping[str, Any]) -> _Plain:
    """Return a dataclass from what JSON keeps of it; a wrong type is a ValueError."""
    hints = get_type_hints(cls)
    for name, value in plain.items():
        if not _is_of(value, hints[name]):
            raise ValueError(f"wrong: {name} of {cls.__name__}")
    return cls(**{name: _as_tuples(value, hints[name]) for name, value in plain.items()})


def _is_of(value: Any, hint: Any) -> bool:
    origin, args = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return any(_is_of(value, one) for one in args)
    if origin is Literal:
        return type(value) is str and value in args
    if origin is list or (origin is tuple and args[-1] is Ellipsis):
        return isinstance(value, list | tuple) and all(_is_of(one, args[0]) for one in value)
    if origin is tuple:
        some = isinstance(value, list | tuple) and len(value) == len(args)
        return some and all(map(_is_of, value, args))
    if hint is float:
        return type(value) in (int, float)
    return type(value) is hint


def _as_tuples(value: Any, hint: Any) -> Any:
    """Return lists of JSON as the tuples, also of tuples, that they were."""
    if type(value) is list and "tuple[" in str(hint):
        return tuple(_as_tuples(one, hint) for one in value)
    return value
