"""Numbers, labels and texts as a reader sees them: the filters of the page's template."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable
from typing import Any

_MISSING = "n/a"
_MINUS = "\u2212"


def readable(value: Any, limit: int) -> str:
    """Return any value as text that can be shown: no control characters, of bounded length."""
    # Only the start is looked at: a text may have megabytes.
    text = str(value)[: limit * 4]
    shown = "".join(" " if unicodedata.category(one) in ("Cc", "Cs") else one for one in text)
    shown = " ".join(shown.split())
    if not shown:
        return "(empty)"
    cut = len(shown) > limit or len(str(value)) > len(text)
    return shown[:limit].rstrip() + " …" if cut else shown


def figure(value: float, form: str = ".3f") -> str:
    """Return a figure with three digits; nan is "n/a"."""
    return format(value, form).replace("-", _MINUS) if math.isfinite(value) else _MISSING


def signed(value: float) -> str:
    """Return a figure with its sign."""
    return figure(value, "+.3f")


def of_100(share: float) -> str:
    """Return a share as a count out of 100 that never rounds to a false "all" or "none"."""
    number = 100 * share
    if 0 < number < 0.05:
        return "fewer than 0.1"
    if 99.95 <= number < 100:
        return "more than 99.9"
    return figure(number, ".1f" if 0 < number < 1 or 99 < number < 100 else ".0f")


def per_cent(share: float) -> str:
    """Return a share in per cent, with a digit after the point where it is small."""
    number = 100 * share
    if 0 < number < 0.1:
        return "under 0.1 %"
    shown = figure(number, ".1f" if 0 < number < 10 or 99 < number < 100 else ".0f")
    return shown if shown == _MISSING else f"{shown} %"


def count(number: float) -> str:
    """Return a whole number with commas between thousands."""
    return f"{int(number):,}"


def quoted(name: str) -> str:
    """Return a label in quotation marks."""
    return f"“{name}”"


def listed(parts: Iterable[str]) -> str:
    """Return "a, b and c"."""
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


_ALL = (readable, figure, signed, of_100, per_cent, count, quoted, listed)
FILTERS = {one.__name__: one for one in _ALL}
