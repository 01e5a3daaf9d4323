"""``setconv explain``: why a row is given its label."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from setconv.cli import options
from setconv.cli.options import out, show_json, table
from setconv.errors import DataError, LabelError, ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from setconv.cli.data import Loaded, Reading

EPILOG = (
    "Examples: [bold]setconv explain model/ --input 'Fire on Main Street'[/]   "
    "[bold]setconv explain model/ new.csv --rows 1,5 --train train.csv[/]"
)

_EXCERPT = 120  # characters of a training text that are shown


@dataclass(frozen=True)
class _Chosen:
    """Rows to explain.

    Attributes
    ----------
    X : list of str or array
        Encoded.
    names : list of str or None
        Of the columns; None of texts.
    numbers : list of (int or None)
        Which rows of the file they are, counted from 1; None of a text that was given.
    ids : list of (str or None)
        What the user calls them.
    """

    X: Any
    names: list[str] | None
    numbers: list[int | None]
    ids: list[str | None]


# Of each row the class whose score is explained, what may have moved it, and by how much.
_Explanation = tuple[Any, Any, "NDArray[np.float64]"]


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
    from setconv.cli.data import Reading, load_model, load_rows

    fitted = load_model(model, device)
    reading = Reading(text, id_column, file_format, encoding)
    chosen = _select_rows(fitted, data, given, rows, reading)
    known = None
    if train is not None:
        # The format and the text column that were given are those of the other file.
        reading = Reading(id_column=id_column, encoding=encoding)
        known = load_rows(train, reading, model=fitted, id_needed=False, skip_empty=True)
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
    from setconv.io.reading import open_records
    from setconv.messages import require_column

    if (data is None) == (not given):
        raise ParameterError("give a file of rows, or a text with --input")
    if given:
        if not takes_texts(model):
            raise ParameterError("--input is for models of texts: give a file of rows")
        return _Chosen(list(given), None, [None] * len(given), [None] * len(given))
    numbers = np.array(_row_numbers(rows))
    id_column = reading.id_column
    with open_records(str(data), format=reading.file_format, encoding=reading.encoding) as reader:
        if id_column is not None:
            require_column(id_column, reader.columns, "--id")
        plan = column_plan(model, reader, reading.text, "none")
        whole = reader.read()
    if max(numbers) > whole.num_rows:
        raise DataError(f"{data} has {whole.num_rows} rows: there is no row {max(numbers)}")
    chosen = whole.take(numbers - 1)
    ids: Any = [None] * len(numbers) if id_column is None else ids_of(chosen, id_column)
    X, _ = plan.rows(chosen, numbers)
    return _Chosen(X, feature_names(model, plan.features), numbers.tolist(), ids)


def _row_numbers(rows: str) -> list[int]:
    try:
        numbers = [int(part) for part in rows.split(",")]
    except ValueError:
        numbers = [0]
    if min(numbers) < 1:
        raise ParameterError(f"--rows {rows}: give row numbers from 1, such as 1,5,12")
    return numbers


def _explain_rows(
    model: Any, chosen: _Chosen, class_: str | None, known: Loaded | None, top: int
) -> list[dict[str, Any]]:
    """Return for each row its prediction, the strongest contributions and the nearest rows."""
    import numpy as np

    from setconv.cli.data import encoded, inside, takes_texts
    from setconv.explain import nearest_rows

    label = None if class_ is None else _label(model, class_)
    texts = takes_texts(model)
    shown = inside(model)
    said = shown.predictions(chosen.X)
    search = None if known is None else encoded(model, known.X, known.numbers)
    found = _words(shown, chosen, label) if texts else _features(shown, chosen, label, search)
    explained = []
    for place, (of, names, values) in enumerate(found):
        shares = zip(map(str, model.classes_), said.probabilities[place].tolist(), strict=True)
        order = np.argsort(-np.abs(values), kind="stable")[:top]
        explained.append(
            {
                "row": chosen.numbers[place],
                "id": chosen.ids[place],
                "text": chosen.X[place] if texts else None,
                "predicted": said.labels[place],
                "probabilities": dict(shares),
                "class": of,
                "method": "occlusion",
                "contributions": [
                    {"name": names[i], "contribution": float(values[i])} for i in order
                ],
                "nearest": [],
            }
        )
    if known is not None:
        nearest = nearest_rows(shown, chosen.X, search, top)
        for one, rows, alike in zip(explained, nearest.indices, nearest.similarities, strict=True):
            one["nearest"] = [
                {
                    "row": int(known.numbers[row]),
                    "id": None if known.ids is None else known.ids[row],
                    "text": known.X[row] if texts else None,
                    "label": known.y[row],
                    "similarity": float(similarity),
                }
                for row, similarity in zip(rows.tolist(), alike.tolist(), strict=True)
            ]
    return explained


def _label(model: Any, given: str) -> Any:
    known = {str(label): label for label in model.classes_.tolist()}
    if given not in known:
        raise LabelError(f"--class {given}: the model's classes are {', '.join(known)}")
    return known[given]


def _words(model: Any, chosen: _Chosen, label: Any) -> list[_Explanation]:
    from setconv.explain import word_contributions

    found = []
    for text in chosen.X:
        one = word_contributions(model, text, label)
        found.append((one.class_, [text[start:end] for start, end in one.spans], one.values))
    return found


def _features(model: Any, chosen: _Chosen, label: Any, known: Any) -> list[_Explanation]:
    import numpy as np

    from setconv.explain import feature_contributions

    if known is not None:
        usual = np.median(known, axis=0)
    else:  # the mean anchor, which the model keeps
        anchors = np.asarray(model.anchor_, dtype=np.float64)
        usual = np.asarray(anchors.reshape(-1, anchors.shape[-1]).mean(axis=0))
    found = feature_contributions(
        model, chosen.X, background=usual, class_=label, feature_names=chosen.names
    )
    return [(c, found.names, row) for c, row in zip(found.classes, found.values, strict=True)]


def _print(one: dict[str, Any]) -> None:
    shares = ", ".join(f"{label} {share:.1%}" for label, share in one["probabilities"].items())
    out.print(_name(one, one["text"]), markup=False)
    out.print(f"predicted {one['predicted']} ({shares})", markup=False)
    moved = [[item["name"], f"{item['contribution']:+.3f}"] for item in one["contributions"]]
    title = f"What moves the score of {one['class']} (occlusion)"
    out.print(table(title, ["word or feature", "contribution"], moved))
    nearest = [
        [_name(near, _excerpt(near["text"])), near["label"], f"{near['similarity']:.3f}"]
        for near in one["nearest"]
    ]
    if nearest:
        title = "Nearest training rows in the learned space"
        out.print(table(title, ["row", "class", "similarity"], nearest))


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
