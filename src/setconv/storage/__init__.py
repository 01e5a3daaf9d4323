"""Rows that lie on disk: larger than memory, and still indexed like an array.

A fit draws rows at random, which Parquet files cannot give. So one streaming pass writes the
features of a source as plain rows into a scratch file, and `DiskRows` reads any of them from there.
A C-ordered ``numpy.memmap`` of floats is such a file already and is read where it lies::

    with open_source("folder/", label="label") as source:
        source.rows[[5, 3, 3]]  # an array of three rows

Prediction needs no order but the file's own: `read_batches` streams, `write_predictions` streams
back to Parquet. Nothing is read through a mapping, whose pages would count as the process's memory.

Parquet files, Arrow datasets and tables need ``pip install 'setconv[cli]'``.
"""

from __future__ import annotations

from setconv.storage.batch import Batch
from setconv.storage.batches import column_names, read_batches, write_predictions
from setconv.storage.disk import DiskRows
from setconv.storage.kinds import SMALL, is_stored
from setconv.storage.opening import Source, open_source
from setconv.storage.prefetch import Prefetcher
from setconv.storage.subset import RowSubset

__all__ = [
    "SMALL",
    "Batch",
    "DiskRows",
    "Prefetcher",
    "RowSubset",
    "Source",
    "column_names",
    "is_stored",
    "open_source",
    "read_batches",
    "write_predictions",
]
