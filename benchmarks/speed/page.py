"""The page of the suite, from the results of a run: the same results give the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined

from benchmarks.speed import figures, tables
from setconv.io.files import write_atomically

TEMPLATE = Path(__file__).with_name("page.md")
PAGE = "performance.md"
FOLDER = "performance"
RESULTS = "results.json"


def write(results: dict[str, Any], out: Path) -> None:
    """Write the page into a folder, and the plots into the folder of the results beside it."""
    parts = results["parts"]
    plots: dict[str, bytes] = {}
    if "growth" in parts:
        plots |= figures.growth_files(parts["growth"])
    if "peers" in parts:
        plots |= figures.peer_files(parts["peers"])
    for name, content in plots.items():
        write_atomically(out / FOLDER / name, content)
    write_atomically(out / PAGE, render(results).encode())


def render(results: dict[str, Any]) -> str:
    """Return the page's Markdown."""
    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters["count"] = lambda value: f"{value:,}"
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    return template.render(**results, tables=tables, figures=figures, folder=FOLDER)
