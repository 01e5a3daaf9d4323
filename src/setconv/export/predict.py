"""Predict with an exported setconv model: needs numpy and onnxruntime, and tokenizers for texts.

As a program: ``python predict.py rows.csv > answers.csv``, or rows.jsonl. As a module:
``Model().predict(rows)``, where rows are texts, records by column name, or a matrix of numbers.
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
    "date": r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?",
}
DAY = 86_400_000_000  # microseconds
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
        if not len(rows):
            raise ValueError("There are no rows.")
        found = []
        for start in range(0, len(rows), BLOCK):
            X = self.encode(rows[start : start + BLOCK], start + 1)
            found.append(self._head.run(OUTPUTS, {"X": X}))
            _refuse(~np.isfinite(found[-1][2]), start + 1, "has numbers too large for the model")
        return {name: np.concatenate([one[k] for one in found]) for k, name in enumerate(OUTPUTS)}

    def encode(self, rows: Any, first: int = 1) -> Any:
        """Return rows as the graph takes them; messages number them from ``first`` on."""
        if self.about["takes"] == "texts":
            return self._embed(rows, first)
        if isinstance(rows[0], dict):
            names = list(dict.fromkeys(name for row in rows for name in row))
            columns = self.about["columns"] or [{"name": one, "kind": "number"} for one in names]
            lacking = [one["name"] for one in columns if one["name"] not in names]
            if lacking:
                raise ValueError(f"There is no column {lacking[0]!r} among {names}.")
            parts = (
                [cells(row.get(one["name"]), one, k) for one in columns]
                for k, row in enumerate(rows, first)
            )
            rows = [np.concatenate(one) for one in parts]
        X = np.asarray(rows, dtype=np.float64)
        if X.shape[1:] != (self.about["n_features"],):
            raise ValueError(f"Rows need {self.about['n_features']} columns, not {X.shape[1:]}.")
        with np.errstate(over="ignore"):
            wrong = ~np.isfinite(X.astype(self.about["dtype"]))
        _refuse(wrong, first, "has what is no finite number, or too large a one")
        return X

    def _embed(self, texts: Any, first: int) -> Any:
        limit, name = 64 * self.about["max_length"], self.about["text"]
        texts = [one.get(name) if isinstance(one, dict) else one for one in texts]
        wrong = [not isinstance(one, str) or not one.strip() for one in texts]
        _refuse(np.array(wrong), first, f"has no text (the column is {name!r})")
        whole = (one.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for one in texts)
        texts = [one if len(one) <= limit else " ".join(one.split())[:limit] for one in whole]
        tokens = [one.ids or [self.about["unknown"]] for one in self._tokenizer.encode_batch(texts)]
        lengths = np.array([len(one) for one in tokens])
        X = np.empty((len(tokens), self.about["n_features"]))
        for alike in (np.flatnonzero(lengths == one) for one in np.unique(lengths)):
            for some in np.array_split(alike, -(-len(alike) // 32)):  # a batch needs no padding
                ids = np.array([tokens[row] for row in some], dtype=np.int64)
                given = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
                X[some] = self._encoder.run(None, given)[0]
        return X


def _refuse(wrong: Any, first: int, why: str) -> None:
    rows = np.flatnonzero(wrong.reshape(len(wrong), -1).any(axis=1))
    if len(rows):
        raise ValueError(f"Row {first + rows[0]} {why}.")


def cells(value: Any, column: dict[str, Any], row: int) -> Any:
    """Return the numbers that a value becomes."""
    kind, extra = column["kind"], int(column.get("indicator", False))
    try:
        if kind == "vector":
            return np.asarray(value, dtype=np.float64).reshape(column["width"])
        if kind == "category":
            known = column["categories"]
            text = value if isinstance(value, str) else json.dumps(value, default=str)
            missing = text.strip().lower() in MISSING
            place = known.index(text) if text in known and not missing else len(known)
            return np.eye(len(known) + 1 + extra)[place + (missing and extra)]
        number = number_of(value, kind)
        return [column["median"], *[1] * extra] if np.isnan(number) else [number, *[0] * extra]
    except (ArithmeticError, KeyError, TypeError, ValueError):
        where = f"The column {column['name']!r} has {str(value)[:60]!r} in row {row}"
        raise ValueError(f"{where}, which is no {kind}.") from None


def number_of(value: Any, kind: str) -> float:
    """Return a number, truth value or date as a number; NaN where it is missing."""
    text = str(value).strip()
    if value is None or text.lower() in MISSING:
        return np.nan
    if not isinstance(value, str) and kind != "date":
        return float(value)
    if not re.fullmatch(FORMS[kind], text, re.ASCII):
        raise ValueError
    if kind == "date":
        return float(np.datetime64(text, "us").astype(np.int64)) / DAY
    return float(text) if kind == "number" else float(text.lower() in ("true", "1"))


def read(path: str) -> list[Any]:
    """Return the rows of a file of JSON lines, or of CSV."""
    with Path(path).open(encoding="utf-8-sig", newline="") as file:
        if path.endswith((".jsonl", ".ndjson")):
            found = json.loads(f"[{','.join(line for line in file if line.strip())}]")
            if not all(isinstance(one, dict) for one in found):
                raise ValueError(f"{path}: each line must be one object by column name.")
            names = {name: None for row in found for name in row}
            return [names | row for row in found]
        csv.field_size_limit(1 << 30)
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
    except (ValueError, OSError, RecursionError, csv.Error) as error:
        sys.exit(f"error: {error}")
    classes, writer = model.about["classes"], csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["predicted_label", *(f"probability_{one}" for one in classes)])
    for label, shares in zip(found["label"], found["probabilities"].tolist(), strict=True):
        writer.writerow([classes[label], *shares])
