"""Rows as scaler and network see them: sparse ones by a projection, or as they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scipy.sparse import issparse

from setconv.errors import ParameterError
from setconv.rows import Matrix, Rows, StoredRows
from setconv.scaling import FEW_COLUMNS, choose_views
from setconv.sparse import Front, Projecting, Projection, make_front


@dataclass(frozen=True)
class SeenRows:
    """Rows as scaler and network see them, and how they came to be so.

    Attributes
    ----------
    features : Matrix
    front : Projection, Unpacked or None
        What made them of sparse rows.
    direct : bool
        Whether they are sparse still.
    """

    features: Matrix
    front: Front | None = None
    direct: bool = False

    @property
    def has_lines(self) -> bool:
        """Whether the linear part is to see the sparse columns."""
        return self.direct or isinstance(self.front, Projection)

    @property
    def kind_of_width(self) -> int:
        """The number of columns, for choices that depend on what kind of columns they are."""
        width = int(self.features.shape[1])
        return max(width, FEW_COLUMNS + 1) if self.has_lines else width

    def choose_views(self, scaling: Any, n_members: int) -> tuple[str, ...]:
        """Choose the views; those that sparse columns do not allow are refused."""
        if self.direct:
            if scaling not in (None, "auto"):
                raise ParameterError(
                    f"scaling={scaling!r} would make all columns of sparse rows dense: give a "
                    'projection, or scaling="auto" or None.'
                )
            return ()
        if isinstance(self.features, StoredRows) and scaling == "auto":
            return ("standard",)
        return choose_views(scaling, self.features.shape[0], self.kind_of_width, n_members)


def see_rows(projecting: Projecting, train: Rows, seed: int) -> SeenRows:
    """Make sparse rows dense where a projection is wanted; others stay as they are."""
    rows = train.features
    if not issparse(rows):
        return SeenRows(rows)
    front = make_front(projecting, rows, train.weights_once, seed)
    return SeenRows(rows, direct=True) if front is None else SeenRows(front(rows), front)
