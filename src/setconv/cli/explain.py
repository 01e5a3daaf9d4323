"""``setconv explain``: why a row is given its label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Argument, Option

from setconv.cli import options
from setconv.cli.options import out, show, show_json, table
from setconv.errors import DataError, LabelError, ParameterError

if TYPE_CHECKING:
    from setconv.cli.data import Loaded, Reading

EPILOG = (
    "Examples: [bold]setconv explain model/ --input 'Fire on Main Street'[/]   "
    "[bold]setconv explain model/ new.csv --rows 1,5 --train train.csv[/]"
)

_EXCERPT = 120  # characters of a training text that are shown


class _Chosen(NamedTuple):
    """Rows to explain.

    Attributes
    ----------
    X : list of str or array
        Encoded.
    names : list of str or None
        Of the columns; None of texts.
    called : dict of str to list or None
        Their numbers in the file, counted from 1, what the user calls them, and their texts, as
        far as they have them.
    """

    X: Any
    names: list[str] | None
    called: dict[str, list[Any] | None]


def command(
    model: options.Model,
    data: Annotated[
        str | None, Argument(help="File of rows; or give --input.", show_default=False)
    ] = None,
    given: Annotated[
        list[str] | None, Option("--input", help="A text to explain; may be repeated.")
    ] = None,
    rows: Annotated[str, Option("--rows", help="Which rows of the file, counted from 1.")] = "1",
    class_: Annotated[
        str | None, Option("--class", help="Class whose score is explained; the predicted one.")
    ] = None,
    train: Annotated[
        str | None, Option("--train", help="Training file, for the nearest rows.")
    ] = None,
    top: Annotated[int, Option("--top", min=1, help="How many words, features and rows.")] = 8,
    text: options.Text = None,
    label: Annotated[
        str | None, Option("--label", help="Column of the labels of --train; found if not given.")
    ] = None,
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
    from setconv.cli.data import Reading, load_model, load_rows

    fitted = load_model(model, device)
    reading = Reading(text, id_column, file_format, encoding)
    chosen = _select_rows(fitted, data, given, rows, reading)
    known = None
    if train is not None:
        # The format and the text column that were given are those of the other file.
        reading = Reading(id_column=id_column, encoding=encoding)
        known = load_rows(
            train, reading, model=fitted, label=label, id_needed=False, skip_empty=True
        )
    explained = _explain_rows(fitted, chosen, class_, known, top)
    if as_json:
        show_json(explained)
        return
    for one in explained:
        _print(one)


def _select_rows(
    model: Any, data: str | None, given: list[str] | None, rows: str, reading: Reading
) -> _Chosen:
    """Return the rows to explain: texts that were given, or rows of a file."""
    import numpy as np

    from setconv.cli.data import column_plan, feature_names, ids_of, takes_texts
    from setconv.messages import require_column

    if (data is None) == (not given) or (given and not takes_texts(model)):
        raise ParameterError("give a file of rows or, to a model of texts, a text with --input")
    if given:
        if not all(map(str.strip, given)):
            raise ParameterError("--input: the text is empty")
        return _Chosen(given, None, {"row": None, "id": None, "text": given})
    numbers = np.array([int(one) if one.strip().isdecimal() else 0 for one in rows.split(",")])
    if min(numbers) < 1:
        raise ParameterError(f"--rows {rows}: give row numbers from 1, such as 1,5,12")
    id_column = reading.id_column
    with reading.open(str(data)) as reader:
        if id_column is not None:
            require_column(id_column, reader.columns, "id")
        plan = column_plan(model, reader, reading.text, "none")
        whole = reader.read()
    if max(numbers) > whole.num_rows:
        raise DataError(f"{data} has {whole.num_rows} rows: there is no row {max(numbers)}")
    chosen = whole.take(numbers - 1)
    X, _ = plan.rows(chosen, numbers)
    ids = None if id_column is None else ids_of(chosen, id_column)
    called = {"row": numbers.tolist(), "id": ids, "text": None if plan.text is None else X}
    return _Chosen(X, feature_names(model, plan.features), called)


def _explain_rows(
    model: Any, chosen: _Chosen, class_: str | None, known: Loaded | None, top: int
) -> list[dict[str, Any]]:
    """Return for each row its prediction, the strongest contributions and the nearest rows."""
    import numpy as np

    from setconv.cli.data import encoded, inside
    from setconv.explain import explain_rows, unit_blocks

    shown = inside(model)
    labels = {str(label): label for label in model.classes_.tolist()}
    if class_ is not None and class_ not in labels:
        raise LabelError(f"--class {class_}: the model's classes are {', '.join(labels)}")
    given: dict[str, Any] = {"class_": None if class_ is None else labels[class_], "top": top}
    if known is not None:
        rows = encoded(model, known.X, known.numbers)
        given["blocks"] = unit_blocks(shown, rows)
        if chosen.names is not None:
            given["usual"] = np.median(rows, axis=0)
    said = shown.predictions(chosen.X)
    explained = []
    for place, one in enumerate(explain_rows(shown, chosen.X, chosen.names, **given)):
        shares = zip(labels, said.probabilities[place].tolist(), strict=True)
        explained.append(
            _called(place, chosen.called)
            | {
                "predicted": said.labels[place],
                "probabilities": dict(shares),
                "class": one.class_,
                "method": "occlusion",
                "contributions": [{"name": n, "contribution": by} for n, by in one.contributions],
                "nearest": [] if known is None else _near(known, one.nearest),
            }
        )
    return explained


def _near(known: Loaded, found: list[tuple[int, float]]) -> list[dict[str, Any]]:
    """Return training rows that were found, as they are called."""
    texts = known.X if known.is_text else None
    called = {"row": known.numbers.tolist(), "id": known.ids, "text": texts}
    return [
        _called(row, called) | {"label": known.y[row], "similarity": similarity}
        for row, similarity in found
    ]


def _called(place: int, rows: dict[str, Any]) -> dict[str, Any]:
    """Return what a row is called: its number in the file, its id and its text, if it has them."""
    return {name: None if values is None else values[place] for name, values in rows.items()}


def _print(one: dict[str, Any]) -> None:
    shares = ", ".join(f"{label} {share:.1%}" for label, share in one["probabilities"].items())
    show(_name(one))
    show(f"predicted {one['predicted']} ({shares})")
    moved = [[item["name"], f"{item['contribution']:+.3f}"] for item in one["contributions"]]
    title = f"What moves the score of {one['class']} (occlusion)"
    out.print(table(title, ["word or feature", "contribution"], moved))
    nearest = [
        [_name(near, _EXCERPT), near["label"], f"{near['similarity']:.3f}"]
        for near in one["nearest"]
    ]
    if nearest:
        title = "Nearest training rows in the learned space"
        out.print(table(title, ["row", "class", "similarity"], nearest))


def _name(one: dict[str, Any], length: int | None = None) -> str:
    """Return which row it is, and its text if it is one, on one line where it is cut."""
    from setconv.cli.data import row_name

    called = None if one["row"] is None else row_name(one["row"], one["id"])
    text = one["text"]
    if text is not None and length is not None:
        line = " ".join(text.split())
        text = line if len(line) <= length else f"{line[:length]}..."
    return ": ".join(part for part in (called, text) if part is not None)
