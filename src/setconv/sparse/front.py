"""How rows of mostly zeros reach the network, whose products are dense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from setconv.sparse.projection import Projection, automatic_width, fit_projection

Projecting = int | Literal["auto"] | None
_NARROW = 512  # columns up to which a dense row is no larger than what the network makes of it


@dataclass(frozen=True)
class Unpacked:
    """Rows of few columns are given their zeros, a batch at a time."""

    n_features: int

    @property
    def width(self) -> int:
        """Number of dense columns."""
        return self.n_features

    def __call__(self, rows: sparse.csr_matrix) -> NDArray[Any]:
        """Return dense rows."""
        return np.asarray(rows.toarray())


Front = Projection | Unpacked


def as_sparse(rows: Any) -> sparse.csr_matrix:
    """Return rows as a csr matrix; those that are one already are not copied."""
    return rows if isinstance(rows, sparse.csr_matrix) else sparse.csr_matrix(rows)


def make_front(
    projecting: Projecting, rows: sparse.csr_matrix, weights: NDArray[Any], seed: int
) -> Front | None:
    """Choose and learn the way for sparse rows; None leaves them as they are.

    Parameters
    ----------
    projecting : int, "auto" or None
        Columns of the projection. "auto" projects only rows of more than 512 columns.
    rows : csr matrix
    weights : array of shape (n_rows,)
    seed : int
    """
    if projecting is None:
        return None
    if projecting == "auto":
        if rows.shape[1] <= _NARROW:
            return Unpacked(int(rows.shape[1]))
        return fit_projection(rows, weights, automatic_width(*rows.shape), seed)
    return fit_projection(rows, weights, projecting, seed)
