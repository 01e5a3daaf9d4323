"""The defaults against linear peers on TF-IDF: sparse rows of the study's text tasks.

    python -m benchmarks.quality.sparse --data FOLDER [--splits 2] [--publish]

The eleven text tasks of the study (the same rows, groups and splits), here as scikit-learn's
TF-IDF, as it comes ("words") and with pairs of words, terms of at least two texts and sublinear
counts ("pairs"). Peers: logistic regression and a linear SVM with balanced class weights, and
complement naive Bayes. As in the study, C and alpha are chosen by AUC on inner folds, and the
threshold for G-mean on five folds; each peer's own decision stands beside it. ``FOLDER`` has
``SOURCE/data.csv`` and ``semeval2017/official`` beside ``embeddings``. The run resumes where it
stopped.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB
from sklearn.svm import LinearSVC

from benchmarks.quality import raw
from benchmarks.quality.evaluate import figures_of
from benchmarks.quality.markdown import number, table
from benchmarks.quality.peers import OURS
from benchmarks.quality.splits import seed_of, split
from benchmarks.quality.tasks import SEMEVAL_ROWS, load, sample_whole, specs
from benchmarks.quality.wrappers import Searched
from setconv import SetConvClassifier
from setconv.datasets import load_semeval
from setconv.experiment import Cell, Store, average_ranks, run

RESULTS = Path(__file__).resolve().parent.parent / "results" / "sparse.sqlite"
VECTORS: dict[str, dict[str, Any]] = {
    "words": {},
    "pairs": {"ngram_range": (1, 2), "min_df": 2, "sublinear_tf": True},
}


METRICS = {"auc": "AUC", "g_mean_natural": "own G-mean", "g_mean_tuned": "tuned G-mean"}


def _searched(model: Any, parameter: str, values: tuple[float, ...], seed: int) -> Searched:
    return Searched(model, {parameter: values}, seed=seed)


def _logistic(seed: int) -> Searched:
    model = LogisticRegression(class_weight="balanced", max_iter=1000)
    return _searched(model, "C", (0.01, 0.1, 1.0, 10.0, 100.0), seed)


def _svm(seed: int) -> Searched:
    model = LinearSVC(class_weight="balanced", random_state=seed)
    return _searched(model, "C", (0.001, 0.01, 0.1, 1.0, 10.0), seed)


def _bayes(seed: int) -> Searched:
    return _searched(ComplementNB(), "alpha", (0.01, 0.1, 1.0, 10.0), seed)


METHODS: dict[str, Callable[[int], Any]] = {
    OURS: lambda seed: SetConvClassifier(random_state=seed, progress=False),
    "logistic regression": _logistic,
    "linear SVM": _svm,
    "complement naive Bayes": _bayes,
}


@cache
def texts_of(data: Path, source: str) -> NDArray:
    """Return the texts of the rows that the study's embeddings are of."""
    with np.load(data / "embeddings" / f"{source}.npz") as stored:
        if "row" in stored:
            texts = pd.read_csv(data / source / "data.csv")["text"].astype(str).to_numpy()
            return texts[stored["row"]]
        ids = stored["id"][sample_whole(stored["id"], SEMEVAL_ROWS)]
    tweets = load_semeval(data / source / "official", parts="paper")
    known = dict(zip(map(str, tweets.ids or ()), tweets.texts or (), strict=True))
    return np.array([known[str(number)] for number in ids], dtype=object)


def work(cell: Cell, data: Path) -> dict[str, float]:
    """Return the figures of a cell; its data set is the vectors and the task."""
    vectors, name = cell.dataset.split(": ")
    (spec,) = (one for one in specs("text") if one.name == name)
    task, texts = load(spec, data), texts_of(data, spec.source)
    train, _ = split(task.y, task.groups, seed_of(task.name, cell.split))
    vectorizer = TfidfVectorizer(dtype=np.float32, **VECTORS[vectors]).fit(texts[train])
    task = replace(task, X=vectorizer.transform(texts))
    return figures_of(cell, task, METHODS[cell.method](cell.split))


def ranks(results: pd.DataFrame, place: int) -> str:
    """Return average ranks over the tasks and mean figures on a split, by vectors and method."""
    rows = []
    for vectors in VECTORS:
        found = {metric: _scores(results, vectors, metric, place) for metric in METRICS}
        averages = {metric: average_ranks(one).average for metric, one in found.items()}
        for method in METHODS:
            row = [f"{vectors}, {method}"]
            for metric, one in found.items():
                best = averages[metric][method] == averages[metric].min()
                rank = f"{averages[metric][method]:.2f}"
                row += [f"**{rank}**" if best else rank, number(one[method].mean(), 4)]
            rows.append(row)
    head = [title for name in METRICS.values() for title in (f"{name}: rank", "mean")]
    return table([f"split {place}", *head], rows)


def tasks(results: pd.DataFrame, vectors: str, place: int) -> str:
    """Return AUC and tuned G-mean of each task on a split."""
    auc, g_mean = (_scores(results, vectors, metric, place) for metric in ("auc", "g_mean_tuned"))
    rows = [
        [name, *(f"{number(auc.at[name, m])} / {number(g_mean.at[name, m])}" for m in METHODS)]
        for name in auc.index
    ]
    return table([f"{vectors}, split {place}", *METHODS], rows)


def _scores(results: pd.DataFrame, vectors: str, metric: str, place: int) -> pd.DataFrame:
    chosen = results[(results["metric"] == metric) & (results["split"] == place)]
    found = chosen.pivot(index="dataset", columns="method", values="value")
    found = found[found.index.str.startswith(f"{vectors}: ")]
    return found.rename(index=lambda name: name.removeprefix(f"{vectors}: "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--publish", action="store_true", help="put the results into docs/quality")
    options = parser.parse_args()
    commit = raw.head() if options.publish else ""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    names = [f"{vectors}: {one.name}" for vectors, one in product(VECTORS, specs("text"))]
    cells = [
        Cell(name, method, number)
        for number in range(options.splits)
        for name in names
        for method in METHODS
    ]
    with Store(options.results) as store:
        run(cells, partial(work, data=options.data), store, jobs=options.jobs, threads=1)
        results = store.results()
    for place in range(options.splits):
        print(ranks(results, place), "\n")
    if options.publish:
        command = f"python -m benchmarks.quality.sparse --data DIR --splits {options.splits}"
        raw.record("sparse.csv", results, command, commit)


if __name__ == "__main__":
    main()
