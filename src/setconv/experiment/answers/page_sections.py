"""The sections of a page, in the order in which they are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from setconv.experiment.answers.figure_panels import NARROW, StudyFigure, file_name
from setconv.experiment.answers.figures import study_figures
from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.page_facts import data_sheet, version_sheet, warning_sheet
from setconv.experiment.answers.page_keys import bar_key, line_key
from setconv.experiment.answers.table_sections import sections as table_sections
from setconv.experiment.answers.table_sheet import Section, Sheet

_RANKS = "Average ranks"
_FEW = 5  # columns


@dataclass(frozen=True)
class PageSection:
    """A part of the page under one heading: a text, figures and tables."""

    title: str
    text: str = ""
    figures: tuple[dict[str, Any], ...] = ()
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
    figures = {figure.name: figure for figure in study_figures(findings)}
    curves = [figure for name, figure in figures.items() if name.startswith("curve")]
    scores = [figures[name] for name in ("scores", "diagnosis") if name in figures]
    ranks = [figures["ranks"]] if "ranks" in figures else []
    found = [
        PageSection("Data", sheets=(data_sheet(findings),)),
        PageSection("Figures", figures=tuple(map(_shown, scores))),
        PageSection("Curves", figures=tuple(map(_shown, curves))),
        *(
            _from_tables(section, ranks if section.title == _RANKS else [])
            for section in table_sections(findings)
        ),
    ]
    more = {"Warnings": warning_sheet(findings), "Versions": version_sheet(findings)}
    found += [PageSection(title, sheets=(sheet,)) for title, sheet in more.items() if sheet]
    found.append(PageSection("Notes", notes=findings.notes))
    return [one for one in found if one.text or one.figures or one.sheets or one.notes]


def _from_tables(section: Section, figures: list[StudyFigure]) -> PageSection:
    """Say once what all tables of a section would say."""
    captions = {sheet.caption for sheet in section.sheets}
    text, sheets = section.text, section.sheets
    if len(sheets) > 1 and len(captions) == 1:
        text = " ".join(filter(None, [text, *captions]))
        sheets = tuple(replace(sheet, caption="") for sheet in sheets)
    if [sheet.title for sheet in sheets] == [section.title]:
        sheets = (replace(sheets[0], title=""),)
    return PageSection(section.title, text, tuple(map(_shown, figures)), sheets)


def _shown(figure: StudyFigure) -> dict[str, Any]:
    key = bar_key if figure.keys == "bar" else line_key
    return {
        "name": figure.name,
        "title": figure.title,
        "caption": figure.caption,
        "columns": figure.columns,
        "legend": [{"key": key(look), "name": name} for name, look in figure.legend.items()],
        "panels": [
            {
                "title": panel.title,
                "svg": panel.inline(),
                "width": round(panel.size[0]),
                "wide": panel.size[0] > NARROW,
            }
            for panel in figure.panels
        ],
    }
