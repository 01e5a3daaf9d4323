"""Incident-related tweets of ten cities (IRT), from the files that their owners give out.

How the owners lay out their files is not published: `load_irt` says what is assumed. Files of the
wanted cities are found and read row by row; cities, columns and labels are known by any of their
common names. Of each city those files are taken that were made for the task.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from setconv.datasets.dataset import Dataset, Problems, find_files
from setconv.errors import DataError
from setconv.io.columns import find_columns, nothing_found
from setconv.io.records import open_records
from setconv.messages import check_choice, listed

logger = logging.getLogger("setconv")

ADDRESS = "http://www.doc.gold.ac.uk/~cguck001/IncidentTweets/"
LICENCE = "Given out by its owners on request; do not redistribute it."
CITIES = (
    *("Boston", "Sydney", "Brisbane", "Chicago", "Dublin"),
    *("London", "Memphis", "NYC", "SF", "Seattle"),
)

_LONG_NAMES = {"NYC": "newyork", "SF": "sanfrancisco"}
_WHERE_TO_ASK = (
    f"The tweets are given out by their owners on request: {ADDRESS} (A. Schulz, C. Guckelsberger "
    "and F. Janssen, Semantic Abstraction for generalization of tweet classification, Semantic "
    "Web 8(3), 2017)."
)
_NO, _YES = "no", "yes"
_INCIDENTS = ("crash", "fire", "shooting")
_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
_ID_NAMES = ("id", "tweet_id", "tweetid", "id_str")
_CITY_NAMES = ("city", "location")
_LABELS = {
    **dict.fromkeys(["no", "none", "neutral", "not incident related", "no incident", "0"], _NO),
    **dict.fromkeys(["yes", "incident related", "incident", "1"], _YES),
    **{one: one for one in _INCIDENTS},
}


@dataclass(frozen=True)
class _Tweet:
    """A row of a file."""

    city: str
    label: str
    text: str
    id: str | None
    file: str
    row: int


def load_irt(
    folder: str | Path,
    *,
    city: str | None = None,
    task: Literal["binary", "four_class"] = "binary",
    text: str | None = None,
    label: str | None = None,
) -> Dataset:
    """Read the incident-related tweets of one city, or of all ten.

    How the owners lay out their files is not published. What is assumed here:

    - The folder, or folders in it, hold CSV, TSV, JSONL or Parquet files, each also with gzip, and
      the first three are in any common encoding; CSV and TSV have column names.
    - A file is of the city that its name tells ("boston_4class.csv"), or else its folder's, unless
      it has a column "city" or "location".
    - The columns of texts and labels are found as `load_file` finds them; ids, if any, are in "id",
      "tweet_id" or "id_str".
    - Labels are "yes" or 1 ("incident related"), "no" or 0 ("not incident related", "neutral",
      "none"), "crash", "fire" and "shooting", in any case.

    The paper's two settings do not agree row by row, so a city may have a file for each. For
    "binary" a file with yes and no is taken if there is one, else crash, fire and shooting become
    "yes". For "four_class" only files that tell the kind of incident are taken.

    Parameters
    ----------
    folder : str or Path
        Where the files are.
    city : str or None, default=None
        One of Boston, Sydney, Brisbane, Chicago, Dublin, London, Memphis, NYC, SF and Seattle;
        None or "all" for all that are there.
    task : {"binary", "four_class"}, default="binary"
        Labels are "yes" and "no", or "crash", "fire", "shooting" and "no".
    text, label : str or None, default=None
        Names of the columns where they are others.

    Returns
    -------
    Dataset
        ``groups`` are the cities, if there are several.
    """
    check_choice("task", task, ["binary", "four_class"])
    wanted = list(CITIES)
    if city is not None and city != "all":
        wanted = [city_named(city) or city]
        check_choice("city", wanted[0], CITIES)
    files = find_files(
        Path(folder),
        lambda name: name.lower().removesuffix(".gz").endswith(_ENDINGS),
        f" has no file with {listed(_ENDINGS)}. {_WHERE_TO_ASK}",
    )
    problems = Problems()
    by_city: dict[str, dict[Path, list[_Tweet]]] = {}
    for file in [one for one in files if _city_of(one) in (None, *wanted)]:
        for tweet in _read_tweets(file, text, label, problems):
            by_city.setdefault(tweet.city, {}).setdefault(file, []).append(tweet)
    present = [one for one in wanted if one in by_city]
    name = f"IRT {'all cities' if len(wanted) > 1 else wanted[0]}, {task.replace('_', ' ')}"
    chosen = [one for place in present for one in _of_task(by_city[place], task, place, problems)]
    problems.warn(name)
    if not chosen:
        raise DataError(
            f"{folder}: no tweets of {listed(wanted)} (problems: {problems}). The files are "
            f"{listed([one.name for one in files])}: the name of the city must be in that of a "
            "file, or in a column 'city'."
        )
    if missing := [one for one in wanted if one not in by_city]:
        logger.warning("%s: no tweets of %s are there.", name, listed(missing))
    ids = [one.id for one in chosen if one.id is not None]
    return Dataset(
        name=name,
        texts=[one.text for one in chosen],
        features=None,
        labels=np.array([one.label for one in chosen]),
        ids=ids if len(ids) == len(chosen) else None,
        groups=np.array([one.city for one in chosen]) if len(present) > 1 else None,
        provenance=f"Incident-related tweets ({ADDRESS}) of {', '.join(present)}.",
        licence=LICENCE,
        problems=problems,
    )


def _read_tweets(
    file: Path, text: str | None, label: str | None, problems: Problems
) -> Iterator[_Tweet]:
    """Iterate over the usable rows of a file; the others are taken down as problems."""
    with open_records(file) as reader:
        by_name = {one.strip().lower(): one for one in reader.columns}
        city, id = (
            next((by_name[one] for one in names if one in by_name), None)
            for names in (_CITY_NAMES, _ID_NAMES)
        )
        try:
            found = find_columns(reader.sample(), text=text, label=label, group=city, id=id)
            names = [found.text or nothing_found("text", reader.columns), found.label, id, city]
        except DataError as error:
            raise DataError(f"{file}: {error}", parameter=error.parameter) from error
        records = (record for table in reader.batches() for record in table.to_pylist())
        for row, record in enumerate(records, start=1):
            words = ["" if one is None else str(one).strip() for one in map(record.get, names)]
            tweet = _parse_tweet(file, row, *words)
            if isinstance(tweet, _Tweet):
                yield tweet
            else:
                problems.add(tweet, file.name, row, "row")


def _parse_tweet(file: Path, row: int, text: str, label: str, id: str, city: str) -> _Tweet | str:
    """Return the tweet of a row, or what is wrong with it."""
    place = city_named(city) if city else _city_of(file)
    meaning = _LABELS.get(" ".join(re.findall("[a-z0-9]+", label.lower())))
    if not text:
        return "no text: left out"
    if meaning is None:
        return "unknown label: left out" if label else "no label: left out"
    if place is None:
        return "unknown city: left out"
    return _Tweet(place, meaning, text, id or None, file.name, row)


def _of_task(
    files: dict[Path, list[_Tweet]], task: str, city: str, problems: Problems
) -> list[_Tweet]:
    """Return the tweets of a city from the files that fit the task, with its labels."""
    kinds: list[_Tweet] = []  # of files that tell the kind of incident
    yes_and_no: list[_Tweet] = []
    neutral: list[_Tweet] = []
    for rows in files.values():
        labels = {one.label for one in rows}
        fitting = kinds if labels & set(_INCIDENTS) else yes_and_no if _YES in labels else neutral
        fitting += rows
    if task == "binary":
        fitting = (yes_and_no or kinds) + neutral
        return [replace(one, label=_NO if one.label == _NO else _YES) for one in fitting]
    if not kinds:
        raise DataError(
            f"The files of {city} do not tell crash, fire and shooting apart, only yes and no. "
            "Read them with task='binary', or put the owners' file with four classes there."
        )
    for one in kinds:
        if one.label == _YES:
            problems.add("an incident of unknown kind: left out", one.file, one.row, "row")
    return [one for one in kinds + neutral if one.label != _YES]


def _city_of(file: Path) -> str | None:
    """Return the city that the name of a file tells, or else that of its folder."""
    return city_named(file.name) or city_named(file.parent.name)


def city_named(name: str) -> str | None:
    """Return the one city that a name tells, in any common spelling."""
    words = re.findall("[a-z]+", name.lower())
    found = [
        city
        for city in CITIES
        # Two or three letters may stand inside of any word.
        if city.lower() in words or _LONG_NAMES.get(city, city.lower()) in "".join(words)
    ]
    return found[0] if len(found) == 1 else None
