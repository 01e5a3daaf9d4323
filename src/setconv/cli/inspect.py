"""``setconv inspect``: what is in a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from setconv.cli.console import figure, out, show_json, table
from setconv.cli.figures import COLUMNS, TITLES, by_class, show_notes
from setconv.cli.options import Json, Model

EPILOG = "Example: [bold]setconv inspect model/[/]"


def command(model: Model, as_json: Json = False) -> None:
    """Show what is in a model folder: classes, figures, parameters, encoder, versions."""
    from setconv.persistence import read_model

    saved = read_model(model)
    facts = describe(saved.kind, saved.config, saved.tensors)
    if as_json:
        show_json(facts)
        return
    _print(model, facts)


def describe(kind: str, config: dict[str, Any], tensors: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a model as plain data."""
    labels = config["classes"]["values"]
    return {
        "kind": kind,
        "format_version": config["format_version"],
        "classes": by_class(labels, config["class_counts"]),
        "n_features": config["n_features"],
        "encoder": config.get("encoder"),
        "members": config["network"].get("n_members", 1),
        "weights": sum(t.numel() for name, t in tensors.items() if name.startswith("network/")),
        "steps": config["n_steps"],
        "objective": config["parameters"].get("objective"),
        "prior": by_class(labels, config["rule"]["prior"]),
        "threshold_basis": config["threshold_basis"],
        "report_source": config["report_source"],
        "report": config["report"],
        "parameters": config["parameters"],
        "versions": config["versions"],
    }


def _print(folder: Path, facts: dict[str, Any]) -> None:
    from setconv.metrics import Report

    total = sum(facts["classes"].values())
    out.print(f"{facts['kind']} in {folder}", markup=False)
    encoder = facts["encoder"]
    if encoder is not None:
        out.print(f"encoder: {encoder['kind']} {encoder.get('model', '')}".rstrip(), markup=False)
    out.print(
        f"{facts['n_features']} features, {facts['members']} members, {facts['weights']:,} "
        f"weights, {facts['steps']} steps, objective {facts['objective']!r}",
        markup=False,
    )
    report = {str(row["class"]): row for row in facts["report"]["per_class"]}
    out.print(
        table(
            TITLES[facts["report_source"]],
            ["class", "rows", "share", *COLUMNS.values()],
            [
                [
                    label,
                    count,
                    f"{count / total:.1%}",
                    *(figure(report[label][name]) for name in COLUMNS),
                ]
                for label, count in facts["classes"].items()
            ],
        )
    )
    show_notes(Report.from_dict(facts["report"]), facts["threshold_basis"])
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    out.print(f"made with {versions}", markup=False)
