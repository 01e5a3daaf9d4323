"""Never a silent no-op: what a method could not do is warned of and kept."""

from __future__ import annotations

import warnings

__all__ = ["FallbackWarning"]


class FallbackWarning(UserWarning):
    """A baseline could not do what it is for and did something else."""


class FallbackMixin:
    """Keeps in ``fallbacks_`` what was done instead, sentence by sentence, in order."""

    fallbacks_: list[str]

    def _fall_back(self, sentence: str) -> None:
        """Warn of a fallback and keep the sentence."""
        self.fallbacks_.append(sentence)
        warnings.warn(f"{type(self).__name__}: {sentence}", FallbackWarning, stacklevel=2)
