"""Thresholds: against brute force over all cuts, with scikit-learn's metrics."""

import itertools
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, matthews_corrcoef, recall_score

from setconv.decisions import thresholds
from setconv.decisions.objective import OutOfFoldScores
from setconv.decisions.thresholds import (
    Criterion,
    Problem,
    _cuts_of,
    _rivals,
    choose_threshold,
    class_offsets,
    coordinate_ascent,
    smoothed_threshold,
)
from setconv.sampling import bootstrap_weights

KINDS = ["balanced", "f1", "mcc"]
HALF = np.full(2, 0.5)


def rows_of(scores, codes, weights=None, n_classes=2):
    weights = np.ones(len(codes)) if weights is None else weights
    columns = np.asarray(scores, dtype=float).reshape(len(codes), -1)
    codes = np.asarray(codes)
    return OutOfFoldScores(scores=columns, codes=codes, weights=weights, n_classes=n_classes)


def equal(kind, n_classes=2, **options):
    return Criterion(kind, np.full(n_classes, 1 / n_classes), **options)


def measure(criterion, truth, guess, weights=None):
    kind, powers, positive = criterion
    options = {"sample_weight": weights, "zero_division": 0}
    if kind == "balanced":
        labels = range(len(powers))
        recalls = recall_score(truth, guess, labels=labels, average=None, **options)
        return float(np.prod(recalls**powers))
    if kind == "f1" and len(powers) == 2:
        return f1_score(truth, guess, pos_label=positive, **options)
    if kind == "f1":
        return f1_score(truth, guess, average="macro", **options)
    # One class alone has no correlation; rounding can make it nan instead of 0.
    return float(np.nan_to_num(matthews_corrcoef(truth, guess, sample_weight=weights)))


@pytest.fixture
def exactly(monkeypatch):
    """Choose as on many rows, where the best cut counts."""
    monkeypatch.setattr("setconv.decisions.thresholds.ENOUGH_ROWS", 0)


# ------------------------------------------------------------------------------- two classes


@st.composite
def problems(draw):
    n = draw(st.integers(2, 25))
    scores = np.array(draw(st.lists(st.integers(-6, 6), min_size=n, max_size=n)), dtype=float)
    truth = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    truth[:2] = [0, 1]
    weights = np.array(draw(st.lists(st.sampled_from([0.5, 1, 3]), min_size=n, max_size=n)))
    return scores, truth, weights


@pytest.mark.parametrize("kind", KINDS)
@given(problem=problems(), positive=st.integers(0, 1))
def test_the_exact_threshold_is_the_best_of_all_cuts(kind, problem, positive):
    scores, truth, weights = problem
    criterion = Criterion(kind, np.array([0.3, 0.7]), positive)
    with patch("setconv.decisions.thresholds.ENOUGH_ROWS", 0):
        found = choose_threshold(rows_of(scores, truth, weights), criterion)
    reached, *possible = (
        measure(criterion, truth, (scores > cut).astype(int), weights)
        for cut in (found, scores.min() - 1, *np.unique(scores))
    )
    assert reached == pytest.approx(max(possible), abs=1e-9)


@pytest.mark.parametrize(
    ("scores", "truth", "expected"),
    [
        ([-2.0, -1.0, 3.0, 4.0], [0, 0, 1, 1], 1.0),  # the middle of the gap
        # A geometric mean of sqrt(1/2) at the cuts 0 | 1, 1 and 2 | 10: the widest gap.
        ([0.0, 1.0, 2.0, 10.0], [0, 1, 0, 1], 6.0),
        ([1.0, np.nextafter(1.0, 2)], [0, 1], 1.0),  # neighbours are still told apart
    ],
)
@pytest.mark.usefixtures("exactly")
def test_where_in_a_gap_the_threshold_lies(scores, truth, expected):
    assert choose_threshold(rows_of(scores, truth), equal("balanced")) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_smoothed_thresholds_are_deterministic_and_near_the_truth(kind):
    generator = np.random.default_rng(0)
    truth = np.repeat([0, 1], [800, 80])
    rows, criterion = rows_of(generator.normal(truth * 2.0 - 1), truth), equal(kind)
    found = choose_threshold(rows, criterion, seed=3)
    assert found == choose_threshold(rows, criterion, seed=3)
    truth = np.repeat([0, 1], [20_000, 2000])
    fresh = generator.normal(truth * 2.0 - 1)
    reached, *others = (
        measure(criterion, truth, (fresh > cut).astype(int))
        for cut in (found, *np.linspace(-1, 2, 9))
    )
    assert reached > max(others) - 0.03


@pytest.mark.parametrize("kind", KINDS)
def test_scores_that_cannot_be_smoothed_get_the_mean_over_resamples(kind, monkeypatch):
    generator = np.random.default_rng(1)
    truth = np.repeat([0, 1], [40, 9])
    scores = np.sort(generator.normal(truth * 2.0))
    scores[truth == 1] = 1.5
    found = choose_threshold(rows_of(scores, truth), equal(kind), seed=5)
    monkeypatch.setattr("setconv.decisions.thresholds.ENOUGH_ROWS", 0)
    generator, each = np.random.default_rng(5), []
    for _ in range(100):
        drawn = bootstrap_weights(truth, generator)
        assert np.bincount(truth, drawn).tolist() == [40, 9]
        each.append(choose_threshold(rows_of(scores, truth, drawn), equal(kind)))
    assert found == pytest.approx(np.mean(each), abs=0.15)


@pytest.mark.parametrize("enough", [0, 2000])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scores", [[1.0, 1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1e9, -1e9, 5.0]])
def test_degenerate_scores_give_a_finite_threshold(scores, kind, enough, monkeypatch):
    monkeypatch.setattr("setconv.decisions.thresholds.ENOUGH_ROWS", enough)
    rows = rows_of(scores, np.arange(len(scores)) % 2)
    assert np.isfinite(choose_threshold(rows, equal(kind)))


def test_many_rows_are_decided_on_exactly(monkeypatch):
    truth = np.repeat([0, 1], [3000, 2500])
    rows = rows_of(np.random.default_rng(0).normal(truth * 2.0), truth)
    found = choose_threshold(rows, equal("balanced"))
    assert found != smoothed_threshold(rows, equal("balanced"))
    monkeypatch.setattr("setconv.decisions.thresholds.ENOUGH_ROWS", 0)
    assert found == choose_threshold(rows, equal("balanced"))


# ------------------------------------------------------------------------- more than two classes


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
    criterion = Criterion(kind, np.array([0.3, 0.3, 0.4]))
    problem = Problem(scores.T.copy(), codes, weights, criterion)
    start = np.array([0.03, -0.02, 0.011])
    for c, rival, best_other in _rivals(problem.scores - start[:, None]):
        rows, curve = _cuts_of(problem, c, rival, best_other)
        for cut, value in enumerate(curve):
            thresholds = start.copy()
            thresholds[c] = rows.threshold(cut)
            expected = measure(criterion, codes, decide(scores, thresholds), weights)
            assert value == pytest.approx(expected, abs=1e-3 if expected == 0 else 1e-9)


def test_rivals_are_the_first_of_the_best_other_classes_while_values_move():
    values = np.random.default_rng(0).integers(0, 4, size=(7, 60)).astype(float)
    for c, rival, best_other in _rivals(values):
        others = np.delete(np.arange(7), c)
        np.testing.assert_array_equal(best_other, values[others].max(axis=0))
        np.testing.assert_array_equal(rival, others[values[others].argmax(axis=0)])
        values[c] = np.roll(values[c], 1) + c % 2


@pytest.mark.parametrize("kind", KINDS)
def test_ten_times_the_classes_take_less_than_twelve_times_the_cuts(kind, monkeypatch):
    sorted_rows = []

    class Counted(thresholds.RankedScores):
        def __init__(self, scores, *others):
            sorted_rows.append(len(scores))
            super().__init__(scores, *others)

    monkeypatch.setattr(thresholds, "RankedScores", Counted)
    costs = []
    for n_classes in (6, 60):
        sorted_rows.clear()
        scores, codes = draw(600, np.full(n_classes, 1 / n_classes))
        class_offsets(rows_of(scores, codes, n_classes=n_classes), equal(kind, n_classes))
        costs.append(sum(sorted_rows))
    assert costs[1] < 12 * costs[0]


@pytest.mark.usefixtures("exactly")
@pytest.mark.parametrize("kind", KINDS)
def test_ascent_comes_as_far_as_a_fine_search(kind):
    scores, codes = draw(300, [0.7, 0.2, 0.1])
    criterion = equal(kind, 3)
    found = class_offsets(rows_of(scores, codes, n_classes=3), criterion)
    assert found.mean() == pytest.approx(0, abs=1e-12)
    steps = np.linspace(-2.4, 2.4, 9)
    searched = max(
        measure(criterion, codes, decide(scores, np.array([0.0, a, b])))
        for a, b in itertools.product(steps, steps)
    )
    reached = measure(criterion, codes, decide(scores, found))
    assert reached >= searched - 0.001
    problem = Problem(scores.T.copy(), codes, np.ones(300), criterion)
    assert coordinate_ascent(problem, found)[1] == pytest.approx(reached, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_new_rows_gain_by_it(kind):
    shares, criterion = [0.8, 0.1, 0.06, 0.04], equal(kind, 4)
    rows = rows_of(*draw(1500, shares), n_classes=4)
    found = class_offsets(rows, criterion, seed=2)
    np.testing.assert_array_equal(found, class_offsets(rows, criterion, seed=2))
    fresh, truth = draw(20_000, shares, seed=1)
    moved, plain = (measure(criterion, truth, decide(fresh, t)) for t in (found, 0.0))
    assert moved > plain


@pytest.mark.parametrize("kind", KINDS)
def test_classes_without_rows_and_tiny_inputs(kind):
    scores, codes = draw(60, [0.5, 0.3, 0.2])
    kept = codes != 1
    found = class_offsets(rows_of(scores[kept], codes[kept], n_classes=3), equal(kind, 3))
    assert np.isfinite(found).all()
    assert found[1] == 0
    found = class_offsets(rows_of(np.eye(3), np.arange(3), n_classes=3), equal(kind, 3))
    assert decide(np.eye(3), found).tolist() == [0, 1, 2]
    for none in (OutOfFoldScores.none(3), rows_of(np.ones((2, 3)), [0, 0], n_classes=3)):
        assert class_offsets(none, equal(kind, 3)).tolist() == [0, 0, 0]


def test_a_sample_keeps_the_weight_of_each_class():
    rows = rows_of(*draw(30_000, [0.9, 0.09, 0.01]), n_classes=3)
    part = rows.thinned(5000, 250, seed=0)
    assert len(part) < 5500
    assert np.bincount(part.codes)[2] >= 250
    np.testing.assert_allclose(part.totals, rows.totals)
