"""The door to all that needs pyarrow, which is imported behind it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from setconv.errors import DataTypeError
from setconv.needs import needed
from setconv.storage.kinds import is_arrow, is_path

if TYPE_CHECKING:
    import pyarrow as pa

    from setconv.records import RecordWriter
    from setconv.storage.labels import LabelColumn
    from setconv.storage.tables import Tables


def tables_of(X: Any) -> Tables:
    """Return the tables of a source that has columns."""
    if not (is_path(X) or is_arrow(X)):
        raise DataTypeError(
            f"{type(X).__name__} is no source of rows on disk: give the path of a Parquet file or "
            "folder, a pyarrow dataset or table, or a numpy memmap."
        )
    with needed("Reading rows from Parquet files or Arrow data", "pyarrow", "cli"):
        from setconv.storage.sources import open_tables
    return open_tables(X)


def label_column(schema: pa.Schema, name: str | None) -> LabelColumn | None:
    """Return what gathers the labels of a column, if one is named."""
    if name is None:
        return None
    from setconv.storage.labels import LabelColumn

    return LabelColumn(schema, name)


def parquet_writer(path: str | Path) -> RecordWriter:
    """Return what writes tables to a Parquet file, whole or not at all."""
    with needed("Writing Parquet files", "pyarrow", "cli"):
        from setconv.records import open_writer
    return open_writer(path, format="parquet")
