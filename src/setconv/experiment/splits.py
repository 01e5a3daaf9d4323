"""The division of rows into training, validation and test rows."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, LabelError
from setconv.experiment.study import SplitRule
from setconv.messages import listed
from setconv.sampling import draw_by_class

_Index = NDArray[np.int64]
_Groups = NDArray[Any] | None


class Split(NamedTuple):
    """Row numbers, each in ascending order; ``validation`` may be empty."""

    train: _Index
    validation: _Index
    test: _Index


def seed_of(*parts: object) -> int:
    """Return a seed that is the same on every machine and in every process."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "little")


def count_splits(rule: SplitRule, labels: NDArray[Any], groups: _Groups, where: str) -> int:
    """Return how many splits a rule makes of these rows; refuse rows that it cannot divide."""
    classes, counts = np.unique(labels, return_counts=True)
    rarest, fewest = classes[counts.argmin()], counts.min()
    if len(classes) < 2 or fewest < len(rule.parts):
        raise LabelError(
            f"{where} has {len(classes)} classes, and class {rarest} has {fewest} of the "
            f"{len(labels)} rows: a split {rule} needs two classes of {len(rule.parts)} rows.",
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


def make_split(
    rule: SplitRule, labels: NDArray[Any], groups: _Groups, number: int, seed: int
) -> Split:
    """Return a split: the same for every method, whatever else is in the study.

    Parameters
    ----------
    rule : SplitRule
    labels : array of shape (n_rows,)
    groups : array of shape (n_rows,) or None
        Rows of one group stay together.
    number : int
        Which split, from 0.
    seed : int
    """
    rng = np.random.default_rng(seed)
    if rule.leave_out is not None and groups is not None:
        away = groups == _left_out(rule, labels, groups)[number]
        drawn = _deal(labels, None, rule, rng) == 1
        place = (away | (drawn & (labels.astype(str) != rule.leave_out))).astype(np.int64)
    else:
        place = _deal(labels, groups, rule, rng)
    train, *middle, test = (np.flatnonzero(place == part) for part in range(len(rule.parts)))
    return Split(train, middle[0] if middle else np.empty(0, np.int64), test)


def _left_out(rule: SplitRule, labels: NDArray[Any], groups: NDArray[Any]) -> NDArray[Any]:
    """Return the groups that are left out in turn."""
    return np.unique(groups[labels.astype(str) == rule.leave_out])


def _deal(
    labels: NDArray[Any], groups: _Groups, rule: SplitRule, rng: np.random.Generator
) -> _Index:
    """Return the part of each row: whole groups, each class in the shares as near as they allow."""
    units = np.arange(len(labels)) if groups is None else np.unique(groups, return_inverse=True)[1]
    _, first, sizes = np.unique(units, return_index=True, return_counts=True)
    codes = np.unique(labels, return_inverse=True)[1][first]
    shares = np.array(rule.parts) / 100
    part_of = np.zeros(len(sizes), np.int64)
    for code in range(codes.max() + 1):
        mine = rng.permutation(np.flatnonzero(codes == code))
        # The middle of a group, counted in rows, says in which part it lies.
        middle = np.cumsum(sizes[mine]) - sizes[mine] / 2
        bounds = np.cumsum(shares)[:-1] * sizes[mine].sum()
        part = np.searchsorted(bounds, middle, side="right")
        part_of[mine] = _nobody_empty(part, len(shares))
    return part_of[units]


def _nobody_empty(part: _Index, n_parts: int) -> _Index:
    """Give each part a unit where there are enough of them."""
    if len(part) >= n_parts and len(np.unique(part)) < n_parts:
        part[-1], part[0] = n_parts - 1, 0
        if n_parts == 3 and 1 not in part:
            part[-2] = 1
    return part


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
