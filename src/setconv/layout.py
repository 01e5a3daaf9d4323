"""Episodes for all members and heads at once: which rows, and what each column of them is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from setconv.episodes import EpisodeSampler, Indices, QuerySource
from setconv.heads import ABSENT, HeadSharing, Sides, head_sides

Floats = NDArray[np.float32]
_Integer = TypeVar("_Integer", bound=np.integer[Any])
_AHEAD = 16  # draws that are made at once: one at a time, numpy's calls would cost more than rows


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


def _lay_out(support: Sides, query: Sides) -> Layout:
    def averages(sides: Sides) -> Floats:
        member = np.stack([sides == 0, sides == 1], axis=1).astype(np.float32)
        return np.asarray(member / member.sum(axis=-1, keepdims=True))

    return Layout(
        averages(support), np.where(query == 1, 1, -1).astype(np.float32), averages(query)
    )


class HeadEpisodes:
    """Draw batches of episodes for all heads of all members.

    Parameters
    ----------
    codes : int array of shape (n_rows,)
        Class of each row, from 0.
    n_classes : int
    members : sequence of int arrays
        The rows that each member learns from.
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
        codes: Indices,
        n_classes: int,
        *,
        members: Sequence[Indices],
        sharing: HeadSharing,
        support_size: int,
        n_queries: int,
        n_episodes: int,
        query_source: QuerySource,
        random_state: int,
    ) -> None:
        shared = sharing == "shared" or n_classes == 2
        self.single = shared and len(members) == 1
        self._leave_one_out = query_source == "leave_one_out"
        problems = [
            (rows, labels)
            for rows in members
            for labels in ([codes[rows]] if shared else head_sides(codes[rows], n_classes))
        ]
        self._rows = [rows for rows, _ in problems]
        self._samplers = [
            EpisodeSampler(
                labels,
                support_size=support_size,
                n_queries=n_queries,
                n_episodes=n_episodes,
                query_source=query_source,
                random_state=[random_state, number],
            )
            for number, (_, labels) in enumerate(problems)
        ]
        columns = self._join(
            _pad([s.support_classes_ for s in self._samplers]),
            _pad([s.query_classes_ for s in self._samplers]),
        )
        kinds = n_classes if shared else 2
        self._ahead: Iterator[Indices] = iter(())
        self.layout = _lay_out(
            *(np.concatenate([head_sides(one, kinds) for one in part]) for part in columns)
        )

    def draw(self) -> Indices:
        """Return the next row numbers, support before queries: ([groups,] episodes, rows).

        The groups are the members or, if heads are separate, the heads of all members.
        """
        drawn = next(self._ahead, None)
        if drawn is None:
            self._ahead = iter(self._draw_ahead())
            drawn = next(self._ahead)
        return drawn[0] if self.single else drawn

    def _draw_ahead(self) -> Indices:
        """Return the next draws, (draws, groups, episodes, rows)."""
        drawn = [
            (rows[support], rows[query])
            for rows, (support, query) in zip(
                self._rows, (sampler.draw(_AHEAD) for sampler in self._samplers), strict=True
            )
        ]
        # Members and heads whose classes are tiny have shorter episodes; padding has no weight.
        support, query = (np.maximum(_pad([d[part] for d in drawn]), 0) for part in (0, 1))
        together = np.concatenate([support, query], axis=-1)
        by_draw = together.reshape(len(drawn), _AHEAD, -1, together.shape[-1])
        return np.ascontiguousarray(by_draw.swapaxes(0, 1))

    def skip(self, draws: int) -> None:
        """Go on as if ``draws`` draws had been made."""
        for _ in range(draws):
            self.draw()

    def _join(self, support: Indices, query: Indices) -> tuple[Indices, Indices]:
        if not self._leave_one_out:
            return support, query
        # The only row of a class is drawn for both: the second time it does not count.
        alone = np.stack([s.quotas_.query == 0 for s in self._samplers])
        counted = np.where(np.take_along_axis(alone, np.maximum(query, 0), axis=1), ABSENT, query)
        together = np.concatenate([support, counted], axis=-1)
        return together, together


def _pad(parts: list[NDArray[_Integer]]) -> NDArray[_Integer]:
    width = max(part.shape[-1] for part in parts)
    if all(part.shape[-1] == width for part in parts):
        return np.stack(parts)
    padded = np.full((len(parts), *parts[0].shape[:-1], width), ABSENT, dtype=parts[0].dtype)
    for place, part in zip(padded, parts, strict=True):
        place[..., : part.shape[-1]] = part
    return padded
