"""The sections of a page, in the order in which they are read."""

from __future__ import annotations

from dataclasses import dataclass, replace

from setconv.experiment.answers.figure_panels import StudyFigure, file_name
from setconv.experiment.answers.figures import study_figures
from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.page_facts import data_sheet, version_sheet, warning_sheet
from setconv.experiment.answers.table_sheet import Section, Sheet
from setconv.experiment.answers.tables import sections as table_sections

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
