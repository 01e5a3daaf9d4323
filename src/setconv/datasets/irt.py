"""Incident-related tweets of ten cities (IRT), from the files that their owners give out."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from setconv.checks import check_choice
from setconv.datasets.dataset import Dataset
from setconv.datasets.irt_files import (
    CITIES,
    ENDINGS,
    INCIDENTS,
    NO,
    YES,
    Tweet,
    city_named,
    city_of,
    read_tweets,
)
from setconv.datasets.problems import ProblemLog
from setconv.errors import DataError, ParameterError
from setconv.names import did_you_mean, listed

logger = logging.getLogger("setconv")

ADDRESS = "http://www.doc.gold.ac.uk/~cguck001/IncidentTweets/"
LICENCE = "Given out by its owners on request; do not redistribute it."
WHERE_TO_ASK = (
    f"The tweets are given out by their owners on request: {ADDRESS} (A. Schulz, C. Guckelsberger "
    "and F. Janssen, Semantic Abstraction for generalization of tweet classification, Semantic "
    "Web 8(3), 2017)."
)


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
    - The texts are in a column "text", "tweet", "tweet_text", "content" or "message"; the labels
      in "label", "class", "category", "incident", "incident_type" or "type"; ids, if any, in
      "id", "tweet_id" or "id_str".
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
    wanted = _wanted_cities(city)
    files = _files(Path(folder))
    problems = ProblemLog()
    by_city = _read(
        [one for one in files if city_of(one) in (None, *wanted)], text, label, problems
    )
    present = [one for one in wanted if one in by_city]
    name = f"IRT {'all cities' if len(wanted) > 1 else wanted[0]}, {task.replace('_', ' ')}"
    chosen = [one for place in present for one in _of_task(by_city[place], task, place, problems)]
    found = problems.close(name)
    if not chosen:
        raise DataError(
            f"{folder}: no tweets of {listed(wanted)} (problems: {found}). The files are "
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
        problems=found,
    )


def _wanted_cities(city: str | None) -> list[str]:
    if city is None or city == "all":
        return list(CITIES)
    found = city_named(city)
    if found is None:
        raise ParameterError(
            f"city={city!r} is none of the cities.{did_you_mean(city, CITIES)} They are "
            f"{listed(list(CITIES))}, or 'all'."
        )
    return [found]


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}. {WHERE_TO_ASK}")
    found = sorted(
        one
        for one in folder.rglob("*")
        if one.name.lower().removesuffix(".gz").endswith(ENDINGS) and not one.name.startswith(".")
    )
    if not found:
        raise DataError(f"{folder} has no file with {listed(ENDINGS)}. {WHERE_TO_ASK}")
    return found


def _read(
    files: list[Path], text: str | None, label: str | None, problems: ProblemLog
) -> dict[str, list[list[Tweet]]]:
    """Return the tweets of each city, those of a file in a list of their own."""
    cities: dict[str, list[list[Tweet]]] = {}
    for file in files:
        here: dict[str, list[Tweet]] = {}
        for tweet in read_tweets(file, text, label, problems):
            here.setdefault(tweet.city, []).append(tweet)
        for city, tweets in here.items():
            cities.setdefault(city, []).append(tweets)
    return cities


def _of_task(files: list[list[Tweet]], task: str, city: str, problems: ProblemLog) -> list[Tweet]:
    """Return the tweets of a city from the files that fit the task, with its labels."""
    tweets: dict[str, list[Tweet]] = {"binary": [], "four_class": [], "either": []}
    for rows in files:
        tweets[_setting({one.label for one in rows})] += rows
    if task == "binary":
        fitting = (tweets["binary"] or tweets["four_class"]) + tweets["either"]
        return [replace(one, label=NO if one.label == NO else YES) for one in fitting]
    if not tweets["four_class"]:
        raise DataError(
            f"The files of {city} do not tell crash, fire and shooting apart, only yes and no. "
            "Read them with task='binary', or put the owners' file with four classes there."
        )
    fitting = tweets["four_class"] + tweets["either"]
    for one in fitting:
        if one.label == YES:
            problems.add("an incident of unknown kind: left out", one.file, one.row, "row")
    return [one for one in fitting if one.label != YES]


def _setting(labels: set[str]) -> str:
    """Return for which task a file with these labels was made."""
    if labels & set(INCIDENTS):
        return "four_class"
    return "binary" if YES in labels else "either"
