"""What all commands share: how they speak to the user, and their arguments and options."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape
from rich.table import Table

Model = Annotated[Path, typer.Argument(help="Folder of a saved model.", show_default=False)]
Data = Annotated[
    str,
    typer.Argument(
        help="CSV, TSV, JSONL or Parquet, also gzipped; - reads standard input.",
        show_default=False,
    ),
]
Text = Annotated[
    str | None, typer.Option("--text", help="Column of the texts; found if not given.")
]
Label = Annotated[
    str | None, typer.Option("--label", help="Column of the labels; found if not given.")
]
Id = Annotated[
    str | None,
    typer.Option("--id", help="Column of what the rows are called, beside their numbers."),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help="csv, tsv, jsonl or parquet, if the name does not tell."),
]
Encoding = Annotated[
    str | None, typer.Option("--encoding", help="Of a text file, if not UTF-8 or found out.")
]
Objective = Annotated[
    str | None,
    typer.Option(
        "--objective",
        help="What the decision is to be best for: balanced, f1, mcc, accuracy, recall>=0.95, "
        "precision>=0.8; with a confidence: 'recall>=0.9 @ 90%'.",
    ),
]
Prior = Annotated[
    float | None,
    typer.Option("--prior", help="Share of the rarer class where the model is used."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Device = Annotated[str, typer.Option("--device", help="A torch device, such as cpu or cuda.")]


class Empty(StrEnum):
    """What to do about rows without a text or label."""

    error = "error"
    skip = "skip"


EmptyRows = Annotated[
    Empty,
    typer.Option(
        "--empty", help="Rows without text or label: stop with an error, or skip and count them."
    ),
]

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def say(message: str) -> None:
    """Tell the user something that is no result; the message is taken as it is."""
    err.print(escape(message))


def note(sentences: Iterable[str]) -> None:
    """Tell what was done to the features."""
    for sentence in sentences:
        say(f"note: {sentence}")


def table(
    title: str, head: Sequence[str], rows: Iterable[Sequence[Any]], *, width: int | None = None
) -> Table:
    """Return a table whose first column is text and whose others are numbers.

    With ``width`` the numbers have at least so many characters, close together.
    """
    made = Table(title=escape(title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    if width is not None:
        made.padding = (0, 0)
    for number, name in enumerate(head):
        side: Any = "left" if number == 0 else "right"
        made.add_column(escape(name), justify=side, min_width=width if number else None)
    for row in rows:
        made.add_row(*(escape(str(cell)) for cell in row))
    return made


def figure(value: float | None) -> str:
    """Return a metric with three digits, "n/a" if it is not defined."""
    return "n/a" if value is None or value != value else f"{value:.3f}"


def show_json(data: Any) -> None:
    """Print one JSON document, the result of a command that was asked for ``--json``."""
    sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def start_logging(verbose: bool) -> None:
    """Show the library's messages: warnings, with ``--verbose`` everything."""
    handler = RichHandler(console=err, show_time=False, show_path=False, markup=False)
    logger = logging.getLogger("setconv")
    logger.handlers[:] = [handler]
    logger.setLevel(logging.INFO if verbose else logging.WARNING)
    warnings.formatwarning = _sentence
    logging.captureWarnings(capture=True)
    logging.getLogger("py.warnings").handlers[:] = [handler]


def _sentence(message: Warning | str, category: type[Warning], *_: object, **__: object) -> str:
    """Return a warning without the place in the library, which tells the user nothing."""
    return str(message) if category is UserWarning else f"{category.__name__}: {message}"
