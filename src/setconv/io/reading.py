"""Open what the user gives: as records of any format, or as tables that can be streamed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from setconv.errors import DataError, DataTypeError
from setconv.io.delimited import DelimitedReader
from setconv.io.jsonl import JsonlReader
from setconv.io.matrix import ArrowTables, Tables
from setconv.io.parquet import ParquetReader, ParquetTables
from setconv.io.sources import (
    PARQUET_MAGIC,
    STANDARD,
    ZIP_MAGIC,
    ByteSource,
    RecordReader,
    checked_format,
    format_of_name,
    open_bytes,
    sniffed_format,
)


def open_records(
    source: str | Path, *, format: str | None = None, encoding: str | None = None
) -> RecordReader:
    """Open a data file: CSV, TSV, JSONL or Parquet, each also compressed with gzip.

    Parameters
    ----------
    source : str or Path
        A file, a folder of Parquet files, or "-" for standard input. Compression is found by the
        first bytes.
    format : {"csv", "tsv", "jsonl", "parquet"} or None, default=None
        None: by the extension; for standard input by the first bytes.
    encoding : str or None, default=None
        Of a text file. None: by its byte order mark, else UTF-8, and cp1252 with a warning where
        it is not valid UTF-8.

    Returns
    -------
    RecordReader
        A context manager. CSV and TSV columns are strings (an empty field is the empty string),
        JSONL and Parquet columns have types. A line that cannot be read is a `DataError` with its
        number, either here or when that line is reached.
    """
    wanted = None if format is None else checked_format(format)
    path = Path(source)
    if str(source) != STANDARD and path.is_dir():
        return ParquetReader(str(path), _parquet_files(path, wanted))
    opened = open_bytes(source)
    try:
        if wanted is None:
            # A pipe has no telling name: standard input, or <(command) of a shell.
            piped = opened.size is None
            wanted = sniffed_format(opened.head()) if piped else format_of_name(path)
        return _reader(opened, wanted, path, encoding)
    except BaseException:
        opened.close()
        raise


def _reader(source: ByteSource, format: str, path: Path, encoding: str | None) -> RecordReader:
    if not source.head(1):
        raise DataError(f"{source.name} is empty. Check that it was written or piped whole.")
    if format == "jsonl":
        return JsonlReader(source, encoding)
    if format == "parquet":
        file: Path | IO[bytes] = path if source.is_plain_file else source.unpacked()
        source.close()
        return ParquetReader(source.name, [file])
    _refuse_other_content(source)
    return DelimitedReader(source, format, encoding)


def _refuse_other_content(source: ByteSource) -> None:
    """Refuse what is no text, before it is taken as text in an unknown encoding."""
    head = source.head(4)
    if head == PARQUET_MAGIC:
        raise DataError(f"{source.name} holds Parquet data. Give --format parquet.")
    if head == ZIP_MAGIC:
        raise DataError(
            f"{source.name} is a zip archive or an Excel file. Unpack it, or save it as CSV, first."
        )


def _parquet_files(folder: Path, wanted: str | None) -> list[Path | IO[bytes]]:
    if wanted not in (None, "parquet"):
        raise DataError(f"{folder} is a folder. Only Parquet files can be read as a folder.")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise DataError(f"{folder} cannot be read: no permission. Change its permissions.")
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in {".parquet", ".pq"}
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    )
    if not found:
        raise DataError(
            f"{folder} is a folder without Parquet files. Give a file, or a folder of them."
        )
    return list(found)


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
            if file.read(len(PARQUET_MAGIC)) != PARQUET_MAGIC:
                raise DataError(
                    f"{path} is not a Parquet file. Give a Parquet file or a folder of them; read "
                    "other formats into an array or a data frame first."
                )
    # Absolute, because a lone "-" would be standard input.
    with open_records(path.absolute(), format="parquet") as reader:
        assert isinstance(reader, ParquetReader)
        return _from_reader(reader)


def _from_reader(reader: ParquetReader) -> Tables:
    files = [file for file in reader.files if isinstance(file, Path)]
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
            use_buffered_stream=True, buffer_size=1 << 16, pre_buffer=False
        )
    # The defaults read a gigabyte ahead.
    scanner = dataset.scanner(
        {name: ds.field(name) for name in names},
        batch_size=4096,
        batch_readahead=1,
        fragment_readahead=1,
        **options,
    )
    batches: Iterable[pa.RecordBatch] = scanner.to_batches()
    return batches
