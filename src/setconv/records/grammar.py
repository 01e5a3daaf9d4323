"""The grammar of delimited text: where records end, what their fields are, what is wrong.

A field in double quotes may hold the delimiter, line ends and, doubled, the quote. A quote inside
a field that does not start with one is an ordinary character (5" pipe). After its closing quote a
field must end: were that let pass, a lost quote would silently join the rows up to the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from setconv.records.decoding import count_lines

_LINE_END = rb"(?:\n|\r\n|\r(?=[^\n]))"
_QUOTED = rb'"[^"]*+(?:""[^"]*+)*+"'


@dataclass(frozen=True)
class Fault:
    """What is wrong with a record.

    Parameters
    ----------
    line : int
        Line ends between the start of the bytes and the fault.
    closed : bool
        Whether the quoted field has a closing quote.
    text : bytes
        The field from its quote on.
    """

    line: int
    closed: bool
    text: bytes


class Grammar:
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
        self._record = re.compile(record)
        self._leading_fields = re.compile(rb"(?:" + field + mark + rb")*+")
        self._field = re.compile(rb"(" + _QUOTED + rb"|" + plain + rb")(?:" + mark + rb"|[\r\n])")
        self._closed = re.compile(_QUOTED + rb'[^"]')

    def complete(self, data: bytes) -> int:
        """Return where the last complete record ends; a CR at the very end may be half a CR LF."""
        if b'"' not in data:
            last_return = data.rfind(b"\r", 0, max(len(data) - 1, 0))
            return max(data.rfind(b"\n"), last_return) + 1
        matched = self._records.match(data)
        assert matched is not None
        return matched.end()

    def records(self, data: bytes) -> Iterator[bytes]:
        """Iterate over complete records."""
        for matched in self._record.finditer(data):
            yield matched[0]

    def fields(self, record: bytes) -> list[bytes]:
        """Return the fields of a complete record, unquoted."""
        # Of CR LF only one may end a field.
        record = record[:-2] + b"\n" if record.endswith(b"\r\n") else record
        return [
            text[1:-1].replace(b'""', b'"') if text.startswith(b'"') else text
            for text in self._field.findall(record)
        ]

    def fault(self, data: bytes, *, at_end: bool) -> Fault | None:
        """Return what is wrong with bytes that start with an incomplete record, if anything is.

        Before the end of the file a quote that is still open may be closed later.
        """
        leading = self._leading_fields.match(data)
        start = leading.end() if leading else 0
        if not data.startswith(b'"', start):
            return None
        closed = self._closed.match(data, start) is not None
        if not closed and not at_end:
            return None
        return Fault(count_lines(data[:start]), closed, data[start : start + 400])
