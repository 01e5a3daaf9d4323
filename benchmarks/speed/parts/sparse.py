"""Sparse rows of a million columns: whole fits and predictions, against linear peers."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal, NamedTuple

from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB
from sklearn.svm import LinearSVC

from benchmarks.speed.fits import Maker, compare
from benchmarks.speed.made import sparse_split
from benchmarks.speed.parts.peers import OURS, setconv
from benchmarks.speed.processes import Alone


class Sizes(NamedTuple):
    rows: int = 200_000
    columns: int = 1_000_000
    non_zeros: int = 60
    new: int = 20_000
    turns: int = 1
    steps: int | Literal["auto"] = "auto"


FULL = Sizes()
QUICK = Sizes(rows=600, columns=2_000, non_zeros=15, new=300, turns=1, steps=5)

PEERS: dict[str, Maker] = {
    "logistic regression": partial(LogisticRegression, class_weight="balanced", solver="liblinear"),
    "linear SVM": partial(LinearSVC, class_weight="balanced"),
    "complement naive Bayes": ComplementNB,
}


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:
    """Return the costs of each method."""
    draw = partial(sparse_split, sizes.rows, sizes.columns, sizes.non_zeros, sizes.new)
    methods: dict[str, Maker] = {OURS: partial(setconv, max_steps=sizes.steps), **PEERS}
    return {**sizes._asdict(), "methods": compare(methods, draw, sizes.turns, alone)}
