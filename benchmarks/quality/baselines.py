"""The ten systems of the paper and SetConv on SemEval and Davidson, with their own decisions.

    python -m benchmarks.quality.baselines --data DIR [--splits N] [--methods NAME ...]

SemEval is the paper's set, negative tweets against the rest; Davidson is hate speech against the
rest. 70/30 splits that keep copies of a tweet together; MiniLM embeddings; everything with its
default parameters. ``--data`` is as in `benchmarks.quality`. The run resumes where it stopped.
"""

from __future__ import annotations

import argparse
import logging
import time
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.quality.markdown import number, table
from benchmarks.quality.splits import seed_of, split
from benchmarks.quality.tasks import load, specs
from setconv import SetConvClassifier, baselines
from setconv.experiment import Cell, Store, run
from setconv.metrics import report

RESULTS = Path(__file__).resolve().parent.parent / "results" / "baselines.sqlite"
TASKS = {"semeval2017/negative": "SemEval", "davidson_hate/hate": "Davidson"}
OURS = "SetConv"
FIGURES = {"auc": "AUC", "g_mean": "G-mean", "f1": "F1", "sensitivity": "Sens"}
FIGURES |= {"specificity": "Spec", "seconds": "fit, s"}
ALL_ROWS = 10**9
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
    spec = next(one for one in specs("text") if one.name == cell.dataset)
    task = load(spec, data, ALL_ROWS)
    train, test = split(task.y, task.groups, seed_of(task.name, cell.split))
    model = build(cell.method, cell.split)
    started = time.perf_counter()
    model.fit(task.X[train], task.y[train])
    seconds = time.perf_counter() - started
    rows, truth = task.X[test], task.y[test]
    found = report(truth, model.predict(rows), model.predict_proba(rows)[:, 1])
    one = found[1]
    return {
        "auc": one.auc,
        "g_mean": found.g_mean,
        "f1": one.f1,
        "sensitivity": one.sensitivity,
        "specificity": one.specificity,
        "seconds": seconds,
    }


def tables(results: pd.DataFrame, methods: list[str]) -> str:
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
                *(number(means[name][method]) for name in list(FIGURES)[1:-1]),
                f"{means.seconds[method]:.0f}",
            ]
            for method in methods
            if method in means.index
        ]
        parts.append(f"{title}:\n\n{table(['method', *FIGURES.values()], rows)}")
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    everything = [OURS, *(one.name for one in baselines.all()), *VARIANTS]
    methods = arguments.methods or everything[:-1]
    splits = range(arguments.splits)
    cells = [
        Cell(task, method, number) for number in splits for task in TASKS for method in methods
    ]
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    with Store(arguments.results) as store:
        run(cells, partial(work, data=arguments.data), store, jobs=arguments.jobs, threads=1)
        print(tables(store.results(), everything))


if __name__ == "__main__":
    main()
