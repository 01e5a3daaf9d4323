"""Nearest rows: mean cosine over members in the learned space, whatever the kind of rows."""

import numpy as np
import pandas as pd
import pytest

from setconv.errors import DataError, ParameterError
from setconv.explain import nearest_rows


def mean_cosines(model, A, B):
    """The definition, literally: members and heads one after the other."""
    width = model.representatives_.shape[-1]
    a = model.transform(A).reshape(len(A), -1, width).astype(float)
    b = model.transform(B).reshape(len(B), -1, width).astype(float)

    def cosine(u, v):
        return u @ v / np.linalg.norm(u) / np.linalg.norm(v)

    return np.array(
        [[np.mean([cosine(u, v) for u, v in zip(x, y, strict=True)]) for y in b] for x in a]
    )


@pytest.mark.parametrize("which", ["binary", "multiclass"])
def test_nearest_rows_are_those_of_the_largest_mean_cosine(which, request):
    X, _ = request.getfixturevalue(which)
    model = request.getfixturevalue("fitted" if which == "binary" else "fitted_multiclass")
    found = nearest_rows(model, X[:4], X[10:60], k=7)
    cosines = mean_cosines(model, X[:4], X[10:60])
    np.testing.assert_allclose(found.similarities, -np.sort(-cosines, axis=1)[:, :7], atol=1e-6)
    chosen = np.take_along_axis(cosines, found.indices, axis=1)
    np.testing.assert_allclose(chosen, found.similarities, atol=1e-6)


def test_blocks_do_not_change_the_result(fitted, binary, monkeypatch):
    X, _ = binary
    whole = nearest_rows(fitted, X[:9], X, k=6)
    monkeypatch.setattr("setconv.explain._BLOCK", 17)
    monkeypatch.setattr("setconv.explain._QUERIES", 4)
    parts = nearest_rows(fitted, X[:9], X, k=6)
    assert np.array_equal(whole.indices, parts.indices)
    np.testing.assert_allclose(whole.similarities, parts.similarities, atol=1e-6)


def test_of_equal_rows_the_first_comes_first_and_there_may_be_few_or_no_rows(fitted, binary):
    X, _ = binary
    twins = np.repeat(X[:1], 6, axis=0)
    found = nearest_rows(fitted, X[:1], twins, k=3)
    assert found.indices.tolist() == [[0, 1, 2]]
    np.testing.assert_allclose(found.similarities, 1, atol=1e-6)
    assert nearest_rows(fitted, X[:2], X[:3], k=50).indices.shape == (2, 3)
    assert nearest_rows(fitted, X[:0], X, k=5).indices.shape == (0, 5)


def test_frames_and_texts_work_as_arrays_do(fitted, binary, text_model, reports):
    X, _ = binary
    frame = pd.DataFrame(X)
    found = nearest_rows(fitted, frame[:3], frame)
    assert np.array_equal(found.indices, nearest_rows(fitted, X[:3], X).indices)
    texts, labels = reports
    found = nearest_rows(text_model, ["smoke and flames today"], texts, k=5)
    assert (labels[found.indices[0]] == "fire").all()
    series = pd.Series(texts, index=range(100, 100 + len(texts)))
    again = nearest_rows(text_model, ["smoke and flames today"], series, k=5)
    assert np.array_equal(found.indices, again.indices)


def test_bad_arguments_are_named(fitted, binary):
    X, _ = binary
    cases = [(fitted, X, 0, "k"), (fitted, X[:0], 5, "train_X"), (object(), X, 5, "model")]
    for model, train, k, parameter in cases:
        with pytest.raises((DataError, ParameterError)) as refused:
            nearest_rows(model, X, train, k)
        assert refused.value.parameter == parameter
