"""``setconv evaluate``: how good a model is on a file of rows with labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from setconv.cli import options
from setconv.cli.options import show_json

EPILOG = "Example: [bold]setconv evaluate model/ test.csv --report report.html --train train.csv[/]"


def command(
    model: options.Model,
    data: options.Data,
    text: options.Text = None,
    label: options.Label = None,
    id_column: options.Id = None,
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
    objective: options.Objective = None,
    prior: options.Prior = None,
    empty: options.EmptyRows = options.Empty.error,
    device: options.Device = "auto",
    file_format: options.Format = None,
    encoding: options.Encoding = None,
    as_json: options.Json = False,
) -> None:
    """Judge a model on a file of rows with labels.

    With a prevalence, that of --prior or one that was saved with the model, the rows are weighted
    to it.
    """
    from setconv.cli.data import Reading, encoded, inside, load_model, load_rows, warn_of_duplicates
    from setconv.cli.reporting import by_class, explain_command, judged, show_figures, write_report

    fitted = load_model(model, device, objective, prior)
    reading = Reading(text, id_column, file_format, encoding)
    shared: Any = {"model": fitted, "label": label, "skip_empty": empty is options.Empty.skip}
    rows = load_rows(data, reading, **shared)
    known = None
    if train is not None:
        # The format that was given is that of the other file.
        known = load_rows(train, replace(reading, file_format=None), id_needed=False, **shared)
        warn_of_duplicates(known, rows)
    X = encoded(fitted, rows.X, rows.numbers)
    answers = inside(fitted).predictions(X)
    found = judged(fitted, answers, rows.y)
    if report is not None:
        explain = explain_command(model, data, rows, reading)
        write_report(fitted, X, rows, report, explain, data, known=known, predictions=answers)
    if as_json:
        facts = {
            "rows": len(rows.y),
            "prior": by_class(fitted.classes_, fitted.prior_),
            "threshold_basis": fitted.threshold_basis_,
            "report": found.to_dict(),
        }
        show_json(facts)
    else:
        show_figures(f"{len(rows.y):,} rows, each class against the rest", found)
