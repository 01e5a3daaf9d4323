"""Tables in the terminal, in Markdown, LaTeX and CSV."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.table_entries import measured_entries, published_entries
from setconv.experiment.answers.table_sheet import Section, Sheet, Shown, counted, plain
from setconv.experiment.answers.tables import sections
from setconv.files import write_atomically
from setconv.needs import needed

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

__all__ = ["csv_text", "latex_text", "markdown", "markdown_text", "terminal", "write_tables"]

_MARKDOWN = str.maketrans({one: f"\\{one}" for one in r"\`*_{}[]<>|~$&#"})
_RULES = {"left": "---", "right": "---:", "wrapped": "---"}
_COLUMNS = {"left": "l", "right": "r", "wrapped": r"p{0.3\linewidth}"}
_LATEX = str.maketrans(
    {one: f"\\{one}" for one in "{}$&#_%"}
    # After the end of a row a bracket or a star would be taken for its argument.
    | {one: f"{{{one}}}" for one in "[]*"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"}
    | {"±": r"$\pm$", "≤": r"$\leq$", "\u2013": "--", "…": r"\ldots{}"}
    | {"▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$", "↓": r"$\downarrow$"}
)


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


def markdown(sheet: Sheet) -> str:
    """Return a heading, the caption, the table and its notes."""
    lines = [
        map(_escape, sheet.head),
        (_RULES[one] for one in sheet.alignment),
        *(map(_cell, row.cells) for row in sheet.rows),
    ]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    parts = [f"### {_escape(sheet.title)}", _escape(sheet.caption), table]
    return "\n\n".join(filter(None, [*parts, *map(_escape, sheet.notes)]))


def markdown_text(findings: Findings, found: Iterable[Section]) -> str:
    """Return the tables of a study, as `sections` gives them, as one document."""
    parts = [f"# {_escape(findings.title)}", _escape(findings.about), _how(findings)]
    if findings.missing:
        parts.append(f"Not computed yet: {counted(findings.missing, 'cell')}.")
    parts += map(_escape, findings.notes)
    for section in found:
        parts += [f"## {_escape(section.title)}", _escape(section.text)]
        parts += map(markdown, section.sheets)
    return "\n\n".join(filter(None, parts)) + "\n"


def latex_escape(text: str) -> str:
    """Return a text on one line in which nothing is a command."""
    return plain(text).translate(_LATEX)


def latex(sheet: Sheet) -> str:
    """Return a table environment for the package booktabs; caption above, notes below."""
    with needed("A table in LaTeX", "pandas", "experiment"):
        import pandas as pd
    rows = [
        [r"\midrule" * row.rule + "\n" * row.rule + first, *cells]
        for row in sheet.rows
        for first, *cells in [[_latex_cell(one) for one in row.cells]]
    ]
    title = latex_escape(sheet.title)
    # pandas formats the heads, so braces in them are doubled.
    table = pd.DataFrame(rows, columns=range(len(sheet.head))).to_latex(
        index=False,
        header=[re.sub("[{}]", r"\g<0>\g<0>", latex_escape(name)) for name in sheet.head],
        escape=False,
        column_format="".join(_COLUMNS[one] for one in sheet.alignment),
        caption=(rf"\textbf{{{title}.}} {latex_escape(sheet.caption)}", title),
        position="htbp",
    )
    notes = [
        rf"\par\smallskip{{\footnotesize {latex_escape(note)}\par}}" + "\n" for note in sheet.notes
    ]
    return table.replace(r"\end{table}", "".join(notes) + r"\end{table}")


def latex_text(findings: Findings, found: Iterable[Section]) -> str:
    r"""Return the tables of a study, as `sections` gives them, to ``\input`` into a document."""
    parts = [
        f"% {plain(findings.title)}\n"
        r"% In the preamble: \usepackage[T1]{fontenc} \usepackage{amssymb,booktabs}" + "\n"
    ]
    for section in found:
        parts.append(f"% {plain(section.title)}. {plain(section.text)}".rstrip() + "\n")
        parts += map(latex, section.sheets)
    return "\n".join(parts)


def csv_text(findings: Findings) -> str:
    """Return every figure in a row: tidy, with all digits, names as they are."""
    with needed("A table in CSV", "pandas", "experiment"):
        import pandas as pd
    others = [
        (key._replace(method=f"{key.method} (published)"), one)
        for key, one in published_entries(findings).items()
    ]
    rows = [
        {
            **key._asdict(),
            "mean": entry.mean,
            "sd": entry.deviation,
            "n_splits": "" if entry.kind == "published" else entry.n_splits,
            "best": entry.best,
            "p_value": entry.p_value,
            "mark": entry.mark,
        }
        for key, entry in [*measured_entries(findings).items(), *others]
    ]
    return pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")


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


def _cell(shown: Shown) -> str:
    text = f"**{_escape(shown.text)}**" if shown.bold else _escape(shown.text)
    return f"{text} {_escape(shown.after)}" if shown.after else text


def _latex_cell(shown: Shown) -> str:
    text = re.sub(r"^-(?=[.\d])", "$-$", latex_escape(shown.text))
    text = rf"\textbf{{{text}}}" if shown.bold else text
    return f"{text} {latex_escape(shown.after)}" if shown.after else text


def _how(findings: Findings) -> str:
    """Return the command as a block of code that it cannot end."""
    command = plain(findings.command)
    fence = "```"
    while fence in command:
        fence += "`"
    return f"{fence}bash\n{command}\n{fence}" if command else ""
