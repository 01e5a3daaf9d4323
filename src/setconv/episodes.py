"""Episodes: small tasks in the class ratio of the data, each a support set and queries.

Heads turn classes into problems of two sides. `plan_quotas` says how many rows of each class an
episode takes, and `EpisodeSampler` deals them. `EpisodeBatches` does so for all heads of all
members at once; its `Layout` says what each column of a batch is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setconv.errors import LabelError, ParameterError
from setconv.sampling import KeyedOrder, Split, is_many, nth_rows, share_out

__all__ = ["EpisodeSampler", "Episodes", "Quotas", "plan_quotas"]

Indices: TypeAlias = NDArray[np.int64]
Sides: TypeAlias = NDArray[np.int8]
Floats: TypeAlias = NDArray[np.float32]
HeadSharing = Literal["shared", "separate"]
QuerySource = Literal["leave_one_out", "disjoint", "support"]
ABSENT = -1  # the class or side of what does not take part


def head_sides(codes: NDArray[np.integer], n_classes: int) -> Sides:
    """Return the side (1: the head's class, 0: the rest) of each row, shape (heads, n_rows).

    A code of `ABSENT` is on neither side.
    """
    if n_classes == 2:
        return np.asarray(codes, dtype=np.int8)[None]
    sides = np.asarray(codes[None] == np.arange(n_classes)[:, None], dtype=np.int8)
    return np.where(codes == ABSENT, np.int8(ABSENT), sides)


def side_weights(class_weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weight of the two sides of each head, shape (heads, 2), summing to one.

    Equal class weights give one half to each side, however many classes stand behind it.
    """
    n_classes = len(class_weights)
    if n_classes == 2:
        weights = class_weights[None]
    else:
        rest = (class_weights.sum() - class_weights) / (n_classes - 1)
        weights = np.stack([rest, class_weights], axis=1)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Quotas:
    """How many rows of each class an episode takes.

    Attributes
    ----------
    support, query : int64 arrays of shape (n_classes,)
        A class with ``query`` 0 uses its only support row as the query too.
    """

    support: Indices
    query: Indices

    @property
    def columns(self) -> tuple[Indices, Indices]:
        """The class of each support row and of each query of an episode."""
        classes = np.arange(len(self.support))
        return np.repeat(classes, self.support), np.repeat(classes, np.maximum(self.query, 1))


def plan_quotas(
    counts: ArrayLike,
    support_size: int = 64,
    n_queries: int = 8,
    query_source: QuerySource = "leave_one_out",
) -> Quotas:
    """Decide how many rows of each class an episode takes.

    With ``query_source="leave_one_out"`` or ``"disjoint"`` the support set has ``support_size``
    rows in the class ratio of the data, rounded by the largest remainder after every class has got
    one row, and the queries come on top. A class of ``n`` rows gives at most ``n // 2`` queries,
    and where the data is too small for the whole support set, the set shrinks for all classes
    alike, so that the ratio is kept and support and queries stay disjoint. A class of two rows
    gives one to each; a class of one row uses that row for both. "leave_one_out" then lets all of
    these rows be both: each is a query against the others.

    With ``query_source="support"`` (the authors' code) the queries are taken out of the
    ``support_size`` rows: every class but the largest gets ``int(support_size * share) + 1`` rows,
    the largest the rest, and ``n_queries`` of them are queries. Where that leaves a class without
    a support row, one row serves as both.

    Parameters
    ----------
    counts : array-like of int
        Rows of each class, all positive.
    support_size, n_queries : int
    query_source : {"leave_one_out", "disjoint", "support"}

    Returns
    -------
    Quotas
    """
    counts = np.asarray(counts, dtype=np.int64)
    _check_sizes(counts, support_size, n_queries, query_source)
    if query_source == "support":
        taken = (support_size * counts / counts.sum()).astype(np.int64) + 1
        largest = int(np.argmax(counts))
        taken[largest] = 0
        taken[largest] = max(1, support_size - taken.sum())
        taken = np.minimum(taken, counts)
        query = np.minimum(n_queries, taken - 1)
        return Quotas(taken - query, query)
    query = np.minimum(n_queries, counts // 2)
    # The largest set in the class ratio that leaves every class its queries.
    room = np.min(np.where(counts > 1, (counts - query) * counts.sum() // counts, counts.sum()))
    size = max(len(counts), min(support_size, int(room)))
    support = np.minimum(share_out(counts, size), np.maximum(counts - query, 1))
    return Quotas(support, query)


def _check_sizes(counts: Indices, support_size: int, n_queries: int, query_source: str) -> None:
    if query_source not in ("leave_one_out", "disjoint", "support"):
        raise ParameterError(
            f'query_source={query_source!r}: choose "leave_one_out", "disjoint" or "support".',
            parameter="query_source",
        )
    if n_queries < 1:
        raise ParameterError(
            f"n_queries={n_queries!r}: every class needs at least one.", parameter="n_queries"
        )
    if support_size < len(counts):
        raise ParameterError(
            f"support_size={support_size!r}: every class needs a support row; give at least "
            f"{len(counts)}.",
            parameter="support_size",
        )


class Episodes(NamedTuple):
    """A batch of episodes, as row numbers.

    Attributes
    ----------
    support : int64 array of shape (n_episodes, support)
    query : int64 array of shape (n_episodes, queries)
    """

    support: Indices
    query: Indices


class EpisodeSampler:
    """Draw episodes that keep the class ratio, several at a time.

    Each class is a deck that is shuffled and dealt to its last row before it is shuffled again:
    every row of a class is seen before any is seen twice, and no row occurs twice in an episode
    (but for a class that has a single row, see `plan_quotas`). Works on its own with a plain
    PyTorch loop.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels of any kind.
    support_size : int, default=64
        Rows in the support set, in the class ratio of ``y``.
    n_queries : int, default=8
        Queries a class.
    n_episodes : int, default=16
        Episodes a draw.
    query_source : {"leave_one_out", "disjoint", "support"}, default="leave_one_out"
        Whether the queries come on top of the support set, and then whether support rows are
        queries too and queries support rows, or are taken out of it.
    random_state : int, sequence of int or None
        Seed; the same seed deals the same episodes.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    quotas_ : Quotas
        Rows of each class in an episode.
    support_classes_, query_classes_ : int64 arrays
        The class (its place in ``classes_``) of each column of a draw; the same in every draw.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat(["chatter", "incident"], [900, 100])
    >>> sampler = EpisodeSampler(y, support_size=64, n_queries=1, n_episodes=2, random_state=0)
    >>> episodes = sampler.draw()
    >>> episodes.support.shape, episodes.query.shape
    ((2, 64), (2, 2))
    >>> np.unique(y[episodes.support[0]], return_counts=True)[1].tolist()
    [58, 6]
    """

    def __init__(
        self,
        y: ArrayLike,
        *,
        support_size: int = 64,
        n_queries: int = 8,
        n_episodes: int = 16,
        query_source: QuerySource = "leave_one_out",
        random_state: Any = None,
    ) -> None:
        labels = np.asarray(y)
        if labels.ndim != 1 or len(labels) == 0:
            raise LabelError(f"y must be a non-empty list of labels; got shape {labels.shape}.")
        if n_episodes < 1:
            raise ParameterError(
                f"n_episodes={n_episodes!r}: draw at least one episode.", parameter="n_episodes"
            )
        self.classes_, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        self.n_episodes = n_episodes
        self.quotas_ = plan_quotas(counts, support_size, n_queries, query_source)
        self.support_classes_, self.query_classes_ = self.quotas_.columns
        seeds = np.random.SeedSequence(random_state).spawn(len(counts))
        by_class = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])
        decks = [
            _Deck(_shuffles(rows, np.random.default_rng(seed)), len(rows))
            for rows, seed in zip(by_class, seeds, strict=True)
        ]
        self._dealer = _Dealer(decks, self.quotas_, n_episodes)

    def draw(self, draws: int = 1) -> Episodes:
        """Draw the next ``n_episodes`` episodes, or those of several draws end to end."""
        return self._dealer.draw(draws)

    def skip(self, draws: int) -> None:
        """Go on as if ``draws`` draws had been made (to resume a run)."""
        self.draw(draws)

    def __iter__(self) -> Iterator[Episodes]:
        """Draw for ever; bound it with ``itertools.islice`` or a ``break``."""
        while True:
            yield self.draw()


_Order: TypeAlias = Callable[[slice], Indices]  # rows in a random order, by their places in it


def _shuffles(rows: NDArray[Any], rng: np.random.Generator) -> Iterator[_Order]:
    """Yield the rows in one random order after another."""
    while True:
        yield rows[rng.permutation(len(rows))].__getitem__


def _keyed_shuffles(split: Split, some: NDArray[np.bool_], seed: Any) -> Iterator[_Order]:
    """Yield rows of some kinds, as ranks for `setconv.sampling.nth_rows`, in keyed orders."""
    size = int(split.counts[some].sum())
    for one in count():
        yield partial(_ranks, split, some, KeyedOrder(size, [*seed.generate_state(4), one]))


def _ranks(split: Split, some: NDArray[np.bool_], order: KeyedOrder, places: slice) -> Indices:
    return split.ranks(some, order(np.arange(*places.indices(order.size))))


class _Deck:
    """The rows of one class, dealt to the last before they are shuffled again."""

    def __init__(self, shuffles: Iterator[_Order], n_rows: int) -> None:
        self._shuffles, self._n_rows = shuffles, n_rows
        self._order = next(shuffles)
        self._first: list[int] = []  # what comes before the rest of the order, if it is not its own
        self._next = 0

    def deal(self, hands: int, size: int) -> Indices:
        """Deal ``hands`` hands of ``size`` rows, no row twice in a hand."""
        dealt = np.empty((hands, size), dtype=np.int64)
        done = 0
        while done < hands:
            whole = min(hands - done, (self._n_rows - self._next) // size)
            if whole:
                end = self._next + whole * size
                dealt[done : done + whole] = self._take(self._next, end).reshape(whole, size)
                self._next = end
                done += whole
            if done < hands:
                dealt[done] = self._deal_across(size)
                done += 1
        return dealt

    def _take(self, start: int, end: int) -> Indices:
        rest = self._order(slice(max(start, len(self._first)), max(end, len(self._first))))
        return np.append(np.array(self._first[start:end], dtype=np.int64), rest)

    def _deal_across(self, size: int) -> list[int]:
        """Deal the last rows of this pass with the first of the next, without a repetition."""
        # Plain lists: a hand is so short that numpy's calls would take longer.
        tail: list[int] = self._take(self._next, self._n_rows).tolist()
        self._order = next(self._shuffles)
        self._next = size - len(tail)
        start: list[int] = self._order(slice(size)).tolist()
        last = set(tail)
        head = [row for row in start if row not in last][: self._next]
        first = set(head)
        self._first = head + [row for row in start if row not in first]
        return tail + head


class _Dealer(NamedTuple):
    """Deals episodes from the decks of the classes."""

    decks: list[_Deck]
    quotas: Quotas
    n_episodes: int

    def draw(self, draws: int) -> Episodes:
        support, query = [], []
        quotas = zip(self.decks, self.quotas.support, self.quotas.query, strict=True)
        for deck, n_support, n_query in quotas:
            rows = deck.deal(draws * self.n_episodes, int(n_support + n_query))
            support.append(rows[:, :n_support])
            query.append(rows[:, n_support:] if n_query else rows[:, :1])
        return Episodes(np.concatenate(support, axis=1), np.concatenate(query, axis=1))


class Layout(NamedTuple):
    """What the columns of a batch of episodes are, for every head; the same in every draw.

    With "leave_one_out" the columns of the support set and of the queries are the same.

    Attributes
    ----------
    average : float32 array of shape (heads, 2, support)
        Averages the support rows of each side.
    target : float32 array of shape (heads, queries)
        +1 for a query on side 1, -1 on side 0.
    query_sides : float32 array of shape (heads, 2, queries)
        Averages the queries of each side.
    """

    average: Floats
    target: Floats
    query_sides: Floats


_AHEAD = 16  # draws that are made at once: one at a time, numpy's calls would cost more than rows
_PLANNED = 1 << 18  # numbers that are sorted at once


class EpisodeBatches:
    """Draw batches of episodes for all heads of all members.

    Parameters
    ----------
    split : Split
        Which rows there are, and which of them each member learns from.
    n_classes : int
    sharing : {"shared", "separate"}
        "shared": one multi-class episode serves every head of a member, so its rows are gathered
        and encoded once. "separate": each head draws episodes of its own two-class problem.
    support_size, n_queries, n_episodes, query_source, random_state
        As for `EpisodeSampler`.

    Attributes
    ----------
    layout : Layout
        Its heads are those of the first member, then those of the second, and so on.
    """

    def __init__(
        self,
        split: Split,
        n_classes: int,
        *,
        sharing: HeadSharing,
        support_size: int,
        n_queries: int,
        n_episodes: int,
        query_source: QuerySource,
        random_state: int,
    ) -> None:
        shared = sharing == "shared" or n_classes == 2
        heads = split.classes[None] if shared else head_sides(split.classes, n_classes)
        problems = [(~out, sides) for out in split.left_out for sides in heads]
        sizes = (support_size, n_queries, query_source)

        def deal() -> list[_Dealer]:
            return [
                _make_dealer(split, *problem, sizes, n_episodes, [random_state, number])
                for number, problem in enumerate(problems)
            ]

        self._deal, dealers = deal, deal()
        self._drawn: Iterator[Indices] = _draws(dealers)
        self._found: tuple[Indices, Indices] | None = None
        self._kinds = split.kinds
        quotas = [dealer.quotas for dealer in dealers]
        self.layout = _lay_out(quotas, n_classes if shared else 2, query_source)

    def plan(self, draws: int) -> Indices:
        """Return the distinct rows of so many draws from the first on, as they come up first.

        Of many rows what is drawn are ranks: they are found here once, before the first draw.
        """
        coming, seen = islice(self._drawn, draws), np.zeros(len(self._kinds), dtype=np.bool_)
        fresh = [np.empty(0, dtype=np.int64)]
        for one in coming:
            drawn = np.concatenate([one, *islice(coming, _PLANNED // one.size)], axis=None)
            new, first = np.unique(drawn[~seen[drawn]], return_index=True)
            fresh.append(new[np.argsort(first)])
            seen[new] = True
        del coming
        self._drawn = iter(())  # its decks go before there are others
        self._drawn = _draws(self._deal())
        rows = np.concatenate(fresh)
        if is_many(len(self._kinds)):
            known = np.flatnonzero(seen)
            found = nth_rows(self._kinds, known)
            self._found = known, found
            rows = found[np.searchsorted(known, rows)]
        return rows

    def draw(self) -> Indices:
        """Return the next row numbers, support before queries: (groups, episodes, rows).

        The groups are the members or, if heads are separate, the heads of all members.
        """
        drawn = next(self._drawn)
        if self._found is not None:
            ranks, rows = self._found
            drawn = rows[np.searchsorted(ranks, drawn)]
        return drawn

    def skip(self, draws: int) -> None:
        """Go on as if ``draws`` draws had been made."""
        for _ in range(draws):
            self.draw()


def _draws(dealers: list[_Dealer]) -> Iterator[Indices]:
    """Yield draws, (groups, episodes, rows), for ever."""
    while True:
        drawn = [dealer.draw(_AHEAD) for dealer in dealers]
        # Members and heads whose classes are tiny have shorter episodes; padding has no weight.
        support, query = (np.maximum(_pad([d[part] for d in drawn]), 0) for part in (0, 1))
        together = np.concatenate([support, query], axis=-1)
        by_draw = together.reshape(len(drawn), _AHEAD, -1, together.shape[-1])
        yield from np.ascontiguousarray(by_draw.swapaxes(0, 1))


def _lay_out(quotas: list[Quotas], n_classes: int, query_source: QuerySource) -> Layout:
    """Say what the columns of every draw are; padding is on neither side."""
    support, query = (_pad([q.columns[part] for q in quotas]) for part in (0, 1))
    if query_source == "leave_one_out":
        # The only row of a class is drawn for both: the second time it does not count.
        alone = np.stack([one.query == 0 for one in quotas])
        again = np.take_along_axis(alone, np.maximum(query, 0), axis=1)
        support = query = np.concatenate([support, np.where(again, ABSENT, query)], axis=-1)
    support_sides, query_sides = (
        np.concatenate([head_sides(codes, n_classes) for codes in columns])
        for columns in (support, query)
    )
    target = np.where(query_sides == 1, 1, -1).astype(np.float32)
    return Layout(_averages(support_sides), target, _averages(query_sides))


def _make_dealer(
    split: Split,
    own: NDArray[np.bool_],
    sides: NDArray[Any],
    sizes: tuple[int, int, QuerySource],
    n_episodes: int,
    seed: list[int],
) -> _Dealer:
    """Return what deals episodes of the rows of own kinds, of which ``sides`` has the classes."""
    kinds = [own & (sides == side) for side in range(int(sides.max()) + 1)]
    counts = [int(split.counts[some].sum()) for some in kinds]
    quotas = plan_quotas(counts, *sizes)
    seeds = np.random.SeedSequence(seed).spawn(len(kinds))

    def shuffles(some: NDArray[np.bool_], spawned: Any) -> Iterator[_Order]:
        if is_many(len(split.kinds)):
            return _keyed_shuffles(split, some, spawned)
        rows = split.rows_of(some).astype(np.int32)  # half as much to keep
        return _shuffles(rows, np.random.default_rng(spawned))

    decks = [_Deck(shuffles(*one), n) for *one, n in zip(kinds, seeds, counts, strict=True)]
    return _Dealer(decks, quotas, n_episodes)


def _averages(sides: Sides) -> Floats:
    """Return the weights that average the columns of each side, (heads, 2, columns)."""
    member = np.stack([sides == 0, sides == 1], axis=1).astype(np.float32)
    return np.asarray(member / member.sum(axis=-1, keepdims=True))


def _pad(parts: Sequence[Indices]) -> Indices:
    """Stack parts of different widths, the narrower ones filled up with `ABSENT`."""
    width = max(part.shape[-1] for part in parts)
    padded = np.full((len(parts), *parts[0].shape[:-1], width), ABSENT, dtype=np.int64)
    for place, part in zip(padded, parts, strict=True):
        place[..., : part.shape[-1]] = part
    return padded
