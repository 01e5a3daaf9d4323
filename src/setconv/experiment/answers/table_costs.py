"""What the cells of a study cost, and which of them failed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.table_sheet import (
    NO_FIGURE,
    Sheet,
    SheetRow,
    Shown,
    aligned,
    counted,
    plain,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["cost_sheet", "failure_sheet", "last_line"]

_LONGEST = 200


def cost_sheet(findings: Findings) -> Sheet | None:
    """Return median seconds and peak memory of each method on each data set; None without cells."""
    cells = findings.cells
    if cells.empty:
        return None
    rows: list[SheetRow] = []
    for dataset in _ordered([unit.dataset for unit in findings.units], cells["dataset"]):
        here = cells[cells["dataset"] == dataset]
        for place, method in enumerate(_ordered(findings.methods, here["method"])):
            done = here[(here["method"] == method) & (here["status"] == "ok")]
            name = "" if place else dataset
            row = (name, method, str(len(done)), _seconds(done), _memory(done))
            rows.append(SheetRow(tuple(map(Shown, row)), rule=not place and bool(rows)))
    return Sheet(
        "Time and memory",
        "Median wall time of a cell, and the highest peak memory of a worker process, over the "
        "cells that ended well. A worker's memory includes the packages that it has loaded.",
        ("data set", "method", "cells", "median seconds", "peak MB"),
        aligned(2, 3),
        tuple(rows),
    )


def failure_sheet(findings: Findings) -> Sheet | None:
    """Return the cells that did not end well, by the last line of their error; None without."""
    cells = findings.cells
    failed = cells if cells.empty else cells[cells["status"] != "ok"]
    if failed.empty:
        return None
    splits: dict[tuple[str, ...], list[int]] = {}
    columns = failed[["dataset", "method", "status", "error", "split"]]
    for dataset, method, status, error, split in columns.itertuples(index=False):
        key = (str(dataset), str(method), str(status), last_line(str(error)))
        splits.setdefault(key, []).append(int(split))
    rows = [
        SheetRow(
            tuple(map(Shown, (dataset, method, ", ".join(map(str, sorted(which))), status, error)))
        )
        for (dataset, method, status, error), which in splits.items()
    ]
    return Sheet(
        "Failed cells",
        f"{counted(len(failed), 'cell')} of {len(cells)} did not end well: the last line of the "
        "error. The store has the whole of it.",
        ("data set", "method", "splits", "status", "error"),
        ("left", "left", "wrapped", "left", "wrapped"),
        tuple(rows),
    )


def last_line(error: str) -> str:
    """Return the last line of an error that says anything, of bounded length."""
    lines = [line for line in map(plain, error.splitlines()) if line]
    last = lines[-1] if lines else "no message"
    return last if len(last) <= _LONGEST else last[:_LONGEST].rstrip() + " …"


def _ordered(first: Sequence[str], present: Iterable[str]) -> list[str]:
    """Return the names that are present: in the order of the study, then the others."""
    here = dict.fromkeys(map(str, present))
    return [*dict.fromkeys(name for name in first if name in here), *sorted(set(here) - set(first))]


def _seconds(cells: pd.DataFrame) -> str:
    median = cells["seconds"].median()
    if median != median:
        return NO_FIGURE
    return f"{median:.2f}" if median < 10 else f"{median:,.0f}"


def _memory(cells: pd.DataFrame) -> str:
    peak = cells["peak_mb"].max()
    return NO_FIGURE if peak != peak else f"{peak:,.0f}"
