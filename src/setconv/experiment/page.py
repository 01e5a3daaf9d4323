"""The report of a study: a page of all that it found, and its tables and figures as files."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from setconv._version import __version__
from setconv.experiment.figures import StudyFigure, file_name, study_figures
from setconv.experiment.results import Findings
from setconv.experiment.store import writing
from setconv.experiment.tables import Section, Sheet, Shown, plain, sections
from setconv.io.files import write_atomically
from setconv.messages import count_of
from setconv.report.words import readable

_LONGEST_WARNING = 300
# Around blocks and variables; in the other templates braces mean something else.
_SIGNS_IN_HTML, _SIGNS = ("{%", "%}", "{{", "}}"), ("<%", "%>", "<<", ">>")
_MARKDOWN = str.maketrans({one: f"\\{one}" for one in r"\`*_{}[]<>|~$&#"})
_LATEX = str.maketrans(
    {one: f"\\{one}" for one in "{}$&#_%"}
    # After the end of a row a bracket or a star would be taken for its argument.
    | {one: f"{{{one}}}" for one in "[]*"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"}
    | {"±": r"$\pm$", "≤": r"$\leq$", "\u2013": "--", "…": r"\ldots{}", "†": r"$\dagger$"}
    | {"▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$", "↓": r"$\downarrow$"}
)


def write_report(findings: Findings, folder: str | Path) -> list[Path]:
    """Write the tables, the figures and a page of a study; each file is whole or not there.

    Parameters
    ----------
    findings : Findings
    folder : str or Path
        Gets ``index.html``, ``tables.md``, ``tables.tex``, ``tables.csv`` (every mean, with all
        digits), ``scores.csv`` (every figure of every split) and ``figures/``; it is made if it is
        not there.

    Returns
    -------
    list of Path
        The files, the page first.
    """
    figures = study_figures(findings)
    contents = {
        "index.html": page_text(findings, figures),
        "tables.md": markdown_text(findings),
        "tables.tex": latex_text(findings),
        "tables.csv": findings.summary.to_csv(index=False, lineterminator="\n"),
        "scores.csv": findings.scores.to_csv(index=False, lineterminator="\n"),
    }
    written = {name: text.encode("utf-8", "replace") for name, text in contents.items()}
    written |= {f"figures/{one.name}.svg": one.svg for one in figures}
    paths = [Path(folder) / name for name in written]
    for path, content in zip(paths, written.values(), strict=True):
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
    return paths


def markdown_text(findings: Findings) -> str:
    """Return the tables of a study as one document."""
    return _render("tables.md", findings, sections(findings))


def latex_text(findings: Findings) -> str:
    r"""Return the tables of a study, to ``\input`` into a document."""
    return _render("tables.tex", findings, sections(findings))


def page_text(findings: Findings, figures: Sequence[StudyFigure]) -> str:
    """Return the page, HTML: figures, tables, what may be concluded, cost, failures and versions.

    The same findings give the same page.
    """
    drawn: defaultdict[str, list[StudyFigure]] = defaultdict(list)
    for one in figures:
        drawn[{"scores": "Figures", "ranks": "Average ranks"}.get(one.name, "Curves")].append(one)
    parts = [
        Section("Data", [_data_sheet(findings)]),
        *(Section(title) for title in ("Figures", "Curves")),
        *sections(findings),
        Section("Warnings", _warning_sheets(findings)),
        Section("Versions", _version_sheets(findings)),
    ]
    parts = [one for one in parts if one.text or one.sheets or one.title in drawn]
    return _render("page.html", findings, parts, figures=drawn)


def _render(template: str, findings: Findings, parts: Sequence[Section], **more: Any) -> str:
    """Fill in a template; whatever it shows is on one line and escaped for its format."""
    html = template.endswith(".html")
    environment = Environment(
        *(_SIGNS_IN_HTML if html else _SIGNS),
        loader=PackageLoader("setconv.experiment", "templates"),
        autoescape=html,
        finalize=lambda value: _ESCAPES[template](value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    line = partial(_line, html=html)
    environment.filters |= {"picture": _picture, "file_name": file_name, "line": line}
    style = Markup(files("setconv.report").joinpath("page.css").read_text(encoding="utf-8"))
    values = {"findings": findings, "sections": parts, "style": style, "version": __version__}
    return environment.get_template(template).render(values | more)


def markdown_escape(text: str) -> str:
    """Return a text on one line in which nothing is markup."""
    return plain(text).translate(_MARKDOWN)


def latex_escape(text: str) -> str:
    """Return a text on one line in which nothing is a command; a number has a true minus."""
    return re.sub(r"^-(?=[.\d])", "$-$", plain(text).translate(_LATEX))


_ESCAPES = {"page.html": plain, "tables.md": markdown_escape, "tables.tex": latex_escape}


def _line(text: str, *, html: bool) -> Markup:
    """Return a command as it is, on one line."""
    line = "".join(one if one.isprintable() else " " for one in text)
    return escape(line) if html else Markup(line)


def _picture(figure: StudyFigure) -> str:
    return f"data:image/svg+xml;base64,{b64encode(figure.svg).decode()}"


def _data_sheet(findings: Findings) -> Sheet:
    """Return the units with their rows and imbalance ratios."""
    names = {"name": "unit", "dataset": "data set", "label": "class", "source": "source"}
    table = pd.DataFrame(list(findings.units)).rename(columns=names).set_index([*names.values()])
    rows, ratios = table["n_rows"].map("{:,}".format), table["imbalance_ratio"].map("{:.2f}".format)
    return Sheet(
        "",
        "The class of a unit is counted as positive, all others as negative. The imbalance ratio "
        "is rows of the others over rows of the class. Units of one source are no independent "
        "evidence.",
        pd.DataFrame({"rows": rows, "imbalance ratio": ratios}).map(Shown),
    )


def _warning_sheets(findings: Findings) -> list[Sheet]:
    """Return what the cells warned of, with how many cells did; nothing if none did."""
    cells = findings.cells[["dataset", "method", "notes"]].itertuples(index=False)
    found = Counter(
        (dataset, method, readable(plain(warning), _LONGEST_WARNING))
        for dataset, method, notes in cells
        for warning in dict.fromkeys(json.loads(notes).get("warnings", []))
    )
    rows = [(*key[:2], f"{count}", key[2]) for key, count in sorted(found.items())]
    table = pd.DataFrame(rows, columns=["data set", "method", "cells", "warning"])
    caption = f"What {count_of(found.total(), 'cell')} warned of while they were computed."
    return [Sheet("", caption, table.set_index(["data set", "method"]).map(Shown))] * bool(rows)


def _version_sheets(findings: Findings) -> list[Sheet]:
    """Return the versions that the cells were computed with; nothing if there are no cells."""
    found = pd.DataFrame([json.loads(text) for text in findings.cells["versions"]])
    told = {}
    for package, versions in found.sort_index(axis="columns").items():
        counts = versions.value_counts().sort_index().items()
        told[package] = Shown(", ".join(f"{one} ({count_of(n, 'cell')})" for one, n in counts))
    table = pd.Series(told, dtype=object).rename_axis("package").to_frame("version")
    return [Sheet("", "", table)] * bool(told)
