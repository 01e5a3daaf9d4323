"""A table as a reader sees it: plain text in rows and columns, for any format."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "NO_FIGURE",
    "Alignment",
    "Section",
    "Sheet",
    "SheetRow",
    "Shown",
    "aligned",
    "counted",
    "joined",
    "line",
    "number",
    "p_value",
    "plain",
]

Alignment = Literal["left", "right", "wrapped"]
NO_FIGURE = "\u2013"


@dataclass(frozen=True)
class Shown:
    """What a cell shows.

    Attributes
    ----------
    text : str
        Not escaped.
    bold : bool
    after : str
        What follows the text and is never bold.
    """

    text: str
    bold: bool = False
    after: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.after}" if self.after else self.text


@dataclass(frozen=True)
class SheetRow:
    """A row of cells, as many as the head has.

    Attributes
    ----------
    cells : tuple of Shown
    rule : bool
        Whether a line stands above the row: here a new block begins.
    """

    cells: tuple[Shown, ...]
    rule: bool = False


def line(*texts: str, rule: bool = False) -> SheetRow:
    """Return a row of plain texts."""
    return SheetRow(tuple(map(Shown, texts)), rule)


@dataclass(frozen=True)
class Sheet:
    """A table that is ready to be written.

    Attributes
    ----------
    title, caption : str
    head : tuple of str
    alignment : tuple of {"left", "right", "wrapped"}
        One for each column; "wrapped" is for sentences.
    rows : tuple of SheetRow
    notes : tuple of str
        What stands below the table.
    """

    title: str
    caption: str
    head: tuple[str, ...]
    alignment: tuple[Alignment, ...]
    rows: tuple[SheetRow, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """Tables under one heading.

    Attributes
    ----------
    title : str
    text : str
        What is to be said before the tables, or why there are none.
    sheets : tuple of Sheet
    """

    title: str
    text: str = ""
    sheets: tuple[Sheet, ...] = ()


def number(value: float, digits: int = 3, *, sign: bool = False) -> str:
    """Return a number with fixed digits, below 1 without its zero: .972, 1.000, -.013.

    Examples
    --------
    >>> number(0.9716), number(0.9999), number(-0.013), number(0.013, sign=True)
    ('.972', '1.000', '-.013', '+.013')
    """
    if math.isnan(value):
        return "n/a"
    # What rounds to zero has no sign; adding 0 makes -0.0 a plain zero.
    text = f"{round(value, digits) + 0.0:{'+' if sign else ''}.{digits}f}"
    mark = text[0] if text[0] in "+-" else ""
    return mark + text[len(mark) :].removeprefix("0")


def p_value(value: float) -> str:
    """Return a p-value with three digits."""
    return "< .001" if value < 0.001 else number(value)


def aligned(n_left: int, n_right: int) -> tuple[Alignment, ...]:
    """Return the alignment of columns of names, then of figures."""
    left: tuple[Alignment, ...] = ("left",)
    right: tuple[Alignment, ...] = ("right",)
    return left * n_left + right * n_right


def counted(count: int, noun: str) -> str:
    """Return "1 split" or "2 splits"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def joined(names: Iterable[str]) -> str:
    """Return "a, b and c"."""
    parts = list(names)
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


def plain(text: str) -> str:
    """Return a text on one line, without characters that steer a terminal or the direction."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())
