"""Which rows each member leaves out: stratified folds that keep groups together."""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]
_FEWEST_FOLDS = 5


def leave_out(
    codes: Codes, n_members: int, groups: NDArray[Any] | None, seed: int
) -> NDArray[np.bool_]:
    """Return which rows each member does not learn from, shape (n_members, n_rows).

    The members are as many repeats of a k-fold split as leave at least five folds to each (ten
    members: twice five folds; seven: seven folds). Every class stays in the training rows of every
    member: where all its rows would be left out, because it has one row or lives in one group,
    they stay, with the rest of their groups.
    """
    out = np.zeros((n_members, len(codes)), dtype=np.bool_)
    if n_members == 1:
        return out
    repeats = max(r for r in range(1, n_members + 1) if _divides(r, n_members))
    k = n_members // repeats
    for repeat in range(repeats):
        folds = assign_folds(codes, k, groups, np.random.default_rng([seed, repeat]))
        out[repeat * k : (repeat + 1) * k] = folds == np.arange(k)[:, None]
    for code in np.unique(codes):
        members = np.flatnonzero(out[:, codes == code].all(axis=1))
        kept = codes == code
        if len(members) and groups is not None:
            kept = np.isin(groups, groups[kept])
        out[np.ix_(members, kept)] = False
    return out


def _divides(repeats: int, n_members: int) -> bool:
    return repeats == 1 or (n_members % repeats == 0 and n_members // repeats >= _FEWEST_FOLDS)


def assign_folds(
    codes: Codes, k: int, groups: NDArray[Any] | None, rng: np.random.Generator
) -> Codes:
    """Return the fold of each row, from 0 to k - 1.

    Groups of several rows go first, the largest at the head, each to the fold that has least of
    its classes; single rows then level the classes out.
    """
    n_classes = int(codes.max()) + 1
    totals = np.bincount(codes, minlength=n_classes)
    folds = np.full(len(codes), -1, dtype=np.int64)
    load = np.zeros((k, n_classes))
    for rows in _large_groups(groups, rng):
        counts = np.bincount(codes[rows], minlength=n_classes)
        # Shares of a class, so that a row of a rare class weighs more.
        crowded = load @ (counts / totals.clip(1) ** 2)
        choices = np.flatnonzero(crowded == crowded.min())
        fold = choices[np.argmin(load[choices].sum(axis=1))]
        folds[rows] = fold
        load[fold] += counts
    for code in range(n_classes):
        rows = rng.permutation(np.flatnonzero((codes == code) & (folds < 0)))
        folds[rows] = _level(load, code, len(rows), rng)
    return folds


def _large_groups(groups: NDArray[Any] | None, rng: np.random.Generator) -> list[Codes]:
    """Return the rows of each group of two or more, the largest first, equals in random order."""
    if groups is None:
        return []
    _, numbers, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    by_group = np.split(np.argsort(numbers, kind="stable"), np.cumsum(sizes)[:-1])
    large = np.flatnonzero(sizes > 1)
    order = large[np.lexsort((rng.random(len(large)), -sizes[large]))]
    return [by_group[number] for number in order]


def _level(load: NDArray[Any], code: int, n_rows: int, rng: np.random.Generator) -> Codes:
    """Deal rows of one class to the folds that have fewest of it, and count them in."""
    tie = rng.permutation(len(load))
    queue = [(load[fold, code], load[fold].sum(), tie[fold], fold) for fold in range(len(load))]
    heapq.heapify(queue)
    dealt = np.empty(n_rows, dtype=np.int64)
    for place in range(n_rows):
        filled, size, number, fold = queue[0]
        dealt[place] = fold
        load[fold, code] += 1
        heapq.heapreplace(queue, (filled + 1, size + 1, number, fold))
    return dealt
