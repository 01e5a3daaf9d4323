"""Amazon reviews: good against bad ones, from the files of McAuley's group, of any size.

A file has one review a line, as a JSON object or, in older files, as a Python literal. It is gone
through line by line, once; a sample is drawn by a reservoir for each class, so that the memory does
not grow with the file.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from setconv.datasets.dataset import Dataset, Problems, numbered_lines, proportional_quotas
from setconv.errors import DataError
from setconv.io.sources import ByteSource, open_bytes
from setconv.messages import check_integer

ADDRESS = "http://jmcauley.ucsd.edu/data/amazon/"
LICENCE = "Collected by J. McAuley's group; for research use, with a citation of their papers."

_POSITIVE, _NEGATIVE, _NEUTRAL = "positive", "negative", "neutral"
_NAME = re.compile(r"(?:reviews_)?(.+?)(?:_\d+)?(?:\.jsonl?)?(?:\.gz)?", re.IGNORECASE)
# The files of 2014 and 2018 have the first names, those of 2023 the others.
_RATING, _TEXT = ("overall", "rating"), ("reviewText", "text")

_Review = tuple[int, str, str]  # number of the line, label made from the rating, text


def load_amazon(path: str | Path, *, size: int | None = None, seed: int = 0) -> Dataset:
    """Read the reviews of one category: rating above 3 against rating below 3.

    The categories are listed at http://jmcauley.ucsd.edu/data/amazon/, and published as files such
    as http://snap.stanford.edu/data/amazon/productGraph/categoryFiles/reviews_Books_5.json.gz.

    Reviews with exactly 3 stars are left out, as in the paper. Lines that are no review, or have
    no rating or no text, are left out and counted in ``problems``. The majority class,
    "positive", is what the paper's Table 2 has under "Negative".

    With ``size`` no more than so many reviews of each class are held, however long the file is.

    Parameters
    ----------
    path : str or Path
        A file of McAuley's group, plain or with gzip: one review a line, as JSON or, in the older
        files, as a Python literal. Those of 2014, 2018 and 2023 are known.
    size : int or None, default=None
        So many reviews, drawn uniformly in each class; the classes keep their shares. None: all.
    seed : int, default=0
        Which ones are drawn.

    Returns
    -------
    Dataset
        ``ids`` are the numbers of the lines.
    """
    if size is not None:
        check_integer("size", size, least=2)
    check_integer("seed", seed, least=0)
    problems, stars = Problems(), Counter[str]()
    with closing(open_bytes(path)) as source:
        found = _usable(source, problems, stars)
        reviews = found if size is None else _sampled(found, stars, size, seed)
        lines, labels, texts = zip(*reviews, strict=True)
    left_out = f"{stars[_NEUTRAL]:,} with 3 stars left out."
    provenance = f"Amazon reviews ({ADDRESS}), {Path(source.name).name}. {left_out}"
    if size is not None:
        provenance += f" {size:,} drawn, uniformly in each class, seed {seed}."
    named = _NAME.fullmatch(Path(path).name)
    return Dataset(
        name=f"Amazon {named[1].replace('_', ' ') if named else path}",
        texts=list(texts),
        features=None,
        labels=np.array(labels),
        ids=[*map(str, lines)],
        provenance=provenance,
        licence=LICENCE,
        problems=problems,
    )


def _usable(source: ByteSource, problems: Problems, stars: Counter[str]) -> Iterator[_Review]:
    """Iterate over reviews that are good or bad; all are counted."""
    file = Path(source.name).name
    for number, line in numbered_lines(source):
        review = _parse_review(line)
        if isinstance(review, str):
            problems.add(review, file, number)
            continue
        stars[review[0]] += 1
        if review[0] != _NEUTRAL:
            yield number, *review
    problems.warn(file)
    if not stars[_POSITIVE] + stars[_NEGATIVE]:
        raise DataError(
            f"{source.name}: no usable review (problems: {problems}; with 3 stars: "
            f"{stars[_NEUTRAL]}). Each line must be one object with overall and reviewText."
        )


def _sampled(reviews: Iterator[_Review], seen: Counter[str], size: int, seed: int) -> list[_Review]:
    """Return so many reviews, in their order; the classes keep their shares.

    Each class has a reservoir: of its reviews, of which so many are ``seen`` that are counted while
    they come, at most ``size`` are kept, each with the same chance.
    """
    random = Random(seed)
    kept: dict[str, list[_Review]] = {_POSITIVE: [], _NEGATIVE: []}
    for review in reviews:
        label = review[1]
        if seen[label] <= size:
            kept[label].append(review)
        elif (place := random.randrange(seen[label])) < size:
            kept[label][place] = review
    present = [one for one in kept if seen[one]]
    quotas = proportional_quotas(np.array([seen[one] for one in present]), size).tolist()
    drawn = [random.sample(kept[one], quota) for one, quota in zip(present, quotas, strict=True)]
    return sorted(chain(*drawn))


def _parse_review(line: bytes) -> tuple[str, str] | str:
    """Return label and text of a line, or what is wrong with it."""
    try:
        record = _parse_object(line.decode("utf-8"))
    except UnicodeDecodeError:
        return "not UTF-8: left out"
    if not isinstance(record, dict):
        return "neither JSON nor a Python literal of an object: left out"
    rating, text = (
        next((record[name] for name in names if record.get(name) is not None), None)
        for names in (_RATING, _TEXT)
    )
    label = _label(rating)
    if label is None:
        return "no rating from 1 to 5: left out"
    if not isinstance(text, str) or not text.strip():
        return "no text: left out"
    return label, text.strip()


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


def _label(rating: Any) -> str | None:
    try:
        stars = float(rating)
    except (TypeError, ValueError, OverflowError):
        return None
    if isinstance(rating, bool) or not 1 <= stars <= 5:
        return None
    return _POSITIVE if stars > 3 else _NEGATIVE if stars < 3 else _NEUTRAL
