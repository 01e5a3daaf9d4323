"""Amazon reviews: good against bad ones, from the files of McAuley's group, of any size."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np

from setconv.datasets.dataset import Dataset, ProblemLog, Problems, proportional_quotas
from setconv.errors import DataError
from setconv.io.sources import ByteSource, open_bytes
from setconv.messages import check_choice, check_integer

# ---------- datasets.lines

BLOCK = 1 << 20
LONGEST = 1 << 26
_MARK = b"\xef\xbb\xbf"


def numbered_lines(source: ByteSource) -> Iterator[tuple[int, bytes]]:
    """Iterate over line numbers, from 1, and lines without their end; empty lines are passed over.

    Lines stay bytes, so that one which cannot be decoded is a problem of that line alone.
    """
    for number, line in enumerate(_lines(source), start=1):
        bare = (line.removeprefix(_MARK) if number == 1 else line).rstrip(b"\r")
        if bare.strip():
            yield number, bare


def _lines(source: ByteSource) -> Iterator[bytes]:
    rest = b""
    while block := source.read(BLOCK):
        lines = (rest + block).split(b"\n")
        rest = lines.pop()
        yield from lines
        if len(rest) > LONGEST:
            raise DataError(
                f"{source.name}: no line end within {LONGEST >> 20} MB. Is it a text file with one "
                "row a line?"
            )
    if rest:
        yield rest


# ---------- datasets.reservoir


class Reservoir:
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


# ---------- datasets.amazon_reviews

POSITIVE, NEGATIVE, NEUTRAL = "positive", "negative", "neutral"

# The files of 2014 and 2018 have the first names, those of 2023 the others.
_RATING = ("overall", "rating")
_TEXT = ("reviewText", "text")
_SUMMARY = ("summary", "title")
_PRODUCT = ("asin",)
_REVIEWER = ("reviewerID", "user_id")


@dataclass(frozen=True, slots=True)
class Review:
    """A review, its label made from its rating."""

    label: str
    text: str
    product: str
    reviewer: str


def parse_review(line: bytes, summary: bool) -> Review | str:
    """Return the review of a line, or what is wrong with it; ``summary`` puts its title first."""
    try:
        record = _record(line.decode("utf-8"))
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
    return Review(label, text, _words(record, _PRODUCT), _words(record, _REVIEWER))


def _record(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return _literal(line)


def _literal(line: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            return ast.literal_eval(line.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
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
    return POSITIVE if stars > 3 else NEGATIVE if stars < 3 else NEUTRAL


# ---------- datasets.amazon

ADDRESS = "http://jmcauley.ucsd.edu/data/amazon/"
LICENCE = "Collected by J. McAuley's group; for research use, with a citation of their papers."

_NAME = re.compile(r"(?:reviews_)?(.+?)(?:_\d+)?(?:\.jsonl?)?(?:\.gz)?", re.IGNORECASE)


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
        file = _File(source, summary)
        reviews = dict(file.usable()) if size is None else file.sampled(size, seed)
    groups = [one.product if group == "asin" else one.reviewer for one in reviews.values()]
    found = _NAME.fullmatch(Path(path).name)
    return Dataset(
        name=f"Amazon {found[1].replace('_', ' ') if found else path}",
        texts=[one.text for one in reviews.values()],
        features=None,
        labels=np.array([one.label for one in reviews.values()]),
        ids=[str(line) for line in reviews],
        groups=None if group is None else np.array(groups),
        provenance=_provenance(source.name, file.n_neutral, size, seed),
        licence=LICENCE,
        problems=file.problems,
    )


class _File:
    """The reviews of a file by the numbers of their lines."""

    def __init__(self, source: ByteSource, summary: bool) -> None:
        self.n_neutral = 0
        self.problems = Problems()
        self._source = source
        self._summary = summary

    def sampled(self, size: int, seed: int) -> dict[int, Review]:
        self._source.keep()  # a pipe can be read only once
        random = Random(seed)
        classes = {POSITIVE: Reservoir(size, random), NEGATIVE: Reservoir(size, random)}
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
        return self._taken(chosen)

    def _taken(self, chosen: set[int]) -> dict[int, Review]:
        taken = {}
        for number, line in numbered_lines(self._source):
            if number in chosen:
                review = parse_review(line, self._summary)
                if isinstance(review, Review):
                    taken[number] = review
        if len(taken) < len(chosen):
            raise DataError(f"{self._source.name} has changed while it was read. Read it again.")
        return taken

    def usable(self) -> Iterator[tuple[int, Review]]:
        """Iterate over reviews that are good or bad; the others are counted."""
        problems, n_usable = ProblemLog(), 0
        file = Path(self._source.name).name
        for number, line in numbered_lines(self._source):
            review = parse_review(line, self._summary)
            if isinstance(review, str):
                problems.add(review, file, number)
            elif review.label == NEUTRAL:
                self.n_neutral += 1
            else:
                n_usable += 1
                yield number, review
        self.problems = problems.close(file)
        if not n_usable:
            raise DataError(
                f"{self._source.name}: no usable review (problems: {self.problems}; with 3 stars: "
                f"{self.n_neutral}). Each line must be one object with overall and reviewText."
            )


def _provenance(name: str, n_neutral: int, size: int | None, seed: int) -> str:
    said = f"Amazon reviews ({ADDRESS}), {Path(name).name}. {n_neutral:,} with 3 stars left out."
    return said if size is None else f"{said} {size:,} drawn, uniformly in each class, seed {seed}."
