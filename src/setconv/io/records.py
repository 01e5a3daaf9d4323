"""Data files as tables: `open_records` opens one of any format.

CSV and TSV are read here (JSON lines and Parquet in modules of their own): every column as strings,
in blocks that end with a record. Types never depend on a block: what is a number is decided later,
over all values. The grammar says where records end and pyarrow parses the blocks; where it refuses
one, the grammar finds the line.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from setconv.errors import DataError, DataTypeError
from setconv.io.sources import (
    STANDARD,
    ByteSource,
    RecordReader,
    Utf8Stream,
    check_format,
    check_header,
    count_lines,
    format_of_name,
    open_bytes,
)
from setconv.messages import count_of, excerpt

logger = logging.getLogger("setconv")

BLOCK = 1 << 22  # bytes
LONGEST_RECORD = 1 << 26
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}
_LINE_END = rb"(?:\n|\r\n|\r(?=[^\n]))"
_QUOTED = rb'"[^"]*+(?:""[^"]*+)*+"'
_BACKSLASHED = rb"\""
_BACKSLASH = r' (It seems to write quotes as \": write them as "" instead.)'


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
    wanted = None if format is None else check_format(format)
    if not isinstance(source, str | os.PathLike):
        raise DataTypeError(f"A path is expected, not {type(source).__name__}.", parameter="source")
    path = Path(source)
    if str(source) != STANDARD and os.path.isdir(path):  # noqa: PTH112 - of any name
        if wanted not in (None, "parquet"):
            raise DataError(f"{path} is a folder. Only Parquet files can be read as a folder.")
        from setconv.io.parquet import read_folder

        return read_folder(path)
    opened = open_bytes(source)
    try:
        told = opened.format()
        if wanted is None and told != "parquet" and opened.size is not None:
            wanted = format_of_name(path)
        # A pipe has no telling name: standard input, or <(command) of a shell.
        wanted = wanted or told or "csv"
        if wanted == "parquet":
            from setconv.io.parquet import read_parquet

            packed = opened.size is None or opened.compressed
            file = opened.as_file() if packed else path
            opened.close()
            return read_parquet(opened.name, [file])
        if wanted == "jsonl":
            from setconv.io.jsonl import JsonlReader

            return JsonlReader(opened, encoding)
        return DelimitedReader(opened, wanted, encoding)
    except BaseException:
        opened.close()
        raise


class DelimitedReader(RecordReader):
    """A CSV or TSV file.

    Parameters
    ----------
    source : ByteSource
    format : {"csv", "tsv"}
        The delimiter of a CSV file is found from its header: comma, semicolon, tab or bar.
    encoding : str or None
    """

    def __init__(self, source: ByteSource, format: str, encoding: str | None) -> None:
        super().__init__()
        self.name, self.format = source.name, format
        self._source = source
        self._stream = Utf8Stream(source, encoding)
        self._line, self._data = 1, b""
        self._at_end = self._nulls_said = False
        self._skip_blank_lines("is empty. Check that it was written or piped whole.")
        self._grammar = _Grammar(self._find_delimiter() if format == "csv" else "\t")
        names = self._take_header()
        self.schema = pa.schema([(name, pa.string()) for name in names])
        self._skip_blank_lines(
            f"has {len(names)} column names but no rows. (Is it a file without column names? Then "
            "add them as first line.)"
        )

    def _skip_blank_lines(self, otherwise: str) -> None:
        """Go to the next line that is not blank, or say that there is none."""
        while not self._data.strip(b"\r\n"):
            if self._at_end:
                raise DataError(f"{self.name} {otherwise}")
            self._more()
        rest = self._data.lstrip(b"\r\n")
        self._line += count_lines(self._data[: len(self._data) - len(rest)])
        self._data = rest

    def _find_delimiter(self) -> str:
        line = self._data.replace(b"\r", b"\n").split(b"\n", 1)[0]
        # Quoted names may hold any of them.
        bare = b"".join(line.split(b'"')[::2])
        found = max(_DELIMITERS, key=lambda mark: bare.count(mark.encode()))
        if found != ",":
            logger.info("%s: the columns are separated by a %s.", self.name, _DELIMITERS[found])
        return found

    def _take_header(self) -> list[str]:
        while not self._complete_end():
            self._more()
        first = next(self._grammar.record.finditer(self._data))[0]
        names = [field.decode("utf-8") for field in self._grammar.fields(first)]
        check_header(names, f"{self.name}, line {self._line}")
        self._line += count_lines(first)
        self._data = self._data[len(first) :]
        return names

    def _read_tables(self) -> Iterator[pa.Table]:
        while self._data or not self._at_end:
            end = self._complete_end()
            block, self._data = self._data[:end], self._data[end:]
            if block.strip(b"\r\n"):
                yield self._parsed(block)
            self._line += count_lines(block)
            if not self._at_end:
                self._more()

    def _more(self) -> None:
        """Read on; the file's last line gets its line end."""
        more = self._stream.read(BLOCK)
        self._at_end = not more
        if not self._nulls_said and b"\0" in more:
            self._nulls_said = True
            logger.warning("%s holds null bytes. They are kept in the values.", self.name)
        if self._at_end and self._data and not self._data.endswith(b"\n"):
            more = b"\n"
        self._data += more

    def _complete_end(self) -> int:
        """Return where complete records end; refuse a record that can never be completed."""
        end = self._grammar.complete(self._data)
        rest = self._data[end:]
        stuck = self._at_end or len(rest) > LONGEST_RECORD
        fault = self._grammar.fault(rest, at_end=stuck)
        if fault is not None:
            start, problem = fault
            line = self._line + count_lines(self._data[: end + start])
            text = rest[start : start + 400]
            raise DataError(
                f"{self.name}, line {line}: {problem}: {excerpt(text.decode(errors='replace'))}. "
                'Write a quote that belongs to a text twice (""), in a field in quotes, and close '
                f"the field.{_BACKSLASH if _BACKSLASHED in text else ''}"
            )
        if rest and stuck:
            raise DataError(
                f"{self.name}, line {self._line + count_lines(self._data[:end])}: no line end "
                f"within {LONGEST_RECORD >> 20} MB. Is it a text file with one row a line?"
            )
        return end

    def _parsed(self, block: bytes) -> pa.Table:
        size = len(block) + 1
        read = pa.csv.ReadOptions(column_names=self.columns, block_size=size, use_threads=False)
        parse = pa.csv.ParseOptions(delimiter=self._grammar.delimiter, newlines_in_values=True)
        convert = pa.csv.ConvertOptions(column_types=self.schema, check_utf8=False)
        try:
            return pa.csv.read_csv(pa.BufferReader(block), read, parse, convert)
        except pa.ArrowInvalid as error:
            raise self._ragged(block, error) from error

    def _ragged(self, block: bytes, error: Exception) -> DataError:
        expected, line = len(self.schema), self._line
        for record in self._grammar.record.findall(block):
            found = len(self._grammar.fields(record))
            text = record.rstrip(b"\r\n")
            if found != expected and text:
                return DataError(
                    f"{self.name}, line {line}: {count_of(found, 'field')} where the first line "
                    f"has {expected}: {excerpt(text.decode('utf-8'))}. Is a quote missing, or "
                    "another delimiter used? A field that holds the delimiter or a line end has to "
                    "be in double quotes."
                )
            line += count_lines(record)
        return DataError(f"{self.name}, near line {self._line}: {error}.")


class _Grammar:
    """Records of fields that are separated by one delimiter.

    Parameters
    ----------
    delimiter : str
        One ASCII character.
    """

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        mark = re.escape(delimiter.encode("ascii"))
        plain = rb'(?!")[^' + mark + rb"\r\n]*+"
        field = rb"(?:" + _QUOTED + rb"(?=[" + mark + rb"\r\n])|" + plain + rb")"
        record = rb"(?:" + field + mark + rb")*+" + field + _LINE_END
        unquoted_line = rb'[^"\r\n]*+' + _LINE_END
        self._records = re.compile(rb"(?:" + unquoted_line + rb"|" + record + rb")*+")
        self.record = re.compile(record)
        self._leading_fields = re.compile(rb"(?:" + field + mark + rb")*+")
        self._field = re.compile(rb"(" + _QUOTED + rb"|" + plain + rb")(?:" + mark + rb"|[\r\n])")
        self._closed = re.compile(_QUOTED + rb'[^"]')

    def complete(self, data: bytes) -> int:
        """Return where the last complete record ends; a CR at the very end may be half a CR LF."""
        if b'"' not in data:
            last_return = data.rfind(b"\r", 0, max(len(data) - 1, 0))
            return max(data.rfind(b"\n"), last_return) + 1
        matched = self._records.match(data)
        return matched.end() if matched else 0

    def fields(self, record: bytes) -> list[bytes]:
        """Return the fields of a complete record, unquoted."""
        # Of CR LF only one may end a field.
        record = record[:-2] + b"\n" if record.endswith(b"\r\n") else record
        found = self._field.findall(record)
        return [one[1:-1].replace(b'""', b'"') if one.startswith(b'"') else one for one in found]

    def fault(self, data: bytes, *, at_end: bool) -> tuple[int, str] | None:
        """Return where and what is wrong with an incomplete record, if anything is.

        Before the end of the file a quote that is still open may be closed later.
        """
        leading = self._leading_fields.match(data)
        start = leading.end() if leading else 0
        if not data.startswith(b'"', start):
            return None
        if self._closed.match(data, start):
            return start, "the quoted field goes on after its closing quote"
        return (start, "a double quote is opened and never closed") if at_end else None
