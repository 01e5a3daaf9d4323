"""``setconv evaluate``: how good a model is on a file of rows with labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setconv.cli import options
from setconv.cli.options import say, show_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from setconv.cli.data import Loaded

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
    from setconv.cli.data import Reading, encoded, inside, load_model, load_rows
    from setconv.cli.reporting import by_class, explain_command, judged, show_figures, write_report

    fitted = load_model(model, device, objective, prior)
    reading = Reading(text, id_column, file_format, encoding)
    shared: Any = {"model": fitted, "label": label, "skip_empty": empty is options.Empty.skip}
    rows = load_rows(data, reading, **shared)
    known = None
    if train is not None:
        # The format that was given is that of the other file.
        known = load_rows(train, replace(reading, file_format=None), id_needed=False, **shared)
        _warn_of_duplicates(known, rows)
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


def _warn_of_duplicates(known: Loaded, rows: Loaded) -> None:
    """Say how many rows the two files share: figures on them are too good."""
    train = known.X
    if not known.is_text:  # what one file lacks cannot tell, and the encoder misses it if it counts
        train = train.select([n for n in train.column_names if n in rows.X.column_names])
    found = find_duplicates(train, rows.X)
    if len(found):
        there, here = found[0]
        say(
            f"warning: {len(found)} of {len(rows.y)} rows are in the training file too (first: row "
            f"{rows.numbers[here]}, which is row {known.numbers[there]} there), so the figures are "
            "better than on new rows: remove them."
        )


def find_duplicates(train: Any, test: Any) -> NDArray[np.int64]:
    """Return which rows of the test data are in the training data too.

    Parameters
    ----------
    train, test : list of str, or pyarrow.Table
        Texts, which are alike as the copies in a fit are: case, white space, links and mentions
        make no difference. Or whole rows, which are compared exactly, by the columns of the first
        table.

    Returns
    -------
    int64 array of shape (n_found, 2)
        The first such row of the training data, and the row of the test data, counted from 0.
    """
    import numpy as np

    from setconv.sampling import text_keys

    keys = text_keys(train + test) if isinstance(train, list) else _row_keys(train, test)
    known, new = keys[: len(train)], keys[len(train) :]
    distinct, first = np.unique(known, return_index=True)
    found = np.flatnonzero(np.isin(new, distinct))
    return np.column_stack([first[np.searchsorted(distinct, new[found])], found])


def _row_keys(train: Any, test: Any) -> NDArray[np.int64]:
    """Return a number for each row of both tables, the same for the same row."""
    import numpy as np
    import pyarrow as pa

    n_rows = len(train) + len(test)
    keys = np.zeros(n_rows, np.int64) if train.num_columns else np.arange(n_rows)
    for name in train.column_names:
        parts = [train[name], test[name]]
        kind = parts[0].type
        if kind != parts[1].type or pa.types.is_nested(kind):
            parts = [pa.chunked_array([list(map(str, one.to_pylist()))]) for one in parts]
        values = pa.concat_arrays([chunk for one in parts for chunk in one.chunks])
        codes = values.dictionary_encode(null_encoding="encode").indices.to_numpy()
        keys = np.unique(keys * (codes.max() + 1) + codes, return_inverse=True)[1]
        if keys.max() + 1 == n_rows:
            break  # no two rows are alike: other columns cannot change that
    return keys
