"""The cells of a study, each with a version that says what it is computed from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from setconv.errors import LabelError
from setconv.experiment.protocol.computing import reported_classes
from setconv.experiment.protocol.fields import known_name
from setconv.experiment.protocol.methods import build_method
from setconv.experiment.protocol.prepared import Prepared, rows_of
from setconv.experiment.protocol.splits import count_splits
from setconv.experiment.protocol.study import DataSpec, MethodSpec, Study
from setconv.experiment.running.cells import Cell

__all__ = ["check_methods", "plan_cells"]

_FORMAT = 1  # changes when the same study would give other figures


def check_methods(study: Study) -> None:
    """Refuse a method that does not exist or lacks a parameter, before anything is computed."""
    for method in study.methods:
        build_method(method, 0)


def plan_cells(study: Study, prepared: dict[str, Prepared], folder: Path) -> list[Cell]:
    """Return the cells, all data sets and methods of a split before those of the next.

    A study that was edited has other versions where something changed that the figures depend
    on: only these cells are computed again.
    """
    planned: list[Cell] = []
    for data in study.data:
        known = prepared[data.name]
        _check_reported(data, known)
        rows = rows_of(folder, known.digest)
        number = count_splits(study.rule(data), rows.labels, rows.groups, data.name)
        for method in study.methods:
            version = _version(study, data, method, known)
            planned += [Cell(data.name, method.name, split, version) for split in range(number)]
    return sorted(planned, key=lambda cell: cell.split)


def _check_reported(data: DataSpec, known: Prepared) -> None:
    for label in reported_classes(data, known.counts):
        try:
            known_name("class", label, known.counts, f"{data.name}: report")
        except ValueError as error:
            raise LabelError(str(error)) from None


def _version(study: Study, data: DataSpec, method: MethodSpec, known: Prepared) -> str:
    parts: dict[str, Any] = {
        "format": _FORMAT,
        "rows": known.digest,
        "base": data.base or data.name,
        "report": data.report,
        "training": [data.train_ratio, data.train_majority],
        # Texts that are encoded in the cell depend on the encoder beyond their digest.
        "encoder": dict(study.encoder if data.encoder is None else data.encoder),
        "seed": study.seed,
        "split": _split(study, data),
        "method": [method.method or method.name, method.estimator],
        "parameters": dict(method.parameters),
        "search": [dict(method.search), asdict(study.search)] if method.search else None,
        "probe": asdict(study.probe) if study.probe.post_sizes else None,
    }
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _split(study: Study, data: DataSpec) -> list[Any]:
    rule = study.rule(data)
    return [list(rule.parts), rule.leave_out]  # more repeats leave the first ones as they are
