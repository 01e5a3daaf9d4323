"""Files in and out: tables in any format, their columns, and rows that stay on disk.

`open_records` and `open_writer` read and write delimited text, JSON lines and Parquet,
`FeatureEncoder` makes numbers of a table's columns. A fit draws rows at random, which Parquet files
cannot give: `open_source` writes the features of a file once as plain rows into a scratch file, and
`DiskRows` reads any of them from there. A C-ordered ``numpy.memmap`` of float32 or float64 is such
a file already and is read where it lies::

    with open_source("folder/", label="label") as source:
        source.rows[[5, 3, 3]]  # an array of three rows

Prediction needs no order but the file's own: `read_batches` streams, `write_predictions` streams
back to Parquet. Nothing is read through a mapping, whose pages would count as the process's memory.
All but memmaps needs ``pip install 'setconv[cli]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from setconv.messages import needed

_HOMES = {
    "DiskRows": "disk",
    "FeatureEncoder": "encoder",
    "RecordReader": "sources",
    "RecordWriter": "writer",
    "open_records": "records",
    "open_source": "opening",
    "open_writer": "writer",
    "read_batches": "opening",
    "write_predictions": "opening",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'setconv.io' has no attribute {name!r}")
    if _HOMES[name] != "disk":
        with needed(f"setconv.io.{name}", "pyarrow", "cli"):
            import_module("pyarrow")
    return getattr(import_module(f"setconv.io.{_HOMES[name]}"), name)
