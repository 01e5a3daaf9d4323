"""Files of incident tweets: whose city they are, which columns they have, what the labels mean."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from setconv.datasets.problems import ProblemLog
from setconv.errors import DataError
from setconv.names import did_you_mean, listed
from setconv.records import open_records

ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
NO, YES = "no", "yes"
INCIDENTS = ("crash", "fire", "shooting")

CITIES = {
    "Boston": ("boston",),
    "Sydney": ("sydney",),
    "Brisbane": ("brisbane",),
    "Chicago": ("chicago",),
    "Dublin": ("dublin",),
    "London": ("london",),
    "Memphis": ("memphis",),
    "NYC": ("nyc", "newyork"),
    "SF": ("sf", "sanfrancisco"),
    "Seattle": ("seattle",),
}
_COLUMNS = {
    "text": ("text", "tweet", "tweet_text", "content", "message"),
    "label": ("label", "class", "category", "incident", "incident_type", "type"),
    "id": ("id", "tweet_id", "tweetid", "id_str"),
    "city": ("city", "location"),
}
_LABELS = {
    **dict.fromkeys(["no", "none", "neutral", "not incident related", "no incident", "0"], NO),
    **dict.fromkeys(["yes", "incident related", "incident", "1"], YES),
    **{one: one for one in INCIDENTS},
}


@dataclass(frozen=True)
class Tweet:
    """A row of a file."""

    city: str
    label: str
    text: str
    id: str | None
    file: str
    row: int


def city_named(name: str) -> str | None:
    """Return the one city that a name tells, in any common spelling."""
    words = re.findall("[a-z]+", name.lower())
    joined = "".join(words)
    found = [
        city
        for city, spellings in CITIES.items()
        # Three letters may stand inside of any word.
        if any(one in (words if len(one) <= 3 else joined) for one in spellings)
    ]
    return found[0] if len(found) == 1 else None


def city_of(file: Path) -> str | None:
    """Return the city that the name of a file tells, or else that of its folder."""
    return city_named(file.name) or city_named(file.parent.name)


def read_tweets(
    file: Path, text: str | None, label: str | None, problems: ProblemLog
) -> Iterator[Tweet]:
    """Iterate over the usable rows of a file; the others are taken down as problems."""
    with open_records(file) as reader:
        names = {
            "text": _column("text", reader.columns, text, file),
            "label": _column("label", reader.columns, label, file),
            "id": _known("id", reader.columns),
            "city": _known("city", reader.columns),
        }
        row = 0
        for table in reader.batches():
            columns = [
                [None] * len(table) if name is None else table[name].to_pylist()
                for name in names.values()
            ]
            for values in zip(*columns, strict=True):
                row += 1
                tweet = _tweet(file, row, *(_words(one) for one in values))
                if isinstance(tweet, Tweet):
                    yield tweet
                else:
                    problems.add(tweet, file.name, row, "row")


def _tweet(file: Path, row: int, text: str, label: str, id: str, city: str) -> Tweet | str:
    """Return the tweet of a row, or what is wrong with it."""
    place = city_named(city) if city else city_of(file)
    meaning = _meaning(label)
    if not text:
        return "no text: left out"
    if meaning is None:
        return "unknown label: left out" if label else "no label: left out"
    if place is None:
        return "unknown city: left out"
    return Tweet(place, meaning, text, id or None, file.name, row)


def _meaning(label: str) -> str | None:
    bare = " ".join(re.findall("[a-z0-9]+", label.lower()))
    return _LABELS.get(bare)


def _words(value: object) -> str:
    return "" if value is None else str(value).strip()


def _known(what: str, columns: Sequence[str]) -> str | None:
    by_name = {one.strip().lower(): one for one in columns}
    return next((by_name[one] for one in _COLUMNS[what] if one in by_name), None)


def _column(what: str, columns: Sequence[str], given: str | None, file: Path) -> str:
    found = _known(what, columns) if given is None else given
    if found is None or found not in columns:
        wanted = f"column {given!r}" if given else f"column of {what}s ({listed(_COLUMNS[what])})"
        raise DataError(
            f"{file} has no {wanted}.{did_you_mean(given or what, columns)} Its columns are "
            f"{listed(columns)}: name one with {what}=..., "
            "or move the file elsewhere if it is no file of tweets."
        )
    return found
