"""The report of a model on the rows of a file."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setconv.cli.encoding import encoded, feature_names, inside

if TYPE_CHECKING:
    from setconv.cli.data import Loaded
    from setconv.predicted import Predictions


def write_report(
    model: Any,
    X: Any,
    rows: Loaded,
    known: Loaded | None,
    path: Path,
    *,
    data_name: str,
    explain: Callable[[Sequence[int]], str] | None,
    predictions: Predictions | None = None,
    out_of_fold: bool = False,
) -> None:
    """Write the page; of a table the classifier is shown with the encoded features.

    Parameters
    ----------
    model : fitted estimator
    X : list of str or array
        The rows that are judged, encoded.
    rows, known : Loaded, Loaded or None
        The same rows as they were read, and the training rows if they are others.
    path : Path
    data_name : str
    explain : callable or None
        As `explain_command` makes it.
    predictions : Predictions, optional
        What the model says of the rows.
    out_of_fold : bool, default=False
        Whether the rows are the training rows, each judged by members that left it out.
    """
    from setconv.report import make_report

    train = None
    if known is not None:
        train = (encoded(model, known.X, known.numbers), known.y)
    page = make_report(
        inside(model),
        X,
        rows.y,
        feature_names=feature_names(model, () if rows.is_text else rows.X.column_names),
        train=train,
        data_name=data_name,
        predictions=predictions,
        out_of_fold=out_of_fold,
        row_names=rows.row_names,
        train_row_names=None if known is None else known.row_names,
        explain=explain,
    )
    page.save(path)


def explain_command(
    model: Path,
    data: str,
    rows: Loaded,
    *,
    text: str | None,
    id_column: str | None,
    file_format: str | None,
    encoding: str | None,
) -> Callable[[Sequence[int]], str] | None:
    """Return what makes the command that explains rows; None if they cannot be read again.

    Parameters
    ----------
    model : Path
        Folder of the model.
    data : str
        The file, or "-".
    rows : Loaded
        What was read of it; the command takes rows by their numbers in the file.
    text, id_column, file_format, encoding : str or None
        As the user gave them.
    """
    if data == "-":
        return None
    options = {"--text": text, "--id": id_column, "--format": file_format, "--encoding": encoding}
    given = [word for name, value in options.items() if value is not None for word in (name, value)]

    def command(positions: Sequence[int]) -> str:
        numbers = ",".join(str(rows.numbers[position]) for position in positions)
        return shlex.join(["setconv", "explain", str(model), data, "--rows", numbers, *given])

    return command
