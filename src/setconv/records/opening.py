"""Open a data file for reading, whatever its format."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from setconv.errors import DataError
from setconv.records.delimited import DelimitedReader
from setconv.records.formats import (
    PARQUET_MAGIC,
    ZIP_MAGIC,
    checked_format,
    format_of_name,
    sniffed_format,
)
from setconv.records.jsonl import JsonlReader
from setconv.records.parquet import ParquetReader
from setconv.records.reading import RecordReader
from setconv.records.sources import STANDARD, ByteSource, open_source


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
    opened = open_source(source)
    try:
        return _reader(opened, wanted or _found_format(opened, path), path, encoding)
    except BaseException:
        opened.close()
        raise


def _found_format(source: ByteSource, path: Path) -> str:
    # A pipe has no telling name: standard input, or <(command) of a shell.
    return sniffed_format(source.head()) if source.size is None else format_of_name(path)


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
