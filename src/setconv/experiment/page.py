"""The report of a study: a page of all that it found, and its tables and figures as files."""

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
from setconv.experiment.figures import (
    StudyFigure,
    compose,
    file_name,
    study_figures,
    write_figures,
)
from setconv.experiment.results import Findings
from setconv.experiment.tables import Section, Sheet, cut, line, plain, sections, write_tables
from setconv.io.files import write_atomically
from setconv.messages import count_of, needed

with needed("the page of a study", "jinja2", "report"):
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

# Nothing is fetched and nothing runs.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'"
)
_NARROW = 5  # columns of a table that has room beside another
_LONGEST_WARNING = 300


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
    folder = Path(folder)
    page = write_page(findings, folder / "index.html")
    return [page, *write_tables(findings, folder), *write_figures(findings, folder / "figures")]


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
        loader=DictLoader({"page.html": _read_file("setconv.experiment", "page.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"plain": plain, "picture": _picture}
    return environment.get_template("page.html").render(
        findings=findings,
        state=_state(findings),
        sections=_page_sections(findings),
        policy=_POLICY,
        style=Markup(_read_file("setconv.report", "page.css").strip()),
        version=__version__,
    )


def _read_file(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")


def _picture(figure: StudyFigure) -> str:
    return f"data:image/svg+xml;base64,{b64encode(compose(figure)).decode()}"


def _state(findings: Findings) -> dict[str, Any]:
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
    tiles = [
        (finished, f"of {len(cells) + findings.missing:,} cells finished"),
        (failed, "failed"),
        (findings.missing, "not computed yet"),
    ]
    return {
        "tiles": [{"value": f"{value:,}", "text": text} for value, text in tiles],
        "words": words,
        "incomplete": bool(failed or findings.missing),
    }


@dataclass(frozen=True)
class _PageSection(Section):
    """A part of the page under one heading: a text, figures, tables and notes."""

    figures: tuple[StudyFigure, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def narrow(self) -> bool:
        """Whether two tables fit beside each other."""
        return len(self.sheets) > 1 and max(len(sheet.head) for sheet in self.sheets) <= _NARROW

    @property
    def name(self) -> str:
        """The section's name in the page's address."""
        return file_name(self.title)


def _page_sections(findings: Findings) -> list[_PageSection]:
    """Return all sections that have something to say."""
    figures = study_figures(findings)
    ranks = tuple(one for one in figures if one.name == "ranks")
    curves = tuple(one for one in figures if one.name.startswith("curve"))
    scores = tuple(one for one in figures if one not in (*ranks, *curves))
    found = [
        _PageSection("Data", (_data_sheet(findings),)),
        _PageSection("Figures", figures=scores),
        _PageSection("Curves", figures=curves),
        *(
            _with_figures(section, ranks if section.title == "Average ranks" else ())
            for section in sections(findings)
        ),
    ]
    more = {"Warnings": _warning_sheet(findings), "Versions": _version_sheet(findings)}
    found += [_PageSection(title, (sheet,)) for title, sheet in more.items() if sheet]
    found.append(_PageSection("Notes", notes=findings.notes))
    return [one for one in found if one.text or one.figures or one.sheets or one.notes]


def _with_figures(section: Section, figures: tuple[StudyFigure, ...]) -> _PageSection:
    """Return a section of tables that says once what all of its tables would say."""
    captions = {sheet.caption for sheet in section.sheets}
    text, sheets = section.text, section.sheets
    if len(sheets) > 1 and len(captions) == 1:
        text = " ".join(filter(None, [text, *captions]))
        sheets = tuple(replace(sheet, caption="") for sheet in sheets)
    if [sheet.title for sheet in sheets] == [section.title]:
        sheets = (replace(sheets[0], title=""),)
    return _PageSection(section.title, sheets, text, figures)


def _data_sheet(findings: Findings) -> Sheet:
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
        "lllrrl",
        tuple(rows),
    )


def _warning_sheet(findings: Findings) -> Sheet | None:
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
        f"What {count_of(sum(found.values()), 'cell')} warned of while they were computed.",
        ("data set", "method", "cells", "warning"),
        "llrp",
        tuple(rows),
    )


def _warnings(text: Any) -> Iterator[str]:
    told = _read_json(text).get("warnings", [])
    for warning in told if isinstance(told, list) else []:
        yield cut(plain(str(warning)), _LONGEST_WARNING)


def _version_sheet(findings: Findings) -> Sheet | None:
    """Return the versions that the cells were computed with; None if no cell tells any."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for text in findings.cells["versions"]:
        for package, version in _read_json(text).items():
            found[str(package)][str(version)] += 1
    if not found:
        return None
    rows = [line(package, _versions(found[package])) for package in sorted(found)]
    notes: tuple[str, ...] = ()
    if differing := [package for package in sorted(found) if len(found[package]) > 1]:
        notes = (f"Cells were computed with different versions of {', '.join(differing)}.",)
    return Sheet("", "", ("package", "version"), "lp", tuple(rows), notes)


def _versions(counts: Counter[str]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{version} ({count_of(n, 'cell')})" for version, n in sorted(counts.items()))


def _read_json(text: Any) -> dict[str, Any]:
    """Return a JSON object; a cell without one tells nothing."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
