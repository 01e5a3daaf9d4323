"""A folder of texts as a data set: one folder a class, one file a text."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from setconv.datasets.dataset import Dataset
from setconv.datasets.files import UNKNOWN_LICENCE
from setconv.datasets.left_out import report_left_out
from setconv.errors import DataError, LabelError, ParameterError


def load_folder(
    folder: str | Path,
    *,
    name: str | None = None,
    licence: str = UNKNOWN_LICENCE,
    encoding: str = "utf-8",
) -> Dataset:
    """Load texts that lie as scikit-learn's ``load_files`` expects them: ``folder/class/text.txt``.

    Whatever begins with a dot is ignored. Empty files, files beside the classes and folders
    within them are left out, warned of, and counted in ``problems``.

    Parameters
    ----------
    folder : str or Path
    name : str or None, default=None
        Of the data set. None: that of the folder.
    licence : str, default="not stated"
        What the owner allows.
    encoding : str, default="utf-8"
        Of all files.

    Returns
    -------
    Dataset
        The label is the name of the folder, the id is ``class/text.txt``; sorted by both.
    """
    folder = Path(folder)
    codec = _checked_encoding(encoding)
    left_out: dict[str, list[str]] = defaultdict(list)
    texts, labels, ids = [], [], []
    for one in _class_folders(folder, left_out):
        for file in _visible(one):
            place = f"{one.name}/{file.name}"
            if file.is_dir():
                left_out["a folder within a class: left out"].append(place)
                continue
            text = _read(file, codec)
            if not text.strip():
                left_out["no text: left out"].append(place)
                continue
            texts.append(text)
            labels.append(one.name)
            ids.append(place)
    _refuse_single_class(folder, labels)
    return Dataset(
        name=name or folder.resolve().name,
        texts=texts,
        features=None,
        labels=np.array(labels),
        ids=ids,
        provenance=f"{folder}: a file a text, a folder a class.",
        licence=licence,
        problems=report_left_out(str(folder), left_out),
    )


def _class_folders(folder: Path, left_out: dict[str, list[str]]) -> list[Path]:
    if not folder.is_dir():
        raise DataError(
            f"{folder} is no folder. Give a folder that has one folder of texts for each class."
        )
    inside = _visible(folder)
    found = [one for one in inside if one.is_dir()]
    left_out["a file beside the classes: left out"] += [
        one.name for one in inside if not one.is_dir()
    ]
    return found


def _visible(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if not one.name.startswith("."))
    except PermissionError as error:
        raise DataError(
            f"{folder} cannot be read: no permission. Change its permissions."
        ) from error


def _read(file: Path, encoding: str) -> str:
    try:
        return file.read_bytes().decode(encoding)
    except UnicodeDecodeError as error:
        named = encoding.removesuffix("-sig")
        raise DataError(
            f"{file} is not {named}: byte {error.start + 1} cannot be read. Convert the file, or, "
            "if all files have it, give another encoding= such as 'cp1252'."
        ) from error
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror or error}.") from error


def _checked_encoding(encoding: str) -> str:
    try:
        "".encode(encoding)
    except LookupError as error:
        raise ParameterError(
            f"encoding={encoding!r} is unknown. Give one such as utf-8."
        ) from error
    # A byte order mark is no part of the text.
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def _refuse_single_class(folder: Path, labels: list[str]) -> None:
    found = sorted(set(labels))
    if len(found) < 2:
        which = f"only the class {found[0]!r}" if found else "no class"
        raise LabelError(
            f"{folder} has {which} with texts in it. Give a folder that has one folder of texts "
            "for each class."
        )
