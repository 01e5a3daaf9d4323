"""The card of a saved model: what a person who finds the folder wants to know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from setconv.metrics import Report
from setconv.metrics.report import WHY_NOT_THE_LARGEST

_COLUMNS = {
    "specificity": "Spec",
    "sensitivity": "Sens",
    "f1": "F1",
    "g_mean": "G-mean",
    "auc": "AUC",
    "average_precision": "AP",
}

_SOURCES = {
    "validation": "Measured on validation rows that training did not see.",
    "out_of_fold": "Measured out of fold: on training rows, each by members that had not seen it.",
    "none": "Not measured: the model has seen every row. Judge it on others.",
}


def write_card(config: Mapping[str, Any]) -> str:
    """Return the text of README.md for a model described by its configuration."""
    classes = config["classes"]["values"]
    counts = config["class_counts"]
    versions = ", ".join(f"{name} {version}" for name, version in config["versions"].items())
    source = _SOURCES[config["report_source"]]
    takes = config.get("takes", f"rows with {config['n_features']} numeric features")
    encoder = config.get("encoder", {})
    encoded_by = " ".join(encoder[name] for name in ("kind", "model") if name in encoder)
    lines = [
        "# SetConv model",
        "",
        f"A classifier of {takes} into {len(classes)} classes, made for data in which some class "
        "is rare.",
        "",
        "```python",
        "import setconv",
        "",
        'model = setconv.load("path/to/this/folder")',
        "model.predict(X)",
        "```",
        "",
        "## Data",
        "",
        f"{sum(counts)} {config.get('takes', 'rows')}, {config['n_features']} features"
        + (f", made by {_cell(encoded_by)}." if encoded_by else "."),
        "",
        *_table(
            ["class", "rows", "share"],
            [
                [_cell(label), str(count), f"{count / sum(counts):.1%}"]
                for label, count in zip(classes, counts, strict=True)
            ],
        ),
        "",
        "## Metrics",
        "",
        f"{source} Each class against the rest.",
        "",
        *_table(
            ["class", *_COLUMNS.values()],
            [
                [_cell(row["class"]), *(_number(row[name]) for name in _COLUMNS)]
                for row in config["report"]["per_class"]
            ],
        ),
        "",
        *(line for remark in Report.from_dict(config["report"]).remarks() for line in (remark, "")),
        "## Decision",
        "",
        f"Objective: {config['parameters']['objective']!r}. Its threshold rests on this: "
        f"{config['threshold_basis']}. {WHY_NOT_THE_LARGEST}",
        "",
        "## Training",
        "",
        f"{config['n_steps']} steps. All parameters are in `config.json`.",
        "",
        f"Versions: {versions}.",
        "",
        "The folder holds safetensors, JSON and this text; loading it runs no code from it.",
        "",
    ]
    return "\n".join(lines)


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [
        f"| {' | '.join(cells)} |" for cells in (head, ["---"] + ["--:"] * (len(head) - 1), *rows)
    ]


def _cell(label: Any) -> str:
    """Return a label that cannot break the table."""
    return " ".join(str(label).replace("|", "\\|").split()) or "(empty)"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"
