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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, LabelError, MissingDependencyError, ParameterError
from setconv.experiment.data import Prepared, Rows, rows_of, with_encoder
from setconv.experiment.splits import Split, count_splits, make_split, seed_of, thin
from setconv.experiment.store import Cell
from setconv.experiment.study import (
    METRICS,
    DataSpec,
    MethodSpec,
    Probe,
    SearchRule,
    Study,
    known_name,
)
from setconv.messages import needed
from setconv.metrics.report import report
from setconv.metrics.scores import scorers

_FORMAT = 1  # changes when the same study would give other figures
_OVERALL = ("accuracy", "balanced_accuracy", "macro_f1", "g_mean", "mcc")
_POST_SIZE = "post-training size"
_BALANCED = "post-training size, balanced subsets"


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
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


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
        rows = rows_of(self.folder, self.prepared[data.name].digest)
        # Variants of a data set have the same splits.
        seed = seed_of(self.study.seed, data.base or data.name, cell.split)
        split = make_split(self.study.rule(data), rows.labels, rows.groups, cell.split, seed)
        if data.train_ratio is not None:
            train = thin(split.train, rows.labels, data.train_ratio, data.train_majority, seed)
            split = split._replace(train=train)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            figures, notes = self._compute(data, method, rows, split, seed)
        told = sorted({f"{one.category.__name__}: {one.message}" for one in caught})
        sizes = [len(part) for part in split]
        return figures, {"seed": seed, "rows": sizes, "warnings": told[:10], **notes}

    def _compute(
        self, data: DataSpec, method: MethodSpec, rows: Rows, split: Split, seed: int
    ) -> tuple[dict[str, float], dict[str, Any]]:
        model = _build_for(method, seed, len(np.unique(rows.labels)))
        fitted_on = training_rows(model, split)
        if rows.features.dtype == object:
            model = with_encoder(model, self.study.text_encoder(data))
        labels = rows.labels[fitted_on]
        groups = None if rows.groups is None else rows.groups[fitted_on]
        if method.search:
            model = _searched(model, method, self.study.search, labels, groups, seed)
        train, test = _take(rows, fitted_on), _take(rows, split.test)
        started = time.perf_counter()
        model.fit(train, labels, **_known_groups(model, groups))
        fitted = time.perf_counter()
        truth = rows.labels[split.test]
        reported = reported_classes(data, self.prepared[data.name].counts)
        figures = _measure(model, test, truth, reported)
        notes: dict[str, Any] = {}
        if method.search:
            notes["chosen"] = {name: str(value) for name, value in model.best_params_.items()}
        timing = {"fit_seconds": fitted - started, "test_seconds": time.perf_counter() - fitted}
        if self.study.probe.post_sizes and hasattr(model, "post_train"):
            figures |= _probe(
                model, self.study.probe, (train, labels), (test, truth), reported, seed
            )
        return figures | timing, notes


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


def _take(rows: Rows, chosen: NDArray[np.int64]) -> Any:
    taken = rows.features[chosen]
    return taken.tolist() if rows.features.dtype == object else np.asarray(taken)


def _known_groups(model: Any, groups: NDArray[Any] | None) -> dict[str, Any]:
    """Return the groups for what can keep them apart when it judges itself."""
    takes = "groups" in inspect.signature(model.fit).parameters
    return {"groups": groups} if takes and groups is not None else {}


_Builder = Callable[[int], Any]


def method_names() -> list[str]:
    """Return the names that a study can give as ``method``."""
    return [*_OWN, *_baselines(), *_USUAL]


def build_method(spec: MethodSpec, seed: int) -> Any:
    """Return an unfitted classifier with the parameters of the study.

    Parameters
    ----------
    spec : MethodSpec
    seed : int
        Given to every ``random_state`` that the parameters do not set.
    """
    made = _named(spec, seed) if spec.estimator is None else _imported(spec, seed)
    known = made.get_params(deep=True)
    for name in (*spec.parameters, *spec.search):
        known_name("parameter", name, sorted(known), spec.name)
    for name, values in spec.search.items():
        if not isinstance(values, list) or not values:
            raise ParameterError(
                f"{spec.name}: search.{name} is {values!r}: give a list of values."
            )
    return made.set_params(**{name: _from_yaml(one) for name, one in spec.parameters.items()})


def _build_for(spec: MethodSpec, seed: int, n_classes: int) -> Any:
    """Return the classifier for so many classes; methods for two alone are put one-vs-rest."""
    made = build_method(spec, seed)
    name = spec.method or spec.name
    if n_classes > 2 and name not in _QUICK:
        baseline = _baselines().get(name)
        if baseline is not None and baseline.binary_only:
            from sklearn.multiclass import OneVsRestClassifier

            return OneVsRestClassifier(made)
    return made


def _from_yaml(value: Any) -> Any:
    """Return a value of a parameter: YAML has no tuples, and estimators take them."""
    return tuple(value) if isinstance(value, list) else value


def _named(spec: MethodSpec, seed: int) -> Any:
    name = spec.method or spec.name
    if name in _QUICK:  # the baselines take a second to import
        return _QUICK[name](seed)
    return _baselines()[known_name("method", name, method_names(), spec.name)].make(seed)


def _imported(spec: MethodSpec, seed: int) -> Any:
    """Return an estimator by the import path of its class."""
    path = str(spec.estimator)
    module, _, name = path.rpartition(".")
    try:
        kind = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ParameterError(
            f"{spec.name}: estimator {path!r} cannot be imported ({error}): give module.Class."
        ) from error
    if not hasattr(kind, "get_params"):
        raise ParameterError(f"{spec.name}: {path} is no scikit-learn estimator.")
    made = kind()
    return made.set_params(random_state=seed) if "random_state" in made.get_params() else made


def _baselines() -> dict[str, Any]:
    """Return the systems of the literature by name; none where their packages are not there."""
    try:
        from setconv import baselines
    except MissingDependencyError:
        return {}
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
    with needed("The method LightGBM", "lightgbm", "experiment"):
        from lightgbm import LGBMClassifier
    return LGBMClassifier(class_weight="balanced", random_state=seed, n_jobs=1, verbose=-1)


_OWN: dict[str, _Builder] = {
    "SetConv": _setconv,
    "PAPER": partial(_setconv, preset="PAPER"),
    "REFERENCE": partial(_setconv, preset="REFERENCE"),
}
_USUAL: dict[str, _Builder] = {"logistic regression": _logistic, "LightGBM": _lightgbm}
_QUICK = _OWN | _USUAL


def _searched(
    estimator: Any,
    method: MethodSpec,
    rule: SearchRule,
    labels: NDArray[Any],
    groups: NDArray[Any] | None,
    seed: int,
) -> Any:
    """Return a grid search around the estimator, over folds that groups do not cross."""
    from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold

    fewest = int(np.unique(labels, return_counts=True)[1].min())
    folds = min(rule.folds, fewest)
    if folds < 2:
        raise DataError("a class has one training row: nothing can be chosen by cross-validation.")
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splits = list(kind(folds, shuffle=True, random_state=seed).split(labels, labels, groups))
    grid = {name: list(map(_from_yaml, choices)) for name, choices in method.search.items()}
    scoring = partial(_score, rule.metric)
    return GridSearchCV(estimator, grid, scoring=scoring, cv=splits, error_score="raise")


# All figures as they are would do too, but a search warns of those that a method has not.
def _score(metric: str, estimator: Any, X: Any, y: NDArray[Any]) -> float:
    return scorers(estimator, X, y)[metric]


def _measure(
    model: Any, rows: Any, truth: NDArray[Any], reported: Sequence[str]
) -> dict[str, float]:
    """Return every metric of each reported class against the rest, and some over all classes.

    Decisions are the classifier's own; the AUC is that of its probabilities, or of its decision
    function if it has none.
    """
    predicted = np.asarray(model.predict(rows))
    classes = list(model.classes_)
    # Test rows may have a class that was not trained on: then nobody scored it.
    unseen = sorted(set(truth.tolist()) - set(classes))
    scores, probabilities = (None, None) if unseen else _scores(model, rows, len(classes))
    found = report(
        truth, predicted, scores, probabilities=probabilities, classes=[*classes, *unseen]
    )
    figures = {
        _key(metric, label): float(getattr(found[label], metric))
        for label in reported
        for metric in METRICS
    }
    return figures | {name: float(getattr(found, name)) for name in _OVERALL}


def _scores(model: Any, rows: Any, n_classes: int) -> tuple[Any, Any]:
    """Return what rows are ranked by, and the probabilities; None where the model has none."""
    if hasattr(model, "predict_proba"):
        probabilities = np.asarray(model.predict_proba(rows))
        return probabilities, probabilities
    if not hasattr(model, "decision_function"):
        return None, None
    scores = np.asarray(model.decision_function(rows))
    return (scores if scores.ndim == 1 or scores.shape[1] == n_classes else None), None


def _key(metric: str, label: str, curve: str = "", setting: float = 0.0) -> str:
    """Return the name under which the store has a figure of a class."""
    along = f"@{curve}={setting:g}" if curve else ""
    return f"{metric}{along}:{label}"


def read_key(name: str) -> tuple[str, str, str, float] | None:
    """Return metric, class, curve and setting of such a name; None for a figure of all classes."""
    metric, colon, label = name.partition(":")
    if not colon:
        return None
    metric, _, along = metric.partition("@")
    curve, _, setting = along.partition("=")
    return metric, label, curve, float(setting or "nan")


def _probe(
    model: Any,
    probe: Probe,
    train: tuple[Any, NDArray[Any]],
    test: tuple[Any, NDArray[Any]],
    reported: Sequence[str],
    seed: int,
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
    before = copy.deepcopy(model).post_train(*train).predict(test[0]) if moving else None
    for curve in (_POST_SIZE, _BALANCED) if moving else (_POST_SIZE,):
        for size in probe.post_sizes:
            figures, places, flips = [], [], []
            for _ in range(probe.draws):
                rows = _draw(train[1], size, curve == _BALANCED, rng)
                moved = copy.deepcopy(model).post_train(train[0][rows], train[1][rows])
                figures.append(_measure(moved, *test, reported))
                if moving:
                    places.append(moved.representatives_)
                    flips.append(np.mean(moved.predict(test[0]) != before))
            found |= _along(curve, size, figures)
            if moving:
                for label in reported:
                    found[_key("movement", label, curve, size)] = _movement(np.stack(places))
                    found[_key("flips", label, curve, size)] = float(np.mean(flips))
    return found


def _along(curve: str, size: int, figures: list[dict[str, float]]) -> dict[str, float]:
    """Average over draws, under names that say where on the curve they are."""
    found = {}
    for name in figures[0]:
        parts = read_key(name)
        if parts is not None:
            mean = float(np.mean([one[name] for one in figures]))
            found[_key(parts[0], parts[1], curve, size)] = mean
    return found


def _draw(
    labels: NDArray[Any], size: int, balanced: bool, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return a random subset that has every class, at most all rows."""
    classes, codes, counts = np.unique(labels, return_inverse=True, return_counts=True)
    shares = np.full(len(classes), 1 / len(classes)) if balanced else counts / len(labels)
    wanted = np.clip(np.round(size * shares).astype(int), 1, counts)
    drawn = [
        rng.choice(np.flatnonzero(codes == code), count, replace=False)
        for code, count in enumerate(wanted)
    ]
    return np.sort(np.concatenate(drawn))


def _movement(places: NDArray[np.floating[Any]]) -> float:
    """Return the relative movement of (draws, ..., 2, features) representatives."""
    mean = places.mean(axis=0)
    squared = ((places - mean) ** 2).sum(axis=-1).mean(axis=0)  # (..., 2)
    apart = np.linalg.norm(mean[..., 1, :] - mean[..., 0, :], axis=-1)
    moved = np.sqrt(squared.mean(axis=-1))
    return float(np.mean(moved[apart > 0] / apart[apart > 0])) if (apart > 0).any() else np.nan
