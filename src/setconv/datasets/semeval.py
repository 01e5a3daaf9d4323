"""SemEval-2017 Task 4: tweets with their sentiment, from the official files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from setconv.checks import check_choice
from setconv.datasets.dataset import Dataset
from setconv.datasets.escapes import unescaped
from setconv.datasets.lines import numbered_lines
from setconv.datasets.problems import ProblemLog
from setconv.datasets.semeval_files import chosen_files
from setconv.errors import DataError
from setconv.names import count_of, listed
from setconv.records.sources import open_source

ADDRESS = "http://alt.qcri.org/semeval2017/task4/index.php?id=data-and-tools"
LICENCE = (
    "Annotations by the organisers of SemEval-2017 Task 4, for research use. The tweets are "
    "subject to the terms of Twitter: do not redistribute them."
)
NAME = "SemEval-2017 A"
LABELS = ("positive", "neutral", "negative")
UNAVAILABLE = "not available"
CONFLICT = "a tweet seen before, with another label: kept"


@dataclass(frozen=True)
class _Tweet:
    id: str
    label: str
    text: str


def load_semeval(
    path: str | Path | Sequence[str | Path],
    *,
    parts: Sequence[str] | str | None = None,
    binary: str | None = None,
) -> Dataset:
    r"""Read tweets of SemEval-2017 Task 4, subtask A, from the official tab-separated files.

    A line is ``id TAB label TAB text``; further columns are ignored. The texts are freed from what
    some of the files put around them: outer quotes, ``\u2019``, ``&amp;``. Lines without a text
    ("Not Available", or the gold files before the tweets are downloaded), with an unknown label, or
    with too few columns are left out and counted in ``problems``; so are tweets that occur again
    with another label, which are kept.

    Parameters
    ----------
    path : str, Path, or sequence of them
        A file, several, or the folder in which to find those of the subtask; also with gzip.
    parts : sequence of str, "paper" or None, default=None
        Only files whose names tell these parts, such as ["2016train", "2016dev"]. "paper" are
        those that give the numbers of the paper.
    binary : str or None, default=None
        This class against the rest, such as "negative", which is what the paper does.

    Returns
    -------
    Dataset
        ``groups`` are the ids: with them copies of a tweet stay on one side of a split.
    """
    if binary is not None:
        check_choice("binary", binary, LABELS)
    files = chosen_files(path, parts)
    problems = ProblemLog()
    tweets = list(_tweets(files, problems))
    found = problems.close(NAME)
    if not tweets:
        raise DataError(
            f"{listed([str(one) for one in files])}: no usable line ({found}). A line is id, "
            "label, text with tabs between. Gold files have no texts: the tweets must be "
            "downloaded first."
        )
    ids = [one.id for one in tweets]
    dataset = Dataset(
        name=NAME,
        texts=[one.text for one in tweets],
        features=None,
        labels=np.array([one.label for one in tweets]),
        ids=ids,
        groups=np.array(ids),
        provenance=_provenance(files, len(ids) - len(set(ids))),
        licence=LICENCE,
        problems=found,
    )
    return dataset if binary is None else dataset.binary(binary)


def _tweets(files: list[Path], problems: ProblemLog) -> Iterator[_Tweet]:
    labels: dict[str, str] = {}
    for file in files:
        with closing(open_source(file)) as source:
            for number, line in numbered_lines(source):
                tweet = _parsed(_decoded(line, file.name, number, problems))
                if isinstance(tweet, str):
                    problems.add(tweet, file.name, number)
                    continue
                if tweet.label != labels.setdefault(tweet.id, tweet.label):
                    problems.add(CONFLICT, file.name, number)
                yield tweet


def _decoded(line: bytes, file: str, number: int, problems: ProblemLog) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        problems.add("not UTF-8: read as cp1252", file, number)
        return line.decode("cp1252", errors="replace")


def _parsed(line: str) -> _Tweet | str:
    """Return the tweet of a line, or what is wrong with it."""
    id, *columns = [one.strip() for one in line.split("\t")]
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
    return _Tweet(id, label, text)


def _provenance(files: list[Path], copies: int) -> str:
    said = f"SemEval-2017 Task 4 ({ADDRESS}), {', '.join(one.name for one in files)}."
    return (
        f"{said} {count_of(copies, 'copy', 'copies')} of earlier tweets kept." if copies else said
    )
