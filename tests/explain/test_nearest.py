"""Nearest rows: mean cosine over members in the learned space, whatever the kind of rows."""

import numpy as np
import pandas as pd
import pytest

from setconv.errors import DataError, ParameterError
from setconv.explain import (
    nearest_rows,
    representative_directions,
    representative_points,
    unit_vectors,
)


def mean_cosines(model, A, B):
    """The definition, literally: members and heads one after the other."""
    width = model.representatives_.shape[-1]
    a = model.transform(A).reshape(len(A), -1, width).astype(float)
    b = model.transform(B).reshape(len(B), -1, width).astype(float)
    cosines = [
        [
            np.mean(
                [u @ v / np.linalg.norm(u) / np.linalg.norm(v) for u, v in zip(x, y, strict=True)]
            )
            for y in b
        ]
        for x in a
    ]
    return np.array(cosines)


@pytest.mark.parametrize("which", ["binary", "multiclass"])
def test_nearest_rows_are_those_of_the_largest_mean_cosine(which, request):
    X, _ = request.getfixturevalue(which)
    model = request.getfixturevalue("fitted" if which == "binary" else "fitted_multiclass")
    found = nearest_rows(model, X[:4], X[10:60], k=7)
    cosines = mean_cosines(model, X[:4], X[10:60])
    np.testing.assert_allclose(found.similarities, -np.sort(-cosines, axis=1)[:, :7], atol=1e-6)
    chosen = np.take_along_axis(cosines, found.indices, axis=1)
    np.testing.assert_allclose(chosen, found.similarities, atol=1e-6)


def test_a_row_is_nearest_to_itself(fitted, binary):
    X, _ = binary
    found = nearest_rows(fitted, X[:5], X, k=1)
    assert found.indices[:, 0].tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(found.similarities, 1, atol=1e-6)


def test_blocks_do_not_change_the_result(fitted, binary, monkeypatch):
    X, _ = binary
    whole = nearest_rows(fitted, X[:9], X, k=6)
    monkeypatch.setattr("setconv.explain._BLOCK", 17)
    monkeypatch.setattr("setconv.explain._QUERIES", 4)
    parts = nearest_rows(fitted, X[:9], X, k=6)
    assert np.array_equal(whole.indices, parts.indices)
    np.testing.assert_allclose(whole.similarities, parts.similarities, atol=1e-6)


def test_of_equal_rows_the_first_comes_first(fitted, binary):
    X, _ = binary
    twins = np.repeat(X[:1], 6, axis=0)
    assert nearest_rows(fitted, X[:1], twins, k=3).indices.tolist() == [[0, 1, 2]]


def test_fewer_rows_than_asked_for_give_all_of_them(fitted, binary):
    X, _ = binary
    assert nearest_rows(fitted, X[:2], X[:3], k=50).indices.shape == (2, 3)


def test_no_queries_give_no_neighbours(fitted, binary):
    X, _ = binary
    assert nearest_rows(fitted, X[:0], X, k=5).indices.shape == (0, 5)


def test_frames_and_texts_work_as_arrays_do(fitted, binary, text_model, reports):
    X, _ = binary
    frame = pd.DataFrame(X)
    assert np.array_equal(
        nearest_rows(fitted, frame[:3], frame).indices, nearest_rows(fitted, X[:3], X).indices
    )
    texts, labels = reports
    found = nearest_rows(text_model, ["smoke and flames today"], texts, k=5)
    assert (labels[found.indices[0]] == "fire").all()
    series = pd.Series(texts, index=range(100, 100 + len(texts)))
    again = nearest_rows(text_model, ["smoke and flames today"], series, k=5)
    assert np.array_equal(found.indices, again.indices)


@pytest.mark.parametrize("which", ["fitted", "fitted_multiclass"])
def test_nearness_to_representatives_is_the_cosine_that_prediction_compares(which, request):
    model = request.getfixturevalue(which)
    X, _ = request.getfixturevalue("binary" if which == "fitted" else "multiclass")
    n_classes = len(model.classes_)
    found = unit_vectors(model, X) @ representative_directions(model).T
    width = model.representatives_.shape[-1]
    heads = 1 if n_classes == 2 else n_classes
    sides = model.representatives_.reshape(-1, heads, 2, width)
    rows = model.transform(X).reshape(len(X), len(sides), heads, width)
    for c in range(n_classes):
        head, side = (0, c) if heads == 1 else (c, 1)
        cosine = np.einsum("nmd,md->nm", rows[:, :, head], sides[:, head, side]).mean(axis=1)
        np.testing.assert_allclose(found[:, c], cosine, atol=1e-5)


def test_the_points_of_representatives_lie_in_the_space_of_rows(fitted, fitted_multiclass):
    for model in (fitted, fitted_multiclass):
        points = representative_points(model)
        width = model.representatives_.shape[-1]
        assert points.shape == (len(model.classes_), model.representatives_.size // 2)
        np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, atol=1e-5)
        assert points.shape[1] % width == 0


def test_bad_arguments_are_named(fitted, binary):
    X, _ = binary
    with pytest.raises(ParameterError, match="k=0"):
        nearest_rows(fitted, X, X, k=0)
    with pytest.raises(DataError, match="train_X has no rows"):
        nearest_rows(fitted, X, X[:0])
    with pytest.raises(ParameterError, match="no learned space"):
        nearest_rows(object(), X, X)
