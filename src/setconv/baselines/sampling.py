"""What the samplers have in common, over imbalanced-learn's interface.

A sampler of ours says only which rows it makes or keeps. The labels reach it as codes 0..C-1, so
that the result cannot depend on how the classes are called.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from imblearn.over_sampling.base import BaseOverSampler
from imblearn.under_sampling.base import BaseUnderSampler
from scipy import sparse
from sklearn.utils import check_random_state

from setconv.baselines.fallbacks import FallbackMixin

Rows = Any  # a dense matrix or one of scipy.sparse


class _Coded(FallbackMixin):
    """Turns labels into codes and the sampling strategy into numbers by code."""

    classes_: np.ndarray
    random_state: Any
    sampling_strategy_: dict[Any, int]

    def _begin(self, y: np.ndarray) -> tuple[np.ndarray, dict[int, int], np.random.RandomState]:
        self.fallbacks_ = []
        self.classes_, codes = np.unique(y, return_inverse=True)
        code = {label: number for number, label in enumerate(self.classes_.tolist())}
        numbers = {code[label]: int(rows) for label, rows in self.sampling_strategy_.items()}
        return codes, numbers, check_random_state(self.random_state)


class OverSampler(_Coded, BaseOverSampler):
    """Base of the samplers that add rows."""

    def _fit_resample(self, X: Rows, y: np.ndarray) -> tuple[Rows, np.ndarray]:
        codes, missing, random = self._begin(y)
        missing = {code: count for code, count in missing.items() if count > 0}
        if not missing:
            self._fall_back("no class has fewer rows than it should; the rows are as they were")
        parts, labels = [X], [y]
        for code, count in missing.items():
            parts.append(self._new_rows(X, codes, code, count, random))
            labels.append(np.full(count, self.classes_[code], dtype=y.dtype))
        storage = getattr(X, "format", None)
        if storage is not None:
            stacked = sparse.vstack(parts, format=storage)
        else:
            stacked = np.vstack([np.asarray(part, dtype=X.dtype) for part in parts])
        return stacked, np.concatenate(labels)

    @abstractmethod
    def _new_rows(
        self,
        X: Rows,
        codes: np.ndarray,
        code: int,
        count: int,
        random: np.random.RandomState,
    ) -> Rows:
        """Make exactly ``count`` new rows of class ``code``, sparse if X is."""


class UnderSampler(_Coded, BaseUnderSampler):
    """Base of the samplers that keep a part of the rows; ``sample_indices_`` are those kept."""

    sample_indices_: np.ndarray

    def _fit_resample(self, X: Rows, y: np.ndarray) -> tuple[Rows, np.ndarray]:
        codes, targets, random = self._begin(y)
        counts = np.bincount(codes)
        targets = {code: rows for code, rows in targets.items() if rows < counts[code]}
        if targets:
            self.sample_indices_ = np.sort(self._kept_rows(X, codes, targets, random))
        else:
            self._fall_back("no class has more rows than it should; the rows are as they were")
            self.sample_indices_ = np.arange(len(codes))
        return X[self.sample_indices_], y[self.sample_indices_]

    @abstractmethod
    def _kept_rows(
        self,
        X: Rows,
        codes: np.ndarray,
        targets: dict[int, int],
        random: np.random.RandomState,
    ) -> np.ndarray:
        """Choose the rows to keep; ``targets`` is how many of each class that is to be reduced."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.sampler_tags.sample_indices = True
        return tags
