"""Which files of SemEval-2017 Task 4 are read: of subtask A, and of some years only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from setconv.errors import DataError, ParameterError
from setconv.names import did_you_mean, listed

#: What the paper's counts come from: with these parts, 7,273 negative tweets and 39,122 others.
PAPER_PARTS = (
    "2013train",
    "2013dev",
    "2013test",
    "2015train",
    "2015test",
    "2016train",
    "2016dev",
    "2016test",
)

_ENDINGS = (".txt", ".tsv", ".txt.gz", ".tsv.gz")
_SUBTASK = re.compile(r"(?:[-_.]|subtask|train|dev|test)A(?=[-_.])")
_PART = re.compile(r"(20\d\d)[-_]?(?:task4-)?(train|devtest|dev|test|sarcasm)", re.IGNORECASE)


def chosen_files(
    path: str | Path | Sequence[str | Path], parts: Sequence[str] | str | None
) -> list[Path]:
    """Return the files to read: those given, or those of the subtask in a folder; of some parts."""
    if isinstance(path, str | Path):
        given = Path(path)
        files = _in_folder(given) if given.is_dir() else [given]
    else:
        files = [Path(one) for one in path]
    if not files:
        raise ParameterError("path=[]: give at least one file.")
    return files if parts is None else _of_parts(files, parts)


def _in_folder(folder: Path) -> list[Path]:
    names = sorted(
        one
        for one in folder.rglob("*")
        if one.name.lower().endswith(_ENDINGS) and not one.name.startswith(".")
    )
    found = [one for one in names if _SUBTASK.search(one.name)]
    if not found:
        there = f"There are {listed([one.name for one in names])}." if names else "It has none."
        raise DataError(
            f"{folder}: no file of subtask A. The official names are like "
            f"twitter-2016train-A.txt. {there} Give files of other names as a list."
        )
    return found


def _part_of(file: Path) -> str | None:
    """Return the year and role that the name of a file tells, such as "2013train"."""
    found = _PART.search(file.name)
    return f"{found[1]}{found[2].lower()}" if found else None


def _of_parts(files: list[Path], parts: Sequence[str] | str) -> list[Path]:
    if isinstance(parts, str):
        if parts != "paper":
            raise ParameterError(
                f"parts={parts!r}: give 'paper', or a list such as ['2016train', '2016dev']."
            )
        parts = PAPER_PARTS
    named = [_part_of(one) for one in files]
    known = sorted({one for one in named if one})
    for part in parts:
        if part not in known:
            raise DataError(
                f"There is no file of the part {part!r}.{did_you_mean(part, known)} The files are "
                f"{listed([one.name for one in files])}."
            )
    pairs = list(zip(files, named, strict=True))
    return [file for part in dict.fromkeys(parts) for file, name in pairs if name == part]
