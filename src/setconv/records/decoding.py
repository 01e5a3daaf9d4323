"""Text of any common encoding as valid UTF-8 bytes, without a byte order mark.

An encoding that is not given is found: by a byte order mark, by the null bytes of UTF-16, and
else UTF-8. Where bytes are not valid UTF-8 and all before them was ASCII, the text is taken as
cp1252 (a superset of the printable part of latin-1) and the log says so; after other UTF-8
characters it is refused, because then neither encoding fits the whole.
"""

from __future__ import annotations

import codecs
import logging
from typing import Any

from setconv.errors import DataError, ParameterError
from setconv.records.sources import ByteSource

logger = logging.getLogger("setconv")

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # starts like UTF-16, so it comes first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_LOOK = 4096


def _latin_1(error: UnicodeError) -> tuple[str, int]:
    """Take the five bytes that cp1252 leaves undefined as latin-1 does; browsers do the same."""
    assert isinstance(error, UnicodeDecodeError)
    return error.object[error.start : error.end].decode("latin-1"), error.end


codecs.register_error("setconv_latin_1", _latin_1)


def count_lines(data: bytes) -> int:
    """Return the number of line ends: LF, CR LF or CR."""
    returns = data.count(b"\r")
    return data.count(b"\n") + (returns - data.count(b"\r\n") if returns else 0)


class Utf8Stream:
    """The bytes of a source as UTF-8.

    Parameters
    ----------
    source : ByteSource
        Not yet read.
    encoding : str or None
        None to find it.
    """

    def __init__(self, source: ByteSource, encoding: str | None = None) -> None:
        self.name = source.name
        self._source = source
        self._given = encoding is not None
        self._encoding = _checked(encoding) if encoding else _found(source.head(_LOOK))
        if self._encoding == "utf-8" and source.head(3) == codecs.BOM_UTF8:
            source.read(3)
        self._decoder = None if self._encoding == "utf-8" else self._make_decoder("strict")
        self._pending = b""
        self._ascii_so_far = True
        self._lines = 0

    def read(self, count: int) -> bytes:
        """Return about so many bytes, all of them whole characters; none at the end."""
        while True:
            data = self._source.read(count)
            text = self._transcoded(data) if self._decoder else self._validated(data)
            self._lines += count_lines(text)
            if text or not data:
                return text

    def _validated(self, data: bytes) -> bytes:
        last = not data
        if self._pending:
            data, self._pending = self._pending + data, b""
        if data.isascii():
            return data
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data" and not last:
                data, self._pending = data[: error.start], data[error.start :]
            else:
                return self._fall_back(data, error)
        self._ascii_so_far = self._ascii_so_far and data.isascii()
        return data

    def _fall_back(self, data: bytes, error: UnicodeDecodeError) -> bytes:
        line = self._lines + count_lines(data[: error.start]) + 1
        where = f"{self.name}, line {line}: the byte 0x{data[error.start]:02x} is not valid UTF-8"
        if self._given:
            raise DataError(
                f"{where}. Give the encoding that the file has, such as --encoding cp1252 or "
                "--encoding utf-16, or none to have it found."
            ) from error
        if not (self._ascii_so_far and data[: error.start].isascii()):
            raise DataError(
                f"{where}, but characters before it are: the file is damaged there or mixes "
                "encodings. Mend that line, or give --encoding cp1252 to take every byte as it is."
            ) from error
        logger.warning(
            "%s. The file is read as cp1252 (Western European, latin-1). If letters come out "
            "wrong, give its encoding with --encoding.",
            where,
        )
        self._encoding = "cp1252"
        self._decoder = self._make_decoder("setconv_latin_1")
        return self._transcoded(data)

    def _make_decoder(self, errors: str) -> Any:
        if self._encoding == "cp1252":
            errors = "setconv_latin_1"
        return codecs.getincrementaldecoder(self._encoding)(errors)

    def _transcoded(self, data: bytes) -> bytes:
        assert self._decoder is not None
        try:
            text: str = self._decoder.decode(data, final=not data)
        except UnicodeError as error:
            start = error.start if isinstance(error, UnicodeDecodeError) else 0
            line = self._lines + count_lines(data[:start]) + 1
            raise DataError(
                f"{self.name}, near line {line}: the text is not valid {self._encoding} "
                f"({getattr(error, 'reason', error)}). Give the encoding that the file has with "
                "--encoding, or copy the file again if it was cut off."
            ) from error
        if not self._lines:
            text = text.removeprefix("\ufeff")
        return text.encode("utf-8", errors="replace")


def _checked(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
    except LookupError as error:
        raise ParameterError(
            f"encoding={encoding!r} is unknown. Common ones are utf-8, cp1252, latin-1, utf-16."
        ) from error
    return "utf-8" if name in {"utf-8-sig", "ascii"} else name


def _found(head: bytes) -> str:
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return encoding
    even, odd = head[0::2].count(0), head[1::2].count(0)
    # Text in UTF-16 that is mostly ASCII has a null in every other byte, and in none between.
    if 2 * len(head[1::2]) >= 4 and max(even, odd) > 0.6 * len(head[1::2]) and min(even, odd) == 0:
        return "utf-16-le" if odd else "utf-16-be"
    return "utf-8"
