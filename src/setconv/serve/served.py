"""A model as it is served: what it takes, as a schema, and what it says, ready for JSON."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from setconv._version import __version__
from setconv.errors import ParameterError
from setconv.explain import explain_rows, name_features, unit_blocks, usual_values
from setconv.messages import shown_day
from setconv.persistence import checksum, version_of
from setconv.pipelines import load
from setconv.serve.forms import Schema, array_of, record, text

LARGEST = 3.4e38  # of float32
Answer = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """How a model is served.

    Attributes
    ----------
    rows, body_bytes, text_length : int
        The most of a request.
    seconds : float
        After which a request is given up, and a body that has not come.
    waiting : int
        Rows that may wait to be predicted.
    connections : int
    token : str or None
        What requests have to bear; None: nothing.
    log_texts : bool
        Whether the access log has what requests hold.
    root_path : str
        Under which a proxy has the service.
    device : str
    train : callable or None
        From a fitted model to its training rows, encoded, and what is told of each.
    """

    rows: int = 1000
    body_bytes: int = 4_000_000
    text_length: int = 100_000
    seconds: float = 30.0
    waiting: int = 4096
    connections: int = 1024
    token: str | None = None
    log_texts: bool = False
    root_path: str = ""
    device: str = "auto"
    train: Callable[[Any], tuple[Any, list[Answer]]] | None = None


class Served:
    """A model of one version; it never changes, a reload makes another one.

    Parameters
    ----------
    folder : Path
    settings : Settings

    Attributes
    ----------
    named : dict
        The model's name and version.
    keys : list of str
        The classes as names.
    columns : list of dict or None
        What a row has by name; None of texts, and of vectors without names.
    text_column : str or None
        What the column of the texts is called; None if the model takes no texts.
    row : mapping
        The schema of a row.
    example : object
        A row.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        while True:
            state = version_of(folder)
            self._model: Any = load(folder, device=settings.device)
            self.named = {"name": folder.absolute().name, "version": checksum(folder)}
            if state == version_of(folder):
                break  # else another was moved into its place: which of them was read?
        model, self._settings = self._model, settings
        self.takes: str = getattr(model, "takes", "rows")
        self._inside = _copy_of(getattr(model, "classifier_", model))
        self._encoder: Any = getattr(model, "encoder_", None)
        self.classes = model.classes_.tolist()
        self.keys = [str(label) for label in self.classes]
        self.text_column: str | None = None
        self.columns: list[Answer] | None = None
        self._names: Sequence[str] | None = None
        if self.takes == "texts":
            vars(self._encoder)["cache"] = False  # texts of clients are not kept
            self.text_column = name = (model.source_ or {}).get("text", "text")
            words = f"a text of at most {settings.text_length:,} characters that is not blank"
            plain, self.example = text(settings.text_length, words, _NOT_BLANK), "A text."
            named = record({name: plain}, [name], words)
            self.row: Schema = {"anyOf": [named, plain], "description": words}
        else:
            self.row, self.example = self._read_columns()
        self._asked = model if self.takes == "texts" else self._inside
        self._near: list[Answer] = []
        self._known: dict[str, Any] = {}
        if settings.train is not None:
            X, self._near = settings.train(model)
            usual = None if self.takes == "texts" else np.median(X, axis=0)
            self._known = {"usual": usual, "blocks": list(unit_blocks(self._asked, X))}
        self.predict([self.example])  # what cannot predict is not to replace what can

    def _read_columns(self) -> tuple[Schema, Any]:
        """Find out what a row of numbers or of a table has; return its schema, and an example."""
        inside, width = self._inside, self._inside.n_features_in_
        known, usual = getattr(inside, "feature_names_in_", None), usual_values(inside).tolist()
        described: list[Answer] = []
        if self._encoder is not None:
            known = self._encoder.get_feature_names_out()
            described = self._encoder.describe()[0]["columns"]
        elif known is not None:
            pairs = zip(map(str, known), usual, strict=True)
            described = [
                {"name": n, "kind": "number", "median": m, "gaps": False} for n, m in pairs
            ]
        self._names = name_features(inside, None, width, known)
        vars(inside).pop("feature_names_in_", None)  # rows come to it as arrays
        vector = array_of(NUMBER, width, width, f"a list of {width} numbers")
        if not described:
            return vector, usual
        # What training left out again may be there, whatever it holds.
        names = map(str, getattr(self._encoder, "feature_names_in_", ()))
        cells: dict[str, Schema] = {name: {} for name in names}
        self.columns = []
        for one in described:
            told, cells[one["name"]] = _column(self._settings.text_length, **one)
            self.columns.append(told)
        needed = {one["name"]: one["usual"] for one in self.columns}
        row = record(cells, [*needed], "an object of values by column")
        either = {"anyOf": [row, vector], "description": row["description"]}
        return row if self._encoder else either, needed

    def _encode(self, rows: Sequence[Any]) -> Any:
        """Return rows that were checked as `_asked` takes them; none depends on the others."""
        columns = self.columns or []
        if self.takes == "texts":
            return [row[self.text_column] if isinstance(row, dict) else row for row in rows]
        if self._encoder is None:
            names = [one["name"] for one in columns]
            lists = [[row[n] for n in names] if isinstance(row, dict) else row for row in rows]
            return np.array(lists, dtype=np.float64)
        table = {one["name"]: _arrow(one, [row[one["name"]] for row in rows]) for one in columns}
        return self._encoder.transform(pa.table(table), rows=range(len(rows)))

    def predict(self, rows: Sequence[Any]) -> list[Answer]:
        """Return what the model says of rows, one by one."""
        X = self._encode(rows)
        if self.takes == "texts":
            X = self._model.encode(X)
        # Past the checks of `predictions`: the rows were checked.
        found = self._inside._decision.rule.predictions(self._inside._model.scores(X))
        cuts = {"threshold": self._by_class(self._threshold())}
        said = {"label": found.labels, "probabilities": found.probabilities}
        said |= {"score": found.scores, "decision": found.decision_values}
        answers = zip(*(one.tolist() for one in said.values()), strict=True)
        return [dict(zip(said, map(self._by_class, one), strict=True)) | cuts for one in answers]

    def _by_class(self, values: Any) -> Any:
        return dict(zip(self.keys, values, strict=True)) if isinstance(values, list) else values

    def _threshold(self) -> Any:
        """Return one number of two classes, else a list; None where the expected cost decides."""
        rule = self._inside._decision.rule
        if len(self.classes) == 2:
            return float(rule.thresholds[0])
        return None if rule.objective.cost is not None else rule.thresholds.tolist()

    def explain(self, rows: Sequence[Any], class_: Any, top: int) -> list[Answer]:
        """Return what the model says of rows, and why."""
        given: dict[str, Any] = {"class_": class_, "top": top, **self._known}
        found = explain_rows(self._asked, self._encode(rows), self._names, **given)
        return [
            {
                "prediction": prediction,
                "class": one.class_,
                "method": "occlusion",
                "contributions": [{"name": n, "contribution": by} for n, by in one.contributions],
                "nearest": [self._near[row] | {"similarity": alike} for row, alike in one.nearest],
            }
            for prediction, one in zip(self.predict(rows), found, strict=True)
        ]

    def decide(self, stated: Mapping[str, Any]) -> Answer:
        """Return the decision that is stated, what it rests on, and what it says of rows.

        What cannot be decided so is a `ParameterError`. Nothing here changes.
        """
        decision, prior, cut = self._inside._decision, stated.get("prior"), stated.get("threshold")
        rule = decision.rule
        if not len(rule.evidence):
            raise ParameterError("This model has no out-of-fold rows, so nothing can be decided.")
        if isinstance(prior, dict):
            prior = {self.classes[self.keys.index(name)]: share for name, share in prior.items()}
        if prior is not None:
            rule = rule.with_prior(prior)
        if "objective" in stated:
            rule = rule.with_objective(stated["objective"])
        if rule is not decision.rule:
            decision = decision.moved(rule)
        other = copy.copy(self)
        other._inside = _copy_of(self._inside)
        other._inside._decision = decision if cut is None else decision.cut_at(cut)
        told, rows = other._decision_told(), stated.get("rows")
        if cut is not None:
            basis = f"stated, not chosen; judged on {told['threshold_basis']}"
            told |= {"objective": None, "threshold_basis": basis}
        return told if rows is None else told | {"predictions": other.predict(rows)}

    def _decision_told(self) -> Answer:
        decision = self._inside._decision
        objective, prior = decision.rule.objective, decision.rule.prior
        plain = {"paper": None, "cost": objective.cost}
        return {
            "objective": plain.get(objective.kind, str(objective)),
            "threshold": self._threshold(),
            "threshold_basis": decision.basis,
            "prior": None if prior is None else self._by_class(prior.tolist()),
            "report": None if decision.source == "none" else decision.report.to_dict(),
            "source": decision.source,
        }

    def card(self) -> Answer:
        """Return what there is to know of the model and its service."""
        told, rule = self._decision_told(), self._inside._decision.rule
        limits = ("rows", "body_bytes", "text_length", "seconds")
        return {
            **self.named,
            "kind": type(self._model).__name__,
            "takes": self.takes,
            "classes": self.classes,
            "class_counts": self._model.class_counts_.tolist(),
            "positive": self.classes[rule.grounds.positive],
            "report_source": told.pop("source"),
            **told,
            "n_features": self._inside.n_features_in_,
            "columns": self.columns,
            "notes": [*getattr(self._encoder, "notes_", []), *self._inside._decision.notes],
            "versions": {"setconv": __version__},
            "limits": {name: getattr(self._settings, name) for name in limits},
            "has_training_rows": bool(self._near),
            "can_move": len(rule.evidence) > 0,
        }


def _copy_of(classifier: Any) -> Any:
    """Return a classifier whose decision can be moved while the other one stays."""
    other = object.__new__(type(classifier))  # not by `copy`, which makes a new network
    vars(other).update(vars(classifier))
    return other


NUMBER: Schema = {
    "type": ["number"],
    "minimum": -LARGEST,
    "maximum": LARGEST,
    "description": f"a number from {-LARGEST:g} to {LARGEST:g}",
}
# What Python and JavaScript both take for more than white space.
_NOT_BLANK = r"[^\s\u001c-\u001f\u0085\ufeff]"


def _column(longest: int, *, gaps: bool = True, **of: Any) -> tuple[Answer, Schema]:
    """Return what is told of a column, such as what is usual there, and what its values are."""
    told, kind, cell = {"name": of["name"], "kind": of["kind"]}, of["kind"], NUMBER
    usual: Any = of.get("median")
    if kind == "boolean":
        cell, usual = {"type": ["boolean"], "description": "true or false"}, usual >= 0.5
    elif kind == "date":
        cell = {**text(40, "a date such as 2024-01-31 or 2024-01-31 18:30"), "format": "date"}
        usual = shown_day(usual)
    elif kind == "category":
        cell, usual = (
            text(longest, f"a text of at most {longest:,} characters"),
            of["categories"][0],
        )
        told["categories"] = of["categories"]
    elif kind == "vector":
        told["width"] = width = of["width"]
        cell = array_of(NUMBER, width, width, f"a list of {width} numbers")
        usual, gaps = [0.0] * width, False
    if gaps:
        words = f"{cell['description']}, or null if it is missing"
        cell = {**cell, "type": [*cell["type"], "null"], "description": words}
    return told | {"may_be_missing": gaps, "usual": usual}, cell


def _arrow(column: Mapping[str, Any], values: list[Any]) -> Any:
    """Return values of a column, always as one type, so that none depends on the others."""
    if column["kind"] in ("category", "date"):
        return pa.array(values, pa.large_string())
    # None becomes NaN, which the encoder takes for missing.
    numbers = pa.array(np.array(values, dtype=np.float64).ravel())
    is_vector = column["kind"] == "vector"
    return pa.FixedSizeListArray.from_arrays(numbers, column["width"]) if is_vector else numbers
