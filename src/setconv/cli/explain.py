"""``setconv explain``: why a row is given its label."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from setconv.cli import options
from setconv.cli.console import out, show_json, table

EPILOG = (
    "Examples: [bold]setconv explain model/ --input 'Fire on Main Street'[/]   "
    "[bold]setconv explain model/ new.csv --rows 1,5 --train train.csv[/]"
)

_EXCERPT = 120  # characters of a training text that are shown


def command(
    model: options.Model,
    data: Annotated[
        str | None,
        typer.Argument(help="File of rows; or give --input.", show_default=False),
    ] = None,
    given: Annotated[
        list[str] | None, typer.Option("--input", help="A text to explain; may be repeated.")
    ] = None,
    rows: Annotated[
        str, typer.Option("--rows", help="Which rows of the file, counted from 1.")
    ] = "1",
    class_: Annotated[
        str | None,
        typer.Option("--class", help="Class whose score is explained; the predicted one."),
    ] = None,
    train: Annotated[
        str | None, typer.Option("--train", help="Training file, for the nearest rows.")
    ] = None,
    top: Annotated[int, typer.Option("--top", help="How many words, features and rows.")] = 8,
    text: options.Text = None,
    id_column: options.Id = None,
    device: options.Device = "auto",
    file_format: options.Format = None,
    encoding: options.Encoding = None,
    as_json: options.Json = False,
) -> None:
    """Show what moved the score of a row, and the training rows that are most like it.

    Contributions are measured by occlusion: a word is left out, or a feature set to its usual
    value, the row is scored again, and the change is the contribution.
    """
    from setconv.cli.data import Reading, load_rows
    from setconv.cli.encoding import load_model
    from setconv.cli.explaining import explain_rows, select_rows

    fitted = load_model(model, device)
    chosen = select_rows(fitted, data, given, rows, Reading(text, id_column, file_format, encoding))
    known = None
    if train is not None:
        reading = Reading(id_column=id_column, encoding=encoding)
        known = load_rows(train, reading, model=fitted, id_needed=False, skip_empty=True)
    explained = explain_rows(fitted, chosen, class_, known, top)
    if as_json:
        show_json(explained)
        return
    for one in explained:
        _print(one)


def _print(one: dict[str, Any]) -> None:
    shares = ", ".join(f"{label} {share:.1%}" for label, share in one["probabilities"].items())
    out.print(_name(one, one["text"]), markup=False)
    out.print(f"predicted {one['predicted']} ({shares})", markup=False)
    out.print(
        table(
            f"What moves the score of {one['class']} (occlusion)",
            ["word or feature", "contribution"],
            [[item["name"], f"{item['contribution']:+.3f}"] for item in one["contributions"]],
        )
    )
    if one["nearest"]:
        out.print(
            table(
                "Nearest training rows in the learned space",
                ["row", "class", "similarity"],
                [
                    [
                        _name(near, _excerpt(near["text"])),
                        near["label"],
                        f"{near['similarity']:.3f}",
                    ]
                    for near in one["nearest"]
                ],
            )
        )


def _name(one: dict[str, Any], text: str | None) -> str:
    """Return which row it is, and its text if it is one."""
    from setconv.cli.data import row_name

    called = None if one["row"] is None else row_name(one["row"], one["id"])
    return ": ".join(part for part in (called, text) if part is not None)


def _excerpt(text: str | None) -> str | None:
    if text is None:
        return None
    line = " ".join(text.split())
    return line if len(line) <= _EXCERPT else f"{line[:_EXCERPT]}..."
