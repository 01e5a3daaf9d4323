"""Probabilities: against scikit-learn, the truth, and what must always hold."""

import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, logit, softmax
from sklearn.calibration import _SigmoidCalibration
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from setconv.decisions.calibration import Calibrator, fit_calibrator
from setconv.decisions.scores import check_scores


def two(n0=900, n1=100, seed=0, wide=1.0):
    generator = np.random.default_rng(seed)
    codes = np.repeat([0, 1], [n0, n1])
    return generator.normal(codes * 2.0 - 1, np.where(codes, wide, 1.0))[:, None], codes


def many(n=2000, seed=0):
    generator = np.random.default_rng(seed)
    codes = np.sort(generator.choice(3, size=n, p=[0.8, 0.15, 0.05]))
    scores = generator.normal(size=(n, 3)) * 1.5
    scores[np.arange(n), codes] += 2
    return scores, codes


def fit(scores, codes, weights=None, n_classes=None):
    evidence = check_scores(scores, codes, weights, n_classes or max(codes) + 1)
    return fit_calibrator(evidence, evidence.prior)


def test_two_classes_agree_with_scikit_learns_sigmoid():
    scores, codes = two()
    weights = np.random.default_rng(1).choice([1.0, 1.0, 2.0], size=len(codes))
    # With weights the smoothing differs: ours counts effective rows, theirs the sum of weights.
    for given_weights, tolerance in ((None, 1e-4), (weights, 1e-2)):
        ours = fit(scores, codes, given_weights).probabilities(scores)[:, 1]
        if given_weights is not None:  # within each class, so that prevalence stays counts
            given_weights = (
                given_weights / (np.bincount(codes, weights) / np.bincount(codes))[codes]
            )
        peer = _SigmoidCalibration().fit(scores[:, 0], codes, given_weights)
        theirs = peer.predict(scores[:, 0])
        np.testing.assert_allclose(ours, theirs, atol=tolerance)
        loss = [log_loss(codes, p, sample_weight=given_weights) for p in (ours, theirs)]
        assert loss[0] <= loss[1] + 1e-3


def test_many_classes_agree_with_a_logistic_regression_on_the_heads():
    scores, codes = many()
    ours = fit(scores, codes)
    peer = LogisticRegression(C=1e6, max_iter=1000).fit(scores, codes)
    fresh, truth = many(seed=1)
    assert (
        log_loss(truth, ours.probabilities(fresh))
        <= log_loss(truth, peer.predict_proba(fresh)) + 0.003
    )
    np.testing.assert_allclose(
        ours.probabilities(scores).mean(axis=0), np.bincount(codes) / len(codes), atol=0.003
    )


def test_calibrated_log_odds_are_the_true_ones():
    scores, codes = two(90_000, 10_000)
    found = fit(scores, codes)
    assert found.slopes[0] == found.slopes[1]
    grid = np.linspace(-2, 2, 9)[:, None]
    truth = expit(2 * grid[:, 0] + np.log(1 / 9))
    np.testing.assert_allclose(found.probabilities(grid)[:, 1], truth, atol=0.01)


def test_a_bend_is_taken_where_it_pays_and_stays_increasing():
    scores, codes = two(9000, 1000, wide=2.0)
    found = fit(scores, codes)
    assert found.slopes[0] != found.slopes[1]
    grid = np.linspace(-8, 8, 400)[:, None]
    assert (np.diff(found.log_probabilities(grid)[:, 1]) > 0).all()
    fresh, truth = two(9000, 1000, seed=5, wide=2.0)
    straight = _SigmoidCalibration().fit(scores[:, 0], codes).predict(fresh[:, 0])
    assert log_loss(truth, found.probabilities(fresh)[:, 1]) < log_loss(truth, straight)


def calibrators():
    positive = st.floats(0.01, 20)
    level = st.floats(-5, 5)
    shares = st.floats(0.01, 1)
    bent = st.builds(
        lambda low, high, b, centre, scale, p: Calibrator(
            (low, high), (b,), centre, scale, (1 - p / 2, p / 2)
        ),
        positive, positive, level, level, positive, shares,
    )  # fmt: skip

    def softmaxes(slope, intercepts, scale, prior):
        prior = np.array(prior) / sum(prior)
        return Calibrator((slope, slope), tuple(intercepts), 0.0, scale, tuple(prior))

    more = st.builds(
        softmaxes,
        positive,
        st.lists(level, min_size=3, max_size=3),
        positive,
        st.lists(shares, min_size=3, max_size=3),
    )
    return st.one_of(bent, more)


def rows_for(calibrator, draw):
    heads = len(calibrator.intercepts)
    return draw(arrays(np.float64, (4, heads), elements=st.floats(-1e3, 1e3)))


@given(data=st.data(), calibrator=calibrators())
def test_a_larger_prior_for_a_class_never_lowers_its_probability(data, calibrator):
    scores = rows_for(calibrator, data.draw)
    k = len(calibrator.prior)
    prior = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=k, max_size=k)))
    prior /= prior.sum()
    c = data.draw(st.integers(0, k - 1))
    larger = prior.copy()
    larger[c] *= data.draw(st.floats(1, 50))
    larger /= larger.sum()
    before, after = (calibrator.probabilities(scores, p) for p in (prior, larger))
    assert (after[:, c] >= before[:, c] * (1 - 1e-12)).all()


@given(data=st.data(), calibrator=calibrators())
def test_probabilities_sum_to_one_for_any_scores_and_priors(data, calibrator):
    scores = rows_for(calibrator, data.draw)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = calibrator.probabilities(scores)
        same = calibrator.probabilities(scores, np.array(calibrator.prior))
    np.testing.assert_allclose(plain.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(plain, same, rtol=1e-9, atol=1e-300)


@given(calibrator=calibrators(), score=st.floats(-50, 50), share=st.floats(0.01, 0.99))
def test_the_inverse_finds_the_score(calibrator, score, share):
    if len(calibrator.prior) > 2:
        return
    prior = np.array([1 - share, share])
    logs = calibrator.log_probabilities(np.array([[score]]), prior)[0]
    found = calibrator.score_at(logs[1] - logs[0], prior)
    again = calibrator.log_probabilities(np.array([[found]]), prior)[0]
    assert again[1] - again[0] == pytest.approx(logs[1] - logs[0], rel=1e-6, abs=1e-6)


@given(calibrator=calibrators())
def test_a_calibrator_survives_json(calibrator):
    assert Calibrator.from_dict(json.loads(json.dumps(calibrator.to_dict()))) == calibrator


def test_another_prior_is_bayes_rule():
    scores, codes = many()
    found = fit(scores, codes)
    prior = np.array([0.2, 0.2, 0.6])
    expected = found.probabilities(scores) * prior / np.array(found.prior)
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.probabilities(scores, prior), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("scores", "codes"),
    [
        ([-3.0, -2.0, 2.0, 3.0], [0, 0, 1, 1]),  # separable
        ([3.0, 2.0, -2.0, -3.0], [0, 0, 1, 1]),  # ranked the wrong way round
        ([1.0] * 6, [0, 0, 0, 0, 0, 1]),  # constant
        ([0.0, 1.0, 2.0], [0, 0, 1]),
        ([0.0, 1.0], [0, 1]),
        ([5.0], [1]),
        ([0.0, 1e8, -1e8, 3.0], [0, 1, 0, 1]),
        (list(np.linspace(-9, 9, 300)), [0] * 150 + [1] * 150),
    ],
)
def test_degenerate_scores_give_finite_increasing_probabilities(scores, codes):
    scores = np.array(scores)[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fit(scores, np.array(codes), n_classes=2)
        chances = found.probabilities(np.sort(scores, axis=0))[:, 1]
    assert np.isfinite(found.slopes + found.intercepts).all()
    assert min(found.slopes) > 0
    assert ((chances > 0) & (chances < 1)).all() or np.abs(scores).max() > 1e6
    assert (np.diff(chances)[np.diff(np.sort(scores[:, 0])) > 0] >= 0).all()


def test_constant_scores_give_the_smoothed_prevalence():
    found = fit(np.ones((10, 1)), np.array([0] * 9 + [1]))
    assert found.probabilities(np.ones((1, 1)))[0, 1] == pytest.approx((9 / 11 + 2 / 3) / 10)


def test_degenerate_scores_of_many_classes():
    for codes in (np.arange(3), np.array([0, 0, 1]), np.array([0, 1, 2, 2, 2])):
        for scores in (np.ones((len(codes), 3)), 9 * np.eye(3)[codes], -9 * np.eye(3)[codes]):
            found = fit(scores, codes, n_classes=3)
            assert np.isfinite(found.probabilities(scores)).all()
            assert found.slopes[0] > 0


def test_many_classes_are_a_softmax():
    found = Calibrator((2.0, 2.0), (0.0, 1.0, -1.0), 0.0, 4.0, (0.2, 0.3, 0.5))
    scores = np.random.default_rng(0).normal(size=(5, 3))
    expected = softmax(0.5 * scores + [0, 1, -1], axis=1)
    np.testing.assert_allclose(found.probabilities(scores), expected)


def test_two_classes_are_a_logistic_function():
    found = Calibrator((2.0, 2.0), (-1.0,), 0.5, 4.0, (0.9, 0.1))
    assert logit(found.probabilities(np.array([[2.5]]))[0, 1]) == pytest.approx(0.0)
