r"""The text of a tweet without what the official files have put around it.

Some of the files quote texts as spreadsheets do (with quotes inside doubled, some of them twice,
or written as ``\""``), some write characters as ``\u2019``, and most as ``&amp;``, a few of them
escaped twice.
"""

from __future__ import annotations

import html
import re
from html.entities import html5

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_QUOTES = re.compile(r'\\?"+')
_UNICODE = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|([A-Za-z][A-Za-z0-9]{1,31}));")


def unescaped(text: str) -> str:
    """Return the text as it was written: without outer quotes and escapes."""
    text = text.strip()
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        text = _QUOTES.sub('"', quoted[1])
    text = _UNICODE.sub(_characters, text)
    return _ENTITY.sub(_entity, _ENTITY.sub(_entity, text)).strip()


def _characters(found: re.Match[str]) -> str:
    # Characters beyond 16 bits come as two escapes, which only together are one.
    return bytes.fromhex(found[0].replace("\\u", "")).decode("utf-16-be", errors="replace")


def _entity(found: re.Match[str]) -> str:
    # html.unescape would also take the known beginning of an unknown name.
    if found[1] is not None and f"{found[1]};" not in html5:
        return found[0]
    return html.unescape(found[0])
