"""The 27 benchmark sets of imbalanced-learn: one archive on Zenodo.

They are kept where imbalanced-learn keeps them, so that either finds what the other downloaded.
"""

from __future__ import annotations

import gzip
import os
import re
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setconv.datasets.dataset import Dataset
from setconv.datasets.downloads import Progress, download
from setconv.datasets.sources import SOURCES
from setconv.errors import DataError
from setconv.files import write_atomically

KIND = "imbalanced-learn"

# In the order of the archive: the first is x1data.npz.
NAMES = (
    "ecoli",
    "optical_digits",
    "satimage",
    "pen_digits",
    "abalone",
    "sick_euthyroid",
    "spectrometer",
    "car_eval_34",
    "isolet",
    "us_crime",
    "yeast_ml8",
    "scene",
    "libras_move",
    "thyroid_sick",
    "coil_2000",
    "arrhythmia",
    "solar_flare_m0",
    "oil",
    "car_eval_4",
    "wine_quality",
    "letter_img",
    "yeast_me2",
    "webpage",
    "ozone_level",
    "mammography",
    "protein_homo",
    "abalone_19",
)

_MEMBER = re.compile(r"x\d+data\.npz$")


def load_benchmark(
    name: str, folder: Path | None = None, *, fetch: bool = False, progress: Progress = "auto"
) -> Dataset:
    """Load one of the sets; class 1 is the minority, -1 the rest.

    Parameters
    ----------
    name : str
        One of ``NAMES``.
    folder : Path or None, default=None
        Where scikit-learn's data lie. None: ``$SCIKIT_LEARN_DATA`` or ``~/scikit_learn_data``.
    fetch : bool, default=False
        Whether to download the archive if the set is not there.
    progress : {"auto", True, False}, default="auto"
    """
    home = folder or Path(os.environ.get("SCIKIT_LEARN_DATA", "~/scikit_learn_data")).expanduser()
    file = home / "zenodo" / f"x{NAMES.index(name) + 1}data.npz"
    if not file.exists():
        if not fetch:
            raise DataError(
                f"The set {name!r} is not in {file.parent}, and nothing is downloaded unasked. "
                f"load_named({name!r}, download=True) downloads it, with the 26 others, from "
                f"{SOURCES[KIND].file}."
            )
        _fetch(file.parent, progress)
    features, labels = _read(file)
    return Dataset(
        name=name,
        texts=None,
        features=features,
        labels=labels,
        provenance=f"{SOURCES[KIND].title}, {SOURCES[KIND].page}: {file.name}.",
        licence=SOURCES[KIND].licence,
    )


def _fetch(folder: Path, progress: Progress) -> None:
    source = SOURCES[KIND]
    url = str(source.file)
    archive = download(url, folder / url.rsplit("/", 1)[1], source.sha256, progress=progress)
    try:
        found = _unpack(archive, folder)
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error) as error:
        archive.unlink()
        raise DataError(
            f"{url} gave no readable archive ({error}). It is removed again: try once more, or "
            f"open {source.page} in a browser."
        ) from error
    except OSError as error:
        raise DataError(
            f"The sets cannot be written to {folder}: {error.strerror or error}. The archive is "
            "kept there; make space, and call again."
        ) from error
    archive.unlink()
    missing = {f"x{number}data.npz" for number in range(1, len(NAMES) + 1)} - found
    if missing:
        raise DataError(f"{url} lacks {', '.join(sorted(missing))}. See {source.page}.")


def _unpack(archive: Path, folder: Path) -> set[str]:
    """Write the sets into the folder, each whole or not at all; return their file names."""
    found = set()
    with tarfile.open(archive) as packed:
        for member in packed:
            name = Path(member.name).name
            content = packed.extractfile(member) if _MEMBER.match(name) else None
            if content is not None:
                write_atomically(folder / name, content.read())
                found.add(name)
    return found


def _read(file: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        with np.load(file) as stored:
            return stored["data"], stored["label"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise DataError(
            f"{file} is damaged ({error}). Remove it, and load the set with download=True."
        ) from error
