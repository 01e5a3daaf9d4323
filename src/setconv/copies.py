"""Rows that are there more than once: found by a hash of what they hold, and kept together.

A copy of a row on the other side of a split tells its label. So copies are left out together, as
the rows of a group are. All of it is linear in the rows, wherever they lie.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from setconv.rows import Matrix, row_slices

Keys = NDArray[np.uint64]
_CHUNK = 8192
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)
# Few values: rows of them are alike by nature. What is asked of a sample of different rows.
_SAMPLE = 4096
_FEW_VALUES = 10
_FEW_ROWS = 30
# A unit of a larger share of the rows would leave a member with too few to learn from.
_LARGEST_UNIT = 1 / 4

_LINK = re.compile(r"(?:https?://|www\.)\S+")
_MENTION = re.compile(r"@\w+")
_WORD = re.compile(r"\w")


class Ties(NamedTuple):
    """Rows that must stay on one side of every split.

    Attributes
    ----------
    units : int64 array of shape (n_rows,), or None
        Rows of equal numbers stay together; None if every row stands alone.
    shares : float64 array of shape (n_rows,), or None
        One over the number of copies that a row has, itself among them; None: all 1. What is
        learned without labels counts copies once: copied classes would else show in it.
    crossing : int64 array of shape (n_rows,), or None
        Equal for copies that were not tied, for else all groups would hang together: a row is then
        judged only by members that left all of its copies out.
    n_copies : int
        Rows that are copies of others.
    natural : bool
        Whether rows are alike because there are few different ones, and were not tied.
    """

    units: NDArray[np.int64] | None
    shares: NDArray[np.float64] | None = None
    crossing: NDArray[np.int64] | None = None
    n_copies: int = 0
    natural: bool = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What a report on the rows is to say."""
        if not self.n_copies:
            return ()
        said = f"{self.n_copies:,} rows are copies of others"
        if self.crossing is None:
            return (f"{said}, and were left out together.",)
        return (f"{said}; they are judged where no copy in another group was learned from.",)


def row_keys(rows: Matrix) -> Keys:
    """Return a number for each row, the same for rows that hold the same numbers.

    Different rows have different numbers but for a chance of about n^2 / 2^65, and a false copy
    does no harm: two rows are left out together.
    """
    if isinstance(rows, csr_matrix):
        return _sparse_keys(rows)
    factors = _factors(np.arange(rows.shape[1]))
    keys = np.empty(rows.shape[0], dtype=np.uint64)
    for part in row_slices(rows.shape[0], _CHUNK):
        keys[part] = (_bits(rows[part]) * factors).sum(axis=1, dtype=np.uint64)
    return keys


def text_keys(texts: Sequence[str]) -> Keys:
    """Return a number for each text, the same for texts that say the same.

    Case, white space, links and mentions make no difference, but for a text that has no word
    beside them.
    """
    found = bytearray()
    for text in texts:
        plain = text.casefold()
        bare = _MENTION.sub(" ", _LINK.sub(" ", plain))
        said = " ".join((bare if _WORD.search(bare) else plain).split())
        found += hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.frombuffer(found, dtype=np.uint64)


def tie_copies(
    keys: Keys, rows: Matrix, codes: NDArray[np.int64], groups: NDArray[Any] | None
) -> Ties:
    """Say which rows stay together: groups, copies, and groups that share copies.

    Where one such unit would have more than a quarter of the rows, because many groups share a row
    that is common, groups stay as they are and copies across them are not judged.

    Rows of few discrete values are alike by nature, and a new row will be like one of them too.
    Such rows are dealt as any others where tying them would leave a class with too few units.

    Parameters
    ----------
    keys : uint64 array of shape (n_rows,)
        Equal for copies.
    rows : Matrix
    codes : int array of shape (n_rows,)
    groups : array of shape (n_rows,), optional
    """
    numbers = None if groups is None else np.unique(groups, return_inverse=True)[1]
    _, first, copies, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    n_copies = len(keys) - len(first)
    if not n_copies:
        return Ties(numbers)
    units = copies if numbers is None else _joined(numbers, copies)
    if _alike_by_nature(rows, first, copies, units, codes):
        return Ties(numbers, natural=True)
    shares, crossing = 1 / counts[copies], None
    if numbers is not None:
        largest = max(np.bincount(numbers).max(), _LARGEST_UNIT * len(keys))
        if np.bincount(units).max() > largest:
            units, crossing = numbers, copies
    return Ties(units, shares, crossing, n_copies)


def _alike_by_nature(
    rows: Matrix,
    first: NDArray[np.int64],
    copies: NDArray[np.int64],
    units: NDArray[np.int64],
    codes: NDArray[np.int64],
) -> bool:
    """Whether there are few different rows, and too few of a class to deal them by kind."""
    n_kinds = _distinct_by_class(copies, codes).min()
    if n_kinds >= _FEW_ROWS or rows.shape[1] > 2 * _SAMPLE:
        return False
    sample: Any = rows[np.sort(first)[:_SAMPLE]]
    dense = sample.toarray() if isinstance(sample, csr_matrix) else sample
    values = np.array([len(np.unique(column)) for column in dense.T])
    # No more rows are possible than there are: then some must be alike.
    if np.log2(values).sum() <= math.log2(len(codes)):
        return True
    few = values.max() <= min(_FEW_VALUES, len(dense) / 4)
    return bool(few and _distinct_by_class(units, codes).min() == 1)


def _distinct_by_class(numbers: NDArray[np.int64], codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many different numbers the rows of each class have."""
    pairs = np.unique(numbers * (codes.max() + 1) + codes)
    return np.bincount(pairs % (codes.max() + 1))


def _joined(groups: NDArray[np.int64], copies: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the connected parts of rows, linked by groups and by copies."""
    n_groups = int(groups.max()) + 1
    size = n_groups + int(copies.max()) + 1
    links = csr_matrix((np.ones(len(groups), np.int8), (groups, copies + n_groups)), (size, size))
    parts = connected_components(links, directed=False)[1]
    return np.asarray(parts[groups], dtype=np.int64)


def _sparse_keys(rows: csr_matrix) -> Keys:
    """Return the keys of sparse rows; a zero that is stored counts as one that is not."""
    values = _bits(rows.data) * _factors(rows.indices)
    sums = np.concatenate([[np.uint64(0)], np.cumsum(values, dtype=np.uint64)])
    return np.asarray(sums[rows.indptr[1:]] - sums[rows.indptr[:-1]])


def _factors(columns: NDArray[Any]) -> Keys:
    """Return an odd number for each column."""
    return _mixed(columns.astype(np.uint64) + np.uint64(1)) | np.uint64(1)


def _bits(values: NDArray[Any]) -> Keys:
    """Return numbers as scattered bits: 0 for zero of either sign, which then adds nothing."""
    whole = np.ascontiguousarray(values) + np.zeros(1, values.dtype)  # -0.0 becomes 0.0
    unsigned = whole.view(np.uint32 if whole.dtype.itemsize == 4 else np.uint64)
    return _mixed(unsigned.astype(np.uint64))


def _mixed(bits: Keys) -> Keys:
    """Scatter 64 bits, in place; 0 stays 0."""
    bits *= _MIX
    bits ^= bits >> _SHIFT
    bits *= _MIX
    bits ^= bits >> _SHIFT
    return bits
