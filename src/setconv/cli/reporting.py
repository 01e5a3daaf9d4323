"""The report of a model on the rows of a file."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setconv.cli.console import say
from setconv.cli.encoding import encoded, feature_names, inside

if TYPE_CHECKING:
    from setconv.cli.data import Loaded, Reading


def write_report(
    model: Any,
    X: Any,
    rows: Loaded,
    path: Path,
    explain: Callable[[Sequence[int]], str] | None,
    data: str,
    *,
    known: Loaded | None = None,
    **options: Any,
) -> None:
    """Write the page; of a table the classifier is shown with the encoded features.

    Parameters
    ----------
    model : fitted estimator
    X : list of str or array
        The rows that are judged, encoded.
    rows : Loaded
        The same rows as they were read.
    path : Path
    explain : callable or None
        As `explain_command` makes it.
    data : str
        The file of the rows.
    known : Loaded, optional
        The training rows if they are others.
    options : of `setconv.report.make_report`
    """
    from setconv.report import make_report

    if known is not None:
        options["train"] = (encoded(model, known.X, known.numbers), known.y)
        options["train_row_names"] = known.row_names
    page = make_report(
        inside(model),
        X,
        rows.y,
        feature_names=feature_names(model, () if rows.is_text else rows.X.column_names),
        data_name=Path(data).name,
        row_names=rows.row_names,
        explain=explain,
        **options,
    )
    page.save(path)
    say(f"report written to {path}")


def explain_command(
    model: Path, data: str, rows: Loaded, reading: Reading
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
    reading : Reading
    """
    if data == "-":
        return None
    names = ("--text", "--id", "--format", "--encoding")
    options = zip(names, astuple(reading), strict=True)
    given = [word for name, value in options if value is not None for word in (name, value)]

    def command(positions: Sequence[int]) -> str:
        numbers = ",".join(str(rows.numbers[position]) for position in positions)
        return shlex.join(["setconv", "explain", str(model), data, "--rows", numbers, *given])

    return command
