"""What each part of the defaults brings: one part off or replaced at a time.

    python -m benchmarks.quality.ablation --data DIR [--splits N] [--tables]

The linear part of the scores is off in all variants but one, so that it does not cover up what the
others do. The parts of the set convolution are replaced in the layer itself; everything else,
encoder, members, episodes and decisions, stays the same.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from benchmarks.quality import measures
from benchmarks.quality.markdown import number, table
from benchmarks.quality.peers import quiet
from benchmarks.quality.splits import seed_of, split
from benchmarks.quality.tables import score_table
from benchmarks.quality.tasks import SEMEVAL_ROWS, load, specs
from setconv import SetConvClassifier, episodes
from setconv.experiment import Cell, Store, average_ranks, run
from setconv.nn import Kernel, SetConv, StackedLinear
from setconv.nn.layer import stacked_matmul

RESULTS = Path(__file__).resolve().parent.parent / "results"
BASE = "without the linear part"
DEFAULTS = "defaults: with the linear part"
METRICS = {"auc": "AUC", "average_precision": "AP", "g_mean": "G-mean", "f1": "F1"}


@dataclass(frozen=True)
class Plain:
    """A kernel that multiplies rows by one matrix."""

    matrix: Tensor
    bias: Tensor | None = None

    def __call__(self, rows: Tensor) -> Tensor:
        product = stacked_matmul(rows, self.matrix)
        return product if self.bias is None else product + self.bias


def _first(layer: SetConv) -> StackedLinear:
    return cast("StackedLinear", layer.g1[0])


def _prototype(layer: SetConv, anchor: Tensor) -> Plain:  # noqa: ARG001
    return Plain(_first(layer).weight, _first(layer).bias)


def _no_g1(layer: SetConv, anchor: Tensor) -> Plain:  # noqa: ARG001
    return Plain(torch.softmax(layer.attention, dim=-2))


def _no_attention(layer: SetConv, anchor: Tensor) -> Kernel:
    uniform = torch.full_like(layer.attention, 1 / layer.in_features)
    matrix = torch.cat([uniform, _first(layer).weight], dim=-1)
    return Kernel(matrix, _first(layer)(anchor), (), layer.out_features)


_PREPARE = SetConv.prepare


def _no_anchor(layer: SetConv, anchor: Tensor) -> Kernel:
    return _PREPARE(layer, torch.zeros_like(anchor))


def _equal_shares(counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    return np.full(len(counts), max(1, size // len(counts)))


def _layer(prepare: Callable[[SetConv, Tensor], Any]) -> Callable[[], Any]:
    return lambda: patch.object(SetConv, "prepare", prepare)


# Parts that are no parameter, and what they are replaced by.
REPLACED: dict[str, Callable[[], Any]] = {
    "plain prototype head": _layer(_prototype),
    "g1 off": _layer(_no_g1),
    "attention off": _layer(_no_attention),
    "anchor off": _layer(_no_anchor),
    "class-balanced support set": lambda: patch.object(episodes, "share_out", _equal_shares),
}
CHANGED: dict[str, dict[str, Any]] = {
    DEFAULTS: {"linear_share": "auto"},
    "dot product instead of cosine": {"similarity": "dot"},
    "queries apart from the support set": {"query_source": "disjoint"},
    "input dropout off": {"input_dropout": 0.0},
    "dropout off": {"dropout": 0.0},
    "encoder off": {"encoder": ()},
    "one member, natural threshold": {"n_members": 1},
}
ALL = (BASE, *REPLACED, *CHANGED)


@contextmanager
def _variant(name: str) -> Iterator[dict[str, Any]]:
    if name in REPLACED:
        with REPLACED[name]():
            yield {}
    else:
        yield CHANGED.get(name, {})


def work(cell: Cell, data: Path, semeval_rows: int = SEMEVAL_ROWS) -> dict[str, float]:
    """Return the figures of a variant on a split of a task."""
    quiet()
    spec = next(spec for spec in specs("text") if spec.name == cell.dataset)
    task = load(spec, data, semeval_rows)
    train, test = split(task.y, task.groups, seed_of(task.name, cell.split))
    groups = None if task.groups is None else task.groups[train]
    y = task.y[test]
    with _variant(cell.method) as changed:
        parameters = {"linear_share": 0.0, **changed}
        model = SetConvClassifier(**parameters, random_state=cell.split, progress=False)
        model.fit(task.X[train], task.y[train], groups=groups)
        scores = model.predictions(task.X[test]).scores
        figures = {
            "auc": float(roc_auc_score(y, scores)),
            "average_precision": float(average_precision_score(y, scores)),
            "g_mean": measures.g_mean(y, model.predict(task.X[test])),
        }
        if model.n_members != 1:
            model.set_objective("f1")
        figures["f1"] = measures.f1(y, model.predict(task.X[test]))
    return figures


def tables(store: Store) -> str:
    """Return the means over tasks, and the mean rank within a task."""
    results = store.results()
    means, ranks = {}, {}
    for metric in METRICS:
        scores = score_table(results, metric)
        means[metric] = scores.mean()
        sources = {name: name.split("/")[0] for name in scores.index}
        ranks[metric] = average_ranks(scores, sources).average
    rows = [
        [
            name,
            *(number(means[m][name], 4) for m in METRICS),
            *(number(means[m][name] - means[m][BASE], 4, sign=True) for m in METRICS),
            *(number(ranks[m][name], 1) for m in METRICS),
        ]
        for name in ALL
        if name in means["auc"]
    ]
    titles = METRICS.values()
    head = ["variant", *titles, *(f"Δ {t}" for t in titles), *(f"rank {t}" for t in titles)]
    return f"{len(scores)} text tasks.\n\n{table(head, rows)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality.ablation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, help="folder with embeddings/*.npz")
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--results", type=Path, default=RESULTS / "ablation.sqlite")
    parser.add_argument("--tables", action="store_true", help="compute nothing")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    with Store(arguments.results) as store:
        if not arguments.tables:
            if arguments.data is None:
                raise SystemExit("give --data DIR")
            cells = [
                Cell(spec.name, method, number)
                for number in range(arguments.splits)
                for method in ALL
                for spec in specs("text")
            ]
            run(cells, partial(work, data=arguments.data), store, jobs=arguments.jobs, threads=1)
        print(tables(store))


if __name__ == "__main__":
    main()
