"""Explanations of rows as plain data, for people and for machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from setconv.errors import DataError, LabelError, ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EXCERPT = 120  # characters of a text that are shown


def select_rows(
    model: Any, data: str | None, given: list[str] | None, rows: str, **options: Any
) -> Any:
    """Return the rows to explain: texts that were given, or rows of a file."""
    from setconv.cli.columns import column_plan
    from setconv.cli.data import takes_texts
    from setconv.records import open_records

    if (data is None) == (not given):
        raise ParameterError("give a file of rows, or a text with --input")
    if given:
        if not takes_texts(model):
            raise ParameterError("--input is for models of texts: give a file of rows")
        return list(given)
    wanted = _numbers(rows)
    format_, encoding = options["file_format"], options["encoding"]
    with open_records(str(data), format=format_, encoding=encoding) as reader:
        plan = column_plan(model, reader, options["text"], "none")
        table = reader.read()
    if max(wanted) >= table.num_rows:
        raise DataError(f"{data} has {table.num_rows} rows: there is no row {max(wanted) + 1}")
    return plan.rows(table.take(wanted), 0)[0]


def training_rows(model: Any, train: str, *, encoding: str | None) -> Any:
    """Return the rows and labels of the training file."""
    from setconv.cli.data import load_rows

    return load_rows(train, model=model, skip_empty=True, encoding=encoding)


def explain_rows(
    model: Any, rows: Any, class_: str | None, known: Any, top: int
) -> list[dict[str, Any]]:
    """Return for each row its prediction, the strongest contributions and the nearest rows."""
    from setconv.cli.data import takes_texts
    from setconv.explain import nearest_rows

    label = None if class_ is None else _label(model, class_)
    said = model.predictions(rows)
    explain = _words if takes_texts(model) else _features
    explained = []
    for number, found in enumerate(explain(model, rows, label, known)):
        shares = zip(map(str, model.classes_), said.probabilities[number].tolist(), strict=True)
        order = np.argsort(-np.abs(found["values"]), kind="stable")[:top]
        explained.append(
            {
                "row": found["row"],
                "predicted": said.labels[number],
                "probabilities": dict(shares),
                "class": found["class"],
                "method": "occlusion",
                "contributions": [
                    {"name": found["names"][i], "contribution": float(found["values"][i])}
                    for i in order
                ],
                "nearest": [],
            }
        )
    if known is not None:
        nearest = nearest_rows(model, rows, known.X, top)
        for one, indices, alike in zip(
            explained, nearest.indices, nearest.similarities, strict=True
        ):
            one["nearest"] = [
                {"row": _shown(known, i), "label": known.y[i], "similarity": float(s)}
                for i, s in zip(indices.tolist(), alike.tolist(), strict=True)
            ]
    return explained


def _words(model: Any, rows: list[str], label: Any, known: Any) -> list[dict[str, Any]]:  # noqa: ARG001
    from setconv.explain import word_contributions

    found = []
    for text in rows:
        one = word_contributions(model, text, label)
        names = [text[start:end] for start, end in one.spans]
        found.append({"row": text, "class": one.class_, "names": names, "values": one.values})
    return found


def _features(model: Any, rows: Any, label: Any, known: Any) -> list[dict[str, Any]]:
    from setconv.explain import feature_contributions

    inner = getattr(model, "classifier_", model)
    encoded = model.encode(rows) if inner is not model else np.asarray(rows)
    names = model.encoder_.get_feature_names_out() if inner is not model else None
    usual = _usual(inner) if known is None else np.median(model.encode(known.X), axis=0)
    found = feature_contributions(
        inner, encoded, background=usual, class_=label, feature_names=names
    )
    return [
        {"row": f"row {number + 1}", "class": c, "names": found.names, "values": values}
        for number, (c, values) in enumerate(zip(found.classes, found.values, strict=True))
    ]


def _usual(classifier: Any) -> NDArray[np.float64]:
    """Return the usual value of each feature without the training rows: the mean anchor."""
    anchors = np.asarray(classifier.anchor_, dtype=np.float64)
    return np.asarray(anchors.reshape(-1, anchors.shape[-1]).mean(axis=0))


def _shown(known: Any, row: int) -> str:
    if known.is_text:
        text = " ".join(known.X[row].split())
        return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}..."
    return f"row {row + 1}"


def _label(model: Any, given: str) -> Any:
    known = {str(label): label for label in model.classes_.tolist()}
    if given not in known:
        raise LabelError(f"--class {given}: the model's classes are {', '.join(known)}")
    return known[given]


def _numbers(rows: str) -> list[int]:
    try:
        numbers = [int(part) - 1 for part in rows.split(",")]
    except ValueError:
        numbers = [-1]
    if min(numbers) < 0:
        raise ParameterError(f"--rows {rows}: give row numbers from 1, such as 1,5,12")
    return numbers
