"""WEOB2: class sizes, recalls, counts, the choice, and learning row by row."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from setconv.baselines.base import FallbackWarning
from setconv.baselines.weob import RunningScaler, StackedMLPs, WEOB2Classifier
from setconv.errors import LabelError, ParameterError


def stream(n=120, d=4, minority=0.2, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < minority).astype(int)
    y[:2] = [0, 1]
    return rng.standard_normal((n, d)) + 1.5 * y[:, None], y


def learned(clf, X, y):
    """The rows as a stream, in their order."""
    return clf.partial_fit(X, y, classes=np.unique(y))


@pytest.fixture
def told(monkeypatch):
    """What members that always say class 0 are told: the class of each row, and their counts."""
    seen = []

    def test_then_train(members, row, code, counts):  # noqa: ARG001
        seen.append((code, counts))
        return np.zeros(len(counts), dtype=np.float32)

    monkeypatch.setattr(StackedMLPs, "test_then_train", test_then_train)
    return seen


# --------------------------------------------------------------------------- class sizes, recalls


@given(st.lists(st.tuples(st.integers(0, 1), st.booleans()), min_size=1, max_size=80))
def test_the_recall_is_the_mean_over_the_window_of_the_whole_history(events):
    clf = WEOB2Classifier(n_estimators=1, recall_window=7)
    _, random = clf._begin(np.arange(2))
    clf._start(random, 1)
    history, current = [], np.zeros(2)
    for place, (code, hit) in enumerate(events):
        said = np.full(2, float(code == hit))  # the probability of class 1 by both ensembles
        clf._members.test_then_train = lambda *_, said=said: said
        clf._learn(np.zeros((1, 1)), np.array([code]), np.array([0]))
        current = current.copy()
        current[code] = hit if place == 0 else 0.9 * current[code] + 0.1 * hit
        history.append(current)
    wanted = np.mean(history[-7:], axis=0)
    assert np.allclose(clf.recalls_, [wanted, wanted])
    assert np.allclose(clf.gmeans_, np.sqrt(wanted.prod()))


# ---------------------------------------------------------------------------------- the members


def test_the_mean_of_many_draws_is_the_rate(told):
    codes = [0, 0, 0, 1, 0, 0, 1]
    clf = WEOB2Classifier(n_estimators=1000, random_state=0)
    learned(clf, np.zeros((len(codes), 1)), codes)
    share = 0.5  # of class 0, from which the rates follow
    for code, (said, counts) in zip(codes, told, strict=True):
        share = 0.9 * share + 0.1 * (code == 0)
        sizes = (share, 1 - share)
        rates = np.array([max(sizes), min(sizes)]) / sizes[code]
        means = counts.reshape(2, -1).mean(axis=1)
        assert said == code
        # A Poisson count has its rate as its variance.
        assert np.all(np.abs(means - rates) < 4 * np.sqrt(rates / 1000))


def trained_by_autograd(member, rows, codes, counts, lr):
    """Train one member by plain gradient descent, each row as often as it was drawn."""
    parameters = [torch.tensor(value, dtype=torch.float64) for value in member]
    for row, code, count in zip(rows, codes, counts, strict=True):
        for _ in range(count):
            for parameter in parameters:
                parameter.requires_grad_()
            x = torch.tensor([*row / 2, 1.0])  # the root of four features, and the bias
            inner, outer, bias = parameters
            score = outer @ torch.tanh(inner @ x) + bias
            loss = torch.nn.functional.binary_cross_entropy_with_logits(
                score, torch.tensor(float(code), dtype=torch.float64)
            )
            gradients = torch.autograd.grad(loss, parameters)
            parameters = [
                (parameter - lr * gradient).detach()
                for parameter, gradient in zip(parameters, gradients, strict=True)
            ]
    return [parameter.detach().numpy() for parameter in parameters]


def test_stacked_members_are_tested_first_and_equal_members_trained_alone_by_autograd():
    rng = np.random.default_rng(0)
    rows, codes = rng.standard_normal((6, 4)), [0, 1, 1, 0, 1, 0]
    counts = rng.poisson(1.5, size=(6, 4))
    stack = StackedMLPs([rng, rng], 2, 4, hidden=3, lr=0.3)

    def members():
        inner = stack.weights.reshape(4, 3, 5)
        return list(zip(inner, stack.output_weights, stack.output_bias, strict=True))

    starts = [tuple(np.copy(part) for part in member) for member in members()]
    for row, code, count in zip(rows, codes, counts, strict=True):
        before = stack.probabilities(row[None])[0]
        assert np.allclose(stack.test_then_train(row, code, count), before)
    for number, (start, found) in enumerate(zip(starts, members(), strict=True)):
        wanted = trained_by_autograd(start, rows, codes, counts[:, number], 0.3)
        for one, other in zip(found, wanted, strict=True):
            assert np.allclose(one, other, atol=1e-5)


def test_the_running_standardisation_is_that_of_the_rows_seen_so_far():
    rows = np.random.default_rng(0).normal(100, 3, size=(50, 4))
    rows[:, 2] = 7.0
    scaler = RunningScaler(4)
    for row in rows:
        scaler.update(row)
    deviations = rows.std(axis=0)
    deviations[2] = 1
    assert np.allclose(scaler.transform(rows), (rows - rows.mean(axis=0)) / deviations)
    assert scaler.transform(np.full((1, 4), 1e9)).tolist() == [[5, 5, 0, 5]]


# ----------------------------------------------------------------------------------- the stream


def test_partial_fit_in_any_parts_gives_the_same_model_to_the_bit():
    X, y = stream(n=40)
    clf = WEOB2Classifier(n_estimators=3, random_state=3)
    whole = learned(clone(clf), X, y)

    @given(st.lists(st.integers(1, 39), unique=True, max_size=6))
    @settings(max_examples=8)
    def check(cuts):
        parts = clone(clf)
        for part in np.split(np.arange(40), sorted(cuts)):
            parts.partial_fit(X[part], y[part], classes=[0, 1])
        assert np.array_equal(parts.predict_proba(X), whole.predict_proba(X))
        assert np.array_equal(parts.class_sizes_, whole.class_sizes_)
        assert np.array_equal(parts.recalls_, whole.recalls_)

    check()


def test_fit_is_one_pass_over_the_shuffled_rows():
    X, y = stream(n=40)
    random = np.random.RandomState(3)
    random.randint(2)  # the seed of the members
    order = random.permutation(40)
    by_hand = learned(WEOB2Classifier(n_estimators=3, random_state=3), X[order], y[order])
    clf = WEOB2Classifier(n_estimators=3, random_state=3).fit(X, y)
    assert np.array_equal(clf.predict_proba(X), by_hand.predict_proba(X))


# ----------------------------------------------------------------------------------- the choice


@pytest.mark.parametrize("gmeans", [(0.6, 0.5), (0.5, 0.6), (0.5, 0.5)])
def test_the_ensemble_with_the_larger_gmean_decides_and_uob_if_they_are_equal(gmeans):
    X, y = stream()
    clf = WEOB2Classifier(n_estimators=3, random_state=0).fit(X, y)
    clf.gmeans_ = np.array(gmeans)
    members = clf._members.probabilities(clf._scaler.transform(X))
    oob, uob = members[:, :3].mean(axis=1), members[:, 3:].mean(axis=1)
    wanted = oob if gmeans[0] > gmeans[1] else uob
    assert not np.allclose(oob, uob)
    assert np.allclose(clf.predict_proba(X)[:, 1], wanted)


@pytest.mark.usefixtures("told")
def test_gmeans_of_0_give_no_preference_and_are_said():
    X, y = stream(n=30)
    with pytest.warns(FallbackWarning, match="no preference"):
        clf = WEOB2Classifier(n_estimators=2).fit(X, y)
    assert len(clf.fallbacks_) == 1


# ------------------------------------------------------------------------------------ bad input


def test_the_first_part_of_a_stream_needs_the_classes_and_later_ones_must_agree():
    clf = WEOB2Classifier(n_estimators=2)
    with pytest.raises(ParameterError):
        clf.partial_fit([[0.0]], [0])
    clf.partial_fit([[0.0]], [0], classes=[0, 1])
    clf.partial_fit([[1.0]], [1])
    with pytest.raises(ParameterError):
        clf.partial_fit([[1.0]], [1], classes=[1, 2])
    with pytest.raises(LabelError):
        clf.partial_fit([[1.0]], [5])
