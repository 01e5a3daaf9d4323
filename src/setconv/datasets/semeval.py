"""SemEval-2017 Task 4: tweets with their sentiment, from the official files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from setconv.checks import check_choice
from setconv.datasets.dataset import Dataset
from setconv.datasets.escapes import unescaped
from setconv.datasets.lines import numbered_lines
from setconv.datasets.problems import ProblemLog
from setconv.datasets.semeval_files import chosen_files
from setconv.errors import DataError, ParameterError
from setconv.names import count_of, listed
from setconv.records.sources import open_source

ADDRESS = "http://alt.qcri.org/semeval2017/task4/index.php?id=data-and-tools"
LICENCE = (
    "Annotations by the organisers of SemEval-2017 Task 4, for research use. The tweets are "
    "subject to the terms of Twitter: do not redistribute them."
)
LABELS = ("positive", "neutral", "negative")
UNAVAILABLE = "not available"


@dataclass(frozen=True)
class _Tweet:
    id: str
    topic: str
    label: str
    text: str
    file: str
    line: int

    @property
    def key(self) -> tuple[str, str]:
        return self.id, self.topic


def load_semeval(
    path: str | Path | Sequence[str | Path],
    *,
    task: Literal["A", "B"] = "A",
    parts: Sequence[str] | str | None = None,
    binary: str | None = None,
    duplicates: Literal["keep", "drop"] = "keep",
    group: Literal["id", "topic"] = "id",
) -> Dataset:
    r"""Read tweets of SemEval-2017 Task 4 from the official tab-separated files.

    A line is ``id TAB label TAB text`` (subtask A) or ``id TAB topic TAB label TAB text``
    (subtask B); further columns are ignored. The texts are freed from what some of the files put
    around them: outer quotes, ``\u2019``, ``&amp;``. Lines without a text ("Not Available", or
    the gold files before the tweets are downloaded), with an unknown label, or with too few
    columns are left out and counted in ``problems``.

    Parameters
    ----------
    path : str, Path, or sequence of them
        A file, several, or the folder in which to find those of the subtask; also with gzip.
    task : {"A", "B"}, default="A"
        "A" has three classes. "B" has two, about a topic: its tweets of 2015 that are neutral are
        left out, as the organisers say.
    parts : sequence of str, "paper" or None, default=None
        Only files whose names tell these parts, such as ["2016train", "2016dev"]. "paper" are
        those that give the numbers of the paper.
    binary : str or None, default=None
        This class against the rest, such as "negative", which is what the paper does.
    duplicates : {"keep", "drop"}, default="keep"
        Of tweets that occur several times (with the same topic) "drop" keeps the first. Copies
        with different labels are counted in ``problems`` in both cases.
    group : {"id", "topic"}, default="id"
        What ``groups`` are. By id, copies of a tweet can be kept on one side of a split.

    Returns
    -------
    Dataset
    """
    check_choice("task", task, ["A", "B"])
    check_choice("duplicates", duplicates, ["keep", "drop"])
    check_choice("group", group, ["id", "topic"] if task == "B" else ["id"])
    if binary is not None and binary not in LABELS:
        raise ParameterError(f"binary={binary!r}: give one of {listed(LABELS)}.")
    files = chosen_files(path, task, parts)
    problems = ProblemLog()
    tweets = [tweet for file in files for tweet in _tweets(file, task, problems)]
    scale = [one for one in tweets if task == "A" or one.label != "neutral"]
    kept, copies = _without_copies(scale, duplicates, problems)
    name = f"SemEval-2017 {task}"
    found = problems.close(name)
    if not kept:
        raise DataError(
            f"{listed([str(one) for one in files])}: no usable line ({found}). A line of subtask "
            f"{task} is {'id, label, text' if task == 'A' else 'id, topic, label, text'} with tabs "
            "between. Gold files have no texts: the tweets must be downloaded first."
        )
    ids = [one.id for one in kept]
    dataset = Dataset(
        name=name,
        texts=[one.text for one in kept],
        features=None,
        labels=np.array([one.label for one in kept]),
        ids=ids,
        groups=np.array(ids if group == "id" else [one.topic for one in kept]),
        provenance=_provenance(files, len(tweets) - len(scale), copies, duplicates),
        licence=LICENCE,
        problems=found,
    )
    return dataset if binary is None else dataset.binary(binary)


def _tweets(file: Path, task: str, problems: ProblemLog) -> Iterator[_Tweet]:
    source = open_source(file)
    try:
        for number, line in numbered_lines(source):
            tweet = _parsed(_decoded(line, file.name, number, problems), task, file.name, number)
            if isinstance(tweet, _Tweet):
                yield tweet
            else:
                problems.add(tweet, file.name, number)
    finally:
        source.close()


def _decoded(line: bytes, file: str, number: int, problems: ProblemLog) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        problems.add("not UTF-8: read as cp1252", file, number)
        return line.decode("cp1252", errors="replace")


def _parsed(line: str, task: str, file: str, number: int) -> _Tweet | str:
    """Return the tweet of a line, or what is wrong with it."""
    fields = [one.strip() for one in line.split("\t")]
    id, *columns = fields
    topic = columns.pop(0) if task == "B" and columns else ""
    if not columns:
        return "too few columns: left out"
    label = columns[0].strip('"').lower()
    if label not in LABELS:
        return "unknown label: left out"
    text = unescaped(columns[1]) if len(columns) > 1 else ""
    if not id or not text:
        return f"no {'text' if id else 'id'}: left out"
    if text.lower() == UNAVAILABLE:
        return "text not available: left out"
    return _Tweet(id, topic, label, text, file, number)


def _without_copies(
    tweets: list[_Tweet], duplicates: str, problems: ProblemLog
) -> tuple[list[_Tweet], int]:
    """Return the tweets that stay, and how many were copies of an earlier one."""
    first: dict[tuple[str, str], _Tweet] = {}
    for tweet in tweets:
        if tweet.label != first.setdefault(tweet.key, tweet).label:
            fate = "kept" if duplicates == "keep" else "left out"
            problems.add(f"a tweet seen before, with another label: {fate}", tweet.file, tweet.line)
    copies = len(tweets) - len(first)
    return (tweets if duplicates == "keep" else list(first.values())), copies


def _provenance(files: list[Path], neutral: int, copies: int, duplicates: str) -> str:
    said = [f"SemEval-2017 Task 4 ({ADDRESS}), {', '.join(one.name for one in files)}."]
    if neutral:
        said.append(f"{count_of(neutral, 'neutral tweet')} left out.")
    if copies:
        fate = "kept" if duplicates == "keep" else "left out"
        said.append(f"{count_of(copies, 'copy', 'copies')} of earlier tweets {fate}.")
    return " ".join(said)
