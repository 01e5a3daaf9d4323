"""What a page says besides scores: how far the study is, its data, versions and warnings."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.table_sheet import Sheet, counted, line, plain

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
