"""One cell: a method fitted on the training rows of a split and measured on its test rows."""

from __future__ import annotations

import inspect
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.experiment.protocol.encoding import with_encoder
from setconv.experiment.protocol.measuring import measure
from setconv.experiment.protocol.methods import build_for
from setconv.experiment.protocol.prepared import Prepared, Rows, rows_of
from setconv.experiment.protocol.probing import probe_model
from setconv.experiment.protocol.searching import searched
from setconv.experiment.protocol.splits import Split, make_split, seed_of, thin
from setconv.experiment.protocol.study import DataSpec, MethodSpec, Study
from setconv.experiment.running.cells import Cell

__all__ = ["StudyWork", "reported_classes", "training_rows"]


def reported_classes(spec: DataSpec, counts: dict[str, int]) -> tuple[str, ...]:
    """Return the classes that are counted: those of the study, or all but the largest."""
    if spec.report:
        return spec.report
    largest = max(counts, key=lambda label: counts[label])
    return tuple(label for label in counts if label != largest)


@dataclass(frozen=True)
class StudyWork:
    """The work of a study, as worker processes get it.

    Parameters
    ----------
    study : Study
    prepared : dict of str to Prepared
    folder : Path
        Where the prepared rows are.
    """

    study: Study
    prepared: dict[str, Prepared]
    folder: Path

    def __call__(self, cell: Cell) -> tuple[dict[str, float], dict[str, Any]]:
        """Return the figures of a cell, and what else is worth keeping of it."""
        data = next(one for one in self.study.data if one.name == cell.dataset)
        method = next(one for one in self.study.methods if one.name == cell.method)
        known = self.prepared[data.name]
        rows = rows_of(self.folder, known.digest)
        # Variants of a data set have the same splits.
        seed = seed_of(self.study.seed, data.base or data.name, cell.split)
        split = make_split(self.study.rule(data), rows.labels, rows.groups, cell.split, seed)
        train = split.train
        if data.train_ratio is not None:
            train = thin(train, rows.labels, data.train_ratio, data.train_majority, seed)
        reported = reported_classes(data, known.counts)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            figures, notes = self._measure(
                data, method, rows, split._replace(train=train), reported, seed
            )
        told = sorted({f"{one.category.__name__}: {one.message}" for one in caught})
        sizes = [len(train), len(split.validation), len(split.test)]
        return figures, {"seed": seed, "rows": sizes, "warnings": told[:10], **notes}

    def _measure(
        self,
        data: DataSpec,
        method: MethodSpec,
        rows: Rows,
        split: Split,
        reported: tuple[str, ...],
        seed: int,
    ) -> tuple[dict[str, float], dict[str, Any]]:
        estimator = build_for(method, seed, len(np.unique(rows.labels)))
        fitted_on = training_rows(estimator, split)
        if rows.features.dtype == object:
            estimator = with_encoder(estimator, data.encoder or self.study.encoder)
        labels = rows.labels[fitted_on]
        groups = None if rows.groups is None else rows.groups[fitted_on]
        model = estimator
        if method.search:
            grid = dict(method.search)
            model = searched(estimator, grid, self.study.search, labels, groups, seed)
        train, test = _take(rows, fitted_on), _take(rows, split.test)
        started = time.perf_counter()
        model.fit(train, labels, **_known_groups(model, groups))
        fitted = time.perf_counter()
        truth = rows.labels[split.test]
        figures = measure(model, test, truth, reported)
        notes: dict[str, Any] = {}
        if method.search:
            notes["chosen"] = {name: str(value) for name, value in model.best_params_.items()}
        timing = {"fit_seconds": fitted - started, "test_seconds": time.perf_counter() - fitted}
        if self.study.probe.post_sizes and hasattr(model, "post_train"):
            figures |= probe_model(
                model, self.study.probe, (train, labels), (test, truth), reported, seed
            )
        return figures | timing, notes


def _known_groups(model: Any, groups: NDArray[Any] | None) -> dict[str, Any]:
    """Return the groups for what can keep them apart when it judges itself."""
    takes = "groups" in inspect.signature(model.fit).parameters
    return {"groups": groups} if takes and groups is not None else {}


def _take(rows: Rows, chosen: NDArray[np.int64]) -> Any:
    taken = rows.features[chosen]
    return taken.tolist() if rows.features.dtype == object else np.asarray(taken)


def training_rows(estimator: Any, split: Split) -> NDArray[np.int64]:
    """Return the rows to fit on: with the validation rows for what holds rows out by itself.

    Others never see the validation rows, so that all are trained on the same number of rows.
    """
    if not len(split.validation) or not getattr(estimator, "early_stopping", False):
        return split.train
    if "validation_fraction" in estimator.get_params():
        both = len(split.train) + len(split.validation)
        estimator.set_params(validation_fraction=len(split.validation) / both)
    return np.sort(np.concatenate([split.train, split.validation]))
