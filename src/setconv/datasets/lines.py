"""Numbered lines of a file, compressed or not, one at a time."""

from __future__ import annotations

from collections.abc import Iterator

from setconv.errors import DataError
from setconv.records.sources import ByteSource

BLOCK = 1 << 20
LONGEST = 1 << 26
_MARK = b"\xef\xbb\xbf"


def numbered_lines(source: ByteSource) -> Iterator[tuple[int, bytes]]:
    """Iterate over line numbers, from 1, and lines without their end; empty lines are passed over.

    Lines stay bytes, so that one which cannot be decoded is a problem of that line alone.
    """
    for number, line in enumerate(_lines(source), start=1):
        bare = (line.removeprefix(_MARK) if number == 1 else line).rstrip(b"\r")
        if bare.strip():
            yield number, bare


def _lines(source: ByteSource) -> Iterator[bytes]:
    rest = b""
    while block := source.read(BLOCK):
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        yield from lines
        if len(rest) > LONGEST:
            raise DataError(
                f"{source.name}: no line end within {LONGEST >> 20} MB. Is it a text file with one "
                "row a line?"
            )
    if rest:
        yield rest
