"""``setconv export``: a model as a folder that predicts without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from setconv.cli import options
from setconv.cli.options import say

EPILOG = "Example: [bold]setconv export model/ -o out/ --verify test.csv[/]"


def command(
    model: options.Model,
    output: Annotated[
        Path, Option("--output", "-o", help="Folder to write: a new one.", show_default=False)
    ],
    verify: Annotated[
        str | None, Option("--verify", help="File of rows that model and export both predict.")
    ] = None,
    int8: Annotated[
        bool, Option("--int8", help="Round the encoder of texts to 8 bits; needs --verify.")
    ] = False,
    text: options.Text = None,
) -> None:
    """Write a model as ONNX, with a program that needs numpy, onnxruntime and tokenizers only.

    It answers as the model does: labels, probabilities and decision. What --verify finds is in the
    README.md of the folder.
    """
    import numpy as np

    from setconv.cli.data import Reading, column_plan, load_model, texts_of
    from setconv.export import export_model

    fitted, rows = load_model(model, "cpu"), None
    if verify is not None:
        with Reading(text).open(verify) as reader:
            plan, rows = column_plan(fitted, reader, text, "none"), reader.read()
        if plan.text is not None:
            rows = texts_of(rows, plan.text, np.arange(1, len(rows) + 1))
    for one in export_model(fitted, output, int8=int8, verify=rows):
        say(one)
    say(f"exported to {output}")
