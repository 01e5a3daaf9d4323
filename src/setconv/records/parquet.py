"""Parquet, one file or a folder of files, in bounded memory whatever the row groups are.

A reader holds a dictionary of up to a megabyte, three times, for each column of a row group. With
hundreds of columns that is a gigabyte, so such a group is read in slabs of rows, some columns at a
time. A slab costs decoding the rows before it once more; that is cheap next to their use.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from setconv.errors import DataError
from setconv.names import check_header, count_of
from setconv.records.reading import RecordReader

ROWS = 8192
SLAB = 1 << 26
COLUMNS_AT_ONCE = 16
_BUFFER = 1 << 16


class ParquetReader(RecordReader):
    """A Parquet file, or all files of a folder in the order of their names.

    Parameters
    ----------
    name : str
    files : list of Path or binary file
    """

    def __init__(self, name: str, files: list[Path | IO[bytes]]) -> None:
        super().__init__()
        self.name, self.format = name, "parquet"
        self._files = files
        self._rows_read = 0
        schemas, counts = [], []
        for file in files:
            with self._opened(file) as opened:
                schemas.append(opened.schema_arrow.remove_metadata())
                counts.append(opened.metadata.num_rows)
        self.schema = schemas[0]
        self.n_rows = sum(counts)
        check_header(self.columns, name)
        for file, schema in zip(files, schemas, strict=True):
            if not schema.equals(self.schema):
                raise DataError(
                    f"{file} has other columns than {files[0]}: "
                    f"{_difference(self.schema, schema)}. Files of one folder must have the same "
                    "columns and types."
                )
        if self.n_rows == 0:
            raise DataError(f"{name} has {count_of(len(self.columns), 'column')} but no rows.")

    def progress(self) -> float | None:
        """Return the share of the rows that have been read."""
        assert self.n_rows
        return self._rows_read / self.n_rows

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            if not isinstance(file, Path):
                file.close()

    def _read_tables(self) -> Iterator[pa.Table]:
        for file in self._files:
            with self._opened(file) as opened:
                for group in range(opened.num_row_groups):
                    for table in _group_tables(opened, group):
                        self._rows_read += len(table)
                        yield table.cast(self.schema)

    @contextmanager
    def _opened(self, file: Path | IO[bytes]) -> Iterator[pq.ParquetFile]:
        where = file if isinstance(file, Path) else self.name
        try:
            with pq.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False) as opened:
                yield opened
        except PermissionError as error:
            raise DataError(f"{where} cannot be read: no permission.") from error
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{where} is not a whole Parquet file ({_first_sentence(error)}). It may have been "
                "cut off, or be another format: copy it again, or give its --format."
            ) from error


def _group_tables(file: pq.ParquetFile, group: int) -> Iterator[pa.Table]:
    found = file.metadata.row_group(group)
    names = file.schema_arrow.names
    if found.total_byte_size <= SLAB or _dictionary_bytes(found) <= SLAB:
        for batch in file.iter_batches(ROWS, row_groups=[group], use_threads=False):
            yield pa.Table.from_batches([batch])
        return
    parts = [names[at : at + COLUMNS_AT_ONCE] for at in range(0, len(names), COLUMNS_AT_ONCE)]
    height = max(SLAB * found.num_rows // found.total_byte_size, 1)
    for number in range(-(-found.num_rows // height)):
        yield _slab(file, group, parts, height, number)


def _slab(
    file: pq.ParquetFile, group: int, parts: list[list[str]], height: int, number: int
) -> pa.Table:
    columns: list[Any] = []
    for part in parts:
        slabs = file.iter_batches(height, row_groups=[group], columns=part, use_threads=False)
        batch = next(islice(slabs, number, None))
        columns += [batch.column(name) for name in part]
    return pa.table(columns, names=[name for part in parts for name in part])


def _dictionary_bytes(group: pq.RowGroupMetaData) -> int:
    """Return the bytes of the dictionaries of all columns, which are held at once."""
    columns = [group.column(number) for number in range(group.num_columns)]
    return sum(
        one.data_page_offset - one.dictionary_page_offset
        for one in columns
        if one.dictionary_page_offset is not None
    )


def _difference(expected: pa.Schema, found: pa.Schema) -> str:
    for name in expected.names:
        if name not in found.names:
            return f"{name!r} is missing"
        if found.field(name).type != expected.field(name).type:
            types = found.field(name).type, expected.field(name).type
            return f"{name!r} is {types[0]} instead of {types[1]}"
    extra = [name for name in found.names if name not in expected.names]
    return f"{extra[0]!r} is only there" if extra else "their order differs"


def _first_sentence(error: Exception) -> str:
    return str(error).split(". ")[0].splitlines()[0].rstrip(".")
