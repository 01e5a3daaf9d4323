"""Tables as Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; numbers are right-aligned, the first column is text."""
    lines = [[str(cell) for cell in row] for row in (head, *rows)]
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))


def number(value: float, digits: int = 3, sign: bool = False) -> str:
    """Return a number below 1 without its zero, as in tables of scores; nothing for nan."""
    if value is None or math.isnan(value):
        return ""
    text = f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 and "0." in text[:3] else text


def p_value(value: float) -> str:
    """Return a p-value with two digits."""
    return "< .0001" if value < 1e-4 else number(value, 4)


def section(title: str, *parts: str, level: int = 3) -> str:
    """Return a heading and what stands below it; empty parts are left out."""
    return "\n\n".join(["#" * level + " " + title, *[part for part in parts if part]])
