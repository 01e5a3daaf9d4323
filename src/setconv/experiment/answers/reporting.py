"""Everything that a study answers, in one folder."""

from __future__ import annotations

from pathlib import Path

from setconv.experiment.answers.findings import Findings

__all__ = ["write_report"]


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
    from setconv.experiment.answers.figures import write_figures
    from setconv.experiment.answers.formats import write_tables
    from setconv.experiment.answers.page import write_page

    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    write_page(findings, page)
    return [page, *write_tables(findings, folder), *write_figures(findings, folder / "figures")]
