"""The first pass over the training rows, in which they are looked at before anything is learned.

`look_through` finds copies, features that tell a class alone (`warn_of_leaks`) and, of rows that
are not in memory, what standardises their columns. Each looks at some rows at a time, so of many
rows nothing is kept but what a split needs.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import gammaln

from setconv.data import Features, Rows, StoredRows, count_each, row_blocks
from setconv.preprocessing import Spread
from setconv.sampling import (
    FEW_ROWS,
    Keys,
    Ties,
    buckets,
    draw_by_class,
    few_are_possible,
    is_many,
    row_keys,
    tie_copies,
)
from setconv.validation import LabelColumn, stack_rows

Array = NDArray[Any]


@dataclass(frozen=True)
class FirstPass:
    """What the first pass over the training rows has found.

    Attributes
    ----------
    rows : Rows
        With what ties them together.
    ties : Ties
        Of many rows only whether they are alike by nature.
    digest : bytes
        What tells the rows from others.
    keys : uint64 array of shape (n_rows,), optional
        Equal for copies; None of many rows.
    spread : Spread, optional
        Of rows that are not in memory.
    """

    rows: Rows
    ties: Ties
    digest: bytes
    keys: Keys | None = None
    spread: Spread | None = None

    def keys_of(self, rows: Features) -> Keys:
        """Return numbers that are equal for copies."""
        return row_keys(rows) if self.keys is None else self.keys


def look_through(
    train: Rows, classes: Array, keys: Keys | None, names: Array | None, labels: LabelColumn | None
) -> FirstPass:
    """Go once over the training rows: find copies, leaks and, if they are on disk, their spread.

    Parameters
    ----------
    train : Rows
        Without what ties them together.
    classes : array of shape (n_classes,)
    keys : uint64 array of shape (n_rows,), optional
        Equal for copies; None: found out.
    names : array of str, optional
        Of the features.
    labels : LabelColumn, optional
        Refuses rows that have the labels among them.
    """
    rows, codes, digest = train.features, train.codes, hashlib.blake2b(digest_size=20)
    # What groups or times part is compared with all other rows, so their keys are kept.
    many, parted = is_many(len(codes)), train.groups is not None or train.moments is not None
    all_keys = np.empty(len(codes), dtype=np.uint64) if parted or not many else None
    together: Any = np.empty(len(codes), dtype=np.uint8)
    drawn = _draw_for_leaks(issparse(rows), rows.shape[1], codes)
    sample: list[Any] = []
    spread = Spread(rows.shape[1], train.weights) if isinstance(rows, StoredRows) else None
    for part, some in row_blocks(rows):
        own = row_keys(some)
        digest.update(own.data)
        own = own if keys is None else keys[part]
        if all_keys is not None:
            all_keys[part] = own
        together[part] = buckets(own)
        here = drawn[slice(*np.searchsorted(drawn, [part.start, part.stop]))]
        if len(here):
            sample.append(some[here - part.start])
        for one in (spread, labels):
            if one is not None:
                one.add(part, some)
    if labels is not None:
        labels.refuse()
    picked = stack_rows(sample)
    own = row_keys(picked) if keys is None else keys[drawn]
    warn_of_leaks(picked, classes, codes[drawn], count_each(codes), own, names)
    if not many:
        assert all_keys is not None
        ties, together = tie_copies(all_keys, rows, codes, train.groups), None
        # Of copies the spread is to count one.
        spread = spread if ties.shares is None else None
    else:
        natural = keys is None and _alike_by_nature(picked, codes, together)
        ties = Ties(train.groups, crossing=None if natural else all_keys, natural=natural)
        if train.groups is not None:
            together = buckets(train.groups)
        elif natural:
            together = buckets(np.arange(len(codes)))
    found = {name: getattr(ties, name) for name in ("units", "shares", "crossing", "natural")}
    tied = replace(train, buckets=together, **found)
    return FirstPass(tied, ties, digest.digest(), None if many else all_keys, spread)


def _alike_by_nature(sample: Any, codes: NDArray[Any], found: NDArray[np.uint8]) -> bool:
    """Whether many rows are alike because few different ones are possible, as in `tie_copies`.

    Different rows of a class are seen by its different buckets.
    """
    fewest = min(len(np.unique(found[codes == code])) for code in range(int(codes.max()) + 1))
    if fewest >= FEW_ROWS or issparse(sample):
        return False
    return few_are_possible(sample, len(codes), single=fewest == 1)


# Of a class and the rest; so high that no measurement made before the fact has it.
_LEAK_AUC = 0.999
_LEAK_ROWS = 4096
_LEAK_CELLS = 1 << 22  # of more columns fewer rows are looked at
_MOST_NAMED = 5


def _draw_for_leaks(sparse: bool, width: int, codes: NDArray[Any]) -> NDArray[np.int64]:
    """Return the rows that `warn_of_leaks` looks at: as many of each class."""
    counts = count_each(codes)
    most = _LEAK_ROWS if sparse else min(_LEAK_ROWS, _LEAK_CELLS // width)
    return draw_by_class(codes, np.minimum(counts, most // len(counts)), np.random.default_rng(0))


def warn_of_leaks(
    sample: Any,
    classes: Array,
    of: NDArray[Any],
    counts: NDArray[Any],
    keys: Keys,
    names: Array | None,
) -> None:
    """Name features that tell a class from the rest alone, on a sample of the rows.

    Parameters
    ----------
    sample : array or csr matrix of shape (n_rows, n_features)
    classes : array of shape (n_classes,)
    of : int array of shape (n_rows,)
        Class of each row.
    counts : int array of shape (n_classes,)
        Of all rows.
    keys : uint64 array of shape (n_rows,)
        Equal for copies, which count once: one row many times is told from all others by anything.
    names : array of str, optional
        Of the features.
    """
    once = np.sort(np.unique(keys, return_index=True)[1])
    sample, of = sample[once], of[once]
    found: list[str] = []
    for code in range(len(classes)) if len(classes) > 2 else [int(counts.argmin())]:
        own = of == code
        # By luck alone a column parts n rows with a chance of 2 / C(n, n1): none is to do so.
        n_rows, n_own = len(own), int(own.sum())
        ways = gammaln(n_rows + 1) - gammaln(n_own + 1) - gammaln(n_rows - n_own + 1)
        if np.log(2 * sample.shape[1] / 0.01) >= ways:
            continue
        label = classes[code].item() if isinstance(classes[code], np.generic) else classes[code]
        for column, auc in _separating(sample, own):
            name = f"column {column}" if names is None else repr(str(names[column]))
            found.append(f"{name} (class {label!r}, AUC {auc:.4f})")
    if found:
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        warnings.warn(
            f"Features that tell a class from the rest alone: {', '.join(found[:_MOST_NAMED])}"
            f"{more}. Is it an identifier, or written after the fact? Leave it out unless it is "
            "known when you predict.",
            UserWarning,
            stacklevel=2,
        )


def _separating(sample: Any, own: NDArray[np.bool_]) -> Iterator[tuple[int, float]]:
    """Yield the columns in which a class and the rest lie apart, with the AUC, in either order."""
    least = 2 * (1 - _LEAK_AUC) + 1e-9
    columns = np.arange(sample.shape[1])
    if issparse(sample):
        # Zeros of both sides are ties, so one side has few: of a million columns few are left.
        zeros = [1 - side.getnnz(axis=0) / side.shape[0] for side in (sample[own], sample[~own])]
        columns = np.flatnonzero(zeros[0] * zeros[1] <= least)
    size = _LEAK_CELLS // len(own)
    for start in range(0, len(columns), size):
        here = columns[start : start + size]
        some = sample[:, here].toarray() if issparse(sample) else sample[:, here]
        # Half of the class is at its median or above, half there or below: where the AUC is near 0
        # or 1, hardly any of the rest is beyond, and hardly any rows of both sides are at it.
        inside, rest = some[own], some[~own]
        middle = np.partition(inside, len(inside) // 2, axis=0)[len(inside) // 2]
        above, below = (rest > middle).mean(axis=0), (rest < middle).mean(axis=0)
        ties = (1 - above - below) * (inside == middle).mean(axis=0)
        for place in np.flatnonzero(np.minimum(above, below) + ties <= least):
            others = np.sort(rest[:, place])
            passed = [np.searchsorted(others, inside[:, place], side) for side in ("left", "right")]
            auc = float(np.mean(passed)) / len(others)
            auc = max(auc, 1 - auc)
            if auc >= _LEAK_AUC:
                yield int(here[place]), auc
