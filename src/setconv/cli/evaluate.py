"""``setconv evaluate``: how good a model is on a file of rows with labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from setconv.cli.console import out, say, show_json
from setconv.cli.options import (
    Data,
    Device,
    Empty,
    EmptyRows,
    Encoding,
    Format,
    Json,
    Label,
    Model,
    Objective,
    Prior,
    Text,
)

EPILOG = "Example: [bold]setconv evaluate model/ test.csv --report report.html --train train.csv[/]"


def command(
    model: Model,
    data: Data,
    text: Text = None,
    label: Label = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a self-contained HTML page.")
    ] = None,
    train: Annotated[
        str | None,
        typer.Option(
            "--train",
            help="The file that the model was fitted on: duplicates are counted, and the report "
            "shows the nearest training rows.",
        ),
    ] = None,
    objective: Objective = None,
    prior: Prior = None,
    empty: EmptyRows = Empty.error,
    device: Device = "auto",
    file_format: Format = None,
    encoding: Encoding = None,
    as_json: Json = False,
) -> None:
    """Judge a model on a file of rows with labels."""
    from setconv import metrics
    from setconv.cli.data import load_rows, warn_of_duplicates
    from setconv.cli.figures import metrics_table
    from setconv.cli.reporting import write_report
    from setconv.loading import load

    fitted = load(model, device=device)
    if objective is not None:
        fitted.set_objective(objective)
    if prior is not None:
        fitted.set_prior(prior)
    shared: dict[str, Any] = {
        "model": fitted,
        "text": text,
        "label": label,
        "skip_empty": empty is Empty.skip,
        "encoding": encoding,
    }
    rows = load_rows(data, file_format=file_format, **shared)
    known = None if train is None else load_rows(train, **shared)
    if known is not None:
        warn_of_duplicates(known, rows)
    labels, probabilities = fitted.predict_with_proba(rows.X)
    found = metrics.report(
        rows.y,
        labels,
        fitted.score_function(rows.X),
        probabilities=probabilities,
        classes=fitted.classes_,
    )
    if report is not None:
        write_report(fitted, rows, known, report, data_name=Path(data).name)
        say(f"report written to {report}")
    if as_json:
        show_json({"rows": len(rows.y), "report": found.to_dict()})
    else:
        out.print(metrics_table(f"{len(rows.y):,} rows, each class against the rest", found))
