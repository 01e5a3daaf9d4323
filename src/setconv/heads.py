"""One-vs-all heads: which side of each head a row is on, and episodes laid out for all heads."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from setconv.episodes import EpisodeSampler, Indices, QuerySource

Sides = NDArray[np.int8]
Floats = NDArray[np.float32]
HeadSharing = Literal["shared", "separate"]
_PADDING = -1
_Integer = TypeVar("_Integer", bound=np.integer[Any])


def count_heads(n_classes: int) -> int:
    """Return the number of heads: one for two classes, else one a class (section 3.4)."""
    return 1 if n_classes == 2 else n_classes


def head_sides(codes: NDArray[np.integer], n_classes: int) -> Sides:
    """Return the side (1: the head's class, 0: the rest) of each row, shape (heads, n_rows)."""
    if n_classes == 2:
        return np.asarray(codes, dtype=np.int8)[None]
    return np.asarray(codes[None] == np.arange(n_classes)[:, None], dtype=np.int8)


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


class Layout(NamedTuple):
    """What the columns of a batch of episodes are, for every head; the same in every draw.

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


def _lay_out(support: Sides, query: Sides) -> Layout:
    def averages(sides: Sides) -> Floats:
        member = np.stack([sides == 0, sides == 1], axis=1).astype(np.float32)
        return np.asarray(member / member.sum(axis=-1, keepdims=True))

    return Layout(
        averages(support), np.where(query == 1, 1, -1).astype(np.float32), averages(query)
    )


class HeadEpisodes:
    """Draw batches of episodes for all heads.

    Parameters
    ----------
    codes : int array of shape (n_rows,)
        Class of each row, from 0.
    n_classes : int
    sharing : {"shared", "separate"}
        "shared": one multi-class episode serves every head, so its rows are gathered and encoded
        once. "separate": each head draws episodes of its own two-class problem.
    support_size, n_queries, n_episodes, query_source, random_state
        As for `EpisodeSampler`.

    Attributes
    ----------
    layout : Layout
    """

    def __init__(
        self,
        codes: Indices,
        n_classes: int,
        *,
        sharing: HeadSharing,
        support_size: int,
        n_queries: int,
        n_episodes: int,
        query_source: QuerySource,
        random_state: int,
    ) -> None:
        sides = head_sides(codes, n_classes)
        shared = sharing == "shared" or n_classes == 2
        self.shared = shared
        self._samplers = [
            EpisodeSampler(
                labels,
                support_size=support_size,
                n_queries=n_queries,
                n_episodes=n_episodes,
                query_source=query_source,
                random_state=[random_state, number],
            )
            for number, labels in enumerate([codes] if shared else sides)
        ]
        columns = [(s.support_classes_, s.query_classes_) for s in self._samplers]
        if shared:
            support, query = (head_sides(part, n_classes) for part in columns[0])
        else:
            support = _pad([part.astype(np.int8) for part, _ in columns])
            query = _pad([part.astype(np.int8) for _, part in columns])
        self.layout = _lay_out(support, query)

    def draw(self) -> Indices:
        """Return the next row numbers, support before queries: ([heads,] episodes, rows)."""
        drawn = [sampler.draw() for sampler in self._samplers]
        if self.shared:
            return np.concatenate(drawn[0], axis=1)
        # Heads whose classes are tiny have shorter episodes; padding has no weight in the layout.
        padded = (np.maximum(_pad([d[part] for d in drawn]), 0) for part in (0, 1))
        return np.concatenate(list(padded), axis=-1)

    def skip(self, draws: int) -> None:
        """Go on as if ``draws`` draws had been made."""
        for sampler in self._samplers:
            sampler.skip(draws)


def _pad(parts: list[NDArray[_Integer]]) -> NDArray[_Integer]:
    width = max(part.shape[-1] for part in parts)
    return np.stack(
        [
            np.pad(
                part,
                [(0, 0)] * (part.ndim - 1) + [(0, width - part.shape[-1])],
                constant_values=_PADDING,
            )
            for part in parts
        ]
    )
