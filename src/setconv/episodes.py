"""Which rows form an episode: labels in, row numbers out, no features anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setconv.errors import LabelError, ParameterError

__all__ = ["EpisodeSampler", "Episodes", "Quotas", "plan_quotas"]

Indices = NDArray[np.int64]
QuerySource = Literal["leave_one_out", "disjoint", "support"]


class Episodes(NamedTuple):
    """A batch of episodes, as row numbers.

    Attributes
    ----------
    support : int64 array of shape (n_episodes, support)
    query : int64 array of shape (n_episodes, queries)
    """

    support: Indices
    query: Indices


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


def share_out(counts: Indices, size: int) -> Indices:
    """Share ``size`` places in the ratio of ``counts``: largest remainder, at least one each.

    Examples
    --------
    >>> share_out(np.array([900, 95, 5]), 64).tolist()
    [57, 6, 1]
    """
    ideal = size * counts / counts.sum()
    places: Indices = np.maximum(1, np.floor(ideal).astype(np.int64))
    while places.sum() < size:
        places[np.argmax(ideal - places)] += 1
    while places.sum() > size:
        # Places given for the minimum of one are taken from the class furthest above its share.
        places[np.argmax(np.where(places > 1, places - ideal, -np.inf))] -= 1
    return places


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
            raise ParameterError(f"n_episodes={n_episodes!r}: draw at least one episode.")
        self.classes_, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
        self.n_episodes = n_episodes
        self.quotas_ = plan_quotas(counts, support_size, n_queries, query_source)
        n_query = np.maximum(self.quotas_.query, 1)
        self.support_classes_ = np.repeat(np.arange(len(counts)), self.quotas_.support)
        self.query_classes_ = np.repeat(np.arange(len(counts)), n_query)
        seeds = np.random.SeedSequence(random_state).spawn(len(counts))
        by_class = np.split(np.argsort(codes, kind="stable"), np.cumsum(counts)[:-1])
        self._decks = [
            _Deck(rows, np.random.default_rng(seed))
            for rows, seed in zip(by_class, seeds, strict=True)
        ]

    def draw(self, draws: int = 1) -> Episodes:
        """Draw the next ``n_episodes`` episodes, or those of several draws end to end."""
        support, query = [], []
        quotas = zip(self._decks, self.quotas_.support, self.quotas_.query, strict=True)
        for deck, n_support, n_query in quotas:
            rows = deck.deal(draws * self.n_episodes, int(n_support + n_query))
            support.append(rows[:, :n_support])
            query.append(rows[:, n_support:] if n_query else rows[:, :1])
        return Episodes(np.concatenate(support, axis=1), np.concatenate(query, axis=1))

    def skip(self, draws: int) -> None:
        """Go on as if ``draws`` draws had been made (to resume a run)."""
        self.draw(draws)

    def __iter__(self) -> Iterator[Episodes]:
        """Draw for ever; bound it with ``itertools.islice`` or a ``break``."""
        while True:
            yield self.draw()


class _Deck:
    """The rows of one class, dealt to the last before they are shuffled again."""

    def __init__(self, rows: Indices, rng: np.random.Generator) -> None:
        self._rows = rows
        self._rng = rng
        self._order = rng.permutation(len(rows))
        self._next = 0

    def deal(self, hands: int, size: int) -> Indices:
        """Deal ``hands`` hands of ``size`` rows, no row twice in a hand."""
        dealt = np.empty((hands, size), dtype=np.int64)
        done = 0
        while done < hands:
            whole = min(hands - done, (len(self._order) - self._next) // size)
            if whole:
                end = self._next + whole * size
                dealt[done : done + whole] = self._order[self._next : end].reshape(whole, size)
                self._next = end
                done += whole
            if done < hands:
                dealt[done] = self._deal_across(size)
                done += 1
        return self._rows[dealt]

    def _deal_across(self, size: int) -> list[int]:
        """Deal the last rows of this pass with the first of the next, without a repetition."""
        # Plain lists: a hand is so short that numpy's calls would take longer.
        tail: list[int] = self._order[self._next :].tolist()
        self._order = self._rng.permutation(len(self._order))
        self._next = size - len(tail)
        start: list[int] = self._order[:size].tolist()
        last = set(tail)
        head = [row for row in start if row not in last][: self._next]
        first = set(head)
        self._order[:size] = head + [row for row in start if row not in first]
        return tail + head


def _check_sizes(counts: Indices, support_size: int, n_queries: int, query_source: str) -> None:
    if query_source not in ("leave_one_out", "disjoint", "support"):
        raise ParameterError(
            f'query_source={query_source!r}: choose "leave_one_out", "disjoint" or "support".'
        )
    if n_queries < 1:
        raise ParameterError(f"n_queries={n_queries!r}: every class needs at least one query.")
    if support_size < len(counts):
        raise ParameterError(
            f"support_size={support_size!r} is smaller than the number of classes "
            f"({len(counts)}): every class needs a support row. Give support_size of at least "
            f"{len(counts)}."
        )
