"""The methods of the study, each as its users would really run it; all on one thread.

Boosted trees see a third of the columns a tree and 31 or 63 bins on text, and ensembles have 100
trees there (the default of most), 200 elsewhere: 384 dense columns cost minutes otherwise, and on
SemEval sampled columns scored no worse than all, and leaves of 5 rows better than of one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray
from sklearn.ensemble import (
    AdaBoostClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from benchmarks.quality.wrappers import (
    Calibrated,
    PositiveWeighted,
    QuantileCodes,
    Retried,
    Searched,
)
from setconv.presets import PAPER, REFERENCE

Factory = Callable[[int], Any]

OURS = "SetConv"
PRESETS = {"SetConv, PAPER": PAPER, "SetConv, REFERENCE": REFERENCE}
CALIBRATED = {"logistic, sigmoid": "sigmoid", "logistic, isotonic": "isotonic"}

# Seconds of a cell on text with its five folds, roughly: long cells go first.
COST = {
    "SetConv, REFERENCE": 300.0,
    "SetConv, PAPER": 60.0,
    "random forest": 30.0,
    OURS: 25.0,
    "EasyEnsemble": 25.0,
    "balanced random forest": 20.0,
    "histogram boosting": 15.0,
    "RBF SVM": 12.0,
    "XGBoost": 11.0,
    "plain MLP": 10.0,
}

_C = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)


def peers(wide: bool = False) -> dict[str, Factory]:
    """Return a factory for each peer; ``wide`` is for data with hundreds of columns."""
    return {
        "logistic regression": _logistic,
        "linear SVM": lambda seed: _linear_svm(seed, wide),
        "RBF SVM": lambda _: make_pipeline(StandardScaler(), SVC(class_weight="balanced")),
        "LightGBM": lambda seed: _lightgbm(seed, wide),
        "XGBoost": lambda seed: _xgboost(seed, wide),
        "histogram boosting": lambda seed: _histogram(seed, wide),
        "random forest": lambda seed: _forest(seed, wide),
        "balanced random forest": lambda seed: _balanced_forest(seed, wide),
        "EasyEnsemble": lambda seed: _easy_ensemble(seed, wide),
        "RUSBoost": lambda seed: _rusboost(seed, wide),
        "SMOTE + logistic": _smote,
        "plain MLP": _mlp,
    }


def presets() -> dict[str, Factory]:
    """Return the paper's settings and those of the authors' code."""
    return {name: _preset(values) for name, values in PRESETS.items()}


def calibrated() -> dict[str, Factory]:
    """Return logistic regression without weights, calibrated: judged by its probabilities alone."""
    return {name: _calibrated(method) for name, method in CALIBRATED.items()}


def methods(wide: bool = False) -> dict[str, Factory]:
    """Return every method of the study."""
    return {OURS: _setconv, **peers(wide), **presets(), **calibrated()}


def _setconv(seed: int) -> Any:
    return _preset({})(seed)


def _preset(values: dict[str, Any]) -> Factory:
    def build(seed: int) -> Any:
        from setconv import SetConvClassifier

        return SetConvClassifier(**values, random_state=seed, progress=False)

    return build


def _logistic(seed: int) -> Searched:
    model = LogisticRegression(class_weight="balanced", max_iter=1000)
    return _searched(model, "logisticregression__C", _C, seed)


def _calibrated(method: str) -> Factory:
    def build(seed: int) -> Calibrated:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        grid = {"logisticregression__C": _C}
        return Calibrated(Searched(model, grid, "neg_log_loss", seed), method, seed)

    return build


def _linear_svm(seed: int, wide: bool) -> Searched:
    model = LinearSVC(class_weight="balanced", tol=1e-3, random_state=seed)
    grid = (1e-4, 1e-3, 1e-2) if wide else (1e-3, 1e-2, 1e-1, 1.0)
    return _searched(model, "linearsvc__C", grid, seed)


def _searched(model: Any, name: str, values: tuple[float, ...], seed: int) -> Searched:
    return Searched(make_pipeline(StandardScaler(), model), {name: values}, "roc_auc", seed)


def _lightgbm(seed: int, wide: bool) -> Any:
    from lightgbm import LGBMClassifier

    width = {"n_estimators": 100, "colsample_bytree": 0.3, "max_bin": 63} if wide else {}
    settings = {"n_estimators": 200, "class_weight": "balanced", "n_jobs": 1, "verbose": -1}
    return LGBMClassifier(**{**settings, **width}, random_state=seed)


def _xgboost(seed: int, wide: bool) -> Any:
    from xgboost import XGBClassifier

    width = {"n_estimators": 100, "colsample_bytree": 0.3, "max_bin": 63} if wide else {}
    settings = {"n_estimators": 200, "tree_method": "hist", "n_jobs": 1}
    return PositiveWeighted(XGBClassifier(**{**settings, **width}, random_state=seed))


def _histogram(seed: int, wide: bool) -> Any:
    # With weights, the model's own binning takes longer than its trees; it leaves columns alone
    # that have few values already.
    model = HistGradientBoostingClassifier(class_weight="balanced", random_state=seed)
    return make_pipeline(QuantileCodes(31 if wide else 255), model)


def _forest(seed: int, wide: bool) -> RandomForestClassifier:
    return RandomForestClassifier(
        100 if wide else 200,
        class_weight="balanced_subsample",
        min_samples_leaf=5 if wide else 1,
        random_state=seed,
    )


def _balanced_forest(seed: int, wide: bool) -> Any:
    from imblearn.ensemble import BalancedRandomForestClassifier

    return BalancedRandomForestClassifier(
        100 if wide else 200,
        sampling_strategy="all",
        replacement=True,
        bootstrap=False,
        random_state=seed,
    )


def _easy_ensemble(seed: int, wide: bool) -> Any:
    from imblearn.ensemble import EasyEnsembleClassifier

    stump = DecisionTreeClassifier(max_depth=1, max_features="sqrt" if wide else None)
    return EasyEnsembleClassifier(10, AdaBoostClassifier(stump), random_state=seed)


def _rusboost(seed: int, wide: bool) -> Any:
    from imblearn.ensemble import RUSBoostClassifier

    # The default, stumps at a learning rate of 1, gives up after a few rounds on many sets.
    tree = DecisionTreeClassifier(max_depth=8, max_features="sqrt" if wide else None)
    model = RUSBoostClassifier(tree, n_estimators=50 if wide else 100, learning_rate=0.1)
    return Retried(model, seed)


def _smote(seed: int) -> Searched:
    from imblearn import FunctionSampler
    from imblearn.pipeline import make_pipeline as make_sampling_pipeline

    model = make_sampling_pipeline(
        StandardScaler(),
        FunctionSampler(func=_oversampled, kw_args={"seed": seed}),
        LogisticRegression(max_iter=1000),
    )
    return Searched(model, {"logisticregression__C": _C}, "roc_auc", seed)


def _oversampled(X: NDArray, y: NDArray, seed: int) -> tuple[NDArray, NDArray]:
    """Return rows after SMOTE with five neighbours, or with as many as there are."""
    from imblearn.over_sampling import SMOTE

    neighbours = min(5, int(y.sum()) - 1)
    return (
        SMOTE(k_neighbors=neighbours, random_state=seed).fit_resample(X, y)
        if neighbours
        else (X, y)
    )


def _mlp(seed: int) -> Any:
    from benchmarks.quality.mlp import BalancedMLP

    return BalancedMLP(seed=seed)


def quiet() -> None:
    """Silence what the peers say about bins that are empty and searches that end early."""
    for category in (UserWarning, FutureWarning, RuntimeWarning):
        warnings.simplefilter("ignore", category)
