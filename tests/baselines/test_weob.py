"""OOB, UOB, WEOB1 and WEOB2: rates, recalls, counts, the choice, and learning row by row."""

import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB

from setconv.baselines.fallbacks import FallbackWarning
from setconv.baselines.online_members import RunningScaler, StackedLogistic, StackedMLPs
from setconv.baselines.online_rates import (
    DecayedClassSizes,
    SmoothedRecall,
    oversampling_rate,
    undersampling_rate,
)
from setconv.baselines.weob import (
    OOBClassifier,
    UOBClassifier,
    WEOB1Classifier,
    WEOB2Classifier,
)
from setconv.errors import LabelError, ParameterError

ALL = [OOBClassifier, UOBClassifier, WEOB1Classifier, WEOB2Classifier]


def stream(n=120, d=4, minority=0.2, seed=0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < minority).astype(int)
    y[:2] = [0, 1]
    return rng.standard_normal((n, d)) + 1.5 * y[:, None], y


class Stubborn(ClassifierMixin, BaseEstimator):
    """Always says class 0, and counts how often it was trained on each class."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def partial_fit(self, X, y, classes=None):  # noqa: ARG002
        self.classes_ = np.asarray(classes)
        if not hasattr(self, "trained_"):
            self.trained_ = np.zeros(2, dtype=int)
        self.trained_[y] += 1
        return self

    def predict(self, X):
        return np.zeros(len(X), dtype=int)


# ----------------------------------------------------------------------------- rates and recalls


def test_class_sizes_of_a_stream_worked_by_hand():
    sizes = DecayedClassSizes(2, 0.9)
    seen = []
    for code in [0, 0, 1]:
        sizes.update(code)
        seen.append(sizes.sizes.copy())
    # .9 * .5 + .1 = .55; .9 * .55 + .1 = .595; .9 * .595 = .5355
    assert np.allclose(seen, [[0.55, 0.45], [0.595, 0.405], [0.5355, 0.4645]])


def test_rates_worked_by_hand():
    sizes = np.array([0.8, 0.2])
    assert [oversampling_rate(sizes, code) for code in (0, 1)] == pytest.approx([1, 4])
    assert [undersampling_rate(sizes, code) for code in (0, 1)] == pytest.approx([0.25, 1])


@given(st.lists(st.integers(0, 1), min_size=1, max_size=200), st.floats(0.1, 0.99))
def test_rates_even_the_classes_out_and_never_pass_1_the_wrong_way(codes, theta):
    sizes = DecayedClassSizes(2, theta)
    for code in codes:
        sizes.update(code)
        assert sizes.sizes.sum() == pytest.approx(1)
        if sizes.sizes.min() > 1e-12:
            for rate in (oversampling_rate, undersampling_rate):
                evened = [rate(sizes.sizes, one) * sizes.sizes[one] for one in (0, 1)]
                assert evened[0] == pytest.approx(evened[1])
            assert (
                oversampling_rate(sizes.sizes, code) >= 1 >= undersampling_rate(sizes.sizes, code)
            )


def test_smoothed_recalls_of_a_stream_worked_by_hand():
    recall = SmoothedRecall(2, 0.5, window=2)
    for code, hit in [(0, True), (1, True), (0, False)]:
        recall.update(code, hit)
    # R: (1, 0), (1, .5), (.5, .5); the mean goes over the last two
    assert np.allclose(recall.recalls, [0.5, 0.5])
    assert np.allclose(recall.smoothed(), [0.75, 0.5])
    assert recall.gmean() == pytest.approx(np.sqrt(0.75 * 0.5))


def test_the_first_row_sets_the_recall_of_its_class_only():
    recall = SmoothedRecall(2, 0.9, window=51)
    recall.update(1, True)
    assert recall.smoothed().tolist() == [0, 1]
    assert recall.gmean() == 0


@given(st.lists(st.tuples(st.integers(0, 1), st.booleans()), min_size=1, max_size=80))
def test_the_smoothed_recall_is_the_mean_over_the_window_of_the_whole_history(events):
    recall, history, current = SmoothedRecall(2, 0.9, window=7), [], np.zeros(2)
    for place, (code, hit) in enumerate(events):
        recall.update(code, hit)
        current = current.copy()
        current[code] = hit if place == 0 else 0.9 * current[code] + 0.1 * hit
        history.append(current)
    assert np.allclose(recall.smoothed(), np.mean(history[-7:], axis=0))


def test_fitted_class_sizes_and_recalls_of_a_stream_worked_by_hand():
    clf = WEOB2Classifier(base=Stubborn(), n_estimators=3, theta_recall=0.5, recall_window=2)
    clf.partial_fit(np.zeros((3, 1)), ["no", "yes", "no"], classes=["no", "yes"])
    assert np.allclose(clf.class_sizes_, [0.5455, 0.4545])  # .55, .495, .9 * .495 + .1
    assert np.allclose(clf.recall_oob_, [1, 0])
    assert clf.gmean_oob_ == clf.gmean_uob_ == 0


# ---------------------------------------------------------------------------------- the members


@pytest.mark.parametrize("name", ["oob", "uob"])
def test_the_mean_of_many_draws_is_the_rate(name):
    codes = [0, 0, 0, 1, 0, 0, 1]
    share, rates = 0.5, np.zeros(2)  # share of class 0, from which the rates follow
    for code in codes:
        share = 0.9 * share + 0.1 * (code == 0)
        sizes = (share, 1 - share)
        rates[code] += (max(sizes) if name == "oob" else min(sizes)) / sizes[code]
    cls = OOBClassifier if name == "oob" else UOBClassifier
    clf = cls(base=Stubborn(), n_estimators=1000, shuffle=False, random_state=0)
    clf.fit(np.zeros((len(codes), 1)), codes)
    trained = [getattr(one, "trained_", np.zeros(2)) for one in clf._members.members]
    # The sum of Poisson counts has its rate as its variance.
    assert np.all(np.abs(np.mean(trained, axis=0) - rates) < 4 * np.sqrt(rates / 1000))


def trained_by_autograd(member, rows, codes, counts, lr):
    """Train one member by plain gradient descent, each row as often as it was drawn."""
    parameters = [torch.tensor(value, dtype=torch.float64) for value in member]
    for row, code, count in zip(rows, codes, counts, strict=True):
        for _ in range(count):
            for parameter in parameters:
                parameter.requires_grad_()
            x = torch.tensor([*row / 2, 1.0])  # the root of four features, and the bias
            if len(parameters) == 1:
                score = parameters[0] @ x
            else:
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


@pytest.mark.parametrize("kind", ["mlp", "logistic"])
def test_stacked_members_equal_members_trained_one_by_one_by_autograd(kind):
    rng = np.random.default_rng(0)
    rows, codes = rng.standard_normal((6, 4)), [0, 1, 1, 0, 1, 0]
    counts = rng.poisson(1.5, size=(6, 4))
    if kind == "mlp":
        stack = StackedMLPs([rng, rng], 2, 4, hidden=3, lr=0.3)
        starts = [
            (inner, outer, bias)
            for inner, outer, bias in zip(
                stack.weights.reshape(4, 3, 5).copy(),
                stack.output_weights.copy(),
                stack.output_bias.copy(),
                strict=True,
            )
        ]
    else:
        stack = StackedLogistic(4, 4, lr=0.3)
        starts = [(weights,) for weights in stack.weights.copy()]
    for row, code, count in zip(rows, codes, counts, strict=True):
        assert np.allclose(
            stack.test_then_train(row, code, count * 0), stack.probabilities(row[None])[0]
        )
        stack.test_then_train(row, code, count)
    for number, start in enumerate(starts):
        wanted = trained_by_autograd(start, rows, codes, counts[:, number], 0.3)
        if kind == "mlp":
            assert np.allclose(stack.weights.reshape(4, 3, 5)[number], wanted[0], atol=1e-5)
            assert np.allclose(stack.output_weights[number], wanted[1], atol=1e-5)
            assert np.allclose(stack.output_bias[number], wanted[2], atol=1e-5)
        else:
            assert np.allclose(stack.weights[number], wanted[0], atol=1e-5)


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


@pytest.mark.parametrize("base", ["mlp", "logistic"])
@pytest.mark.parametrize("cls", ALL)
def test_partial_fit_in_any_parts_equals_fit_of_the_stream_to_the_bit(cls, base):
    X, y = stream(n=40)
    clf = cls(base=base, n_estimators=3, shuffle=False, random_state=3)
    whole = clone(clf).fit(X, y)

    @given(st.lists(st.integers(1, 39), unique=True, max_size=6))
    @settings(max_examples=8, deadline=None)
    def check(cuts):
        parts = clone(clf)
        for part in np.split(np.arange(40), sorted(cuts)):
            parts.partial_fit(X[part], y[part], classes=[0, 1])
        assert np.array_equal(parts.predict_proba(X), whole.predict_proba(X))
        assert np.array_equal(parts.class_sizes_, whole.class_sizes_)
        assert np.array_equal(parts.weights_, whole.weights_)
        for name in ("recall_oob_", "recall_uob_"):
            assert np.array_equal(getattr(parts, name, None), getattr(whole, name, None))

    check()


def test_partial_fit_row_by_row_equals_fit_of_the_stream_for_members_of_the_users_own_kind():
    X, y = stream(n=15)
    base = SGDClassifier(loss="log_loss")
    clf = WEOB1Classifier(base=base, n_estimators=2, shuffle=False, random_state=3)
    whole, parts = clone(clf).fit(X, y), clone(clf)
    for row, label in zip(X, y, strict=True):
        parts.partial_fit(row[None], [label], classes=[0, 1])
    assert np.array_equal(parts.predict_proba(X), whole.predict_proba(X))


def test_memory_does_not_grow_with_the_stream():
    X, y = stream(n=600)
    clf = WEOB2Classifier(n_estimators=2, recall_window=20, random_state=0)
    sizes = []
    for part in (slice(0, 100), slice(100, 600)):
        clf.partial_fit(X[part], y[part], classes=[0, 1])
        sizes.append(len(pickle.dumps(clf)))
    assert abs(sizes[1] - sizes[0]) < 50


def test_a_row_is_tested_before_it_is_learned_from():
    # Coin-flip labels cannot be foreseen, however often each row is learned afterwards.
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 50)), rng.integers(0, 2, 400)
    clf = OOBClassifier(n_estimators=5, lr=5.0, recall_window=400, random_state=0).fit(X, y)
    assert np.all(np.abs(clf.recall_oob_ - 0.5) < 0.15)


def test_passes_repeat_the_stream():
    X, y = stream(n=30)
    twice = WEOB2Classifier(n_estimators=2, n_passes=2, shuffle=False, random_state=0).fit(X, y)
    doubled = clone(twice).set_params(n_passes=1).fit(np.vstack([X, X]), np.hstack([y, y]))
    assert np.array_equal(twice.predict_proba(X), doubled.predict_proba(X))


# ----------------------------------------------------------------------------------- the choice


def both_alone(X, y, **parameters):
    alone = [cls(**parameters).fit(X, y) for cls in (OOBClassifier, UOBClassifier)]
    return alone, [one.predict_proba(X) for one in alone]


@pytest.mark.parametrize("minority", [0.05, 0.2, 0.5])
def test_weob2_is_the_ensemble_with_the_larger_gmean(minority):
    X, y = stream(n=300, minority=minority)
    parameters = {"n_estimators": 5, "random_state": 0}
    (oob, uob), probabilities = both_alone(X, y, **parameters)
    clf = WEOB2Classifier(**parameters).fit(X, y)
    assert clf.gmean_oob_ == pytest.approx(oob.gmean_oob_)
    assert clf.gmean_uob_ == pytest.approx(uob.gmean_uob_)
    better = 0 if oob.gmean_oob_ > uob.gmean_uob_ else 1
    assert clf.weights_.tolist() == [float(better == 0), float(better == 1)]
    assert np.allclose(clf.predict_proba(X), probabilities[better], atol=1e-4)


def test_the_choice_of_weob2_goes_either_way():
    chosen = set()
    for seed in range(10):
        X, y = stream(n=60, seed=seed)
        clf = WEOB2Classifier(n_estimators=3, random_state=seed).fit(X, y)
        chosen.add(tuple(clf.weights_.tolist()))
    assert chosen == {(1.0, 0.0), (0.0, 1.0)}


def test_weob1_mixes_in_proportion_to_the_gmeans():
    X, y = stream(n=300)
    parameters = {"n_estimators": 5, "random_state": 0}
    (oob, uob), probabilities = both_alone(X, y, **parameters)
    share = oob.gmean_oob_ / (oob.gmean_oob_ + uob.gmean_uob_)
    clf = WEOB1Classifier(**parameters).fit(X, y)
    assert 0 < share < 1
    mixed = share * probabilities[0] + (1 - share) * probabilities[1]
    assert np.allclose(clf.predict_proba(X), mixed, atol=1e-4)


@pytest.mark.parametrize(
    ("cls", "weights"), [(WEOB1Classifier, [0.5, 0.5]), (WEOB2Classifier, [0.0, 1.0])]
)
def test_gmeans_of_0_give_no_preference_and_are_said(cls, weights):
    X, y = stream(n=30)
    with pytest.warns(FallbackWarning, match="no preference"):
        clf = cls(base=Stubborn(), n_estimators=2).fit(X, y)
    assert clf.weights_.tolist() == weights
    assert len(clf.fallbacks_) == 1


# ------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("base", ["mlp", "logistic"])
def test_learns_whatever_the_scale_of_the_features(cls, base):
    X, y = stream(n=700, d=6, minority=0.1)
    clf = cls(base=base, n_estimators=5, random_state=0)
    scores = [
        clone(clf).fit(X * scale + 10 * scale, y).predict_proba(X * scale + 10 * scale)[:, 1]
        for scale in (1e-3, 1e3)
    ]
    assert np.allclose(scores[0], scores[1], atol=1e-3)
    assert roc_auc_score(y, scores[0]) > 0.95


@pytest.mark.parametrize("base", [GaussianNB(), SGDClassifier(loss="hinge")])
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")  # of a single row's variance
def test_takes_members_of_the_users_own_kind(base):
    X, y = stream(n=60)
    clf = WEOB1Classifier(base=base, n_estimators=2, random_state=0).fit(X, y)
    assert roc_auc_score(y, clf.predict_proba(X)[:, 1]) > 0.8


@pytest.mark.parametrize("cls", ALL)
def test_the_same_seed_gives_the_same_result_and_another_gives_another(cls):
    X, y = stream()
    results = [
        cls(n_estimators=3, random_state=seed).fit(X, y).predict_proba(X) for seed in (0, 0, 1)
    ]
    assert np.array_equal(results[0], results[1])
    assert not np.array_equal(results[0], results[2])


def test_a_prediction_does_not_depend_on_the_rows_next_to_it():
    X, y = stream(d=40)
    clf = WEOB2Classifier(n_estimators=4, random_state=0).fit(X.astype(np.float32), y)
    alone = np.vstack([clf.predict_proba(row[None]) for row in X])
    assert np.allclose(alone, clf.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("labels", [(-1, 1), (1, 2), ("no", "yes")])
def test_names_of_the_classes_change_nothing(labels):
    X, y = stream()
    named = np.array(labels)[y]
    clf = WEOB2Classifier(n_estimators=3, random_state=0)
    wanted, got = clone(clf).fit(X, y), clone(clf).fit(X, named)
    assert np.array_equal(wanted.predict_proba(X), got.predict_proba(X))
    assert np.array_equal(np.array(labels)[wanted.predict(X)], got.predict(X))


# ------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.filterwarnings("ignore::setconv.baselines.fallbacks.FallbackWarning")
def test_a_class_of_one_row_constant_features_and_duplicate_rows_work(cls):
    X = np.ones((501, 3))
    X[:, 0] = np.repeat([0.0, 1.0, 2.0], 167)
    y = np.zeros(501, dtype=int)
    y[-1] = 1
    probabilities = cls(n_estimators=3, random_state=0).fit(X, y).predict_proba(X)
    assert np.isfinite(probabilities).all()
    assert np.allclose(probabilities.sum(axis=1), 1)


def test_three_classes_are_refused_and_the_wrapper_is_named():
    with pytest.raises(LabelError, match="OneVsRestClassifier"):
        WEOB2Classifier().fit(np.eye(3), [0, 1, 2])


def test_the_first_part_of_a_stream_needs_the_classes_and_later_ones_must_agree():
    clf = OOBClassifier(n_estimators=2)
    with pytest.raises(ParameterError, match="first call"):
        clf.partial_fit([[0.0]], [0])
    clf.partial_fit([[0.0]], [0], classes=[0, 1])
    clf.partial_fit([[1.0]], [1])
    with pytest.raises(ParameterError, match="first call"):
        clf.partial_fit([[1.0]], [1], classes=[1, 2])
    with pytest.raises(LabelError, match=r"\[5\] are not among the classes \[0, 1\]"):
        clf.partial_fit([[1.0]], [5])


@pytest.mark.parametrize(
    "wrong",
    [
        {"n_estimators": 0},
        {"hidden": 1.5},
        {"theta": 1.0},
        {"theta_recall": -0.1},
        {"recall_window": 0},
        {"lr": 0},
        {"n_passes": "two"},
        {"base": "tree"},
        {"base": 3},
    ],
)
def test_wrong_parameters_are_named(wrong):
    (name,) = wrong
    with pytest.raises(ParameterError, match=f"^{name}="):
        WEOB2Classifier(**wrong).fit(np.eye(2), [0, 1])
