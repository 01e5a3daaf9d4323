"""SemEval-2017 Task 4: tweets with their sentiment, from the official files.

A line of a file is ``id TAB label TAB text``. The files of the subtask are found by their names,
which also tell the part of the data (year and role) that a file is; their lines are read one by
one, and the texts freed from the escapes that some of the files have.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from html.entities import html5
from pathlib import Path

import numpy as np

from setconv.datasets.dataset import Dataset, Problems, find_files, numbered_lines
from setconv.errors import DataError
from setconv.io.sources import open_bytes
from setconv.messages import check_choice, count_of, did_you_mean, listed

ADDRESS = "http://alt.qcri.org/semeval2017/task4/index.php?id=data-and-tools"
LICENCE = (
    "Annotations by the organisers of SemEval-2017 Task 4, for research use. The tweets are "
    "subject to the terms of Twitter: do not redistribute them."
)

#: What the paper's counts come from: with these parts, 7,273 negative tweets and 39,122 others.
PAPER_PARTS = (
    *("2013train", "2013dev", "2013test", "2015train", "2015test"),
    *("2016train", "2016dev", "2016test"),
)

_NAME = "SemEval-2017 A"
_LABELS = ("positive", "neutral", "negative")
_ENDINGS = (".txt", ".tsv", ".txt.gz", ".tsv.gz")
_SUBTASK = re.compile(r"(?:[-_.]|subtask|train|dev|test)A(?=[-_.])")
_PART = re.compile(r"(20\d\d)[-_]?(?:task4-)?(train|devtest|dev|test|sarcasm)", re.IGNORECASE)


_Tweet = tuple[str, str, str]  # its id, its label, its text


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
        check_choice("binary", binary, _LABELS)
    files = _choose_files(path, parts)
    problems = Problems()
    tweets = list(_read_tweets(files, problems))
    problems.warn(_NAME)
    if not tweets:
        raise DataError(
            f"{listed([str(one) for one in files])}: no usable line ({problems}). A line is id, "
            "label, text with tabs between. Gold files have no texts: the tweets must be "
            "downloaded first."
        )
    ids, labels, texts = zip(*tweets, strict=True)
    provenance = f"SemEval-2017 Task 4 ({ADDRESS}), {', '.join(one.name for one in files)}."
    if copies := len(ids) - len(set(ids)):
        provenance += f" {count_of(copies, 'copy', 'copies')} of earlier tweets kept."
    dataset = Dataset(
        name=_NAME,
        texts=list(texts),
        features=None,
        labels=np.array(labels),
        ids=list(ids),
        groups=np.array(ids),
        provenance=provenance,
        licence=LICENCE,
        problems=problems,
    )
    return dataset if binary is None else dataset.binary(binary)


def _choose_files(
    path: str | Path | Sequence[str | Path], parts: Sequence[str] | str | None
) -> list[Path]:
    """Return the files to read: those given, or those of the subtask in a folder; of some parts."""
    if isinstance(path, str | Path):
        files = _of_subtask(Path(path)) if Path(path).is_dir() else [Path(path)]
    else:
        files = [Path(one) for one in path]
    return files if parts is None else _choose_parts(files, parts)


def _of_subtask(folder: Path) -> list[Path]:
    """Return the files of subtask A that are in a folder."""
    return find_files(
        folder,
        lambda name: name.lower().endswith(_ENDINGS) and _SUBTASK.search(name),
        ": no file of subtask A. The official names are like twitter-2016train-A.txt. Give files "
        "of other names as a list.",
    )


def _choose_parts(files: list[Path], parts: Sequence[str] | str) -> list[Path]:
    """Return the files whose names tell one of the parts, such as "2013train"."""
    if isinstance(parts, str):
        check_choice("parts", parts, ["paper"])
        parts = PAPER_PARTS
    by_part: dict[str, list[Path]] = {}
    for file in files:
        if found := _PART.search(file.name):
            by_part.setdefault(f"{found[1]}{found[2].lower()}", []).append(file)
    for part in parts:
        if part not in by_part:
            raise DataError(
                f"There is no file of the part {part!r}.{did_you_mean(part, by_part)} There are "
                f"{listed([one.name for one in files])}."
            )
    return [file for part in dict.fromkeys(parts) for file in by_part[part]]


def _read_tweets(files: list[Path], problems: Problems) -> Iterator[_Tweet]:
    labels: dict[str, str] = {}
    for file in files:
        with closing(open_bytes(file)) as source:
            for number, line in numbered_lines(source):
                tweet = _parse_tweet(_decode(line, file.name, number, problems))
                if isinstance(tweet, str):
                    problems.add(tweet, file.name, number)
                    continue
                id, label, _ = tweet
                if label != labels.setdefault(id, label):
                    problems.add("a tweet seen before, with another label: kept", file.name, number)
                yield tweet


def _decode(line: bytes, file: str, number: int, problems: Problems) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        problems.add("not UTF-8: read as cp1252", file, number)
        return line.decode("cp1252", errors="replace")


def _parse_tweet(line: str) -> _Tweet | str:
    """Return the tweet of a line, or what is wrong with it."""
    id, *columns = [one.strip() for one in line.split("\t")]
    if not columns:
        return "too few columns: left out"
    label = columns[0].strip('"').lower()
    if label not in _LABELS:
        return "unknown label: left out"
    text = unescaped(columns[1]) if len(columns) > 1 else ""
    if not id or not text:
        return f"no {'text' if id else 'id'}: left out"
    if text.lower() == "not available":
        return "text not available: left out"
    return id, label, text


_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_QUOTES = re.compile(r'\\?"+')
_UNICODE = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|([A-Za-z][A-Za-z0-9]{1,31}));")


def unescaped(text: str) -> str:
    """Return the text as it was written: without outer quotes and escapes."""
    text = text.strip()
    if quoted := _QUOTED.fullmatch(text):
        text = _QUOTES.sub('"', quoted[1])
    text = _UNICODE.sub(_characters, text)
    return _ENTITY.sub(_entity, _ENTITY.sub(_entity, text)).strip()


def _characters(found: re.Match[str]) -> str:
    # Characters beyond 16 bits come as two escapes, which only together are one.
    return bytes.fromhex(found[0].replace("\\u", "")).decode("utf-16-be", errors="replace")


def _entity(found: re.Match[str]) -> str:
    # html.unescape would also take the known beginning of an unknown name.
    if found[1] is not None and f"{found[1]};" not in html5:
        return found[0]
    return html.unescape(found[0])
