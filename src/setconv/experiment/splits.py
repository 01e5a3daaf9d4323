"""The division of rows into training, validation and test rows."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setconv.errors import DataError, LabelError
from setconv.experiment.study import SplitRule

_Index = NDArray[np.int64]


class Split(NamedTuple):
    """Row numbers, each in ascending order; ``validation`` may be empty."""

    train: _Index
    validation: _Index
    test: _Index


def seed_of(*parts: object) -> int:
    """Return a seed that is the same on every machine and in every process."""
    digest = hashlib.sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:4], "little")


def count_splits(
    rule: SplitRule, labels: NDArray[Any], groups: NDArray[Any] | None, where: str
) -> int:
    """Return how many splits a rule makes of these rows; refuse rows that it cannot divide."""
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise LabelError(
            f"{where} has a single class, {classes[0]}: there is nothing to tell apart."
        )
    needed = len(rule.parts)
    if counts.min() < needed:
        label, count = classes[counts.argmin()], counts.min()
        raise LabelError(
            f"{where}: class {label} has {count} of the {len(labels)} rows, and a split "
            f"{'/'.join(map(str, rule.parts))} needs {needed}. Drop the class (drop: [{label}]) "
            "or join it with another (binary)."
        )
    if rule.leave_out is None:
        return rule.repeats
    left_out = _groups_to_leave_out(rule, labels, groups, where)
    if len(left_out) < 2:
        raise DataError(
            f"{where}: class {rule.leave_out} has one group, {left_out[0]}: leaving it out leaves "
            "nothing to learn the class from."
        )
    return len(left_out)


def make_split(
    rule: SplitRule,
    labels: NDArray[Any],
    groups: NDArray[Any] | None,
    number: int,
    seed: int,
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
    if rule.leave_out is not None:
        return _leave_out(rule, labels, groups, number, rng)
    place = _deal(labels, groups, np.array(rule.parts) / 100, rng)
    train, *middle, test = (np.flatnonzero(place == part) for part in range(len(rule.parts)))
    return Split(train, middle[0] if middle else np.empty(0, np.int64), test)


def _deal(
    labels: NDArray[Any], groups: NDArray[Any] | None, shares: Any, rng: np.random.Generator
) -> _Index:
    """Return the part of each row: whole groups, each class in the shares as near as they allow."""
    units = np.arange(len(labels)) if groups is None else np.unique(groups, return_inverse=True)[1]
    first = np.full(units.max() + 1, -1)
    first[units[::-1]] = np.arange(len(labels))[::-1]
    sizes = np.bincount(units)
    codes = np.unique(labels, return_inverse=True)[1][first]
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
        part = part.copy()
        part[-1], part[0] = n_parts - 1, 0
        if n_parts == 3 and 1 not in part:
            part[-2] = 1
    return part


def _leave_out(
    rule: SplitRule,
    labels: NDArray[Any],
    groups: NDArray[Any] | None,
    number: int,
    rng: np.random.Generator,
) -> Split:
    assert groups is not None
    away = _groups_to_leave_out(rule, labels, groups, "")[number]
    mine = labels.astype(str) == rule.leave_out
    drawn = _deal(labels, None, np.array(rule.parts) / 100, rng) == 1
    test = (groups == away) | (~mine & drawn)
    none = np.empty(0, np.int64)
    return Split(np.flatnonzero(~test), none, np.flatnonzero(test))


def _groups_to_leave_out(
    rule: SplitRule, labels: NDArray[Any], groups: NDArray[Any] | None, where: str
) -> NDArray[Any]:
    if groups is None:
        raise DataError(f"{where}: leave_out needs groups: name their column with group.")
    found = np.unique(groups[labels.astype(str) == rule.leave_out])
    if not len(found):
        known = ", ".join(map(str, np.unique(labels)))
        raise LabelError(f"{where}: leave_out={rule.leave_out!r} is no class; there are {known}.")
    return found


def thin(
    rows: _Index, labels: NDArray[Any], ratio: float, majority: int | None, seed: int
) -> _Index:
    """Return training rows whose largest class has ``ratio`` rows for one of each other class.

    The largest class keeps ``majority`` rows, or all; the rows of a small ratio hold those of a
    larger one.
    """
    rng = np.random.default_rng(seed)
    classes, codes, counts = np.unique(labels[rows], return_inverse=True, return_counts=True)
    largest = int(counts.argmax())
    most = int(counts[largest]) if majority is None else min(majority, int(counts[largest]))
    kept = []
    for code in range(len(classes)):
        order = rng.permutation(np.flatnonzero(codes == code))
        wanted = most if code == largest else max(2, round(most / ratio))
        if wanted > len(order):
            raise DataError(
                f"class {classes[code]} has {len(order)} training rows, and a ratio of {ratio:g} "
                f"to {most} rows needs {wanted}: give a smaller majority."
            )
        kept.append(order[:wanted])
    return np.sort(rows[np.concatenate(kept)])
