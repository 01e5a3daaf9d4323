"""A study as one self-contained page that opens without a network."""

from __future__ import annotations

from base64 import b64encode
from importlib.resources import files
from pathlib import Path

from setconv.needs import needed

with needed("the page of a study", "jinja2", "report"):
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

from setconv._version import __version__
from setconv.experiment.answers.figure_panels import StudyFigure, compose
from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.page_facts import state
from setconv.experiment.answers.page_sections import page_sections
from setconv.experiment.answers.table_sheet import plain
from setconv.files import write_atomically

__all__ = ["study_page", "write_page"]

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
        loader=DictLoader({"page.html": _read("setconv.experiment.answers", "page.html")}),
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
        style=Markup(_read("setconv.report", "page.css").strip()),
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


def _read(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text(encoding="utf-8")
