"""Rows of mostly zeros: a projection for the network, a line over all columns."""

from setconv.sparse.front import NARROW, Front, Unpacked, as_sparse, make_front
from setconv.sparse.lines import SparseLines, fit_lines
from setconv.sparse.projection import Projection, fit_projection

__all__ = [
    "NARROW",
    "Front",
    "Projection",
    "SparseLines",
    "Unpacked",
    "as_sparse",
    "fit_lines",
    "fit_projection",
    "make_front",
]
