"""Some rows of a source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Batch:
    """Some rows of a source.

    Attributes
    ----------
    rows : ndarray or csr matrix of shape (n_rows, n_features)
        float32 or float64; of a file always an array.
    extra : pyarrow.Table or None
        The other columns that were asked for; None if none were.
    """

    rows: Any
    extra: pa.Table | None = None
