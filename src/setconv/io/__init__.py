"""Files in and out: tables in any format, their columns, and rows that stay on disk.

`open_records` and `open_writer` read and write delimited text, JSON lines and Parquet,
`FeatureEncoder` makes numbers of a table's columns. A fit goes over the rows of a file in passes
(`open_source`), and what it needs in another order is gathered in a scratch file::

    source = open_source("folder/", label="label")
    for rows in source.rows.blocks(8192):  # as often as it takes
        ...

Prediction needs one pass: `read_batches` streams, `write_predictions` streams back to Parquet. A
C-ordered ``numpy.memmap`` of float32 or float64 is read in the same way, never through its mapping,
whose pages would count as the process's memory. All of it needs ``pip install 'setconv[cli]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from setconv.messages import needed

_HOMES = {
    "encoder": "FeatureEncoder",
    "opening": "open_source read_batches write_predictions",
    "records": "open_records",
    "sources": "RecordReader",
    "writer": "RecordWriter open_writer",
}

__all__ = sorted(" ".join(_HOMES.values()).split())


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            with needed(f"setconv.io.{name}", "pyarrow", "cli"):
                import_module("pyarrow")
            return getattr(import_module(f"setconv.io.{module}"), name)
    raise AttributeError(f"module 'setconv.io' has no attribute {name!r}")
