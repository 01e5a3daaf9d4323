"""JSONL: one object a line.

The file is gone through twice. The first time finds every key and the type of its values, so that
a key which first occurs in the last line is a column of all rows (null before), and no type
depends on a batch; the second time gives the rows. Standard input is kept in a temporary file.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pyarrow as pa

from setconv.errors import DataError
from setconv.io.sources import ByteSource, RecordReader, Utf8Stream, check_header
from setconv.messages import excerpt, listed

logger = logging.getLogger("setconv")

BLOCK = 1 << 20  # bytes
_ROWS = 4096
_INT64 = 1 << 63
_NUMBERS = frozenset({"int", "float"})
_TYPES = {
    frozenset({"bool"}): pa.bool_(),
    frozenset({"int"}): pa.int64(),
    frozenset({"float"}): pa.float64(),
    _NUMBERS: pa.float64(),
    frozenset({"numbers"}): pa.list_(pa.float64()),
}  # strings for all others


class JsonlReader(RecordReader):
    """A JSONL file.

    Parameters
    ----------
    source : ByteSource
    encoding : str or None
    """

    def __init__(self, source: ByteSource, encoding: str | None) -> None:
        super().__init__()
        self.name, self.format = source.name, "jsonl"
        self._source = self._bytes = source
        self._encoding = encoding
        source.keep()
        self.schema, self.n_rows = self._looked_through()

    def _read_tables(self) -> Iterator[pa.Table]:
        rows = self._objects()
        while batch := list(islice(rows, _ROWS)):
            yield pa.table([_as_array(batch, one) for one in self.schema], schema=self.schema)

    def _looked_through(self) -> tuple[pa.Schema, int]:
        kinds: dict[str, set[str]] = {}
        n_rows = 0
        for row in self._objects():
            n_rows += 1
            for key, value in row.items():
                found = kinds.setdefault(key, set())
                if value is not None:
                    found.add(_kind_of(value))
        if not kinds:
            problem = "holds only empty objects" if n_rows else "is empty"
            raise DataError(f"{self.name} {problem}. Check that it was written or piped whole.")
        check_header(list(kinds), self.name)
        mixed = [key for key, found in kinds.items() if len(found) > 1 and found != _NUMBERS]
        if mixed:
            logger.warning(
                "%s: values of several types in %s. They are read as strings.",
                self.name,
                listed(mixed),
            )
        types = {key: _TYPES.get(frozenset(found), pa.string()) for key, found in kinds.items()}
        return pa.schema(list(types.items())), n_rows

    def _objects(self) -> Iterator[dict[str, Any]]:
        """Iterate over the objects, from the source's first byte."""
        self._bytes.rewind()
        lines = split_lines(Utf8Stream(self._bytes, self._encoding))
        for number, line in enumerate(lines, start=1):
            if not line or line.isspace():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                problem = "nested too deeply" if isinstance(error, RecursionError) else str(error)
                raise self._malformed(number, line, f"not valid JSON ({problem})") from error
            if type(row) is not dict:
                raise self._malformed(number, line, "not an object")
            if b"\\u" in line:  # nothing else can give half of a character
                found, row = row, {_whole(key): value for key, value in row.items()}
                if len(row) < len(found):
                    raise self._malformed(number, line, "two keys that differ by halves of emojis")
            yield row

    def _malformed(self, number: int, line: bytes, problem: str) -> DataError:
        return DataError(
            f"{self.name}, line {number}: {problem}: {excerpt(line.decode('utf-8').strip())}.",
            hint='Each line must be one whole object like {"text": "..."}. Mend the line or remove '
            "it; objects in a list or over several lines have to be written one a line.",
        )


def split_lines(stream: ByteSource | Utf8Stream) -> Iterator[bytes]:
    """Iterate over lines without their ends."""
    carry: list[bytes] = []
    while block := stream.read(BLOCK):
        first, *others = block.split(b"\n")
        carry.append(first)
        if others:
            yield b"".join(carry)
            yield from others[:-1]
            carry = [others[-1]]
    yield b"".join(carry)


def _kind_of(value: Any) -> str:
    """Return the kind of a JSON value that is not null."""
    kind = type(value)
    if kind is int:
        return "int" if -_INT64 <= value < _INT64 else "large"
    if kind is list:
        small = [type(one) is float or (type(one) is int and abs(one) < _INT64) for one in value]
        return "numbers" if all(small) else "nested"
    return kind.__name__ if kind in (bool, float, str) else "nested"


def _as_array(rows: list[dict[str, Any]], column: pa.Field) -> pa.Array:
    """Return the values of a column as an array of its type."""
    values = [row.get(column.name) for row in rows]
    if pa.types.is_string(column.type):
        values = [
            v if isinstance(v, str | None) else json.dumps(v, ensure_ascii=False) for v in values
        ]
    try:
        return pa.array(values, column.type)
    except UnicodeEncodeError:  # half of a surrogate pair, as where an emoji was cut in two
        convert: Any = _whole
    except pa.ArrowInvalid:  # integers over 2**53, which are to be rounded
        convert = _rounded
    return pa.array([None if one is None else convert(one) for one in values], column.type)


def _rounded(value: Any) -> Any:
    return list(map(float, value)) if type(value) is list else float(value)


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
