"""The defaults against linear peers on TF-IDF: sparse rows of the study's text tasks.

    python -m benchmarks.quality.sparse --data FOLDER --out FOLDER [--splits 3] [--workers 2]

The eleven text tasks of the study (the same rows and splits), here as scikit-learn's TF-IDF, as it
comes ("words") and with pairs of words, terms of at least two texts and sublinear counts ("pairs").
Peers: logistic regression and a linear SVM with balanced class weights, and complement naive Bayes,
each with its own decision. ``FOLDER`` has ``SOURCE/data.csv`` and ``semeval2017/official`` beside
``embeddings``. A row of results is a task, averaged over its splits; ranks are within a task.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import ComplementNB
from sklearn.svm import LinearSVC

from benchmarks.quality.measures import g_mean
from benchmarks.quality.splits import seed_of, split
from benchmarks.quality.tasks import SEMEVAL_ROWS, Spec, load, sample_whole, specs
from setconv import SetConvClassifier
from setconv.datasets import load_semeval

VECTORS: dict[str, dict[str, Any]] = {
    "words": {},
    "pairs": {"ngram_range": (1, 2), "min_df": 2, "sublinear_tf": True},
}
METHODS = {
    "SetConv": lambda seed: SetConvClassifier(random_state=seed, progress=False),
    "logistic regression": lambda _: LogisticRegression(class_weight="balanced", max_iter=1000),
    "linear SVM": lambda seed: LinearSVC(class_weight="balanced", random_state=seed),
    "complement naive Bayes": lambda _: ComplementNB(),
}
FIGURES = ("AUC", "G-mean")
Cell = tuple[str, str, int]


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


def scores_of(model: Any, rows: Any) -> NDArray[np.float64]:
    """Return scores of class 1."""
    if hasattr(model, "decision_function"):
        return model.decision_function(rows)
    return model.predict_joint_log_proba(rows) @ np.array([-1.0, 1.0])


def evaluate(cell: Cell, data: Path) -> list[list[Any]]:
    """Fit every method on one split of one task; return rows of results."""
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    vectors, name, number = cell
    (spec,) = (one for one in specs("text") if one.name == name)
    task = load(spec, data)
    texts = texts_of(data, spec.source)
    train, test = split(task.y, task.groups, seed_of(task.name, number))
    vectorizer = TfidfVectorizer(dtype=np.float32, **VECTORS[vectors])
    X, new = vectorizer.fit_transform(texts[train]), vectorizer.transform(texts[test])
    results = []
    for method, make in METHODS.items():
        model = make(number).fit(X, task.y[train])
        auc = roc_auc_score(task.y[test], scores_of(model, new))
        figure = g_mean(task.y[test], model.predict(new))
        results.append([vectors, name, number, method, X.shape[1], auc, figure])
    return results


def summary(found: pd.DataFrame) -> str:
    """Return the tables in Markdown: mean ranks and mean figures, then each task."""
    lines = [
        "| vectors | method | AUC rank | G-mean rank | mean AUC | mean G-mean |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for vectors in VECTORS:
        part = found[found.vectors == vectors]
        tables = {f: part.pivot_table(index="task", columns="method", values=f) for f in FIGURES}
        ranks = {f: table.rank(axis=1, ascending=False).mean() for f, table in tables.items()}
        for method in METHODS:
            lines.append(
                f"| {vectors} | {method} | {ranks['AUC'][method]:.2f} | "
                f"{ranks['G-mean'][method]:.2f} | {tables['AUC'][method].mean():.4f} | "
                f"{tables['G-mean'][method].mean():.4f} |"
            )
    both = found.groupby(["vectors", "task", "method"])[list(FIGURES)].mean().unstack()
    lines += ["", "AUC / G-mean:", "", f"| vectors | task | {' | '.join(METHODS)} |"]
    lines.append("|---|---|" + "---|" * len(METHODS))
    for (vectors, task), values in both.iterrows():
        cells = [f"{values['AUC', m]:.3f} / {values['G-mean', m]:.3f}" for m in METHODS]
        lines.append(f"| {vectors} | {task} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    tasks: list[Spec] = specs("text")
    cells = list(product(VECTORS, (one.name for one in tasks), range(options.splits)))
    options.out.mkdir(parents=True, exist_ok=True)
    header = ["vectors", "task", "split", "method", "columns", *FIGURES]
    rows: list[list[Any]] = []
    with ProcessPoolExecutor(options.workers) as pool:
        for done in pool.map(evaluate, cells, [options.data] * len(cells)):
            rows += done
            print(*done[0][:3], *(f"{value:.4f}" for value in done[0][-2:]), flush=True)
    with (options.out / "sparse.csv").open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    text = summary(pd.DataFrame(rows, columns=header))
    (options.out / "sparse.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
