"""The balanced threshold of few rows is drawn to the one that the probabilities give."""

import numpy as np
import pytest

from setconv.decisions.rule import fit_rule
from setconv.decisions.thresholds import smoothed_threshold

EVEN = np.full(2, 0.5)


def scored(n_rare, n_common=400, seed=0):
    rng = np.random.default_rng(seed)
    scores = np.concatenate([rng.normal(0, 1, n_common), rng.gumbel(2, 1, n_rare)])
    return scores[:, None], np.repeat([0, 1], [n_common, n_rare])


def both_cuts(rule):
    cut = smoothed_threshold(rule.evidence, "balanced", positive=1, powers=EVEN)
    # Where both classes are equally likely if they are equally frequent.
    return cut, rule.calibrator.score_at(0.0, EVEN)


@pytest.mark.parametrize("n_rare", [5, 20, 60, 1500])
def test_the_probable_cut_counts_like_20_rows_of_the_rarer_class(n_rare):
    rule = fit_rule(*scored(n_rare), classes=("common", "rare"))
    cut, probable = both_cuts(rule)
    share = 20 / (20 + min(n_rare, 400))
    assert rule.thresholds[0] == pytest.approx((1 - share) * cut + share * probable)


def test_at_the_probable_cut_both_classes_are_equally_likely():
    rule = fit_rule(*scored(50), classes=("common", "rare"))
    probable = both_cuts(rule)[1]
    at_cut = rule.calibrator.probabilities(np.array([[probable]]), EVEN)
    np.testing.assert_allclose(at_cut, 0.5)


def test_a_class_weight_moves_the_threshold_towards_the_other_class():
    scores, codes = scored(30)
    plain, heavy = (
        fit_rule(scores, codes, class_weights=np.array([1.0, w]), classes=("common", "rare"))
        for w in (1.0, 4.0)
    )
    assert heavy.thresholds[0] < plain.thresholds[0]


def test_a_probable_cut_beyond_all_scores_is_not_followed():
    # Scores that do not tell the classes apart: the logistic curve is flat, and reaches one half
    # far outside of the scores.
    scores = np.random.default_rng(0).standard_t(3, size=(210, 1))
    rule = fit_rule(scores, np.repeat([0, 1], [200, 10]), classes=("common", "rare"))
    cut, probable = both_cuts(rule)
    drawn = cut / 3 + probable * 2 / 3
    assert not scores.min() <= drawn < scores.max()
    assert rule.thresholds[0] == pytest.approx(cut)


@pytest.mark.parametrize("seed", range(20))
def test_both_classes_are_decided_on_whatever_the_scores(seed):
    rng = np.random.default_rng(seed)
    scores = rng.standard_t(3, size=(210, 1))
    rule = fit_rule(scores, np.repeat([0, 1], [200, 10]), classes=("common", "rare"))
    assert len(np.unique(rule.decide(scores))) == 2
