"""More than two classes: coordinate ascent against a fine search."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import f1_score, matthews_corrcoef, recall_score

from setconv.decisions.scores import check_scores, thin
from setconv.decisions.thresholds import (
    Problem,
    _cuts_of,
    class_offsets,
    coordinate_ascent,
)

KINDS = ["balanced", "f1", "mcc"]


def measure(kind, truth, guess, weights=None):
    if kind == "balanced":
        recalls = recall_score(truth, guess, average=None, sample_weight=weights)
        return float(np.prod(recalls ** (1 / len(recalls))))
    if kind == "f1":
        return f1_score(truth, guess, average="macro", sample_weight=weights, zero_division=0)
    return matthews_corrcoef(truth, guess, sample_weight=weights)


def draw(n, shares, seed=0, gap=1.5):
    generator = np.random.default_rng(seed)
    codes = np.sort(generator.choice(len(shares), size=n, p=shares))
    codes[: len(shares)] = np.arange(len(shares))
    scores = generator.normal(size=(n, len(shares))) + np.linspace(-1, 1, len(shares))
    scores[np.arange(n), codes] += gap
    return scores, codes


def decide(scores, thresholds):
    return np.argmax(scores - thresholds, axis=1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_curve_of_a_class_is_the_criterion_of_its_cuts(kind):
    scores, codes = draw(40, [0.5, 0.3, 0.2])
    scores = np.round(scores, 1)
    weights = np.random.default_rng(1).choice([0.5, 1, 2], size=40)
    problem = Problem(scores.T.copy(), codes, weights, kind, np.full(3, 1 / 3))
    start = np.array([0.03, -0.02, 0.011])
    for c in range(3):
        rows, curve = _cuts_of(problem, problem.scores - start[:, None], c)
        for cut, value in enumerate(curve):
            thresholds = start.copy()
            thresholds[c] = rows.threshold(cut)
            expected = measure(kind, codes, decide(scores, thresholds), weights)
            assert value == pytest.approx(expected, abs=1e-3 if expected == 0 else 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_ascent_comes_as_far_as_a_fine_search(monkeypatch, kind):
    scores, codes = draw(300, [0.7, 0.2, 0.1])
    evidence = check_scores(scores, codes, None, 3)
    monkeypatch.setattr("setconv.decisions.thresholds.ENOUGH_ROWS", 0)
    found = class_offsets(evidence, kind, powers=np.full(3, 1 / 3))
    assert found.mean() == pytest.approx(0, abs=1e-12)
    steps = np.linspace(-2.4, 2.4, 9)
    searched = max(
        measure(kind, codes, decide(scores, np.array([0.0, a, b])))
        for a, b in itertools.product(steps, steps)
    )
    assert measure(kind, codes, decide(scores, found)) >= searched - 0.001


@pytest.mark.parametrize("enough", [0, 2000])
@pytest.mark.parametrize("kind", KINDS)
def test_new_rows_gain_by_it(monkeypatch, kind, enough):
    monkeypatch.setattr("setconv.decisions.thresholds.ENOUGH_ROWS", enough)
    shares = [0.8, 0.1, 0.06, 0.04]
    scores, codes = draw(1500, shares)
    fresh, truth = draw(20_000, shares, seed=1)
    evidence = check_scores(scores, codes, None, 4)
    found = class_offsets(evidence, kind, powers=np.full(4, 0.25), seed=2)
    again = class_offsets(evidence, kind, powers=np.full(4, 0.25), seed=2)
    np.testing.assert_array_equal(found, again)
    assert measure(kind, truth, decide(fresh, found)) > measure(kind, truth, decide(fresh, 0.0))


def test_powers_favour_a_class():
    scores, codes = draw(600, [0.6, 0.3, 0.1], gap=1.0)
    evidence = check_scores(scores, codes, None, 3)
    equal, keen = (
        decide(scores, class_offsets(evidence, "balanced", powers=powers))
        for powers in (np.full(3, 1 / 3), np.array([0.1, 0.1, 0.8]))
    )
    assert (keen[codes == 2] == 2).mean() > (equal[codes == 2] == 2).mean()


def test_classes_without_rows_and_tiny_inputs():
    scores, codes = draw(60, [0.5, 0.3, 0.2])
    kept = codes != 1
    evidence = check_scores(scores[kept], codes[kept], None, 3)
    found = class_offsets(evidence, "f1", powers=np.full(3, 1 / 3))
    assert np.isfinite(found).all()
    assert found[1] == 0
    for kind in KINDS:
        small = check_scores(np.eye(3), np.arange(3), None, 3)
        found = class_offsets(small, kind, powers=np.full(3, 1 / 3))
        assert decide(np.eye(3), found).tolist() == [0, 1, 2]
        one = check_scores(np.ones((2, 3)), np.zeros(2), None, 3)
        assert class_offsets(one, kind, powers=np.full(3, 1 / 3)).tolist() == [0, 0, 0]


def test_a_sample_keeps_the_weight_of_each_class():
    scores, codes = draw(30_000, [0.9, 0.09, 0.01])
    evidence = check_scores(scores, codes, None, 3)
    part = thin(evidence, 5000, 250, seed=0)
    assert len(part.codes) < 5500
    assert np.bincount(part.codes)[2] >= 250
    np.testing.assert_allclose(part.totals, evidence.totals)


def test_ascent_never_falls():
    scores, codes = draw(200, [0.5, 0.3, 0.2])
    problem = Problem(scores.T.copy(), codes, np.ones(200), "f1", np.full(3, 1 / 3))
    thresholds, reached = coordinate_ascent(problem, np.zeros(3))
    assert reached >= measure("f1", codes, decide(scores, 0.0))
    assert reached == pytest.approx(measure("f1", codes, decide(scores, thresholds)))
