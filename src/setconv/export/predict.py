"""Predict with an exported setconv model: needs numpy and onnxruntime, and tokenizers for texts.

As a program: ``python predict.py rows.csv > answers.csv``. As a module: ``Model().predict(rows)``,
where rows are texts, records by column name, or a matrix of numbers.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

MISSING = ("", "na", "n/a", "nan", "null", "?")
FORMS = {
    "number": r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?",
    "boolean": r"(?i:true|false|1|0)",
    "date": r"\d{4}-\d\d-\d\d([ T]\d\d(:\d\d(:\d\d(\.\d{1,6})?)?)?)?",
}
OUTPUTS = ("label", "probabilities", "decision")
BLOCK = 1024  # rows at a time


class Model:
    """The model of a folder, by default of the one in which this file is."""

    def __init__(self, folder: str | Path = Path(__file__).parent) -> None:
        self.about = json.loads(Path(folder, "setconv.json").read_text(encoding="utf-8"))
        self._head = onnxruntime.InferenceSession(Path(folder, "model.onnx"))
        if self.about["takes"] == "texts":
            from tokenizers import Tokenizer

            self._tokenizer = Tokenizer.from_file(str(Path(folder, "tokenizer.json")))
            self._encoder = onnxruntime.InferenceSession(Path(folder, "encoder.onnx"))

    def predict(self, rows: Any) -> dict[str, Any]:
        """Return numbers of classes as label, probabilities, and decision, of one row or more."""
        X = self.encode(rows)
        parts = [self._head.run(OUTPUTS, {"X": X[k : k + BLOCK]}) for k in range(0, len(X), BLOCK)]
        found = dict(zip(OUTPUTS, map(np.concatenate, zip(*parts, strict=True)), strict=True))
        _refuse(~np.isfinite(found["decision"]), "has numbers too large for the model")
        return found

    def encode(self, rows: Any) -> Any:
        """Return rows as the graph takes them."""
        if not len(rows):
            raise ValueError("There are no rows.")
        columns = self.about["columns"]
        if isinstance(rows[0], str):
            rows = [{columns[0]["name"]: one} for one in rows]
        if isinstance(rows[0], dict):
            columns = columns or [{"name": one, "kind": "number"} for one in rows[0]]
            numbered = enumerate(rows, 1)
            rows = [[x for one in columns for x in self._cells(row, one, k)] for k, row in numbered]
        X = np.asarray(rows, dtype=np.float64)
        if X.shape[1:] != (self.about["n_features"],):
            raise ValueError(f"Rows need {self.about['n_features']} columns, not {X.shape[1:]}.")
        largest = np.finfo(self.about["dtype"]).max
        _refuse(~(np.abs(X) <= largest), "has what is no finite number, or too large a one")
        return X

    def _cells(self, row: Any, column: dict[str, Any], number: int) -> list[Any]:
        """Return the numbers that a row's value of a column becomes."""
        name, kind, extra = column["name"], column["kind"], column.get("indicator", False)
        try:
            value = row[name]
            if kind == "text" and value.strip():
                return self._embed(value)
            if kind == "vector":
                return list(np.array(value, dtype=np.float64).reshape(column["width"]))
            text = "" if value is None else str(value)
            missing = text.strip().lower() in MISSING
            if kind == "category":
                known = column["categories"]
                place = known.index(text) if text in known else len(known) + (missing and extra)
                return list(np.eye(len(known) + 1 + extra)[place])
            found = column["median"] if missing else number_of(text.strip(), kind)
            return [float(found), float(missing)][: 1 + extra]
        except (AttributeError, KeyError, TypeError, ValueError):
            given = f"{row[name]!r:.60}" if name in row else "no such column"
            why = f"needs a {kind} in the column {name!r}, and has {given}"
            raise ValueError(f"Row {number} {why}.") from None

    def _embed(self, text: str) -> list[Any]:
        limit = 64 * self.about["max_length"]  # characters, and halves of one are replaced
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        text = text if len(text) <= limit else " ".join(text.split())[:limit]
        ids = np.array([self._tokenizer.encode(text).ids or [self.about["unknown"]]])
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        return list(self._encoder.run(None, given)[0][0])


def _refuse(wrong: Any, why: str) -> None:
    rows = np.flatnonzero(wrong.reshape(len(wrong), -1).any(axis=1))
    if len(rows):
        raise ValueError(f"Row {rows[0] + 1} {why}.")


def number_of(text: str, kind: str) -> float:
    """Return a number, truth value or date as a number."""
    if not re.fullmatch(FORMS[kind], text, re.ASCII):
        raise ValueError
    if kind == "date":
        return float(np.datetime64(text, "us").astype(float)) / 86_400_000_000  # days
    return float({"true": 1, "false": 0}.get(text.lower(), text))


def read(path: str) -> list[Any]:
    """Return the rows of a CSV file, by column name."""
    csv.field_size_limit(1 << 30)
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        head, *rows = list(filter(None, csv.reader(file, strict=True))) or [[]]
    if {len(one) for one in rows} - {len(set(head))}:
        raise ValueError(f"{path}: two columns have one name, or a row more or fewer than these.")
    return [dict(zip(head, one, strict=True)) for one in rows]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        model = Model()
        found = model.predict(read(sys.argv[1]))
    except (ValueError, OSError, csv.Error) as error:
        sys.exit(f"error: {error}")
    classes, writer = model.about["classes"], csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["predicted_label", *(f"probability_{one}" for one in classes)])
    for label, shares in zip(found["label"], found["probabilities"].tolist(), strict=True):
        writer.writerow([classes[label], *shares])
