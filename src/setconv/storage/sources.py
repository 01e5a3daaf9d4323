"""From what the user gives to tables that can be streamed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from setconv.errors import DataError, DataTypeError
from setconv.records.opening import open_records
from setconv.records.parquet import ParquetReader
from setconv.storage.parquet import ParquetTables
from setconv.storage.tables import ArrowTables, Tables

_MAGIC = b"PAR1"
_ROWS = 4096
_BUFFER = 1 << 16


def open_tables(X: Any) -> Tables:
    """Return the tables of a path, or of a dataset or table of pyarrow."""
    if isinstance(X, ds.Dataset):
        return _from_dataset(X)
    if isinstance(X, pa.RecordBatchReader):
        raise DataTypeError(
            "A RecordBatchReader can be read only once: give the table of its read_all(), or write "
            "it to a Parquet file and give that."
        )
    if isinstance(X, pa.RecordBatch):
        X = pa.Table.from_batches([X])
    if isinstance(X, pa.Table):
        return ArrowTables(
            "The table", X.schema, len(X), lambda columns: X.select(columns).to_batches()
        )
    return _from_path(Path(X))


def _from_path(path: Path) -> Tables:
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise DataError(
                    f"{path} is not a Parquet file. Give a Parquet file or a folder of them; read "
                    "other formats into an array or a data frame first."
                )
    # Absolute, because a lone "-" would be standard input.
    with open_records(path.absolute(), format="parquet") as reader:
        assert isinstance(reader, ParquetReader)
        return _from_reader(reader)


def _from_reader(reader: ParquetReader) -> Tables:
    files = [file for file in reader._files if isinstance(file, Path)]
    assert reader.n_rows is not None
    return ParquetTables(reader.name, files, reader.schema, reader.n_rows)


def _from_dataset(dataset: ds.Dataset) -> Tables:
    files = _plain_files(dataset)
    if files:
        return _from_reader(ParquetReader("The dataset", list(files)))
    return ArrowTables(
        "The dataset", dataset.schema, dataset.count_rows(), lambda names: _scan(dataset, names)
    )


def _plain_files(dataset: ds.Dataset) -> list[Path]:
    """Return the files of a dataset that is nothing but these Parquet files; else none.

    They are read with bounded memory, also if wide, and in parallel. Filters, partitions and
    columns that are not in every file are left to pyarrow.
    """
    local = isinstance(getattr(dataset, "filesystem", None), fs.LocalFileSystem)
    if not local or not isinstance(dataset.format, ds.ParquetFileFormat):
        return []
    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # pyarrow gives no fragments of a filtered dataset
        return []
    whole = ds.scalar(True)
    plain = all(
        one.partition_expression.equals(whole) and one.physical_schema.equals(dataset.schema)
        for one in fragments
    )
    return [Path(one.path) for one in fragments] if plain else []


def _scan(dataset: ds.Dataset, names: list[str]) -> Iterable[pa.RecordBatch]:
    options: dict[str, Any] = {}
    if isinstance(getattr(dataset, "format", None), ds.ParquetFileFormat):
        options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
            use_buffered_stream=True, buffer_size=_BUFFER, pre_buffer=False
        )
    # The defaults read a gigabyte ahead.
    scanner = dataset.scanner(
        {name: ds.field(name) for name in names},
        batch_size=_ROWS,
        batch_readahead=1,
        fragment_readahead=1,
        **options,
    )
    batches: Iterable[pa.RecordBatch] = scanner.to_batches()
    return batches
