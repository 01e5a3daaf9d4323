"""The division of rows into training and test rows; no copy of a test row is learned from."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, LabelError
from setconv.experiment.data import Rows
from setconv.experiment.study import SplitRule
from setconv.messages import listed
from setconv.sampling import draw_by_class, tie_copies

_Index = NDArray[np.int64]
_Groups = NDArray[Any] | None


class Split(NamedTuple):
    """Row numbers, each in ascending order."""

    train: _Index
    test: _Index


def seed_of(*parts: object) -> int:
    """Return a seed that is the same on every machine and in every process."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "little")


def count_splits(rule: SplitRule, rows: Rows, where: str) -> int:
    """Return how many splits a rule makes of these rows; refuse rows that it cannot divide."""
    labels, groups = rows.labels, rows.groups
    classes, counts = np.unique(labels, return_counts=True)
    rarest, fewest = classes[counts.argmin()], counts.min()
    if len(classes) < 2 or fewest < 2:
        raise LabelError(
            f"{where} has {len(classes)} classes, and class {rarest} has {fewest} of the "
            f"{len(labels)} rows: a split needs two classes of two rows.",
            hint=f"Drop the class (drop: [{rarest}]) or join it with another (binary).",
        )
    if rule.leave_out is None:
        return rule.repeats
    if groups is None:
        raise DataError(f"{where}: leave_out needs groups: name their column with group.")
    if len(found := _left_out(rule, labels, groups)) < 2:
        raise LabelError(
            f"{where}: class {rule.leave_out} has {len(found)} groups, and to leave one out needs "
            f"two. The classes are {listed([*map(str, classes)])}."
        )
    return len(found)


def make_split(rule: SplitRule, rows: Rows, number: int, seed: int) -> Split:
    """Return a split: the same for every method, whatever else is in the study.

    Parameters
    ----------
    rule : SplitRule
    rows : Rows
        Rows of one group stay together. Copies do too, and join their groups; where that cannot
        be, because a group is left out or nearly all groups share copies, training rows that have
        a copy in the test rows are left out.
    number : int
        Which split, from 0.
    seed : int
    """
    rng = np.random.default_rng(seed)
    labels, groups, copies = rows.labels, rows.groups, rows.copies
    if rule.leave_out is not None and groups is not None:
        drawn = _deal(labels, copies, rule, rng) & (labels.astype(str) != rule.leave_out)
        test = drawn | (groups == _left_out(rule, labels, groups)[number])
    else:
        test = _deal(labels, tie(rows), rule, rng)
    seen = test if copies is None else np.isin(copies, copies[test])
    return Split(np.flatnonzero(~seen), np.flatnonzero(test))


def tie(rows: Rows) -> _Groups:
    """Return what stays together: groups, copies, and groups that share copies."""
    if rows.copies is None:
        return rows.groups
    codes = np.unique(rows.labels, return_inverse=True)[1]
    return tie_copies(rows.copies, None, codes, rows.groups).units


def _left_out(rule: SplitRule, labels: NDArray[Any], groups: NDArray[Any]) -> NDArray[Any]:
    """Return the groups that are left out in turn."""
    return np.unique(groups[labels.astype(str) == rule.leave_out])


def _deal(
    labels: NDArray[Any], groups: _Groups, rule: SplitRule, rng: np.random.Generator
) -> NDArray[np.bool_]:
    """Return the test rows: whole groups, each class in the shares as near as they allow."""
    units = np.arange(len(labels)) if groups is None else np.unique(groups, return_inverse=True)[1]
    _, first, sizes = np.unique(units, return_index=True, return_counts=True)
    codes = np.unique(labels, return_inverse=True)[1][first]
    tested = np.zeros(len(sizes), np.bool_)
    for code in range(codes.max() + 1):
        mine = rng.permutation(np.flatnonzero(codes == code))
        # The middle of a group, counted in rows, says on which side it lies.
        middle = np.cumsum(sizes[mine]) - sizes[mine] / 2
        tested[mine] = middle >= rule.parts[0] / 100 * sizes[mine].sum()
        if len(mine) > 1:  # neither side is empty
            tested[mine[0]], tested[mine[-1]] = False, True
    return tested[units]


def thin(
    rows: _Index, labels: NDArray[Any], ratio: float, majority: int | None, seed: int
) -> _Index:
    """Return training rows whose largest class has ``ratio`` rows for one of each other class.

    The largest class keeps ``majority`` rows, or all; the rows of a small ratio hold those of a
    larger one.
    """
    classes, codes, counts = np.unique(labels[rows], return_inverse=True, return_counts=True)
    most = int(counts.max()) if majority is None else min(majority, int(counts.max()))
    wanted = np.full(len(classes), max(2, round(most / ratio)))
    wanted[counts.argmax()] = most
    if (wanted > counts).any():
        short = int((wanted > counts).argmax())
        raise DataError(
            f"class {classes[short]} has {counts[short]} training rows, and a ratio of {ratio:g} "
            f"to {most} rows needs {wanted[short]}: give a smaller majority."
        )
    return rows[draw_by_class(codes, wanted, np.random.default_rng(seed))]
