"""The error of a study that cannot go on."""

from __future__ import annotations

from setconv.errors import SetConvError

__all__ = ["StudyError"]


class StudyError(SetConvError, ValueError):
    """A store belongs to another study, or the workers of a study cannot start."""
