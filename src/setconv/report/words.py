"""Numbers, labels and texts as a reader sees them."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

MISSING = "n/a"
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


def figure(value: float) -> str:
    """Return a figure with three digits; nan is "n/a"."""
    return MISSING if not math.isfinite(value) else f"{value:.3f}".replace("-", _MINUS)


def signed(value: float) -> str:
    """Return a figure with its sign."""
    return MISSING if not math.isfinite(value) else f"{value:+.3f}".replace("-", _MINUS)


def of_100(share: float) -> str:
    """Return a share as a count out of 100 that never rounds to a false "all" or "none"."""
    if not math.isfinite(share):
        return MISSING
    number = 100 * share
    if 0 < number < 0.05:
        return "fewer than 0.1"
    if 99.95 <= number < 100:
        return "more than 99.9"
    return f"{number:.1f}" if 0 < number < 1 or 99 < number < 100 else f"{number:.0f}"


def per_cent(share: float) -> str:
    """Return a share in per cent, with a digit after the point where it is small."""
    if not math.isfinite(share):
        return MISSING
    number = 100 * share
    if 0 < number < 0.1:
        return "under 0.1 %"
    return f"{number:.1f} %" if 0 < number < 10 or 99 < number < 100 else f"{number:.0f} %"


def number_of(value: float) -> str:
    """Return a value of a feature, short."""
    return f"{value:.4g}".replace("-", _MINUS)


def count(number: float) -> str:
    """Return a whole number with commas between thousands."""
    return f"{int(number):,}"


def quoted(name: str) -> str:
    """Return a label in quotation marks."""
    return f"“{name}”"


def listed(parts: list[str]) -> str:
    """Return "a, b and c"."""
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]
