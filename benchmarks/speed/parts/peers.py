"""Against peers: whole fits and predictions of the same dense rows."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.speed.fits import Maker, compare
from benchmarks.speed.machine import THREADS
from benchmarks.speed.made import dense_split
from benchmarks.speed.processes import Alone
from setconv.classifier import SetConvClassifier, check_parameters
from setconv.fitting import settle
from setconv.preprocessing import PreparedRows

OURS = "SetConv"


class Sizes(NamedTuple):
    rows: int = 20_000
    new: int = 20_000
    features: tuple[int, ...] = (384, 1024)
    turns: int = 1
    steps: int | Literal["auto"] = "auto"


FULL = Sizes()
QUICK = Sizes(rows=600, new=300, features=(120,), turns=1, steps=5)


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:
    """Return the costs of each method for each number of features."""
    tables = []
    for features in sizes.features:
        draw = partial(dense_split, sizes.rows, features, sizes.new)
        found = compare(makers(sizes, features), draw, sizes.turns, alone)
        tables.append({"features": features, "methods": found})
    return {"rows": sizes.rows, "new": sizes.new, "tables": tables}


def makers(sizes: Sizes, features: int) -> dict[str, Maker]:
    """Return how each method is made."""
    ours = partial(setconv, max_steps=sizes.steps)
    return {
        OURS: ours,
        "logistic regression": logistic,
        "LightGBM": lightgbm,
        "MLP of the same size": partial(mlp, rows_seen(ours(), sizes.rows, features)),
        "KMeans-SMOTE + logistic": kmeans_smote,
    }


def rows_seen(model: SetConvClassifier, rows: int, features: int) -> int:
    """Return how many rows all steps of a fit see, those of all members."""
    prepared = PreparedRows(np.broadcast_to(0.0, (rows, features)))
    plan = settle(check_parameters(model), rows, prepared)
    drawn = plan.n_episodes * (model.support_size + 2 * model.n_queries)
    return plan.max_steps * plan.n_members * drawn


def setconv(**parameters: Any) -> SetConvClassifier:
    return SetConvClassifier(**parameters, progress=False, random_state=0)


def logistic() -> Any:
    return make_pipeline(
        StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=1000)
    )


def lightgbm() -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(is_unbalance=True, n_jobs=THREADS, verbose=-1, random_state=0)


def mlp(seen: int) -> Any:
    from benchmarks.speed.mlp import PlainMLP

    return PlainMLP(seen)


def kmeans_smote() -> Any:
    from setconv import baselines

    (found,) = (one for one in baselines.all() if one.name == "KMeans-SMOTE")
    return found.make(random_state=0)
