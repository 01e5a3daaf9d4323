"""The linear part of a member's scores."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from setconv.classifier import SetConvClassifier
from setconv.errors import ParameterError
from setconv.linear import fit_discriminants
from setconv.params import automatic_linear_share
from setconv.pipelines import load

SMALL = {"n_members": 3, "max_steps": 15, "encoder": (8,), "out_features": 4, "progress": False}


def make_rows(classes=2, n=150, d=6, seed=0):
    rng = np.random.default_rng(seed)
    codes = rng.choice(classes, n, p=[0.7, *[0.3 / (classes - 1)] * (classes - 1)])
    codes[:classes] = np.arange(classes)
    X = rng.standard_normal((n, d)) @ rng.standard_normal((d, d)) + 2 * np.eye(classes, d)[codes]
    return X.astype(np.float32), codes


def fit(X, codes, left_out=None, weights=None, classes=2):
    if left_out is None:
        left_out = np.zeros((1, len(X)), bool)
    weights = np.ones(len(X)) if weights is None else weights
    return fit_discriminants(
        one_chunk(torch.from_numpy(X)[None]), codes, weights, left_out, classes
    )


def one_chunk(views):
    return iter([(slice(0, views.shape[1]), views)])


def test_the_weights_are_fishers_under_a_covariance_drawn_to_the_identity():
    X, codes = make_rows()
    means = [X[codes == c].mean(axis=0) for c in (0, 1)]
    within = np.cov((X - np.stack(means)[codes]).T, bias=True)
    metric = 0.4 * within + 0.6 * np.trace(within) / len(within) * np.eye(len(within))
    expected = np.linalg.inv(metric) @ (means[1] - means[0])
    assert np.allclose(fit(X, codes).weights[0], expected, rtol=1e-3)


def test_the_direction_is_nearly_scikit_learns():
    # It shrinks each class's covariance in units of that class's own deviations.
    X, codes = make_rows()
    within = X - np.stack([X[codes == c].mean(axis=0) for c in (0, 1)])[codes]
    X = (X / within.std(axis=0)).astype(np.float32)
    peer = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.6).fit(X, codes).coef_[0]
    ours = fit(X, codes).weights[0].numpy()
    assert ours @ peer / np.linalg.norm(ours) / np.linalg.norm(peer) > 0.999


@pytest.mark.parametrize("classes", [2, 4])
def test_the_score_is_zero_half_way_between_the_sides_of_a_head(classes):
    X, codes = make_rows(classes)
    found = fit(X, codes, classes=classes)
    heads = [1] if classes == 2 else range(classes)
    for place, code in enumerate(heads):
        middle = (X[codes == code].mean(axis=0) + X[codes != code].mean(axis=0)) / 2
        score = found(torch.from_numpy(middle)[None, None].float(), 1)[place, 0]
        assert abs(float(score)) < 1e-4
        ahead = found(torch.from_numpy(X[codes == code].mean(axis=0))[None, None].float(), 1)
        assert float(ahead[place, 0]) > 0


def test_a_member_does_not_learn_from_the_rows_that_it_leaves_out():
    X, codes = make_rows()
    left_out = np.zeros((2, len(X)), bool)
    left_out[1, ::3] = True
    both = fit(X, codes, left_out)
    alone = fit(X[~left_out[1]], codes[~left_out[1]])
    assert torch.allclose(both.weights[1], alone.weights[0], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(both.weights[0], both.weights[1], rtol=1e-3)


@given(st.integers(0, 10**6))
def test_a_weight_of_two_is_the_row_twice_and_the_order_of_rows_is_nothing(seed):
    X, codes = make_rows(n=40, seed=seed)
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 3, len(X))
    repeated = rng.permutation(np.repeat(np.arange(len(X)), weights))
    weighed = fit(X, codes, weights=weights.astype(float))
    twice = fit(X[repeated], codes[repeated])
    assert torch.allclose(weighed.weights, twice.weights, rtol=1e-3, atol=1e-4)


def test_constant_columns_and_classes_of_one_point_give_finite_weights():
    X = np.zeros((6, 3), np.float32)
    codes = np.array([0, 0, 0, 0, 1, 1])
    assert not fit(X, codes).weights.any()
    X[codes == 1, 0] = 1
    found = fit(X, codes)
    assert found.weights[0, 0] > 0
    assert not found.weights[0, 1:].any()


def test_members_with_other_views_score_their_own():
    X, codes = make_rows()
    views = torch.from_numpy(np.stack([X, 2 * X]))
    none = np.zeros((3, len(X)), bool)
    found = fit_discriminants(one_chunk(views), codes, np.ones(len(X)), none, 2)
    scores = found(views, 3)
    # A discriminant does not care for the unit of its rows.
    assert torch.allclose(scores[0], scores[1], rtol=1e-3, atol=1e-3)
    assert torch.allclose(scores[0], scores[2])


@pytest.mark.parametrize("size", [1, 7, 64, 149])
@pytest.mark.parametrize("classes", [2, 3])
def test_rows_that_come_in_chunks_give_the_same(size, classes):
    X, codes = make_rows(classes)
    views = torch.from_numpy(np.stack([X, X**2]))
    rng = np.random.default_rng(0)
    known = codes, rng.random(len(X)) + 0.5, rng.random((3, len(X))) < 0.3, classes
    starts = range(0, len(X), size)
    chunks = ((slice(start, start + size), views[:, start : start + size]) for start in starts)
    whole, parts = fit_discriminants(one_chunk(views), *known), fit_discriminants(chunks, *known)
    torch.testing.assert_close(parts.weights, whole.weights, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(parts.intercepts, whole.intercepts, rtol=1e-4, atol=1e-4)


def test_the_share_is_that_of_the_spread_of_left_out_scores():
    X, codes = make_rows(n=300)
    alone = SetConvClassifier(**SMALL, linear_share=0.0, random_state=0).fit(X, codes)
    both = SetConvClassifier(**SMALL, linear_share=0.25, random_state=0).fit(X, codes)
    network = alone._model.member_scores(X)
    linear = both._model.member_scores(X) - network
    ratios = linear.std(axis=0) / network.std(axis=0)
    assert np.allclose(ratios, 1 / 3, rtol=0.5)  # over all rows; over left-out ones exactly
    assert np.corrcoef(linear[:, 0], X @ (X[codes == 1].mean(0) - X[codes == 0].mean(0)))[0, 1] > 0


def test_the_automatic_share_falls_with_the_rows_beyond_5000():
    shares = [automatic_linear_share(rows, 384) for rows in (100, 5000, 10_000, 50_000)]
    assert shares == [0.25, 0.25, 0.125, 0.025]
    assert automatic_linear_share(10_000, 384, n_groups=4) == 0.5
    assert automatic_linear_share(10_000, 384, n_groups=5000) == 0.125
    assert automatic_linear_share(100, 100) == automatic_linear_share(100, 5000) == 0


def test_auto_is_a_quarter_for_embeddings_and_nothing_for_tables():
    rng = np.random.default_rng(0)
    codes = np.arange(60) % 3 // 2
    narrow = SetConvClassifier(**SMALL).fit(rng.standard_normal((60, 5)), codes)
    wide = SetConvClassifier(**SMALL).fit(rng.standard_normal((60, 101)), codes)
    assert narrow._model.discriminants is None
    assert wide._model.discriminants is not None


@pytest.mark.parametrize("classes", [2, 3])
def test_a_saved_model_keeps_its_linear_part(tmp_path, classes):
    X, codes = make_rows(classes)
    model = SetConvClassifier(**SMALL, linear_share=0.4, random_state=0).fit(X, codes)
    model.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_proba(X), model.predict_proba(X))


def test_scores_do_not_depend_on_the_batch():
    X, codes = make_rows(n=700)
    model = SetConvClassifier(**SMALL, linear_share=0.5, random_state=0).fit(X, codes)
    whole = model.decision_function(X)
    assert np.array_equal(np.concatenate([model.decision_function(X[:3]), whole[3:]]), whole)


@pytest.mark.parametrize("share", [-0.1, 1.0, "some", None])
def test_a_share_that_is_none_is_refused(share):
    X, codes = make_rows()
    with pytest.raises(ParameterError, match="linear_share"):
        SetConvClassifier(**SMALL, linear_share=share).fit(X, codes)
