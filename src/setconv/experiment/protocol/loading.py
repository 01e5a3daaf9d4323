"""The data sets of a study, by the loaders of `setconv.datasets` and two of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setconv.errors import DataError, ParameterError
from setconv.experiment.protocol.fields import known_name
from setconv.experiment.protocol.study import DataSpec
from setconv.names import require_column

if TYPE_CHECKING:
    from setconv.datasets import Dataset

__all__ = ["LOADERS", "load_data", "source_files"]

Loader = Callable[..., "Dataset"]


def load_data(spec: DataSpec, folder: Path) -> Dataset:
    """Return the rows of a data set, as the study wants them.

    Parameters
    ----------
    spec : DataSpec
    folder : Path
        Where paths that are not absolute begin.
    """
    loader = LOADERS[known_name("loader", spec.load, LOADERS, spec.name)]()
    options = _checked(loader, spec)
    known = list(inspect.signature(loader).parameters)
    if "path" in options:
        del options["path"]
        options[known[0]] = _path(spec, folder)  # loaders call it what it is to them
    # A loader that can sample reads files that would not fit in memory.
    size = spec.size
    if "size" in known and size is not None:
        options["size"], size = size, None
    try:
        dataset = loader(**options)
    except (DataError, OSError) as error:
        raise type(error)(f"{spec.name}: {error}") from error
    if spec.drop:
        for label in spec.drop:
            known_name("class", label, map(str, dataset.classes), spec.name)
        dataset = dataset.take(~np.isin(dataset.labels.astype(str), spec.drop))
    if spec.binary is not None:
        # "not crash" is no name that a user has seen; the class is still called what it was.
        dataset = dataset.binary(spec.binary, name=spec.name)
    return dataset if size is None else dataset.subsample(min(size, dataset.n_rows))


def source_files(spec: DataSpec, folder: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of the files that the rows come from."""
    if "path" not in spec.options:
        return []
    path = _path(spec, folder)
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    stats = [(one.name, one.stat()) for one in found if one.is_file()]
    return [(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def _path(spec: DataSpec, folder: Path) -> Path:
    path = folder / str(spec.options["path"])
    if not path.exists():
        raise FileNotFoundError(
            f"{spec.name}: there is no {path}. Say where the data is with --data FOLDER; "
            "help(setconv.datasets) says where benchmarks are published."
        )
    return path


def _checked(loader: Loader, spec: DataSpec) -> dict[str, Any]:
    """Refuse options that the loader does not have, and those that it needs and lacks."""
    known = inspect.signature(loader).parameters
    first, *others = known
    names = ["path" if first == "folder" else first, *others]
    for name in spec.options:
        known_name(f"option of the loader for {spec.name},", name, names)
    defaults = [one.default for one in known.values()]
    needed = [
        name for name, one in zip(names, defaults, strict=True) if one is inspect.Parameter.empty
    ]
    if lacking := [name for name in needed if name not in spec.options]:
        raise ParameterError(f"{spec.name}: its loader needs {', '.join(lacking)}.")
    return dict(spec.options)


def _load_npz(
    path: Path, features: str = "X", label: str = "y", group: str | None = None
) -> Dataset:
    """Return the arrays of a .npz file; none of them may be pickled."""
    from setconv.datasets import Dataset

    with np.load(path, allow_pickle=False) as stored:
        names = list(stored)
        wanted = [features, label, *([group] if group else [])]
        arrays = [
            stored[require_column(name, names, "features, label or group")] for name in wanted
        ]
    groups = arrays[2] if group else None
    return Dataset(
        path.stem, None, arrays[0].astype(np.float32), arrays[1].astype(str), groups=groups
    )


def _load_digits(digit: int) -> Dataset:
    """Return scikit-learn's images of digits, 8 x 8 pixels: one digit against the others."""
    from sklearn.datasets import load_digits

    from setconv.datasets import Dataset

    X, y = load_digits(return_X_y=True)
    return Dataset("digits", None, X.astype(np.float32), y.astype(str)).binary(str(digit))


def _from_datasets(name: str) -> Callable[[], Loader]:
    def get() -> Loader:
        from setconv import datasets

        loader: Loader = getattr(datasets, name)
        return loader

    return get


LOADERS: dict[str, Callable[[], Loader]] = {
    "amazon": _from_datasets("load_amazon"),
    "digits": lambda: _load_digits,
    "file": _from_datasets("load_file"),
    "irt": _from_datasets("load_irt"),
    "named": _from_datasets("load_named"),
    "npz": lambda: _load_npz,
    "semeval": _from_datasets("load_semeval"),
}
