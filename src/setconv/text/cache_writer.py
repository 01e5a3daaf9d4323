"""Fresh embeddings on their way into the cache: kept in portions, so that little is ever lost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from setconv.text.cache import EmbeddingCache
from setconv.text.space import Space

_TEXTS, _SECONDS = 512, 2.0


class CacheWriter:
    """Collects embeddings and stores them every few seconds, and at the end however it comes."""

    def __init__(self, cache: EmbeddingCache | None, space: Space) -> None:
        self._cache, self._space = cache, space
        self._texts: list[str] = []
        self._vectors: list[NDArray[np.float32]] = []
        self._stored = time.monotonic()

    def add(self, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Take embeddings, a row for each text."""
        if self._cache is None:
            return
        self._texts += texts
        self._vectors.append(vectors)
        if len(self._texts) >= _TEXTS or time.monotonic() - self._stored > _SECONDS:
            self._flush()

    def _flush(self) -> None:
        if self._cache is not None and self._texts:
            self._cache.store(self._space, self._texts, np.concatenate(self._vectors))
        self._texts, self._vectors = [], []
        self._stored = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._flush()
