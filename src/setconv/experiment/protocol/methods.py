"""The methods of a study by name: SetConv, its presets, the baselines and usual classifiers."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from setconv.errors import MissingDependencyError, ParameterError
from setconv.experiment.protocol.fields import known_name
from setconv.experiment.protocol.study import MethodSpec
from setconv.needs import needed

__all__ = ["build_for", "build_method", "method_names"]

Builder = Callable[[int], Any]


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
    made = _imported(spec)(seed) if spec.estimator is not None else _builder(spec)(seed)
    known = made.get_params(deep=True)
    for name in (*spec.parameters, *spec.search):
        known_name("parameter", name, sorted(known), spec.name)
    for name, values in spec.search.items():
        if not isinstance(values, list) or not values:
            raise ParameterError(
                f"{spec.name}: search.{name} is {values!r}: give a list of values."
            )
    # YAML has no tuples, and estimators take them where order is fixed.
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in spec.parameters.items()}
    return made.set_params(**given)


def build_for(spec: MethodSpec, seed: int, n_classes: int) -> Any:
    """Return the classifier for so many classes; methods for two alone are put one-vs-rest."""
    made = build_method(spec, seed)
    name = spec.method or spec.name
    if n_classes > 2 and name not in _QUICK and name in _binary_only():
        from sklearn.multiclass import OneVsRestClassifier

        return OneVsRestClassifier(made)
    return made


def _builder(spec: MethodSpec) -> Builder:
    name = spec.method or spec.name
    if name in _QUICK:  # the baselines take a second to import
        return _QUICK[name]
    return _baselines()[known_name("method", name, method_names(), spec.name)]


def _setconv(**parameters: Any) -> Builder:
    def build(seed: int) -> Any:
        from setconv.classifier import SetConvClassifier

        return SetConvClassifier(**parameters, random_state=seed, progress=False)

    return build


def _preset(name: str) -> Builder:
    def build(seed: int) -> Any:
        presets = import_module("setconv.presets")
        return _setconv(**getattr(presets, name))(seed)

    return build


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


def _baselines() -> dict[str, Builder]:
    try:
        from setconv import baselines
    except MissingDependencyError:
        return {}
    return {one.name: one.make for one in baselines.all()}


def _binary_only() -> set[str]:
    try:
        from setconv import baselines
    except MissingDependencyError:
        return set()
    return {one.name for one in baselines.all() if one.binary_only}


def _imported(spec: MethodSpec) -> Builder:
    """Return a class by its import path, as scikit-learn would call it."""
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

    def build(seed: int) -> Any:
        made = kind()
        return made.set_params(random_state=seed) if "random_state" in made.get_params() else made

    return build


_OWN: dict[str, Builder] = {
    "SetConv": _setconv(),
    "PAPER": _preset("PAPER"),
    "REFERENCE": _preset("REFERENCE"),
}
_USUAL: dict[str, Builder] = {"logistic regression": _logistic, "LightGBM": _lightgbm}
_QUICK = _OWN | _USUAL
