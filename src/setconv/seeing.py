"""Rows as scaler and network see them: sparse ones by a projection, or as they are."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from scipy.sparse import issparse

from setconv.rows import Matrix, Rows, StoredRows
from setconv.scaling import FEW_COLUMNS, choose_views
from setconv.sparse import NARROW, Front, Projection, make_front


@dataclass(frozen=True)
class SeenRows:
    """Rows as scaler and network see them, and how they came to be so.

    Attributes
    ----------
    features : Matrix
        Sparse still where all of many columns are looked at: they are made dense by blocks.
    front : Projection, Unpacked or None
        What makes dense rows of sparse ones.
    """

    features: Matrix
    front: Front | None = None

    @property
    def has_lines(self) -> bool:
        """Whether the linear part is to see the sparse columns."""
        return issparse(self.features) or isinstance(self.front, Projection)

    @property
    def kind_of_width(self) -> int:
        """The number of columns, for choices that depend on what kind of columns they are."""
        width = int(self.features.shape[1])
        return max(width, FEW_COLUMNS + 1) if self.has_lines else width

    def choose_views(self, scaling: Any, n_members: int) -> tuple[str, ...]:
        """Choose the views."""
        if isinstance(self.features, StoredRows) and scaling == "auto":
            return ("standard",)
        return choose_views(scaling, self.features.shape[0], self.kind_of_width, n_members)


def see_rows(scaling: Any, train: Rows, seed: int) -> SeenRows:
    """Project sparse rows of many columns, unless they are to stay as they are (no scaling)."""
    rows = train.features
    if not issparse(rows):
        return SeenRows(rows)
    front = make_front(rows, train.weights_once, seed, whole=scaling is None)
    if isinstance(front, Projection) or front.width <= NARROW:
        return SeenRows(front(rows), front)
    warnings.warn(
        f"With scaling=None the network looks at all {front.width} columns of the sparse rows, "
        "made dense block by block, which costs time and weights as so many dense columns do: "
        'scaling="auto" projects them to a few.',
        UserWarning,
        stacklevel=2,
    )
    return SeenRows(rows, front)
