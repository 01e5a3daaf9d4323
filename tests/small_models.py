"""Rows, classifiers whose fit takes a moment, what makes two of them the same, and full disks."""

import contextlib
import json
import signal

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.torch import load as load_tensors
from sklearn.datasets import make_classification

from setconv import presets
from setconv.classifier import SetConvClassifier
from setconv.persistence import pack
from setconv.training import Callback

SMALL = {"n_members": 3, "encoder": (8,), "out_features": 4, "n_episodes": 2, "max_steps": 6}


def make_rows(n=240, classes=2, minority=0.15, features=8, seed=0, wrong=0.0):
    """Rows of a majority class 0 and equally rare others, some of them with wrong labels."""
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
        flip_y=wrong,
        random_state=seed,
    )


def small(**parameters):
    return SetConvClassifier(**SMALL | {"random_state": 0, "progress": False} | parameters)


def alone(**parameters):
    """The mechanics of one network: no other members, the rows standardised, the paper's rule."""
    return small(**{"n_members": 1, "objective": None, "scaling": "standard"} | parameters)


def preset(name, **parameters):
    """A preset with its own architecture but few steps."""
    quick = {"max_steps": 4, "random_state": 0, "progress": False}
    return SetConvClassifier(**getattr(presets, name) | quick | parameters)


def weights_of(clf):
    return {name: tensor.numpy().copy() for name, tensor in clf.network_.state_dict().items()}


def assert_same_weights(one, other):
    ours, theirs = weights_of(one), weights_of(other)
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(array, theirs[name]) for name, array in ours.items())


ARRAYS = ("classes_", "class_counts_", "anchor_", "representatives_", "threshold_", "prior_")
PLAIN = ("n_features_in_", "history_", "n_steps_", "report_", "report_source_", "threshold_basis_")


def assert_same_model(one, other, X, other_rows=None):
    """Everything that a user can see of them is equal to the bit."""
    assert_same_weights(one, other)
    for name in ARRAYS:
        ours, theirs = np.asarray(getattr(one, name)), np.asarray(getattr(other, name))
        assert np.array_equal(ours, theirs), name
        assert ours.dtype == theirs.dtype, name
    for name in PLAIN:
        assert getattr(one, name) == getattr(other, name), name
    rows = X if other_rows is None else other_rows
    said, answered = one.predictions(X), other.predictions(rows)
    for name in ("labels", "probabilities", "scores", "decision_values"):
        assert np.array_equal(getattr(said, name), getattr(answered, name)), name
    assert said.labels.dtype == answered.labels.dtype
    assert np.array_equal(one.transform(X), other.transform(rows))


def tamper(folder, *, config=None, tensors=None):
    """Change a saved model and keep its checksum right, as no accident would."""
    path = folder / "model.safetensors"
    content = path.read_bytes()
    values, stored = config_of(folder), load_tensors(content)
    if tensors:
        tensors(stored)
    if config:
        config(values)
    path.write_bytes(pack(values, {name: one.numpy() for name, one in stored.items()}))


def config_of(folder):
    """The configuration in the file of a saved model, without its checksum."""
    with safe_open(folder / "model.safetensors", "np") as file:
        values = json.loads(file.metadata()["setconv"])
    del values["sha256"]
    return values


class Interrupt(Callback):
    """Ends a run with an error after a step."""

    def __init__(self, step, error=KeyboardInterrupt):
        self.step, self.error = step, error

    def on_step_end(self, state):
        if state.step == self.step:
            raise self.error


@contextlib.contextmanager
def limited_files(size):
    """No file can be larger than this, as on a disk with so much space."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
