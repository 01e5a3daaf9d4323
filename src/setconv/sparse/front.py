"""How rows of mostly zeros reach the network, whose products are dense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from setconv.sparse.projection import Projection, automatic_width, fit_projection

NARROW = 512  # columns up to which a dense row is no larger than what the network makes of it


@dataclass(frozen=True)
class Unpacked:
    """Rows are given their zeros, a batch at a time."""

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
    rows: sparse.csr_matrix, weights: NDArray[Any], seed: int, *, whole: bool = False
) -> Front:
    """Choose and learn the way for sparse rows: more than 512 columns are projected.

    Parameters
    ----------
    rows : csr matrix
    weights : array of shape (n_rows,)
    seed : int
    whole : bool, default=False
        Whether the network is to look at all columns, however many.
    """
    if whole or rows.shape[1] <= NARROW:
        return Unpacked(int(rows.shape[1]))
    return fit_projection(rows, weights, automatic_width(*rows.shape), seed)
