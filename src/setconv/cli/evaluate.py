"""``setconv evaluate``: how good a model is on a file of rows with labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setconv.cli import options
from setconv.cli.options import say, show_json
from setconv.errors import ModelFileError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
    empty: options.EmptyRows = "error",
    strip_labels: options.StripLabels = False,
    device: options.Device = "auto",
    file_format: options.Format = None,
    encoding: options.Encoding = None,
    as_json: options.Json = False,
) -> None:
    """Judge a model on a file of rows with labels.

    With a prevalence, that of --prior or one that was saved with the model, the rows are weighted
    to it.

    A file of any length is read batch by batch, and of each row only its answers are kept. With
    --report, --train or --empty skip it is read into memory as a whole, as standard input is.
    """
    from setconv.cli.data import Judged, Reading, encoded, inside, judge, load_model, load_rows
    from setconv.cli.reporting import (
        by_class,
        explain_command,
        measured,
        show_figures,
        write_report,
    )

    if report is not None and report.is_dir():
        raise ModelFileError(f"{report} is a folder: give --report the name of a page in it.")
    fitted = load_model(model, device, objective, prior)
    reading = Reading(text, id_column, file_format, encoding)
    skip = empty == "skip"

    def judge_whole() -> Judged:
        shared: Any = {"model": fitted, "label": label, "join_labels": strip_labels}
        shared["skip_empty"] = skip
        rows = load_rows(data, reading, **shared)
        X = encoded(fitted, rows.X, rows.numbers)
        known: Any = {}
        if train is not None:
            # The format that was given is that of the other file.
            others = load_rows(train, replace(reading, file_format=None), id_needed=False, **shared)
            search = encoded(fitted, others.X, others.numbers)
            known = {"train": (search, others.y), "train_row_names": others.row_names}
            found = find_duplicates(search, X)
            if len(found):
                there, here = found[0]
                say(
                    f"warning: {len(found)} of {len(rows.labels)} rows are in the training file "
                    f"too (first: row {rows.numbers[here]}, which is row {others.numbers[there]} "
                    "there), so the figures are better than on new rows: remove them."
                )
        answers = inside(fitted).predictions(X)
        if report is not None:
            explain = explain_command(model, data, rows, reading)
            write_report(fitted, X, rows, report, explain, data, predictions=answers, **known)
        return Judged.of(fitted, rows.labels, answers)

    if report is not None or train is not None or skip or data == "-":
        judged = judge_whole()
    else:
        judged = judge(data, reading, fitted, label, join_labels=strip_labels)
    figures = measured(fitted, judged)
    if as_json:
        facts = {
            "rows": len(judged.truth),
            "prior": by_class(fitted.classes_, fitted.prior_),
            "threshold_basis": fitted.threshold_basis_,
            "report": figures.to_dict(),
        }
        show_json(facts)
    else:
        show_figures(f"{len(judged.truth):,} rows, each class against the rest", figures)


def find_duplicates(train: Any, test: Any) -> NDArray[np.int64]:
    """Return which rows of the test data are in the training data too, as far as a model can tell.

    Parameters
    ----------
    train, test : list of str, or array of shape (n_rows, n_features)
        Texts, or encoded rows; they are alike as the copies in a fit are.

    Returns
    -------
    int64 array of shape (n_found, 2)
        The first such row of the training data, and the row of the test data, counted from 0.
    """
    import numpy as np

    from setconv.sampling import row_keys, text_keys

    known, new = ((text_keys if isinstance(one, list) else row_keys)(one) for one in (train, test))
    distinct, first = np.unique(known, return_index=True)
    found = np.flatnonzero(np.isin(new, distinct))
    return np.column_stack([first[np.searchsorted(distinct, new[found])], found])
