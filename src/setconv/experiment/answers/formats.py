"""Tables in the terminal, in Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.table_entries import Entry, measured_entries, published_entries
from setconv.experiment.answers.table_latex import PACKAGES, latex
from setconv.experiment.answers.table_sections import sections
from setconv.experiment.answers.table_sheet import Section, Sheet, Shown, counted, plain
from setconv.files import write_atomically
from setconv.needs import needed

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

__all__ = ["csv_text", "latex_text", "markdown", "markdown_text", "terminal", "write_tables"]

_MARKDOWN = str.maketrans({one: f"\\{one}" for one in r"\`*_{}[]<>|~$&#"})
_RULES = {"left": "---", "right": "---:", "wrapped": "---"}
_HEAD = ("unit", "method", "metric", "mean", "sd", "n_splits", "best", "p_value", "mark")


def terminal(sheet: Sheet) -> Table:
    """Return a table for a console of rich."""
    with needed("a table in the terminal", "rich", "cli"):
        from rich import box
        from rich.table import Table
        from rich.text import Text

    def text(shown: Shown) -> Text:
        made = Text(plain(shown.text), style="bold" if shown.bold else "")
        return made.append(f" {shown.after}", style="not bold") if shown.after else made

    table = Table(
        title=Text(plain(sheet.title)),
        caption=Text(plain(" ".join([sheet.caption, *sheet.notes]))),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        pad_edge=False,
    )
    for name, alignment in zip(sheet.head, sheet.alignment, strict=True):
        table.add_column(Text(plain(name)), justify="right" if alignment == "right" else "left")
    for row in sheet.rows:
        if row.rule:
            table.add_section()
        table.add_row(*map(text, row.cells))
    return table


def markdown(sheet: Sheet, level: int = 3) -> str:
    """Return a heading, the caption, the table and its notes."""
    lines = [
        _line(map(_escape, sheet.head)),
        _line(_RULES[one] for one in sheet.alignment),
        *(_line(map(_cell, row.cells)) for row in sheet.rows),
    ]
    heading = "#" * level + " " + _escape(sheet.title)
    parts = [heading, _escape(sheet.caption), "\n".join(lines), *map(_escape, sheet.notes)]
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown_text(findings: Findings, found: Iterable[Section]) -> str:
    """Return the tables of a study, as `sections` gives them, as one document."""
    parts = [f"# {_escape(findings.title)}", _escape(findings.about), _how(findings)]
    if findings.missing:
        parts.append(f"Not computed yet: {counted(findings.missing, 'cell')}.")
    parts += map(_escape, findings.notes)
    for section in found:
        parts += [f"## {_escape(section.title)}", _escape(section.text)]
        parts += (markdown(sheet).rstrip("\n") for sheet in section.sheets)
    return "\n\n".join(filter(None, parts)) + "\n"


def latex_text(findings: Findings, found: Iterable[Section]) -> str:
    r"""Return the tables of a study, as `sections` gives them, to ``\input`` into a document."""
    packages = ",".join(PACKAGES)
    parts = [
        f"% {plain(findings.title)}\n"
        rf"% In the preamble: \usepackage[T1]{{fontenc}} \usepackage{{{packages}}}" + "\n"
    ]
    for section in found:
        parts.append(f"% {plain(section.title)}. {plain(section.text)}".rstrip() + "\n")
        parts += map(latex, section.sheets)
    return "\n".join(parts)


def csv_text(findings: Findings) -> str:
    """Return every figure in a row: tidy, with all digits, names as they are."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEAD)
    for key, entry in measured_entries(findings).items():
        writer.writerow([*key, *_values(entry), entry.n_splits, *_verdict(entry)])
    for key, entry in published_entries(findings).items():
        name = f"{key.method} (published)"
        writer.writerow([key.unit, name, key.metric, *_values(entry), "", *_verdict(entry)])
    return text.getvalue()


def write_tables(findings: Findings, folder: str | Path) -> list[Path]:
    """Write tables.md, tables.tex, tables.csv and, where there are curves, curves.csv.

    Each is there whole or not at all.

    Parameters
    ----------
    findings : Findings
    folder : str or Path
        It is made if it is not there.

    Returns
    -------
    list of Path
        The files.
    """
    folder = Path(folder)
    found = sections(findings)
    contents = {
        "tables.md": markdown_text(findings, found),
        "tables.tex": latex_text(findings, found),
        "tables.csv": csv_text(findings),
    }
    if not findings.curves.empty:
        contents["curves.csv"] = findings.curves.to_csv(index=False, lineterminator="\n")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_atomically(folder / name, content.encode())
    return [folder / name for name in contents]


def _escape(text: str) -> str:
    return plain(text).translate(_MARKDOWN)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(shown: Shown) -> str:
    text = f"**{_escape(shown.text)}**" if shown.bold else _escape(shown.text)
    return f"{text} {_escape(shown.after)}" if shown.after else text


def _how(findings: Findings) -> str:
    """Return the command as a block of code that it cannot end."""
    command = plain(findings.command)
    fence = "```"
    while fence in command:
        fence += "`"
    return f"{fence}bash\n{command}\n{fence}" if command else ""


def _values(entry: Entry) -> list[float | str]:
    return ["" if math.isnan(value) else value for value in (entry.mean, entry.deviation)]


def _verdict(entry: Entry) -> list[float | str | bool]:
    return [entry.best, "" if math.isnan(entry.p_value) else entry.p_value, entry.mark]
