"""Data that the tests share, made here: no test reads a file from outside the project."""

import os
import tempfile

# No test touches the cache of whoever runs it.
os.environ["SETCONV_CACHE"] = tempfile.mkdtemp(prefix="setconv-tests-")
# Read by scikit-learn at its import: without it, one of its checks is skipped.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

import numpy as np
import pytest
import torch
from hypothesis import settings
from sklearn.datasets import make_classification

from setconv.classifier import SetConvClassifier

# The same examples in every run: no test depends on chance.
settings.register_profile("derandomised", derandomize=True)
settings.load_profile("derandomised")

# Two test processes on two cores: more threads would only fight.
torch.set_num_threads(1)


def make_rows(n=240, classes=2, minority=0.15, features=8, seed=0):
    """Rows of a majority class 0 and equally rare others."""
    rare = minority / (classes - 1)
    return make_classification(
        n,
        n_features=features,
        n_informative=features - 2,
        n_redundant=0,
        n_classes=classes,
        n_clusters_per_class=1,
        weights=[1 - minority] + [rare] * (classes - 1),
        class_sep=1.5,
        flip_y=0,
        random_state=seed,
    )


def quick(**parameters):
    """A classifier whose fit takes a fraction of a second."""
    small = {"n_members": 3, "encoder": (16,), "out_features": 8}
    small |= {"max_steps": 30, "n_episodes": 4}
    return SetConvClassifier(**{**small, "random_state": 0, "progress": False, **parameters})


@pytest.fixture(scope="session")
def binary():
    return make_rows()


@pytest.fixture(scope="session")
def multiclass():
    return make_rows(n=400, classes=4, minority=0.3, seed=1)


@pytest.fixture(scope="session")
def fitted(binary):
    return quick().fit(*binary)


@pytest.fixture(scope="session")
def fitted_multiclass(multiclass):
    return quick(max_steps=60).fit(*multiclass)


@pytest.fixture
def rng():
    return np.random.default_rng(0)
