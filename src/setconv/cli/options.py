"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

_DATA = "CSV, TSV, JSONL or Parquet, also gzipped; - reads standard input."

Model = Annotated[Path, typer.Argument(help="Folder of a saved model.", show_default=False)]
Data = Annotated[str, typer.Argument(help=_DATA, show_default=False)]
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
        "precision>=0.8.",
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
