"""Probabilities for events that were never seen, on splits beyond those of the study.

    python -m benchmarks.quality.events --data DIR [--splits N ...]

Crash, fire and no-incident tweets, split by event: SetConv with several shares of its linear part
against calibrated logistic regression, mean AUC and Brier score over tasks and splits.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.quality import measures
from benchmarks.quality.markdown import number, table
from benchmarks.quality.peers import calibrated, quiet
from benchmarks.quality.splits import seed_of, split
from benchmarks.quality.tasks import load, specs
from setconv import SetConvClassifier

TASKS = ("incident_tweets/crash", "incident_tweets/fire", "incident_tweets/no")
SHARES = (0.0, 0.25, "auto")


def models() -> dict[str, Callable[[int], Any]]:
    def build(share: Any, seed: int) -> SetConvClassifier:
        return SetConvClassifier(linear_share=share, random_state=seed, progress=False)

    ours = {f"SetConv, linear_share={share}": partial(build, share) for share in SHARES}
    return {**ours, **calibrated()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=int, nargs="+", default=[10, 11, 12])
    arguments = parser.parse_args()
    quiet()
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in models()}
    for spec in (one for one in specs("text") if one.name in TASKS):
        task = load(spec, arguments.data)
        for place in arguments.splits:
            train, test = split(task.y, task.groups, seed_of(task.name, place))
            for name, build in models().items():
                model = build(place)
                model.fit(task.X[train], task.y[train], groups=task.groups[train])
                chances = model.predict_proba(task.X[test])[:, 1].astype(np.float64)
                truth = task.y[test]
                auc, brier = float(roc_auc_score(truth, chances)), measures.brier(truth, chances)
                found[name].append((auc, brier))
                print(f"{task.name}, split {place}, {name}: {auc:.4f} {brier:.4f}", flush=True)
    means = {name: np.mean(values, axis=0) for name, values in found.items()}
    rows = [[name, number(auc, 4), number(brier, 4)] for name, (auc, brier) in means.items()]
    print(f"\n{table(['method', 'AUC', 'Brier'], rows)}")


if __name__ == "__main__":
    main()
