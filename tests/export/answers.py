"""Rows with extremes, what a graph says of rows, and a comparison with the library."""

import numpy as np
import onnxruntime
from onnx import numpy_helper

NAMES = ["label", "probabilities", "decision"]


def make_extremes(n, columns=8, seed=0):
    """Ordinary rows, rows of any size from 1e-10 to 1e12, and rows of odd values."""
    rng = np.random.default_rng(seed)
    X = 3 * rng.normal(size=(n, columns))
    some = n // 10
    X[:some] = rng.choice([0, -0.0, 5, -5, 1e12, -1e12, 1e-300, 1.7e9], size=(some, columns))
    X[some : 2 * some] *= 10.0 ** rng.integers(-10, 13, (some, columns))
    return X


def ask(graph, X):
    session = onnxruntime.InferenceSession(graph.SerializeToString())
    return dict(zip(NAMES, session.run(NAMES, {"X": np.asarray(X, dtype=np.float64)}), strict=True))


def assert_same_answers(found, clf, X, atol=1e-5):
    """Decisions are identical, probabilities within ``atol``."""
    said = clf.predictions(X)
    np.testing.assert_array_equal(clf.classes_[found["label"]], said.labels)
    np.testing.assert_allclose(found["probabilities"], said.probabilities, rtol=0, atol=atol)
    assert found["decision"].shape == said.decision_values.shape
    np.testing.assert_allclose(found["decision"], said.decision_values, rtol=1e-3, atol=1e-3)


def set_initialiser(graph, name, values):
    (tensor,) = (one for one in graph.graph.initializer if one.name == name)
    tensor.CopyFrom(numpy_helper.from_array(np.asarray(values, dtype=np.float64), name))
