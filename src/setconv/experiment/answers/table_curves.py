"""Metrics along a parameter, as tables: one for each metric, a column for each setting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.naming import PROBED, metric_name
from setconv.experiment.answers.table_sheet import (
    NO_FIGURE,
    Sheet,
    SheetRow,
    Shown,
    aligned,
    number,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["curve_metrics", "curve_sheets"]


def curve_sheets(findings: Findings) -> tuple[Sheet, ...]:
    """Return a table for each curve, unit and metric: mean and deviation over the splits."""
    sheets: list[Sheet] = []
    if findings.curves.empty:
        return ()
    groups = findings.curves.groupby(["curve", "unit"], sort=False)
    for (curve, unit), rows in groups:
        for metric in curve_metrics(rows, findings):
            title = f"{metric_name(metric)} along {curve}: {unit}"
            sheets.append(_sheet(title, rows[rows["metric"] == metric], findings.methods))
    return tuple(sheets)


def curve_metrics(rows: pd.DataFrame, findings: Findings) -> list[str]:
    """Return the metrics of a curve that have numbers: those of the study, then the probed."""
    present = set(rows.dropna(subset=["value"])["metric"])
    return [metric for metric in (*findings.metrics, *PROBED) if metric in present]


def _sheet(title: str, rows: pd.DataFrame, methods: tuple[str, ...]) -> Sheet:
    settings = sorted(rows["setting"].unique())
    spread = rows.groupby(["method", "setting"])["value"].agg(["mean", "std"])
    present = [method for method in methods if method in set(rows["method"])]
    lines = []
    for method in present:
        cells = [Shown(method)]
        for setting in settings:
            if (method, setting) not in spread.index:
                cells.append(Shown(NO_FIGURE))
                continue
            mean, deviation = spread.loc[(method, setting)]
            after = "" if deviation != deviation else f" ± {number(deviation)}"
            cells.append(Shown(f"{number(mean)}{after}"))
        lines.append(SheetRow(tuple(cells)))
    return Sheet(
        title,
        "Mean ± standard deviation over the splits.",
        ("method", *(f"{setting:,g}" for setting in settings)),
        aligned(1, len(settings)),
        tuple(lines),
    )
