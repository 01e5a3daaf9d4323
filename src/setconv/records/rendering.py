"""Rows as lines of text: CSV, TSV and JSONL."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from setconv.errors import DataError

_ROWS = 8192


def csv_header(names: list[str], delimiter: str) -> bytes:
    """Return the line with the names of the columns."""
    cells = [_quoted(pa.array([name], pa.large_string()), delimiter, one=False) for name in names]
    return _lines(cells, delimiter)


def csv_rows(table: pa.Table, delimiter: str) -> Iterator[bytes]:
    """Iterate over the rows as delimited text; a missing value is an empty field.

    Text is written as it is, and quoted only where it holds the delimiter, a quote or a line end.
    """
    for batch in table.to_batches(max_chunksize=_ROWS):
        one = batch.num_columns == 1
        cells = [
            _quoted(_as_text(column, name), delimiter, one=one)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        if len(batch):
            yield _lines(cells, delimiter)


def jsonl_rows(table: pa.Table) -> Iterator[bytes]:
    """Iterate over the rows as one JSON object a line; what is not finite becomes null."""
    for batch in table.to_batches(max_chunksize=_ROWS):
        finite = [_finite(column) for column in batch.columns]
        rows = pa.RecordBatch.from_arrays(finite, names=batch.schema.names).to_pylist()
        lines = [json.dumps(row, ensure_ascii=False, default=str) for row in rows]
        yield "".join(f"{line}\n" for line in lines).encode("utf-8")


def _lines(cells: list[pa.Array], delimiter: str) -> bytes:
    ends = [*cells[:-1], pc.binary_join_element_wise(cells[-1], _scalar("\n"), _scalar(""))]
    joined = pc.binary_join_element_wise(*ends, _scalar(delimiter))
    # The text of all rows lies in one buffer, row after row.
    return bytes(joined.buffers()[2])


def _quoted(texts: pa.Array, delimiter: str, *, one: bool) -> pa.Array:
    special = f'["\r\n{delimiter}]'
    needs = pc.match_substring_regex(texts, special)
    if one:  # an empty line would not be a row
        needs = pc.or_(needs, pc.equal(texts, ""))
    if not pc.any(needs).as_py():
        return texts
    doubled = pc.replace_substring(texts, '"', '""')
    mark = _scalar('"')
    return pc.if_else(needs, pc.binary_join_element_wise(mark, doubled, mark, _scalar("")), texts)


def _as_text(column: pa.Array, name: str) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_nested(column.type):
        values = column.to_pylist()
        texts = pa.array([None if one is None else json.dumps(one, default=str) for one in values])
    else:
        texts = column
    try:
        return pc.fill_null(pc.cast(texts, pa.large_string()), "")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise DataError(
            f"The column {name!r} ({column.type}) cannot be written as text. Write Parquet, or "
            "leave the column out."
        ) from error


def _finite(column: pa.Array) -> pa.Array:
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())
