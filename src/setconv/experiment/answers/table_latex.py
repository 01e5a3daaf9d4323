"""Tables as LaTeX, for the package booktabs."""

from __future__ import annotations

import re
from collections.abc import Iterable

from setconv.experiment.answers.table_sheet import Alignment, Sheet, Shown, plain

__all__ = ["PACKAGES", "latex", "latex_escape"]

PACKAGES = ("amssymb", "booktabs")

_COLUMNS: dict[Alignment, str] = {
    "left": "l",
    "right": "r",
    "wrapped": r"p{0.3\linewidth}",
}
_ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    # After the end of a row a bracket or a star would be taken for its argument.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "\u2013": "--",
    "…": r"\ldots{}",
    "▲": r"$\blacktriangle$",
    "▼": r"$\blacktriangledown$",
    "↓": r"$\downarrow$",
}
_TABLE = str.maketrans(_ESCAPES)
_NEGATIVE = re.compile(r"^-(?=[.\d])")


def latex_escape(text: str) -> str:
    """Return a text on one line in which nothing is a command."""
    return plain(text).translate(_TABLE)


def latex(sheet: Sheet) -> str:
    r"""Return a table environment; caption above, notes below."""
    body = [rf"\begin{{tabular}}{{{''.join(_COLUMNS[one] for one in sheet.alignment)}}}"]
    body += [r"\toprule", _line(map(latex_escape, sheet.head)), r"\midrule"]
    for row in sheet.rows:
        body += [r"\midrule"] * row.rule
        body.append(_line(map(_cell, row.cells)))
    body += [r"\bottomrule", r"\end{tabular}"]
    title = latex_escape(sheet.title)
    caption = rf"\textbf{{{title}.}} {latex_escape(sheet.caption)}"
    lines = [
        r"\begin{table}[htbp]",
        r"\centering\small",
        rf"\caption[{title}]{{{caption}}}",
        *body,
        *(rf"\par\smallskip{{\footnotesize {latex_escape(note)}\par}}" for note in sheet.notes),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _cell(shown: Shown) -> str:
    text = _NEGATIVE.sub("$-$", latex_escape(shown.text))
    text = rf"\textbf{{{text}}}" if shown.bold else text
    return f"{text} {latex_escape(shown.after)}" if shown.after else text


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
