"""Rows with what belongs to each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Rows:
    """Rows with their class numbers, weights and groups."""

    features: NDArray[Any]
    codes: NDArray[np.int64]
    weights: NDArray[np.float64]
    groups: NDArray[Any] | None = None

    def take(self, chosen: NDArray[Any]) -> Rows:
        """Return the chosen rows."""
        groups = None if self.groups is None else self.groups[chosen]
        return Rows(self.features[chosen], self.codes[chosen], self.weights[chosen], groups)
