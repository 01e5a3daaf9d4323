"""A model's own figures, for people and for machines."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from setconv.cli.console import figure, table

_COLUMNS = {
    "specificity": "Spec",
    "sensitivity": "Sens",
    "precision": "Prec",
    "f1": "F1",
    "g_mean": "G-mean",
    "auc": "AUC",
    "average_precision": "AP",
}
_SOURCES = {
    "out_of_fold": "out of fold",
    "validation": "on validation rows",
    "training": "on the training rows, optimistic",
}


def show_report(model: Any) -> Table:
    """Return the table of the figures that a fitted model has of itself."""
    source = _SOURCES[model.report_source_]
    return metrics_table(f"Each class against the rest, {source}", model.report_)


def metrics_table(title: str, report: Any) -> Table:
    """Return a table of a `setconv.metrics.Report`."""
    rows = [
        [row["class"], *(figure(row.get(name)) for name in _COLUMNS)]
        for row in report.to_dict()["per_class"]
    ]
    return table(title, ["class", *_COLUMNS.values()], rows)


def report_facts(model: Any) -> dict[str, Any]:
    """Return the same as plain data."""
    return {
        "classes": dict(zip(map(str, model.classes_), model.class_counts_.tolist(), strict=True)),
        "objective": model.objective,
        "report_source": model.report_source_,
        "report": model.report_.to_dict(),
    }
