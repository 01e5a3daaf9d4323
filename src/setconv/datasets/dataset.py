"""What the loaders share: the `Dataset` that each returns, and what they need on the way to it.

Lines that cannot be used do not stop a loader: `Problems` counts them while a file is read, and the
data set has them. `find_files` looks through a folder, and `numbered_lines` reads files of one row
a line; `proportional_quotas` says how many rows of each class a sample has.
"""

from __future__ import annotations

import logging
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setconv.errors import DataError, LabelError, ParameterError
from setconv.io.jsonl import split_lines
from setconv.io.sources import ByteSource
from setconv.messages import check_integer, count_of, did_you_mean, listed
from setconv.sampling import share_out

logger = logging.getLogger("setconv")

SHOWN = 5  # places that are told of a kind of problem
Array = NDArray[Any]


class Problems:
    """What is wrong with lines or rows of a data set, by kind; it is false if nothing is.

    Its memory does not grow with the file.

    Attributes
    ----------
    counts : Counter of str
        How many lines or rows have a problem of a kind, such as "no text: left out".
    first : dict of str to list of str
        Where the first of a kind are, such as "tweets.tsv, line 17".
    """

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.first: dict[str, list[str]] = {}

    def add(self, kind: str, file: str, line: int, unit: str = "line") -> None:
        """Take down a problem of a line, or of another unit; ``kind`` is one of a few phrases."""
        self.counts[kind] += 1
        if self.counts[kind] <= SHOWN:
            self.first.setdefault(kind, []).append(f"{file}, {unit} {line}")

    def warn(self, name: str) -> None:
        """Warn of them, if there are any; ``name`` says in which data set."""
        if self:
            logger.warning("%s: %s: %s.", name, count_of(self.counts.total(), "problem"), self)

    def __bool__(self) -> bool:
        return bool(self.counts)

    def __str__(self) -> str:
        kinds = [
            f"{count:,} x {kind} ({'; '.join(self.first[kind])}{', ...' if count > SHOWN else ''})"
            for kind, count in self.counts.most_common()
        ]
        return "; ".join(kinds) or "none"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set: texts or features, labels, and where they come from.

    Attributes
    ----------
    name : str
    texts : list of str or None
        Exactly one of ``texts`` and ``features`` is given.
    features : ndarray of shape (n_rows, n_features) or None
    labels : ndarray of shape (n_rows,)
        Strings or ints, as published.
    ids : list of str or None
        What the owners call the rows.
    groups : ndarray of shape (n_rows,) or None
        Rows that belong together, such as tweets of one city or copies of one tweet.
    feature_names : list of str or None
    provenance : str
        The files, and what was chosen from them.
    licence : str
        What the owners allow.
    problems : Problems
        Lines that could not be used as they are.
    """

    name: str
    texts: list[str] | None
    features: Array | None
    labels: Array
    ids: list[str] | None = None
    groups: Array | None = None
    feature_names: list[str] | None = None
    provenance: str = ""
    licence: str = ""
    problems: Problems = field(default_factory=Problems)

    def __post_init__(self) -> None:
        if (self.texts is None) == (self.features is None):
            raise DataError(f"{self.name}: give either texts or features.")
        if self.n_rows == 0:
            raise DataError(f"{self.name} has no rows.")
        for what in ("texts", "features", "ids", "groups"):
            value = getattr(self, what)
            if value is not None and len(value) != self.n_rows:
                raise DataError(
                    f"{self.name}: {len(value)} {what} for {self.n_rows} labels. "
                    "Give one for each row."
                )

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.labels)

    @property
    def classes(self) -> Array:
        """The labels that occur, sorted."""
        return np.unique(self.labels)

    @property
    def class_counts(self) -> dict[Any, int]:
        """Rows of each class, in the order of ``classes``."""
        classes, counts = np.unique(self.labels, return_counts=True)
        return dict(zip(classes.tolist(), counts.tolist(), strict=True))

    @property
    def imbalance_ratio(self) -> float:
        """Rows of the largest class over rows of the smallest."""
        counts = self.class_counts.values()
        return max(counts) / min(counts)

    def take(self, rows: ArrayLike) -> Dataset:
        """Return the chosen rows: row numbers, in their order, or a mask."""
        chosen = np.arange(self.n_rows)[np.asarray(rows)]
        return replace(
            self,
            texts=None if self.texts is None else [self.texts[row] for row in chosen],
            features=None if self.features is None else self.features[chosen],
            labels=self.labels[chosen],
            ids=None if self.ids is None else [self.ids[row] for row in chosen],
            groups=None if self.groups is None else self.groups[chosen],
        )

    def binary(self, positive: Any, name: str | None = None) -> Dataset:
        """Return the same rows with two classes: ``positive`` against the rest.

        Parameters
        ----------
        positive : label, or sequence of labels
            One class, or several that become one.
        name : str or None, default=None
            Name of the new data set; None makes it from the class.

        Returns
        -------
        Dataset
            Its labels are strings: "crash" and "not crash", or "crash+fire" and "not crash+fire".
        """
        wanted = self._check_classes(positive)
        label = "+".join(map(str, wanted))
        return replace(
            self,
            name=name or f"{self.name}: {label}",
            labels=np.where(np.isin(self.labels, np.asarray(wanted)), label, f"not {label}"),
            provenance=f"{self.provenance} {label} against the rest.".strip(),
        )

    def subsample(self, size: int, seed: int = 0) -> Dataset:
        """Return so many rows drawn uniformly in each class; the classes keep their shares."""
        _, codes, counts = np.unique(self.labels, return_inverse=True, return_counts=True)
        random = np.random.default_rng(seed)
        # By choice, as the published studies drew their rows.
        chosen = [
            random.choice(np.flatnonzero(codes == code), size=quota, replace=False)
            for code, quota in enumerate(proportional_quotas(counts, size))
        ]
        return self.take(np.sort(np.concatenate(chosen)))

    def __str__(self) -> str:
        return (
            f"{self.name}: {count_of(self.n_rows, 'row')}, "
            f"{count_of(len(self.classes), 'class', 'classes')}, IR {self.imbalance_ratio:.2f}"
        )

    def __repr__(self) -> str:
        return f"<Dataset {self}>"

    def _check_classes(self, positive: Any) -> list[Any]:
        several = isinstance(positive, Sequence | np.ndarray) and not isinstance(positive, str)
        wanted = list(dict.fromkeys(positive)) if several else [positive]
        known = self.classes.tolist()
        if set(wanted) <= set(known) and 0 < len(wanted) < len(known):
            return wanted
        names = [*map(str, known)]
        raise LabelError(
            f"{self.name}: {positive!r} is not a part of its classes."
            f"{did_you_mean(str(positive), names)} They are {listed(names)}.",
            parameter="positive",
        )


def find_files(folder: Path, fits: Callable[[str], Any], otherwise: str) -> list[Path]:
    """Return the files in a folder whose names fit, sorted; hidden ones never do.

    Parameters
    ----------
    folder : Path
    fits : callable
        What a name is true for.
    otherwise : str
        What is said of a folder without such files, after its name.
    """
    found = sorted(one for one in folder.rglob("[!.]*") if fits(one.name))
    if not found:
        raise DataError(f"{folder}{otherwise}")
    return found


def numbered_lines(source: ByteSource) -> Iterator[tuple[int, bytes]]:
    """Iterate over line numbers, from 1, and lines without their end; empty lines are passed over.

    Lines stay bytes, so that one which cannot be decoded is a problem of that line alone.
    """
    for number, line in enumerate(split_lines(source), start=1):
        bare = (line.removeprefix(BOM_UTF8) if number == 1 else line).rstrip(b"\r")
        if bare.strip():
            yield number, bare


def proportional_quotas(counts: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return rows for each class that sum to ``size``, as near to the shares as whole rows can be.

    Fractions are rounded by the largest remainder. A class keeps at least one row.

    Parameters
    ----------
    counts : ndarray of int
        Rows of each class, none of them 0.
    size : int
        Between the number of classes and the number of rows.
    """
    check_integer("size", size, least=1)
    total = int(counts.sum())
    if not len(counts) <= size <= total:
        raise ParameterError(
            f"size={size}: give {len(counts)} (one row for each class) to {total:,} (all rows).",
            parameter="size",
        )
    return share_out(counts, size)
