"""Which rows are drawn, which stay together, and which are left out by whom.

First draws by class: places in the ratio of the classes, rows of each, and how often a bootstrap
draws a row. Then splits. Copies of a row, and rows of a group, must stay on one side of every one:
`row_keys` and `text_keys` find copies, `check_groups` reads groups, and `tie_copies` says which
rows stay together. `leave_out` deals rows to the members that do not learn from them, by folds
(`assign_folds`) that are stratified by class, and `leave_later_out` by time. A `Split` says it in a
small number a row.

Beyond a million rows (`is_many`) no array of them is shuffled. Folds are shares of `buckets`, to
which a row belongs by its content, or its group, alone. Rows are drawn by their place among those
of a kind, in a `KeyedOrder` of which any part can be had by itself, and `nth_rows` finds them.
"""

from __future__ import annotations

import hashlib
import heapq
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from scipy.sparse.csgraph import connected_components
from sklearn.utils import gen_batches

from setconv.data import Features, StoredRows, choose, collected, count_each, row_blocks, unmasked
from setconv.errors import DataError
from setconv.messages import is_missing

Indices: TypeAlias = NDArray[np.int64]
Keys: TypeAlias = NDArray[np.uint64]
MANY_ROWS = 1_000_000


def is_many(n_rows: int) -> bool:
    """Whether there are so many rows that nothing is kept of each but its class and its fold."""
    return n_rows > MANY_ROWS


def share_out(counts: NDArray[Any], size: int, least: int = 1) -> Indices:
    """Share ``size`` places in the ratio of ``counts``: largest remainder, at least ``least`` each.

    Examples
    --------
    >>> share_out(np.array([900, 95, 5]), 64).tolist()
    [57, 6, 1]
    """
    ideal = size * counts / counts.sum()
    places: Indices = np.maximum(least, np.floor(ideal).astype(np.int64))
    while places.sum() < size:
        places[np.argmax(ideal - places)] += 1
    while places.sum() > size:
        # Places given for the minimum of one are taken from the class furthest above its share.
        places[np.argmax(np.where(places > 1, places - ideal, -np.inf))] -= 1
    return places


def draw_by_class(codes: NDArray[Any], sizes: Sequence[int] | Indices, rng: Any) -> Indices:
    """Draw rows of each class without replacement; return their numbers, sorted.

    Parameters
    ----------
    codes : int array of shape (n_rows,)
    sizes : sequence of int
        Rows to draw of each class, from class 0 on; more than there are: all.
    rng : numpy.random.Generator or RandomState
    """
    nobody = np.zeros((0, len(sizes)), dtype=np.bool_)
    by_class = Split(codes, np.arange(len(sizes)), nobody, nobody, nobody[:, 0])
    return by_class.draw_by_class(np.ones(len(sizes), dtype=np.bool_), sizes, rng)


_SCANNED = 1 << 16  # rows at a time


def nth_rows(kinds: NDArray[Any], ranks: Indices) -> Indices:
    """Return the rows that have these places when all are sorted by kind, equals in their order.

    One pass over the kinds, which are small numbers, finds them: nothing is sorted.

    Examples
    --------
    >>> nth_rows(np.array([1, 0, 1, 0]), np.array([3, 0])).tolist()
    [2, 1]
    """
    order = np.argsort(ranks, kind="stable")
    wanted, found = ranks[order], np.empty(len(ranks), dtype=np.int64)
    counts = count_each(kinds)
    place = np.cumsum(counts) - counts  # of the next row of each kind
    for part in gen_batches(len(kinds), _SCANNED):
        here = kinds[part]
        for kind in np.unique(here):
            own = np.flatnonzero(here == kind)
            low, high = np.searchsorted(wanted, [place[kind], place[kind] + len(own)])
            found[low:high] = part.start + own[wanted[low:high] - place[kind]]
            place[kind] += len(own)
    rows = np.empty_like(found)
    rows[order] = found
    return rows


class KeyedOrder:
    """The numbers below a size in a random order, of which any part can be had by itself.

    A Feistel network over the next power of four, of which what is too large is passed on until it
    is not.

    Parameters
    ----------
    size : int
    seed : sequence of int
    """

    def __init__(self, size: int, seed: Sequence[int]) -> None:
        self.size = size
        self._half = np.uint64(max(1, -(-max(size - 1, 1).bit_length() // 2)))
        self._mask = (np.uint64(1) << self._half) - np.uint64(1)
        self._keys = np.random.SeedSequence(seed).generate_state(_ROUNDS, np.uint64)

    def __call__(self, places: Indices) -> Indices:
        """Return what is at these places."""
        numbers = self._shuffled(np.asarray(places).astype(np.uint64))
        outside = np.flatnonzero(numbers >= self.size)
        while len(outside):
            numbers[outside] = self._shuffled(numbers[outside])
            outside = outside[numbers[outside] >= self.size]
        return numbers.astype(np.int64)

    def _shuffled(self, numbers: Keys) -> Keys:
        left, right = numbers >> self._half, numbers & self._mask
        for key in self._keys:
            mixed = _mixed(right + np.uint64(1) ^ key) >> _SHIFT
            left, right = right, left ^ (mixed & self._mask)
        return left << self._half | right


_ROUNDS = 6


def bootstrap_weights(codes: NDArray[Any], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return how often each row is drawn, with replacement within its class."""
    drawn = np.empty(len(codes))
    for code in np.flatnonzero(np.bincount(codes)):  # np.unique would sort them at every draw
        rows = np.flatnonzero(codes == code)
        drawn[rows] = np.bincount(rng.integers(len(rows), size=len(rows)), minlength=len(rows))
    return drawn


_KEYED = 1 << 20  # numbers at a time, of which there are copies of eight bytes


def row_keys(rows: Features) -> Keys:
    """Return a number for each row, the same for rows that hold the same numbers.

    Different rows have different numbers but for a chance of about n^2 / 2^65, and a false copy
    does no harm: two rows are left out together.
    """
    if isinstance(rows, csr_matrix):
        return _sparse_keys(rows)
    factors = _factors(np.arange(rows.shape[1]))
    keys = np.empty(rows.shape[0], dtype=np.uint64)
    for part, some in row_blocks(rows, max(1, _KEYED // rows.shape[1])):
        keys[part] = (_bits(some) * factors).sum(axis=1, dtype=np.uint64)
    return keys


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


_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(29)


def _mixed(bits: Keys) -> Keys:
    """Scatter 64 bits, in place; 0 stays 0."""
    bits *= _MIX
    bits ^= bits >> _SHIFT
    bits *= _MIX
    bits ^= bits >> _SHIFT
    return bits


_LINK = re.compile(r"(?:https?://|www\.)\S+")
_MENTION = re.compile(r"@\w+")
_WORD = re.compile(r"\w")


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


def check_groups(groups: Any, n_rows: int) -> Indices | None:
    """Return groups as numbers from 0, in their order; None where each row stands alone.

    Parameters
    ----------
    groups : array-like of shape (n_rows,) or None
        Names or numbers, of one type.
    n_rows : int
    """
    if groups is None:
        return None
    given = unmasked(collected(groups))
    try:
        # A list may mix strings, numbers and None, which numpy would make strings all.
        kept = hasattr(given, "dtype") or hasattr(given, "__array__")
        names = np.asarray(given, dtype=None if kept else object)
        if names.shape != (n_rows,):
            raise DataError(
                f"groups has shape {names.shape}: give one group for each of the {n_rows} rows.",
                parameter="groups",
            )
        _refuse_missing(names)
        if names.dtype.kind == "O":
            set(names)  # what has no hash is no name
        return np.unique(names, return_inverse=True)[1]
    except (TypeError, ValueError, RuntimeError, ArithmeticError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"groups cannot be told apart ({error}): give them all as strings, or all as numbers.",
            parameter="groups",
        ) from error


def _refuse_missing(names: NDArray[Any]) -> None:
    known = names.dtype.kind in "biuUSV"
    missing = [] if known else [row for row, name in enumerate(names) if is_missing(name)]
    if missing:
        raise DataError(
            f"groups has none in row {missing[0]} ({len(missing)} missing in all): name the group "
            "of each row; one that stands alone is a group of its own.",
            parameter="groups",
            row=missing[0],
        )


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

    units: Indices | None
    shares: NDArray[np.float64] | None = None
    crossing: Indices | Keys | None = None
    n_copies: int = 0
    natural: bool = False

    def notes(self, *, forward: bool) -> tuple[str, ...]:
        """Return what a report on the rows is to say, if they are judged forward in time or not."""
        if not self.n_copies:
            return ()
        said = f"{self.n_copies:,} rows are copies of others"
        if forward:
            return (f"{said}; they are judged where no copy was learned from.",)
        if self.crossing is None:
            return (f"{said}, and were left out together.",)
        return (f"{said}; they are judged where no copy in another group was learned from.",)


# A unit of a larger share of the rows would leave a member with too few to learn from.
_LARGEST_UNIT = 1 / 4


def tie_copies(
    keys: Keys | Indices, rows: Features | None, codes: Indices, groups: NDArray[Any] | None
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
    rows : Features, optional
        Nothing for texts, which are never alike by nature.
    codes : int array of shape (n_rows,)
    groups : array of shape (n_rows,), optional
    """
    numbers = None if groups is None else np.unique(groups, return_inverse=True)[1]
    in_order = np.sort(keys)
    if (in_order[1:] != in_order[:-1]).all():
        return Ties(numbers)
    del in_order
    _, first, copies, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    n_copies = len(keys) - len(first)
    units = copies if numbers is None else _joined(numbers, copies)
    if rows is not None and _alike_by_nature(rows, first, copies, units, codes):
        return Ties(numbers, natural=True)
    shares, crossing = 1 / counts[copies], None
    if numbers is not None:
        largest = max(np.bincount(numbers).max(), _LARGEST_UNIT * len(keys))
        if np.bincount(units).max() > largest:
            units, crossing = numbers, copies
    return Ties(units, shares, crossing, n_copies)


def _joined(groups: Indices, copies: Indices) -> Indices:
    """Return the connected parts of rows, linked by groups and by copies."""
    n_groups = int(groups.max()) + 1
    size = n_groups + int(copies.max()) + 1
    links = csr_matrix((np.ones(len(groups), np.int8), (groups, copies + n_groups)), (size, size))
    parts = connected_components(links, directed=False)[1]
    return np.asarray(parts[groups], dtype=np.int64)


# Few values: rows of them are alike by nature. What is asked of a sample of different rows.
_SAMPLE = 4096
_FEW_VALUES = 10
FEW_ROWS = 30


def _alike_by_nature(
    rows: Features, first: Indices, copies: Indices, units: Indices, codes: Indices
) -> bool:
    """Whether there are few different rows, and too few of a class to deal them by kind."""
    n_kinds = _distinct_by_class(copies, codes).min()
    if n_kinds >= FEW_ROWS or rows.shape[1] > 2 * _SAMPLE:
        return False
    some = choose(rows, np.sort(first)[:_SAMPLE])
    dense: Any = some.whole() if isinstance(some, StoredRows) else some
    dense = dense.toarray() if issparse(dense) else dense
    single = bool(_distinct_by_class(units, codes).min() == 1)
    return few_are_possible(dense, len(codes), single=single)


def few_are_possible(dense: NDArray[Any], n_rows: int, *, single: bool) -> bool:
    """Whether different rows have few values; ``single``: tied, a class would be one unit."""
    values = np.array([len(np.unique(column)) for column in dense.T])
    # No more rows are possible than there are: then some must be alike.
    if np.log2(values).sum() <= math.log2(n_rows):
        return True
    return bool(single and values.max() <= min(_FEW_VALUES, len(dense) / 4))


def _distinct_by_class(numbers: Indices, codes: Indices) -> Indices:
    """Return how many different numbers the rows of each class have."""
    pairs = np.unique(numbers * (codes.max() + 1) + codes)
    return np.bincount(pairs % (codes.max() + 1))


def buckets(keys: Keys | Indices) -> NDArray[np.uint8]:
    """Return one of 256 buckets for each key, the same for equal keys."""
    return (_mixed(keys.astype(np.uint64) + np.uint64(1)) >> np.uint64(56)).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class Split:
    """Which members learn from a row, and which judge it: its kind, a small number, tells.

    Rows of a kind have one class and are left out, and judged, by the same members.

    Attributes
    ----------
    kinds : unsigned int array of shape (n_rows,)
    classes : int array of shape (n_kinds,)
        The class of each kind.
    left_out, judged : bool arrays of shape (n_members, n_kinds)
        The members that do not learn from rows of a kind, and those that judge them.
    speakers : bool array of shape (n_members,)
        The members that predict.
    """

    kinds: NDArray[Any]
    classes: Indices
    left_out: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    speakers: NDArray[np.bool_]

    @classmethod
    def of(
        cls,
        codes: NDArray[Any],
        left_out: NDArray[np.bool_],
        judged: NDArray[np.bool_],
        speakers: NDArray[np.bool_],
    ) -> Split:
        """Return the split of rows of which each is known: (n_members, n_rows)."""
        kinds = codes
        marks = [*left_out] if judged is left_out else [*left_out, *judged]
        for mark in marks:
            kinds = np.unique(2 * kinds.astype(np.int64) + mark, return_inverse=True)[1]
        first = np.unique(kinds, return_index=True)[1]
        small = kinds.astype(np.min_scalar_type(len(first)))
        return cls(small, codes[first], left_out[:, first], judged[:, first], speakers)

    @cached_property
    def counts(self) -> Indices:
        """Rows of each kind."""
        return count_each(self.kinds, len(self.classes))

    def left_out_of(self, part: Any) -> NDArray[np.bool_]:
        """Return the members that do not learn from some rows, (n_members, n_rows)."""
        return self.left_out[:, self.kinds[part]]

    def learned(self, ties: NDArray[Any], rows: Indices) -> NDArray[np.bool_]:
        """Return which members learn from a row that is tied to one of these, (n_members, n).

        ``ties`` are equal for rows that are tied.
        """
        theirs, place = np.unique(ties[rows], return_inverse=True)
        found = np.zeros((len(self.left_out), len(theirs)), dtype=np.bool_)
        for part in gen_batches(len(ties), _SCANNED):
            at = np.searchsorted(theirs, ties[part]).clip(max=len(theirs) - 1)
            here = np.flatnonzero(theirs[at] == ties[part])
            for learned, out in zip(found, self.left_out_of(part), strict=True):
                learned[at[here[~out[here]]]] = True
        return found[:, place]

    def rows_of(self, some: NDArray[np.bool_]) -> Indices:
        """Return the rows of some of the kinds."""
        return np.flatnonzero(some[self.kinds])

    def count_by_class(self, some: NDArray[np.bool_]) -> Indices:
        """Return the number of rows of each class that are of some of the kinds."""
        n_classes = int(self.classes.max()) + 1
        return np.bincount(self.classes[some], self.counts[some], n_classes).astype(np.int64)

    def draw(self, some: NDArray[np.bool_], size: int, rng: np.random.Generator) -> Indices:
        """Draw rows of some of the kinds without replacement; all where there are no more."""
        if not is_many(len(self.kinds)):
            return rng.permutation(self.rows_of(some))[:size]
        n_rows = int(self.counts[some].sum())
        places = rng.choice(n_rows, size=min(size, n_rows), replace=False)
        return nth_rows(self.kinds, self.ranks(some, places))

    def draw_by_class(
        self, some: NDArray[np.bool_], sizes: Sequence[int] | Indices, rng: Any
    ) -> Indices:
        """Draw so many rows of each class among some of the kinds, as `draw` does; sorted."""
        drawn = [
            self.draw(some & (self.classes == code), int(size), rng)
            for code, size in enumerate(sizes)
        ]
        return np.sort(np.concatenate(drawn))

    def ranks(self, some: NDArray[np.bool_], places: Indices) -> Indices:
        """Return the ranks of rows, for `nth_rows`, by their places among those of some kinds."""
        chosen = np.flatnonzero(some)
        ends = np.cumsum(self.counts[chosen])
        which = np.searchsorted(ends, places, side="right")
        starts = np.cumsum(self.counts) - self.counts
        before = ends - self.counts[chosen]
        return np.asarray(starts[chosen][which] + places - before[which])


_FEWEST_FOLDS = 5


def leave_out(
    codes: Indices, n_members: int, groups: NDArray[Any] | None, seed: int
) -> NDArray[np.bool_]:
    """Return which rows each member does not learn from, shape (n_members, n_rows).

    The members are as many repeats of a k-fold split as leave at least five folds to each (ten
    members: twice five folds; seven: seven folds). Every class stays in the training rows of every
    member: where all its rows would be left out, because it has one row or lives in one group,
    they stay, with the rest of their groups.
    """
    out = np.zeros((n_members, len(codes)), dtype=np.bool_)
    if n_members == 1:
        return out
    repeats, k = _repeats(n_members)
    for repeat in range(repeats):
        folds = assign_folds(codes, k, groups, np.random.default_rng([seed, repeat]))
        out[repeat * k : (repeat + 1) * k] = folds == np.arange(k)[:, None]
    for code in np.unique(codes):
        members = np.flatnonzero(out[:, codes == code].all(axis=1))
        kept = codes == code
        if len(members) and groups is not None:
            kept = np.isin(groups, groups[kept])
        out[np.ix_(members, kept)] = False
    return out


FEWEST_FORWARD = 3  # members: two judge, so that a threshold is not judged by its own rows


def leave_later_out(
    passed: Indices, codes: Indices, n_members: int, units: NDArray[Any] | None, seed: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which rows each member does not learn from, which it judges, and who speaks.

    The first two are (n_members, n_rows), the last is (n_members,).

    The first members, at most half of them, are judges. Each learns from what lies before a cut in
    time (`forward_cuts`) and judges what lies between it and the next. If there is one cut only,
    two judges share the rows behind it. The other members leave random folds out and judge none.

    Parameters
    ----------
    passed : int array of shape (n_rows,)
        How many of the cuts a row does not lie before.
    codes : int array of shape (n_rows,)
    n_members : int
    units : int array of shape (n_rows,), optional
        Rows of equal numbers that judges do not share.
    seed : int
    """
    part, cuts = passed - 1, np.arange(passed.max())
    if len(cuts) == 1:
        cuts, later = np.repeat(cuts, 2), np.flatnonzero(passed)
        theirs = None if units is None else units[later]
        part[later] = assign_folds(codes[later], 2, theirs, np.random.default_rng(seed))
    left_out = np.zeros((n_members, len(codes)), dtype=np.bool_)
    left_out[: len(cuts)] = passed > cuts[:, None]
    left_out[len(cuts) :] = leave_out(codes, n_members - len(cuts), units, seed)
    members = np.arange(n_members)
    return left_out, part == members[:, None], members >= len(cuts)


def forward_cuts(moments: Indices, codes: Indices, n_cuts: int) -> Indices:
    """Return the moments before which judges learn, in order: at most ``n_cuts``, perhaps none.

    Before the first there are two rows of every class, or one if it has no more than two. The
    parts between cuts have equal shares of the rare classes, of which each weighs the same.

    Examples
    --------
    >>> forward_cuts(np.arange(12), np.array([0, 0, 1, 1] * 3), 2).tolist()
    [6, 10]
    """
    counts, order = np.bincount(codes), np.argsort(moments, kind="stable")
    when, of = moments[order], codes[order]
    mass = np.where(of == counts.argmax(), 0, 1 / counts[of]).cumsum()

    def behind(known: Any) -> Any:
        # A little more, so that rounding does not move a cut by a row.
        return when[np.searchsorted(mass, known + 1e-9).clip(max=len(when) - 1)]

    least = 1 + max(when[of == code][1 if n > 2 else 0] for code, n in enumerate(counts))
    first = max(least, behind(mass[-1] / (n_cuts + 1)))
    known = mass[np.searchsorted(when, first) - 1]
    others = behind(known + np.arange(1, n_cuts) / n_cuts * (mass[-1] - known))
    cuts = np.unique(np.append(others[others > first], first))
    return np.asarray(cuts[cuts <= when[-1]])


def split_rows(
    codes: NDArray[Any],
    n_members: int,
    seed: int,
    units: NDArray[Any] | None = None,
    passed: NDArray[Any] | None = None,
    buckets: NDArray[np.uint8] | None = None,
) -> Split:
    """Say which members leave which rows out, and which of them judge these.

    Parameters
    ----------
    codes : int array of shape (n_rows,)
    n_members, seed : int
    units : int array of shape (n_rows,), optional
        Rows of equal numbers stay together.
    passed : int array of shape (n_rows,), optional
        As `leave_later_out` takes it: judges come before the rows that they judge.
    buckets : uint8 array of shape (n_rows,), optional
        Of many rows, in place of units.
    """
    if buckets is None:
        if passed is not None:
            return Split.of(codes, *leave_later_out(passed, codes, n_members, units, seed))
        out = leave_out(codes, n_members, units, seed)
        return Split.of(codes, out, out, np.ones(n_members, dtype=np.bool_))

    def places(part: slice) -> tuple[Any, ...]:
        return codes[part], 0 if passed is None else passed[part], buckets[part]

    # What holds for one row holds for all of its class, bucket and stretch of time.
    stretches = 1 if passed is None else int(passed.max()) + 1
    there = np.zeros((int(codes.max()) + 1, stretches, 256), dtype=np.bool_)
    for part in gen_batches(len(codes), _SCANNED):
        there[places(part)] = True
    of, later, bucket = np.nonzero(there)
    split = split_rows(of, n_members, seed, bucket, None if passed is None else later)
    table = np.zeros(there.shape, split.kinds.dtype)
    table[there] = split.kinds
    kinds = np.empty(len(codes), table.dtype)
    for part in gen_batches(len(codes), _SCANNED):
        kinds[part] = table[places(part)]
    return replace(split, kinds=kinds)


def _repeats(n_members: int) -> tuple[int, int]:
    """Return how often rows are split, and into how many folds."""
    fits = (r for r in range(2, n_members + 1) if n_members % r == 0)
    repeats = max((r for r in fits if n_members // r >= _FEWEST_FOLDS), default=1)
    return repeats, n_members // repeats


def assign_folds(
    codes: Indices, k: int, groups: NDArray[Any] | None, rng: np.random.Generator
) -> Indices:
    """Return the fold of each row, from 0 to k - 1.

    Groups of several rows go first, the largest at the head, each to the fold that has least of
    its classes; single rows then level the classes out.
    """
    n_classes = int(codes.max()) + 1
    totals = np.bincount(codes, minlength=n_classes)
    folds = np.full(len(codes), -1, dtype=np.int64)
    load = np.zeros((k, n_classes))
    for rows in _large_groups(groups, rng):
        counts = np.bincount(codes[rows], minlength=n_classes)
        # Shares of a class, so that a row of a rare class weighs more.
        crowded = load @ (counts / totals.clip(1) ** 2)
        choices = np.flatnonzero(crowded == crowded.min())
        fold = choices[np.argmin(load[choices].sum(axis=1))]
        folds[rows] = fold
        load[fold] += counts
    for code in range(n_classes):
        rows = rng.permutation(np.flatnonzero((codes == code) & (folds < 0)))
        folds[rows] = _level(load, code, len(rows), rng)
    return folds


def _large_groups(groups: NDArray[Any] | None, rng: np.random.Generator) -> list[Indices]:
    """Return the rows of each group of two or more, the largest first, equals in random order."""
    if groups is None:
        return []
    _, numbers, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    by_group = np.split(np.argsort(numbers, kind="stable"), np.cumsum(sizes)[:-1])
    large = np.flatnonzero(sizes > 1)
    order = large[np.lexsort((rng.random(len(large)), -sizes[large]))]
    return [by_group[number] for number in order]


def _level(load: NDArray[Any], code: int, n_rows: int, rng: np.random.Generator) -> Indices:
    """Deal rows of one class to the folds that have fewest of it, and count them in."""
    tie = rng.permutation(len(load))
    queue = [(load[fold, code], load[fold].sum(), tie[fold], fold) for fold in range(len(load))]
    heapq.heapify(queue)
    dealt = np.empty(n_rows, dtype=np.int64)
    for place in range(n_rows):
        filled, size, number, fold = queue[0]
        dealt[place] = fold
        load[fold, code] += 1
        heapq.heapreplace(queue, (filled + 1, size + 1, number, fold))
    return dealt
