"""A uniform sample of a stream of unknown length."""

from __future__ import annotations

from random import Random


class Reservoir:
    """Row numbers of a stream, at most so many, each with the same chance to be among them.

    Parameters
    ----------
    capacity : int
        How many are kept.
    random : Random

    Attributes
    ----------
    seen : int
        How many were offered.
    """

    def __init__(self, capacity: int, random: Random) -> None:
        self.seen = 0
        self._capacity = capacity
        self._random = random
        self._kept: list[int] = []

    def offer(self, row: int) -> None:
        """Take the row, or leave it."""
        self.seen += 1
        if len(self._kept) < self._capacity:
            self._kept.append(row)
            return
        place = self._random.randrange(self.seen)
        if place < self._capacity:
            self._kept[place] = row

    def draw(self, count: int) -> list[int]:
        """Return so many of the rows, at most the capacity, drawn uniformly from all offered."""
        return self._random.sample(self._kept, count)
