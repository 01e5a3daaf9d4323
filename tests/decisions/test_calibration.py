"""Probabilities: against scikit-learn, the truth, and what must always hold."""

import json
import warnings
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit
from sklearn.calibration import _SigmoidCalibration
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from setconv.decisions.calibration import Calibrator, fit_calibrator
from setconv.decisions.objective import OutOfFoldScores


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
    evidence = OutOfFoldScores(
        scores=scores,
        codes=codes,
        weights=np.ones(len(codes)) if weights is None else weights,
        n_classes=n_classes or max(codes) + 1,
    ).evened()
    return fit_calibrator(evidence, evidence.prior)


# With weights the smoothing differs: ours counts effective rows, theirs the sum of weights.
@pytest.mark.parametrize(("weighted", "tolerance"), [(False, 1e-4), (True, 1e-2)])
def test_two_classes_agree_with_scikit_learns_sigmoid(weighted, tolerance):
    scores, codes = two()
    weights = None
    if weighted:  # with a mean of 1 in each class, so that prevalence stays counts
        weights = np.random.default_rng(1).choice([1.0, 1.0, 2.0], size=len(codes))
        weights /= (np.bincount(codes, weights) / np.bincount(codes))[codes]
    ours = fit(scores, codes, weights).probabilities(scores)[:, 1]
    theirs = _SigmoidCalibration().fit(scores[:, 0], codes, weights).predict(scores[:, 0])
    np.testing.assert_allclose(ours, theirs, atol=tolerance)


def test_many_classes_agree_with_a_logistic_regression_on_the_heads():
    scores, codes = many()
    ours = fit(scores, codes)
    peer = LogisticRegression(C=1e6, max_iter=1000).fit(scores, codes)
    fresh, truth = many(seed=1)
    theirs = log_loss(truth, peer.predict_proba(fresh))
    assert log_loss(truth, ours.probabilities(fresh)) <= theirs + 0.003


def test_calibrated_log_odds_are_the_true_ones():
    found = fit(*two(90_000, 10_000))
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


def shares(draw, k):
    found = np.array([draw(st.floats(0.01, 1)) for _ in range(k)])
    return found / found.sum()


@st.composite
def calibrators(draw, most_classes=3):
    k = draw(st.integers(2, most_classes))
    positive, level = st.floats(0.01, 20), st.floats(-5, 5)
    slopes = (draw(positive), draw(positive)) if k == 2 else (draw(positive),) * 2
    intercepts = tuple(draw(level) for _ in range(1 if k == 2 else k))
    centre = draw(level) if k == 2 else 0.0
    return Calibrator(slopes, intercepts, centre, draw(positive), tuple(shares(draw, k)))


@given(data=st.data(), calibrator=calibrators())
def test_what_holds_for_any_scores_and_priors(data, calibrator):
    assert Calibrator.from_dict(json.loads(json.dumps(asdict(calibrator)))) == calibrator
    k, heads = len(calibrator.prior), len(calibrator.intercepts)
    scores = data.draw(arrays(np.float64, (4, heads), elements=st.floats(-1e3, 1e3)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain = calibrator.probabilities(scores)
        same = calibrator.probabilities(scores, np.array(calibrator.prior))
    np.testing.assert_allclose(plain.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(plain, same, rtol=1e-9, atol=1e-300)
    # A larger prior for a class never lowers its probability.
    prior, c = shares(data.draw, k), data.draw(st.integers(0, k - 1))
    larger = prior.copy()
    larger[c] *= data.draw(st.floats(1, 50))
    before, after = (calibrator.probabilities(scores, p) for p in (prior, larger / larger.sum()))
    assert (after[:, c] >= before[:, c] * (1 - 1e-12)).all()


@given(calibrators(most_classes=2), st.floats(-50, 50), st.floats(0.01, 0.99))
def test_the_inverse_finds_the_score(calibrator, score, share):
    prior = np.array([1 - share, share])

    def odds(score):
        logs = calibrator.log_probabilities(np.array([[score]]), prior)[0]
        return logs[1] - logs[0]

    found = calibrator.score_at(odds(score), prior)
    assert odds(found) == pytest.approx(odds(score), rel=1e-6, abs=1e-6)


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
    assert ((chances > 0) & (chances < 1)).all() or np.abs(scores).max() > 1e6
    assert (np.diff(chances)[np.diff(np.sort(scores[:, 0])) > 0] >= 0).all()


@pytest.mark.parametrize("codes", [[0, 1, 2], [0, 0, 1], [0, 1, 2, 2, 2]])
@pytest.mark.parametrize("factor", [0, 9, -9])
def test_degenerate_scores_of_many_classes(codes, factor):
    scores = factor * np.eye(3)[codes]
    found = fit(scores, np.array(codes), n_classes=3)
    assert np.isfinite(found.probabilities(scores)).all()
    assert found.slopes[0] > 0


def test_constant_scores_give_the_smoothed_prevalence():
    found = fit(np.ones((10, 1)), np.array([0] * 9 + [1]))
    assert found.probabilities(np.ones((1, 1)))[0, 1] == pytest.approx((9 / 11 + 2 / 3) / 10)
