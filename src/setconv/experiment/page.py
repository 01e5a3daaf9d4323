"""Everything that a study answers, in one folder."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from setconv._version import __version__
from setconv.experiment.figures import StudyFigure, compose, file_name, study_figures
from setconv.experiment.results import Findings
from setconv.experiment.tables import Section, Sheet, counted, line, plain
from setconv.experiment.tables import sections as table_sections
from setconv.io.files import write_atomically
from setconv.messages import needed

# ---------- experiment.answers.page_facts

_LONGEST = 300


def state(findings: Findings) -> dict[str, Any]:
    """Return how many cells are finished, failed and missing, and when they were computed."""
    cells = findings.cells
    finished = int((cells["status"] == "ok").sum())
    failed = len(cells) - finished
    words = ""
    if len(cells):
        started = sorted(str(one)[:16].replace("T", " ") for one in cells["started"])
        hours = float(cells["seconds"].sum()) / 3600
        words = (
            f"Started between {started[0]} and {started[-1]} (UTC); the cells took "
            f"{hours:.1f} hours of computing together."
        )
    return {
        "tiles": [
            {
                "value": f"{finished:,}",
                "text": f"of {len(cells) + findings.missing:,} cells finished",
            },
            {"value": f"{failed:,}", "text": "failed"},
            {"value": f"{findings.missing:,}", "text": "not computed yet"},
        ],
        "words": words,
        "incomplete": bool(failed or findings.missing),
    }


def data_sheet(findings: Findings) -> Sheet:
    """Return the units with their rows and imbalance ratios."""
    rows = [
        line(
            *(unit.name, unit.dataset, unit.label),
            *(f"{unit.n_rows:,}", f"{unit.imbalance_ratio:.2f}", unit.source),
        )
        for unit in findings.units
    ]
    return Sheet(
        "",
        "The class of a unit is counted as positive, all others as negative. The imbalance ratio "
        "is rows of the others over rows of the class. Units of one source are no independent "
        "evidence.",
        ("unit", "data set", "class", "rows", "imbalance ratio", "source"),
        ("left", "left", "left", "right", "right", "left"),
        tuple(rows),
    )


def version_sheet(findings: Findings) -> Sheet | None:
    """Return the versions that the cells were computed with; None if no cell tells any."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in findings.cells["versions"]:
        for package, version in _read(text).items():
            found[str(package)][str(version)] += 1
    if not found:
        return None
    rows = [line(package, _versions(found[package])) for package in sorted(found)]
    differing = [package for package in sorted(found) if len(found[package]) > 1]
    notes = (
        (f"Cells were computed with different versions of {', '.join(differing)}.",)
        if differing
        else ()
    )
    return Sheet("", "", ("package", "version"), ("left", "wrapped"), tuple(rows), notes)


def warning_sheet(findings: Findings) -> Sheet | None:
    """Return what the cells warned of, with how many cells did; None if none did."""
    found: Counter[tuple[str, str, str]] = Counter()
    cells = findings.cells
    if "notes" not in cells:
        return None
    for dataset, method, text in zip(
        cells["dataset"], cells["method"], cells["notes"], strict=True
    ):
        for warning in dict.fromkeys(_warnings(text)):
            found[str(dataset), str(method), warning] += 1
    if not found:
        return None
    rows = [
        line(dataset, method, str(count), warning)
        for (dataset, method, warning), count in found.items()
    ]
    return Sheet(
        "",
        f"What {counted(sum(found.values()), 'cell')} warned of while they were computed.",
        ("data set", "method", "cells", "warning"),
        ("left", "left", "right", "wrapped"),
        tuple(rows),
    )


def _versions(counts: Counter[str]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{version} ({counted(n, 'cell')})" for version, n in sorted(counts.items()))


def _warnings(text: Any) -> Iterator[str]:
    told = _read(text).get("warnings", [])
    for warning in told if isinstance(told, list) else []:
        shown = plain(str(warning))
        yield shown if len(shown) <= _LONGEST else shown[:_LONGEST].rstrip() + " …"


def _read(text: Any) -> dict[str, Any]:
    """Return a JSON object; a cell without one tells nothing."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


# ---------- experiment.answers.page_sections

_RANKS = "Average ranks"
_FEW = 5  # columns


@dataclass(frozen=True)
class PageSection:
    """A part of the page under one heading: a text, figures and tables."""

    title: str
    text: str = ""
    figures: tuple[StudyFigure, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def narrow(self) -> bool:
        """Whether two tables fit beside each other."""
        return len(self.sheets) > 1 and max(len(sheet.head) for sheet in self.sheets) <= _FEW

    @property
    def name(self) -> str:
        """The section's name in the page's address."""
        return file_name(self.title)


def page_sections(findings: Findings) -> list[PageSection]:
    """Return all sections that have something to say."""
    figures = study_figures(findings)
    ranks = tuple(one for one in figures if one.name == "ranks")
    curves = tuple(one for one in figures if one.name.startswith("curve"))
    scores = tuple(one for one in figures if one not in (*ranks, *curves))
    found = [
        PageSection("Data", sheets=(data_sheet(findings),)),
        PageSection("Figures", figures=scores),
        PageSection("Curves", figures=curves),
        *(
            _from_tables(section, ranks if section.title == _RANKS else ())
            for section in table_sections(findings)
        ),
    ]
    more = {"Warnings": warning_sheet(findings), "Versions": version_sheet(findings)}
    found += [PageSection(title, sheets=(sheet,)) for title, sheet in more.items() if sheet]
    found.append(PageSection("Notes", notes=findings.notes))
    return [one for one in found if one.text or one.figures or one.sheets or one.notes]


def _from_tables(section: Section, figures: tuple[StudyFigure, ...]) -> PageSection:
    """Say once what all tables of a section would say."""
    captions = {sheet.caption for sheet in section.sheets}
    text, sheets = section.text, section.sheets
    if len(sheets) > 1 and len(captions) == 1:
        text = " ".join(filter(None, [text, *captions]))
        sheets = tuple(replace(sheet, caption="") for sheet in sheets)
    if [sheet.title for sheet in sheets] == [section.title]:
        sheets = (replace(sheets[0], title=""),)
    return PageSection(section.title, text, figures, sheets)


# ---------- experiment.answers.page

with needed("the page of a study", "jinja2", "report"):
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup


# Nothing is fetched and nothing runs.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)


def study_page(findings: Findings) -> str:
    """Return the page: figures, tables, what may be concluded, cost, failures and versions.

    The same findings give the same page.

    Parameters
    ----------
    findings : Findings

    Returns
    -------
    str
        HTML.
    """
    environment = Environment(
        loader=DictLoader({"page.html": _read_page("setconv.experiment", "page.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": plain, "picture": _picture}
    return environment.get_template("page.html").render(
        findings=findings,
        state=state(findings),
        sections=page_sections(findings),
        policy=_POLICY,
        style=Markup(_read_page("setconv.report", "page.css").strip()),
        version=__version__,
    )


def write_page(findings: Findings, path: str | Path) -> Path:
    """Write the page to a file, which is there whole or not at all.

    Parameters
    ----------
    findings : Findings
    path : str or Path
        Folders above it are made if they are not there.

    Returns
    -------
    Path
        The file.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, study_page(findings).encode("utf-8"))
    return path


def _picture(figure: StudyFigure) -> str:
    return f"data:image/svg+xml;base64,{b64encode(compose(figure)).decode()}"


def _read_page(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


# ---------- experiment.answers.reporting


def write_report(findings: Findings, folder: str | Path) -> list[Path]:
    """Write the tables, the figures and a page of a study; each file is whole or not there.

    Parameters
    ----------
    findings : Findings
    folder : str or Path
        Gets ``index.html``, ``tables.md``, ``tables.tex``, ``tables.csv`` and ``figures/``.

    Returns
    -------
    list of Path
        The files, the page first.
    """
    # matplotlib and jinja2 are imported only when something is drawn.
    from setconv.experiment.figures import write_figures
    from setconv.experiment.tables import write_tables

    pass

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    write_page(findings, page)
    return [page, *write_tables(findings, folder), *write_figures(findings, folder / "figures")]


__all__ = ["study_page", "write_page", "write_report"]
