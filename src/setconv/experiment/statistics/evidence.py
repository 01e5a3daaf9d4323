"""What a test may claim: nothing, if it rests on too few independent sources."""

from __future__ import annotations

from dataclasses import dataclass

from setconv.errors import ParameterError

__all__ = ["MINIMUM_SOURCES", "Evidence"]

MINIMUM_SOURCES = 10


@dataclass(frozen=True, eq=False)
class Evidence:
    """The ground on which a test stands.

    Whether a result is significant is never stored but follows from the p-values and this ground,
    so no result can claim more than its sources support.

    Attributes
    ----------
    n_sources : int
        Number of independent sources.
    alpha : float
        Level of significance.
    """

    n_sources: int
    alpha: float

    def __post_init__(self) -> None:
        """Refuse a level that is none."""
        if not 0 < self.alpha < 1:
            raise ParameterError(f"alpha={self.alpha!r}: give a number between 0 and 1.")

    @property
    def claimed(self) -> bool:
        """Whether there are sources enough to claim anything."""
        return self.n_sources >= MINIMUM_SOURCES

    @property
    def reason(self) -> str:
        """Why nothing is claimed; empty if there are sources enough."""
        if self.claimed:
            return ""
        return (
            f"{self.n_sources} independent sources are fewer than {MINIMUM_SOURCES}: "
            "no significance is claimed, whatever the p-values."
        )
