"""A model as it is served: what it takes, as a schema, and what it says, ready for JSON."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from platform import python_version
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import sklearn
import torch
from numpy.typing import NDArray

from setconv._version import __version__
from setconv.decisions.rule import FittedDecision, Predictions
from setconv.errors import ParameterError
from setconv.explain import explain_rows, name_features, unit_blocks, usual_values
from setconv.messages import shown_day
from setconv.persistence import checksum, version_of
from setconv.pipelines import load
from setconv.serve.forms import Schema, array_of, record, text

LARGEST = 3.4e38  # of float32
Answer = dict[str, Any]


class TrainingRows(NamedTuple):
    """Training rows, among which the nearest are sought.

    Attributes
    ----------
    X : list of str, or array of shape (n_rows, n_features)
        As the classifier inside takes them.
    shown : list of dict
        What is told of each: its number, its text or its values by column, and its label.
    """

    X: Any
    shown: list[Answer]


@dataclass(frozen=True, kw_only=True)
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
        From a fitted model to its training rows.
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
    train: Callable[[Any], TrainingRows] | None = None


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
    row : mapping
        The schema of a row.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        while True:
            state = version_of(folder)
            self.model = load(folder, device=settings.device)
            self.named = {"name": folder.absolute().name, "version": checksum(folder)}
            if state == version_of(folder):
                break  # else another was moved into its place: which of them was read?
        self._settings = settings
        inside = getattr(self.model, "classifier_", self.model)
        self._inside = copy_of(inside)
        self._encoder = getattr(self.model, "encoder_", None)
        self.takes: str = getattr(self.model, "takes", "rows")
        if hasattr(self._encoder, "cache"):
            self._encoder.cache = False  # texts of clients are not kept
        self.classes = self.model.classes_.tolist()
        self.keys = [str(label) for label in self.classes]
        self._names = None
        if self.takes != "texts":
            named = self._encoder and self._encoder.get_feature_names_out()
            self._names = name_features(inside, None, inside.n_features_in_, named)
        self.columns = self._columns()
        vars(self._inside).pop("feature_names_in_", None)  # rows come to it as arrays
        self.row = self._row_schema()
        self._near: list[Answer] = []
        self._known: dict[str, Any] = {}
        if settings.train is not None:
            rows = settings.train(self.model)
            self._near, blocks = rows.shown, list(unit_blocks(self._asked, rows.X))
            usual = None if self.takes == "texts" else np.median(rows.X, axis=0)
            self._known = {"blocks": blocks, "usual": usual}
        self.predict([self.example()])  # what cannot predict is not to replace what can

    @property
    def _asked(self) -> Any:
        """What rows are given to, encoded if they are of a table."""
        return self.model if self.takes == "texts" else self._inside

    @property
    def _decision(self) -> FittedDecision:
        found: FittedDecision = self._inside._decision
        return found

    # ------------------------------------------------------------------------- what it takes

    @property
    def text_column(self) -> str | None:
        """What the column of the texts is called; None if the model takes no texts."""
        return (self.model.source_ or {}).get("text", "text") if self.takes == "texts" else None

    def _columns(self) -> list[Answer] | None:
        if self.takes == "rows of a table":
            return [_column(**one) for one in self._encoder.describe()[0]["columns"]]
        names = getattr(self._inside, "feature_names_in_", None)
        if self.takes == "texts" or names is None:
            return None
        usual = zip(map(str, names), usual_values(self._inside).tolist(), strict=True)
        return [_column(name, "number", value, gaps=False) for name, value in usual]

    def _row_schema(self) -> Schema:
        longest, width = self._settings.text_length, self._inside.n_features_in_
        if self.takes == "texts":
            words = f"a text of at most {longest:,} characters that is not blank"
            return text(longest, words, pattern=r"\S")
        vector = array_of(_NUMBER, width, width, f"a list of {width} numbers")
        if self.columns is None:
            return vector
        cells = {one["name"]: _cell_schema(one, longest) for one in self.columns}
        # What training left out again may be there, whatever it holds.
        names = map(str, getattr(self._encoder, "feature_names_in_", ()))
        known: dict[str, Schema] = {name: {} for name in names}
        named = record(known | cells, [*cells], "an object of values by column")
        return {"anyOf": [named, vector]} if self.takes == "rows" else named

    def example(self) -> Any:
        """Return a row that the model takes."""
        if self.takes == "texts":
            return "A text."
        if self.columns is None:
            return usual_values(self._inside).tolist()
        return {one["name"]: one["usual"] for one in self.columns}

    def _encode(self, rows: Sequence[Any]) -> Any:
        """Return rows that were checked as `_asked` takes them; none depends on the others."""
        columns = self.columns or []
        if self.takes == "texts":
            return rows
        if self.takes == "rows":
            names = [one["name"] for one in columns]
            lists = [[row[n] for n in names] if isinstance(row, dict) else row for row in rows]
            return np.array(lists, dtype=np.float64)
        table = {one["name"]: _arrow(one, [row[one["name"]] for row in rows]) for one in columns}
        return self._encoder.transform(pa.table(table), rows=range(len(rows)))

    # ------------------------------------------------------------------------- what it says

    def predict(self, rows: Sequence[Any]) -> list[Answer]:
        """Return what the model says of rows, one by one."""
        return self._told(self._asked.predictions(self._encode(rows)))

    def _told(self, found: Predictions) -> list[Answer]:
        def lists(values: NDArray[Any]) -> list[Any]:
            if values.ndim == 1:
                return values.tolist()
            return [dict(zip(self.keys, one, strict=True)) for one in values.tolist()]

        cuts = self.threshold
        if isinstance(cuts, list):
            cuts = dict(zip(self.keys, cuts, strict=True))
        columns = (found.labels, found.probabilities, found.scores, found.decision_values)
        return [
            {"label": a, "probabilities": b, "score": c, "threshold": cuts, "decision": d}
            for a, b, c, d in zip(*map(lists, columns), strict=True)
        ]

    @property
    def threshold(self) -> Any:
        """One number of two classes, else a list; None where the expected cost decides."""
        rule = self._decision.rule
        if len(self.classes) == 2:
            return float(rule.thresholds[0])
        return None if rule.objective.cost is not None else rule.thresholds.tolist()

    def explain(self, rows: Sequence[Any], class_: Any, top: int) -> list[Answer]:
        """Return what the model says of rows, and why."""
        X = self._encode(rows)
        found = explain_rows(self._asked, X, self._names, class_=class_, top=top, **self._known)
        said = self._told(self._asked.predictions(X))
        return [
            {
                "prediction": prediction,
                "class": one.class_,
                "method": "occlusion",
                "contributions": [{"name": n, "contribution": by} for n, by in one.contributions],
                "nearest": [self._near[row] | {"similarity": alike} for row, alike in one.nearest],
            }
            for prediction, one in zip(said, found, strict=True)
        ]

    def decide(self, stated: Mapping[str, Any]) -> Answer:
        """Return the decision that is stated, what it rests on, and what it says of rows.

        What cannot be decided so is a `ParameterError`. Nothing here changes.
        """
        decision = self._decision
        rule, prior = decision.rule, stated.get("prior")
        if not self.can_move:
            raise ParameterError("This model has no out-of-fold rows, so nothing can be decided.")
        if isinstance(prior, dict):
            labels = dict(zip(self.keys, self.classes, strict=True))
            prior = {labels[name]: share for name, share in prior.items()}
        if prior is not None:
            rule = rule.with_prior(prior)
        if "objective" in stated:
            rule = rule.with_objective(stated["objective"])
        moved, cut = decision, stated.get("threshold")
        if rule is not decision.rule:
            moved = decision.moved(rule)
        other = copy.copy(self)
        other._inside = copy_of(self._inside)
        other._inside._decision = moved if cut is None else moved.cut_at(cut)
        if self.takes == "texts":
            other.model = copy.copy(self.model)
            other.model.classifier_ = other._inside
        told = other.told_decision()
        if cut is not None:
            judged = f"judged on {told['threshold_basis']}"
            told |= {"objective": None, "threshold_basis": f"stated, not chosen; {judged}"}
        rows = stated.get("rows")
        return told if rows is None else told | {"predictions": other.predict(rows)}

    def told_decision(self) -> Answer:
        """Return how the model decides, and how good that is."""
        decision, objective = self._decision, self._decision.rule.objective
        prior = decision.rule.prior
        kinds = {"paper": None, "cost": objective.cost}
        return {
            "objective": kinds.get(objective.kind, str(objective)),
            "threshold": self.threshold,
            "threshold_basis": decision.basis,
            "prior": None if prior is None else dict(zip(self.keys, prior.tolist(), strict=True)),
            "report": None if decision.source == "none" else decision.report.to_dict(),
            "source": decision.source,
        }

    @property
    def can_move(self) -> bool:
        """Whether there are out-of-fold rows to choose another decision on."""
        return len(self._decision.rule.evidence) > 0

    def card(self) -> Answer:
        """Return what there is to know of the model and its service."""
        told = self.told_decision()
        limits = ("rows", "body_bytes", "text_length", "seconds")
        libraries = {"torch": torch, "scikit-learn": sklearn, "numpy": np}
        return {
            **self.named,
            "kind": type(self.model).__name__,
            "takes": self.takes,
            "classes": self.classes,
            "class_counts": self.model.class_counts_.tolist(),
            "positive": self.classes[self._decision.rule.grounds.positive],
            **told,
            "report_source": told.pop("source"),
            "n_features": self._inside.n_features_in_,
            "columns": self.columns,
            "notes": [*getattr(self._encoder, "notes_", []), *self._decision.notes],
            "versions": {
                "setconv": __version__,
                **{name: str(library.__version__) for name, library in libraries.items()},
                "python": python_version(),
            },
            "limits": {name: getattr(self._settings, name) for name in limits},
            "has_training_rows": bool(self._near),
            "can_move": self.can_move,
        }


def copy_of(classifier: Any) -> Any:
    """Return a classifier whose decision can be moved while the other one stays."""
    other = object.__new__(type(classifier))  # not by `copy`, which makes a new network
    vars(other).update(vars(classifier))
    return other


_NUMBER: Schema = {
    "type": ["number"],
    "minimum": -LARGEST,
    "maximum": LARGEST,
    "description": f"a number from {-LARGEST:g} to {LARGEST:g}",
}
_DAY = (
    r"([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    r"|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])"
    r"|([02468][048]|[13579][26])00)-02-29)"
)
_TIME = r"([ T]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?)?"


def _column(
    name: str,
    kind: str,
    median: float | None = None,
    *,
    gaps: bool = True,
    categories: Sequence[str] | None = None,
    width: int | None = None,
    indicator: bool = False,  # noqa: ARG001 -- whether training had gaps: they are filled anyway
) -> Answer:
    """Return what is told of a column; what is usual there fills a form."""
    usual: Any = median
    if categories is not None:
        usual = categories[0]
    elif width is not None:
        usual, gaps = [0.0] * width, False
    elif kind == "boolean":
        usual = median is not None and median >= 0.5
    elif kind == "date":
        usual = shown_day(median or 0.0)
    told = {"name": name, "kind": kind, "may_be_missing": gaps, "usual": usual}
    own = {"categories": categories, "width": width}
    return told | {key: value for key, value in own.items() if value is not None}


def _cell_schema(column: Mapping[str, Any], longest: int) -> Schema:
    """Return the schema of a value of a column."""
    kind, width = column["kind"], column.get("width")
    if kind == "vector":
        return array_of(_NUMBER, width, width, f"a list of {width} numbers")
    if kind == "date":
        found = text(40, "a date such as 2024-01-31 or 2024-01-31 18:30", f"^{_DAY}{_TIME}$")
    elif kind == "category":
        found = text(longest, f"a text of at most {longest:,} characters")
    else:
        found = {"type": ["boolean"], "description": "true or false"}
        found = _NUMBER if kind == "number" else found
    if not column["may_be_missing"]:
        return found
    words = f"{found['description']}, or null if it is missing"
    return {**found, "type": [*found["type"], "null"], "description": words}


def _arrow(column: Mapping[str, Any], values: list[Any]) -> Any:
    """Return values of a column, always as one type, so that none depends on the others."""
    kind = column["kind"]
    if kind in ("category", "date"):
        return pa.array(values, pa.large_string())
    if kind == "vector":
        numbers = pa.array(np.array(values, dtype=np.float64).ravel())
        return pa.FixedSizeListArray.from_arrays(numbers, column["width"])
    return pa.array(np.array([np.nan if one is None else one for one in values], np.float64))
