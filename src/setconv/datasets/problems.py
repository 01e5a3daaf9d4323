"""Lines of a file that could not be used as they are: counted by kind, the first ones named."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass

from setconv.names import count_of

logger = logging.getLogger("setconv")

SHOWN = 5


@dataclass(frozen=True)
class Problem:
    """One kind of problem.

    Attributes
    ----------
    kind : str
        What was wrong and what became of the line, such as "no text: left out".
    count : int
        How many lines or rows have it.
    first : tuple of str
        Where the first of them are, such as "tweets.tsv, line 17".
    """

    kind: str
    count: int
    first: tuple[str, ...]

    def __str__(self) -> str:
        more = ", ..." if self.count > len(self.first) else ""
        return f"{self.count:,} x {self.kind} ({'; '.join(self.first)}{more})"


@dataclass(frozen=True)
class Problems:
    """All problems of a data set, the most frequent first; it is false if there are none.

    Attributes
    ----------
    kinds : tuple of Problem
    """

    kinds: tuple[Problem, ...] = ()

    @property
    def count(self) -> int:
        """How many problems there are over all kinds."""
        return sum(one.count for one in self.kinds)

    def __bool__(self) -> bool:
        return bool(self.kinds)

    def __str__(self) -> str:
        return "; ".join(map(str, self.kinds)) or "none"


class ProblemLog:
    """Takes problems down while a file is read; its memory does not grow with the file."""

    def __init__(self) -> None:
        self._counts = Counter[str]()
        self._first: dict[str, list[str]] = {}

    def add(self, kind: str, file: str, line: int, unit: str = "line") -> None:
        """Take down a problem of a line, or of another unit; ``kind`` is one of a few phrases."""
        self._counts[kind] += 1
        if self._counts[kind] <= SHOWN:
            self._first.setdefault(kind, []).append(f"{file}, {unit} {line}")

    def close(self, name: str) -> Problems:
        """Return what was taken down, and warn of it; ``name`` says in which data set."""
        problems = Problems(
            tuple(
                Problem(kind, count, tuple(self._first[kind]))
                for kind, count in self._counts.most_common()
            )
        )
        if problems:
            logger.warning("%s: %s: %s.", name, count_of(problems.count, "problem"), problems)
        return problems
