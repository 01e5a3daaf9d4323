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
    Id,
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
    id_column: Id = None,
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
    """Judge a model on a file of rows with labels.

    With a prevalence, that of --prior or one that was saved with the model, the rows are weighted
    to it.
    """
    from setconv.cli.data import load_rows, warn_of_duplicates
    from setconv.cli.encoding import encoded, inside
    from setconv.cli.figures import by_class, judged, metrics_table, show_notes
    from setconv.cli.reporting import explain_command, write_report
    from setconv.loading import load
    from setconv.metrics.report import WHY_NOT_THE_LARGEST

    fitted = load(model, device=device)
    if objective is not None:
        fitted.set_objective(objective)
    if prior is not None:
        fitted.set_prior(prior)
    shared: dict[str, Any] = {
        "model": fitted,
        "text": text,
        "label": label,
        "id_column": id_column,
        "skip_empty": empty is Empty.skip,
        "encoding": encoding,
    }
    rows = load_rows(data, file_format=file_format, **shared)
    known = None if train is None else load_rows(train, id_needed=False, **shared)
    if known is not None:
        warn_of_duplicates(known, rows)
    X = encoded(fitted, rows.X, rows.numbers)
    answers, found = judged(fitted, inside(fitted).predictions(X), rows.y)
    if report is not None:
        explain = explain_command(
            model,
            data,
            rows,
            text=text,
            id_column=id_column,
            file_format=file_format,
            encoding=encoding,
        )
        write_report(
            fitted,
            X,
            rows,
            known,
            report,
            data_name=Path(data).name,
            explain=explain,
            predictions=answers,
        )
        say(f"report written to {report}")
    if as_json:
        facts = {
            "rows": len(rows.y),
            "prior": by_class(fitted.classes_, fitted.prior_),
            "threshold_basis": fitted.threshold_basis_,
            "report": found.to_dict(),
        }
        show_json(facts)
    else:
        out.print(metrics_table(f"{len(rows.y):,} rows, each class against the rest", found))
        show_notes(found)
        out.print(WHY_NOT_THE_LARGEST, markup=False)
