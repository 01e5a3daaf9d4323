"""Amazon reviews: good against bad ones, from the files of McAuley's group, of any size.

A file has one review a line, as a JSON object or, in older files, as a Python literal. It is gone
through line by line; a sample is drawn by reservoirs in one pass and taken in a second, so that the
memory is that of the chosen reviews.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np

from setconv.datasets.dataset import Dataset, Problems, numbered_lines, proportional_quotas
from setconv.errors import DataError
from setconv.io.sources import ByteSource, open_bytes
from setconv.messages import check_choice, check_integer

ADDRESS = "http://jmcauley.ucsd.edu/data/amazon/"
LICENCE = "Collected by J. McAuley's group; for research use, with a citation of their papers."

_POSITIVE, _NEGATIVE, _NEUTRAL = "positive", "negative", "neutral"
_NAME = re.compile(r"(?:reviews_)?(.+?)(?:_\d+)?(?:\.jsonl?)?(?:\.gz)?", re.IGNORECASE)
# The files of 2014 and 2018 have the first names, those of 2023 the others.
_RATING = ("overall", "rating")
_TEXT = ("reviewText", "text")
_SUMMARY = ("summary", "title")
_PRODUCT = ("asin",)
_REVIEWER = ("reviewerID", "user_id")


@dataclass(frozen=True, slots=True)
class _Review:
    """A review, its label made from its rating."""

    label: str
    text: str
    product: str
    reviewer: str


def load_amazon(
    path: str | Path,
    *,
    size: int | None = None,
    seed: int = 0,
    summary: bool = False,
    group: Literal["asin", "reviewer"] | None = None,
) -> Dataset:
    """Read the reviews of one category: rating above 3 against rating below 3.

    The categories are listed at http://jmcauley.ucsd.edu/data/amazon/, and published as files such
    as http://snap.stanford.edu/data/amazon/productGraph/categoryFiles/reviews_Books_5.json.gz.

    Reviews with exactly 3 stars are left out, as in the paper. Lines that are no review, or have
    no rating or no text, are left out and counted in ``problems``. The majority class,
    "positive", is what the paper's Table 2 has under "Negative".

    With ``size`` the file is gone through twice: first to choose lines, then to take them. The
    memory is that of the chosen reviews, whatever the size of the file.

    Parameters
    ----------
    path : str or Path
        A file of McAuley's group, plain or with gzip: one review a line, as JSON or, in the older
        files, as a Python literal. Those of 2014, 2018 and 2023 are known.
    size : int or None, default=None
        So many reviews, drawn uniformly in each class; the classes keep their shares. None: all.
    seed : int, default=0
        Which ones are drawn.
    summary : bool, default=False
        Whether the title of a review is put before its text.
    group : {"asin", "reviewer"} or None, default=None
        What ``groups`` are: the product, or who wrote it.

    Returns
    -------
    Dataset
        ``ids`` are the numbers of the lines.
    """
    if size is not None:
        check_integer("size", size, least=2)
    check_integer("seed", seed, least=0)
    if group is not None:
        check_choice("group", group, ["asin", "reviewer"])
    with closing(open_bytes(path)) as source:
        file = _ReviewFile(source, summary)
        reviews = dict(file.usable()) if size is None else file.sampled(size, seed)
    groups = [one.product if group == "asin" else one.reviewer for one in reviews.values()]
    provenance = (
        f"Amazon reviews ({ADDRESS}), {Path(source.name).name}. {file.n_neutral:,} with 3 stars "
        "left out."
    )
    if size is not None:
        provenance += f" {size:,} drawn, uniformly in each class, seed {seed}."
    found = _NAME.fullmatch(Path(path).name)
    return Dataset(
        name=f"Amazon {found[1].replace('_', ' ') if found else path}",
        texts=[one.text for one in reviews.values()],
        features=None,
        labels=np.array([one.label for one in reviews.values()]),
        ids=[str(line) for line in reviews],
        groups=None if group is None else np.array(groups),
        provenance=provenance,
        licence=LICENCE,
        problems=file.problems,
    )


class _ReviewFile:
    """The reviews of a file by the numbers of their lines."""

    def __init__(self, source: ByteSource, summary: bool) -> None:
        self.n_neutral = 0
        self.problems = Problems()
        self._source = source
        self._summary = summary

    def usable(self) -> Iterator[tuple[int, _Review]]:
        """Iterate over reviews that are good or bad; the others are counted."""
        n_usable = 0
        file = Path(self._source.name).name
        for number, line in numbered_lines(self._source):
            review = _parse_review(line, self._summary)
            if isinstance(review, str):
                self.problems.add(review, file, number)
            elif review.label == _NEUTRAL:
                self.n_neutral += 1
            else:
                n_usable += 1
                yield number, review
        self.problems.warn(file)
        if not n_usable:
            raise DataError(
                f"{self._source.name}: no usable review (problems: {self.problems}; with 3 stars: "
                f"{self.n_neutral}). Each line must be one object with overall and reviewText."
            )

    def sampled(self, size: int, seed: int) -> dict[int, _Review]:
        """Return so many reviews: their lines are drawn in a first pass, and read in a second."""
        self._source.keep()  # a pipe can be read only once
        random = Random(seed)
        classes = {_POSITIVE: _Reservoir(size, random), _NEGATIVE: _Reservoir(size, random)}
        for number, review in self.usable():
            classes[review.label].offer(number)
        present = [one for one in classes.values() if one.seen]
        quotas = proportional_quotas(np.array([one.seen for one in present]), size)
        chosen = {
            line
            for reservoir, quota in zip(present, quotas.tolist(), strict=True)
            for line in reservoir.draw(quota)
        }
        self._source.rewind()
        taken = {}
        for number, line in numbered_lines(self._source):
            if number in chosen:
                again = _parse_review(line, self._summary)
                if isinstance(again, _Review):
                    taken[number] = again
        if len(taken) < len(chosen):
            raise DataError(f"{self._source.name} has changed while it was read. Read it again.")
        return taken


class _Reservoir:
    """Row numbers of a stream, at most so many, each with the same chance to be among them.

    Parameters
    ----------
    capacity : int
        How many are kept.
    random : Random

    Attributes
    ----------
    seen : int
        How many were offered.
    """

    def __init__(self, capacity: int, random: Random) -> None:
        self.seen = 0
        self._capacity = capacity
        self._random = random
        self._kept: list[int] = []

    def offer(self, row: int) -> None:
        """Take the row, or leave it."""
        self.seen += 1
        if len(self._kept) < self._capacity:
            self._kept.append(row)
            return
        place = self._random.randrange(self.seen)
        if place < self._capacity:
            self._kept[place] = row

    def draw(self, count: int) -> list[int]:
        """Return so many of the rows, at most the capacity, drawn uniformly from all offered."""
        return self._random.sample(self._kept, count)


def _parse_review(line: bytes, summary: bool) -> _Review | str:
    """Return the review of a line, or what is wrong with it; ``summary`` puts its title first."""
    try:
        record = _parse_object(line.decode("utf-8"))
    except UnicodeDecodeError:
        return "not UTF-8: left out"
    if not isinstance(record, dict):
        return "neither JSON nor a Python literal of an object: left out"
    label = _label(_first(record, _RATING))
    if label is None:
        return "no rating from 1 to 5: left out"
    text = _words(record, _TEXT)
    if summary:
        text = "\n".join(filter(None, [_words(record, _SUMMARY), text]))
    if not text:
        return "no text: left out"
    return _Review(label, text, _words(record, _PRODUCT), _words(record, _REVIEWER))


def _parse_object(line: str) -> Any:
    """Return what a line stands for, as JSON or as a Python literal; None if it is neither."""
    with suppress(ValueError, RecursionError):
        return json.loads(line)
    with (
        warnings.catch_warnings(action="ignore", category=SyntaxWarning),
        suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError),
    ):
        return ast.literal_eval(line.strip())
    return None


def _first(record: dict[str, Any], names: tuple[str, ...]) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _words(record: dict[str, Any], names: tuple[str, ...]) -> str:
    value = _first(record, names)
    return value.strip() if isinstance(value, str) else ""


def _label(rating: Any) -> str | None:
    try:
        stars = float(rating)
    except (TypeError, ValueError, OverflowError):
        return None
    if isinstance(rating, bool) or not 1 <= stars <= 5:
        return None
    return _POSITIVE if stars > 3 else _NEGATIVE if stars < 3 else _NEUTRAL
