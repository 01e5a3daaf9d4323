"""The ten systems of the paper and SetConv on SemEval and Davidson, as they come and tuned.

    python -m benchmarks.quality.baselines --data DIR [--splits N] [--methods NAME ...] [--publish]

SemEval is the paper's set, negative tweets against the rest, here 12,000 of them; Davidson is hate
speech against the rest. 70/30 splits that keep copies of a tweet together; MiniLM embeddings. Every
system has its default parameters and its own decision, and then a decision that is tuned for G-mean
and for F1 on five folds inside the training rows, which keep copies together too. Where a logistic
regression comes after a sampler, its C is tuned for the AUC on the same folds. SetConv's decisions
are those of its ``objective``. ``--data`` is as in `benchmarks.quality`. The run resumes where it
stopped.
"""

from __future__ import annotations

import argparse
import logging
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV

from benchmarks.quality import raw
from benchmarks.quality.evaluate import ours, tuned
from benchmarks.quality.markdown import number, table
from benchmarks.quality.peers import quiet
from benchmarks.quality.splits import Fold, Index, folds, seed_of, split
from benchmarks.quality.tasks import Task, load, specs
from benchmarks.quality.tuning import Bench, tuned_thresholds
from setconv import SetConvClassifier, baselines
from setconv.experiment import Cell, Store, run
from setconv.metrics import report

RESULTS = Path(__file__).resolve().parent.parent / "results" / "baselines.sqlite"
TASKS = {"semeval2017/negative": "SemEval", "davidson_hate/hate": "Davidson"}
OURS = "SetConv"
OWN = {"auc": "AUC", "g_mean": "G-mean", "f1": "F1", "sensitivity": "Sens", "specificity": "Spec"}
TUNED = {"auc_tuned": "tuned AUC", "g_mean_tuned": "tuned G-mean", "f1_tuned": "tuned F1"}
ROWS = 12_000
_C = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
# Other readings of a paper than the default; the last takes minutes and runs only when named.
VARIANTS = {
    "CS-DMLP, no cost": partial(baselines.CostSensitiveDMLPClassifier, cost="none"),
    "CS-MLP, to the end": partial(baselines.CostSensitiveMLPClassifier, early_stopping=False),
}


def build(method: str, seed: int) -> Any:
    if method == OURS:
        return SetConvClassifier(random_state=seed, progress=False)
    if method in VARIANTS:
        return VARIANTS[method](random_state=seed)
    found = {one.name: one for one in baselines.all()}
    return found[method].make(random_state=seed)


def work(cell: Cell, data: Path) -> dict[str, float]:
    """Return the figures of a method on a split of a task; the minority is class 1."""
    quiet()
    spec = next(one for one in specs("text") if one.name == cell.dataset)
    task = load(spec, data, ROWS)
    train, test = split(task.y, task.groups, seed_of(task.name, cell.split))
    bench = Bench(task.X, task.y, task.groups)
    estimator = build(cell.method, cell.split)
    model = bench.fit(estimator, train)
    rows, truth = task.X[test], task.y[test]
    one = report(truth, model.predict(rows), bench.scores(train, test))[1]
    figures = {name: float(getattr(one, name)) for name in OWN}
    if cell.method == OURS:
        found = ours(model, rows, truth) | {"auc_tuned": figures["auc"]}
    else:
        groups = None if task.groups is None else task.groups[train]
        splits = folds(task.y[train], groups, seed_of(task.name, cell.split, "tuning"))
        found = _tuned(estimator, task, train, test, splits)
    return figures | {name: found[name] for name in TUNED}


def _tuned(
    estimator: Any, task: Task, train: Index, test: Index, splits: list[Fold]
) -> dict[str, float]:
    bench, truth = Bench(task.X, task.y, task.groups), task.y[test]
    with TemporaryDirectory() as memory:
        if "classifier__C" in estimator.get_params():
            # What a sampler makes of a fold is the same for every C.
            estimator = clone(estimator).set_params(memory=memory)
            grid = {"classifier__C": _C}
            search = GridSearchCV(estimator, grid, scoring="roc_auc", cv=splits, refit=False)
            estimator.set_params(**search.fit(task.X[train], task.y[train]).best_params_)
        model = bench.fit(estimator, train)
        thresholds = tuned_thresholds(estimator, bench, train, splits)
        scores = bench.scores(train, test)
        figures = tuned(thresholds, truth, scores, model.predict(task.X[test]))
    return figures | {"auc_tuned": float(roc_auc_score(truth, scores))}


def tables(results: pd.DataFrame) -> str:
    """Return a Markdown table a task: means over splits, and the deviation of the AUC."""
    parts = []
    for task, title in TASKS.items():
        found = results[results.dataset == task]
        means = found.pivot_table(index="method", columns="metric", values="value")
        spread = found[found.metric == "auc"].groupby("method").value.std()
        rows = [
            [
                method,
                f"{number(means.auc[method])} ± {number(spread[method])}",
                *(number(means[name][method]) for name in [*OWN, *TUNED][1:]),
            ]
            for method in known_methods()
            if method in means.index
        ]
        head = ["method", *OWN.values(), *TUNED.values()]
        parts.append(f"{title}:\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def known_methods() -> list[str]:
    return [OURS, *(one.name for one in baselines.all()), *VARIANTS]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--publish", action="store_true", help="put the results into docs/quality")
    arguments = parser.parse_args()
    commit = raw.head() if arguments.publish else ""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    methods = arguments.methods or known_methods()[:-1]
    splits = range(arguments.splits)
    cells = [
        Cell(task, method, number) for number in splits for task in TASKS for method in methods
    ]
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    with Store(arguments.results) as store:
        run(cells, partial(work, data=arguments.data), store, jobs=arguments.jobs, threads=1)
        results = store.results()
    print(tables(results))
    if arguments.publish:
        command = "python -m benchmarks.quality.baselines --data DIR"
        raw.record("baselines.csv", results, command, commit)


if __name__ == "__main__":
    main()
