"""Splits and folds: stratified, and no group on two sides."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

Index = NDArray[np.int64]
Fold = tuple[Index, Index]

TEST_SHARE = 0.3
_TRIES = 1000


def seed_of(*parts: object) -> int:
    """Return a seed that is the same on every machine and in every process."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "little")


def joined_groups(columns: Iterable[NDArray]) -> Index | None:
    """Return groups of rows that share a value in any column; None if every row is alone."""
    codes = [np.unique(column, return_inverse=True)[1] for column in columns]
    n = len(codes[0])
    rows, values, offset = [], [], n
    for code in codes:
        rows.append(np.arange(n))
        values.append(code + offset)
        offset += code.max() + 1
    at, to = np.concatenate(rows), np.concatenate(values)
    graph = coo_array((np.ones(len(at), bool), (at, to)), shape=(offset, offset))
    groups = np.unique(connected_components(graph, directed=False)[1][:n], return_inverse=True)[1]
    return groups.astype(np.int64) if groups.max() + 1 < n else None


def same_rows(X: NDArray) -> NDArray:
    """Return one value a row, equal exactly where all features are."""
    X = np.ascontiguousarray(X + 0)  # -0.0 and 0.0 are the same feature
    return X.view(f"V{X.itemsize * X.shape[1]}").ravel()


def split(y: Index, groups: Index | None, seed: int) -> Fold:
    """Return training and test rows: whole groups, 30 % of each class as far as groups allow."""
    groups, counts = _count(y, groups)
    shares = counts / counts.sum(axis=0)
    rng = np.random.default_rng(seed)
    for _ in range(_TRIES):
        tested = _walk(rng.permutation(len(shares)), shares.tolist())[groups]
        if all(len(np.unique(y[side])) == 2 for side in (tested, ~tested)):
            return np.flatnonzero(~tested), np.flatnonzero(tested)
    raise ValueError("the groups leave no split with both classes on both sides")


def folds(y: Index, groups: Index | None, seed: int, n_folds: int = 5) -> list[Fold]:
    """Return stratified, grouped folds; fewer where a class has too few groups for ``n_folds``."""
    groups, counts = _count(y, groups)
    order = np.random.default_rng(seed).permutation(len(counts))
    order = order[np.argsort(-counts[order].sum(axis=1), kind="stable")]
    for n in range(n_folds, 1, -1):
        place = _deal(order, counts, n)[groups]
        held = [place == number for number in range(n)]
        if all(len(np.unique(y[side])) == 2 for out in held for side in (out, ~out)):
            return [(np.flatnonzero(~out), np.flatnonzero(out)) for out in held]
    raise ValueError("the groups leave no two folds with both classes in both")


def _count(y: Index, groups: Index | None) -> tuple[Index, NDArray[np.float64]]:
    """Return dense group numbers and the rows of each class in each group."""
    groups = np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1]
    counts = np.zeros((groups.max() + 1, 2))
    np.add.at(counts, (groups, y), 1.0)
    return groups, counts


def _walk(order: Index, shares: list[list[float]]) -> NDArray[np.bool_]:
    """Put a group into the test part if that brings the part closer to its share."""
    tested = np.zeros(len(shares), bool)
    gap = [TEST_SHARE, TEST_SHARE]
    for group in order.tolist():
        left = [gap[0] - shares[group][0], gap[1] - shares[group][1]]
        if left[0] ** 2 + left[1] ** 2 < gap[0] ** 2 + gap[1] ** 2:
            tested[group] = True
            gap = left
    return tested


def _deal(order: Index, counts: NDArray[np.float64], n: int) -> Index:
    """Put each group, large ones first, into the fold that has least of its classes."""
    totals = counts.sum(axis=0)
    weights = (counts / totals**2).tolist()
    rows = counts.tolist()
    held = [[0.0, 0.0] for _ in range(n)]
    place = np.zeros(len(counts), np.int64)
    for group in order.tolist():
        a, b = weights[group]
        best = min(range(n), key=lambda k: (held[k][0] * a + held[k][1] * b, sum(held[k])))
        held[best][0] += rows[group][0]
        held[best][1] += rows[group][1]
        place[group] = best
    return place
