"""The cells of a study: which there are, and what a worker does to compute one.

`plan_cells` gives each cell a version that says what it is computed from. `StudyWork`, called with
a cell in a worker process, splits the rows, builds the method, searches its hyper-parameters where
the study asks for it, fits it, measures it and probes it.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, ParameterError
from setconv.experiment.data import Prepared, rows_of, with_encoder
from setconv.experiment.splits import Split, count_splits, make_split, seed_of, thin, tie
from setconv.experiment.store import Cell
from setconv.experiment.study import METRICS, DataSpec, MethodSpec, Probe, Study, known_name
from setconv.metrics.report import Report, report
from setconv.metrics.scores import scorers
from setconv.sampling import draw_by_class

_FORMAT = 2  # changes when the same study would give other figures
_OVERALL = ("accuracy", "balanced_accuracy", "macro_f1", "g_mean", "mcc")
_POST_SIZE = "post-training size"
_BALANCED = "post-training size, balanced subsets"

_Found = tuple[dict[str, float], dict[str, Any]]  # figures, and what else is worth keeping


def plan_cells(study: Study, prepared: dict[str, Prepared], folder: Path) -> list[Cell]:
    """Return the cells, all data sets and methods of a split before those of the next.

    A study that was edited has other versions where something changed that the figures depend
    on: only these cells are computed again.
    """
    planned: list[Cell] = []
    for data in study.data:
        known = prepared[data.name]
        for label in reported_classes(data, known):
            known_name("class", label, known.counts, f"{data.name}: report")
        rows = rows_of(folder, known.digest)
        number = count_splits(study.rule(data), rows, data.name)
        for method in study.methods:
            version = _version(study, data, method, known)
            planned += [Cell(data.name, method.name, split, version) for split in range(number)]
    return sorted(planned, key=lambda cell: cell.split)


def _version(study: Study, data: DataSpec, method: MethodSpec, known: Prepared) -> str:
    rule = study.rule(data)
    parts: dict[str, Any] = {
        "format": _FORMAT,
        "rows": known.digest,
        "base": data.base or data.name,
        "report": data.report,
        "training": [data.train_ratio, data.train_majority],
        # Texts that are encoded in the cell depend on the encoder beyond their digest.
        "encoder": study.text_encoder(data),
        "seed": study.seed,
        # More repeats leave the first ones as they are.
        "split": [list(rule.parts), rule.leave_out],
        "method": [method.method or method.name, method.estimator],
        "parameters": dict(method.parameters),
        "search": [dict(method.search), asdict(study.search)] if method.search else None,
        "probe": asdict(study.probe) if study.probe.post_sizes else None,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:16]


def reported_classes(spec: DataSpec, known: Prepared) -> tuple[str, ...]:
    """Return the classes that are counted: those of the study, or all but the largest."""
    largest = max(known.counts, key=known.counts.__getitem__)
    return spec.report or tuple(label for label in known.counts if label != largest)


class _Labelled(NamedTuple):
    """Rows with their labels."""

    rows: Any
    labels: NDArray[Any]


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

    def __call__(self, cell: Cell) -> _Found:
        """Return the figures of a cell, and what else is worth keeping of it."""
        data = next(one for one in self.study.data if one.name == cell.dataset)
        method = next(one for one in self.study.methods if one.name == cell.method)
        rows = rows_of(self.folder, self.prepared[data.name].digest)
        # Variants of a data set have the same splits.
        seed = seed_of(self.study.seed, data.base or data.name, cell.split)
        split = make_split(self.study.rule(data), rows, cell.split, seed)
        if data.train_ratio is not None:
            train = thin(split.train, rows.labels, data.train_ratio, data.train_majority, seed)
            split = split._replace(train=train)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            figures, notes = self._compute(data, method, split, seed)
        told = sorted({f"{one.category.__name__}: {one.message}" for one in caught})
        sizes = [len(part) for part in split]
        return figures, {"seed": seed, "rows": sizes, "warnings": told[:10], **notes}

    def _compute(self, data: DataSpec, method: MethodSpec, split: Split, seed: int) -> _Found:
        known = self.prepared[data.name]
        rows = rows_of(self.folder, known.digest)
        texts = rows.features.dtype == object
        model = build_method(method, seed, len(known.counts))
        # Where a search finds the method's own parameters in what is put around it.
        place = "" if set(method.search) <= set(model.get_params()) else "estimator__"
        if texts:
            model = with_encoder(model, self.study.text_encoder(data))
            place = f"{model.steps[-1][0]}__{place}"
        train, test = (
            _Labelled(taken.tolist() if texts else np.asarray(taken), rows.labels[chosen])
            for chosen in split
            for taken in [rows.features[chosen]]
        )
        groups = None if rows.groups is None else rows.groups[split.train]
        if method.search:
            tied = tie(rows)
            together = None if tied is None else tied[split.train]
            grid = {
                f"{place}{name}": [_from_yaml(one) for one in values]
                for name, values in method.search.items()
            }
            model = self._searched(model, grid, train.labels, together, seed)
        # Groups are for what can keep them apart when it judges itself.
        takes_groups = "groups" in inspect.signature(model.fit).parameters
        started = time.perf_counter()
        model.fit(*train, **({"groups": groups} if takes_groups and groups is not None else {}))
        fitted = time.perf_counter()
        found = _measure(model, test)
        reported = reported_classes(data, known)
        figures = {
            figure_name(metric, label): float(getattr(found[label], metric))
            for label in reported
            for metric in METRICS
        }
        figures |= {name: float(getattr(found, name)) for name in _OVERALL}
        figures["fit_seconds"] = fitted - started
        figures["test_seconds"] = time.perf_counter() - fitted
        if self.study.probe.post_sizes and hasattr(model, "post_train"):
            figures |= _probe(model, self.study.probe, train, test, reported, seed)
        if not method.search:
            return figures, {}
        best = {name.removeprefix(place): str(one) for name, one in model.best_params_.items()}
        return figures, {"chosen": best}

    def _searched(
        self, estimator: Any, grid: dict[str, Any], labels: NDArray[Any], groups: Any, seed: int
    ) -> Any:
        """Return a grid search around the estimator, over folds that no group or copy crosses."""
        from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold

        rule = self.study.search
        folds = min(rule.folds, int(np.unique(labels, return_counts=True)[1].min()))
        if folds < 2:
            raise DataError("a class has one training row: nothing can be cross-validated.")
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        splits = list(kind(folds, shuffle=True, random_state=seed).split(labels, labels, groups))

        # All figures as they are would do too, but a search warns of those that a method has not.
        def score(*fitted_and_rows: Any) -> float:
            return scorers(*fitted_and_rows)[rule.metric]

        return GridSearchCV(estimator, grid, scoring=score, cv=splits, error_score="raise")


def method_names() -> list[str]:
    """Return the names that a study can give as ``method``."""
    return [*_OWN, *_baselines(), *_USUAL]


def build_method(spec: MethodSpec, seed: int, n_classes: int = 2) -> Any:
    """Return an unfitted classifier with the parameters of the study.

    Parameters
    ----------
    spec : MethodSpec
    seed : int
        Given to every ``random_state`` that the parameters do not set.
    n_classes : int, default=2
        For more than two, a method for two alone is put one-vs-rest.
    """
    name = spec.method or spec.name
    binary_only = False
    if spec.estimator is not None:
        made = _imported(spec, seed)
    elif name in _OWN | _USUAL:  # the baselines take a second to import
        made = (_OWN | _USUAL)[name](seed)
    else:
        baseline = _baselines()[known_name("method", name, method_names(), spec.name)]
        made, binary_only = baseline.make(seed), baseline.binary_only
    known = made.get_params(deep=True)
    for parameter in (*spec.parameters, *spec.search):
        known_name("parameter", parameter, sorted(known), spec.name)
    for parameter, values in spec.search.items():
        if not isinstance(values, list) or not values:
            told = f"{spec.name}: search.{parameter} is {values!r}: give a list of values."
            raise ParameterError(told, parameter=parameter)
    made.set_params(**{one: _from_yaml(value) for one, value in spec.parameters.items()})
    if n_classes == 2 or not binary_only:
        return made
    from sklearn.multiclass import OneVsRestClassifier

    return OneVsRestClassifier(made)


def _from_yaml(value: Any) -> Any:
    """Return a value of a parameter: YAML has no tuples, and estimators take them."""
    return tuple(value) if isinstance(value, list) else value


def _imported(spec: MethodSpec, seed: int) -> Any:
    """Return an estimator by the import path of its class."""
    module, _, name = str(spec.estimator).rpartition(".")
    try:
        made = getattr(import_module(module), name)()
        known = made.get_params()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        told = f"{spec.name}: estimator {spec.estimator!r} cannot be made ({error})."
        hint = "Give the module.Class of a scikit-learn estimator."
        raise ParameterError(told, parameter="estimator", hint=hint) from error
    return made.set_params(random_state=seed) if "random_state" in known else made


def _baselines() -> dict[str, Any]:
    """Return the systems of the literature by name."""
    from setconv import baselines

    return {one.name: one for one in baselines.all()}


def _setconv(seed: int, preset: str | None = None) -> Any:
    from setconv import presets
    from setconv.classifier import SetConvClassifier

    parameters = {} if preset is None else getattr(presets, preset)
    return SetConvClassifier(**parameters, random_state=seed, progress=False)


def _logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = LogisticRegression(class_weight="balanced", max_iter=1000, random_state=seed)
    return make_pipeline(StandardScaler(), model)


def _lightgbm(seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(class_weight="balanced", random_state=seed, n_jobs=1, verbose=-1)


_Builder = Callable[[int], Any]
_OWN: dict[str, _Builder] = {
    "SetConv": _setconv,
    "PAPER": partial(_setconv, preset="PAPER"),
    "REFERENCE": partial(_setconv, preset="REFERENCE"),
}
_USUAL: dict[str, _Builder] = {"logistic regression": _logistic, "LightGBM": _lightgbm}


def figure_name(metric: str, label: str, curve: str = "", setting: float = 0.0) -> str:
    """Return the name under which the store has a figure of a class."""
    along = f"@{curve}={setting:g}" if curve else ""
    return f"{metric}{along}:{label}"


def _measure(model: Any, test: _Labelled) -> Report:
    """Return the report of the classifier's own decisions, and of what it ranks rows by."""
    predicted = np.asarray(model.predict(test.rows))
    classes = list(model.classes_)
    # Test rows may have a class that was not trained on: then nobody scored it.
    unseen = sorted(set(test.labels.tolist()) - set(classes))
    scores, probabilities = (None, None) if unseen else _scores(model, test.rows)
    return report(
        test.labels, predicted, scores, probabilities=probabilities, classes=[*classes, *unseen]
    )


def _scores(model: Any, rows: Any) -> tuple[Any, Any]:
    """Return what rows are ranked by, and the probabilities; None where the model has none.

    Two classes are ranked by the decision function, which still tells rows apart whose
    probabilities are all 0 or 1; for more it need not rank a class against the rest.
    """
    proba = np.asarray(model.predict_proba(rows)) if hasattr(model, "predict_proba") else None
    if hasattr(model, "decision_function") and (proba is None or len(model.classes_) == 2):
        scores = np.asarray(model.decision_function(rows))
        if scores.ndim == 1 or scores.shape[1] == len(model.classes_):
            return scores, proba
    return proba, proba


def _probe(
    model: Any, probe: Probe, train: _Labelled, test: _Labelled, reported: Sequence[str], seed: int
) -> dict[str, float]:
    """Return the metrics along the sizes of the post-training subset.

    For each size, representatives are made anew from a random subset of the training rows and the
    test rows are measured; the network and the thresholds stay. With more than one draw there are
    two metrics more, once with subsets that keep the classes' shares and once with balanced ones:

    - ``movement``: how far a representative lies from the mean over the draws (root mean square),
      over the distance between the two representatives of its head, averaged over heads and
      members;
    - ``flips``: share of test rows whose predicted class is not the one with all training rows.
    """
    found: dict[str, float] = {}
    rng = np.random.default_rng(seed)
    moving = probe.draws > 1
    before = copy.deepcopy(model).post_train(*train).predict(test.rows) if moving else None
    _, codes, counts = np.unique(train.labels, return_inverse=True, return_counts=True)
    for curve in (_POST_SIZE, _BALANCED) if moving else (_POST_SIZE,):
        shares = counts / counts.sum() if curve == _POST_SIZE else 1 / len(counts)
        for size in probe.post_sizes:
            sizes = np.clip(np.round(size * shares).astype(int), 1, counts)
            drawn = [draw_by_class(codes, sizes, rng) for _ in range(probe.draws)]
            subsets = [(train.rows[rows], train.labels[rows]) for rows in drawn]
            moved = [copy.deepcopy(model).post_train(*subset) for subset in subsets]
            reports = [_measure(one, test) for one in moved]
            told: dict[str, list[Any]] = {}
            if moving:
                told["movement"] = [_movement(np.stack([one.representatives_ for one in moved]))]
                told["flips"] = [np.mean(one.predict(test.rows) != before) for one in moved]
            for label in reported:
                told |= {name: [getattr(one[label], name) for one in reports] for name in METRICS}
                for name, values in told.items():
                    found[figure_name(name, label, curve, size)] = float(np.mean(values))
    return found


def _movement(places: NDArray[np.floating[Any]]) -> float:
    """Return the relative movement of (draws, ..., 2, features) representatives."""
    mean = places.mean(axis=0)
    squared = ((places - mean) ** 2).sum(axis=-1).mean(axis=0)  # (..., 2)
    apart = np.linalg.norm(mean[..., 1, :] - mean[..., 0, :], axis=-1)
    moved = np.sqrt(squared.mean(axis=-1))
    return float(np.mean(moved[apart > 0] / apart[apart > 0])) if (apart > 0).any() else np.nan
