"""Which things are rows on disk; told by their type's name, so that pyarrow stays unimported."""

from __future__ import annotations

import os
from typing import Any, TypeGuard

import numpy as np

SMALL = 64 * 2**20
_ARROW = frozenset({"Table", "RecordBatch", "RecordBatchReader", "Dataset"})


def is_stored(X: Any) -> bool:
    """Return whether X is a source of rows to stream rather than an array to hold.

    That is a path, a ``pyarrow.dataset.Dataset``, a ``pyarrow.Table`` or ``RecordBatch``, or a 2-D
    ``numpy.memmap`` of numbers with more than `SMALL` bytes.
    """
    if is_memmap(X):
        return X.ndim == 2 and X.dtype.kind in "fiub" and X.nbytes > SMALL
    return is_path(X) or is_arrow(X)


def is_path(X: Any) -> bool:
    """Return whether X is the path of a file or folder."""
    return isinstance(X, str | os.PathLike)


def is_memmap(X: Any) -> TypeGuard[np.memmap[Any, Any]]:
    """Return whether X lies in a file; what is computed from a memmap is one by type only."""
    return isinstance(X, np.memmap) and getattr(X, "_mmap", None) is not None


def is_arrow(X: Any) -> bool:
    """Return whether X is a table, dataset or stream of pyarrow."""
    return any(
        kind.__name__ in _ARROW and kind.__module__.split(".")[0] == "pyarrow"
        for kind in type(X).__mro__
    )
