"""The estimator as its users meet it."""

import logging
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import torch
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from small_models import alone, assert_same_model, assert_same_weights, preset, small, weights_of

from setconv.model import BLOCK
from setconv.training import Callback

KINDS = pytest.mark.parametrize("kind", ["binary", "multiclass"])


def representatives_by_hand(clf, fit_rows, rows, codes, weights=None):
    """Section 3.1 in numpy: scale, encode, embed each row, average each side, compare by angle.

    For one head, one encoder layer, one linear layer of g1 and the cosine.
    """
    weights = np.ones(len(rows)) if weights is None else weights
    mean, deviation = fit_rows.mean(axis=0), fit_rows.std(axis=0)
    net = {name: array.astype(np.float64) for name, array in weights_of(clf).items()}

    def encode(values):
        scaled = np.clip((values - mean) / deviation, -5, 5)
        return np.maximum(scaled @ net["encoder.0.weight"] + net["encoder.0.bias"], 0)

    anchor, encoded = encode(clf.anchor_[None]), encode(rows)
    attention = np.exp(net["setconv.attention"][0])
    attention /= attention.sum(axis=0)
    kernel = (anchor - encoded) @ net["setconv.g1.0.weight"][0] + net["setconv.g1.0.bias"][0]
    embedded = kernel * (encoded @ attention)
    sides = [
        np.average(embedded[codes == code], axis=0, weights=weights[codes == code])
        for code in (0, 1)
    ]
    return np.stack([side / np.linalg.norm(side) for side in sides])


@pytest.fixture(scope="module")
def plain(binary):
    """The model that others are compared with; never changed."""
    return small().fit(*binary)


@pytest.fixture(scope="module")
def one_network(binary):
    return alone(max_steps=30).fit(*binary)


@pytest.fixture(scope="module")
def one_network_multiclass(multiclass):
    return alone(max_steps=60).fit(*multiclass)


# ---------------------------------------------------------------------------- what a fit leaves


@pytest.mark.parametrize("heads", ["shared", "separate"])
def test_two_classes_are_one_head_and_more_are_one_each(binary, multiclass, heads):
    for (X, y), lead in ((binary, ()), (multiclass, (4,))):
        clf = alone(heads=heads)
        assert clf.fit(X, y) is clf
        assert clf.classes_.tolist() == list(range(y.max() + 1))
        assert clf.class_counts_.tolist() == np.bincount(y).tolist()
        assert (clf.n_features_in_, clf.n_steps_, clf.report_source_) == (8, 6, "none")
        assert clf.anchor_.shape == (*lead, 8)
        assert clf.representatives_.shape == (*lead, 2, 4)
        assert clf.predict_proba(X).shape == (len(X), y.max() + 1)
        assert clf.decision_function(X).shape == (len(X), *lead)
        assert clf.transform(X).shape == (len(X), 4 * max(1, *lead, 0))
    shared = heads == "shared"
    assert clf.network_.encoder[0].weight.shape == ((8, 8) if shared else (4, 8, 8))


def test_probabilities_are_the_logistic_of_the_log_odds_or_shares_of_it(
    one_network, binary, one_network_multiclass, multiclass
):
    said = one_network.predictions(binary[0])
    assert np.allclose(said.probabilities[:, 1], expit(said.decision_values), rtol=1e-12)
    assert np.allclose(said.probabilities.sum(axis=1), 1, rtol=1e-12)
    assert np.array_equal(said.labels, (said.decision_values > 0).astype(int))
    said = one_network_multiclass.predictions(multiclass[0])
    each = expit(said.decision_values)
    assert np.allclose(said.probabilities, each / each.sum(axis=1, keepdims=True), rtol=1e-9)
    assert np.array_equal(said.labels, said.probabilities.argmax(axis=1))


def test_a_score_is_the_scaled_difference_of_similarities(one_network, binary):
    X, y = binary
    by_hand = representatives_by_hand(one_network, X, X, y)
    assert np.allclose(one_network.representatives_, by_hand, atol=1e-5)
    embedded = one_network.transform(X).astype(np.float64)
    assert np.allclose(np.linalg.norm(embedded, axis=1), 1, atol=1e-6)
    temperature = math.exp(one_network.network_.log_temperature.item())
    expected = temperature * (embedded @ (by_hand[1] - by_hand[0]))
    assert np.allclose(one_network.decision_function(X), expected, atol=1e-4)


def test_the_anchor_is_the_mean_of_the_rarer_side_in_the_units_of_the_rows(binary, multiclass):
    X, y = 1000 + 50 * binary[0], binary[1]
    for labels in (y, 1 - y):
        assert np.allclose(alone().fit(X, labels).anchor_, X[y == 1].mean(axis=0))
    rows, codes = multiclass
    several = alone().fit(rows, codes).anchor_
    assert np.allclose(several[1], rows[codes == 1].mean(axis=0))
    assert np.allclose(several[0], rows[codes != 0].mean(axis=0)), "the rest is the smaller side"


def test_history_has_the_loss_the_learning_rate_and_the_figure_at_every_look(binary):
    X, y = binary
    clf = small(max_steps=25, lr=0.25, schedule="constant").fit(X, y, X_val=X, y_val=y)
    assert [record["step"] for record in clf.history_] == list(range(1, 26))
    assert all(0 < record["loss"] < 10 and record["lr"] == 0.25 for record in clf.history_)
    assert list(looks(clf)) == [*range(2, 25, 2), 25]


# ------------------------------------------------------------------------------- labels and rows


@pytest.mark.parametrize(
    "names",
    [
        np.array([-5, 12]),
        np.array([False, True]),
        np.array(["ham", "spam"]),
        np.array(["ham", "spam"], dtype=object),
    ],
    ids=["ints", "bools", "strings", "objects"],
)
def test_labels_of_any_kind_give_the_same_model_and_come_back(binary, names, plain):
    X, y = binary
    clf = small().fit(X, names[y])
    assert clf.classes_.dtype == clf.predict(X).dtype == names.dtype
    assert clf.classes_.tolist() == names.tolist()
    assert np.array_equal(clf.predict(X), names[plain.predict(X)])
    assert_same_weights(clf, plain)
    assert np.array_equal(clf.decision_function(X), plain.decision_function(X))


ROWS = {
    "pandas": lambda X: pd.DataFrame(X).add_prefix("x"),
    "polars": lambda X: pl.DataFrame(X),
    "lists": lambda X: X.tolist(),
    "fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, int, bool])
@pytest.mark.parametrize("kind", ROWS)
def test_rows_of_any_kind_give_the_same_model(binary, kind, dtype):
    X, y = binary[0].astype(dtype), binary[1]
    if kind == "lists" and dtype is np.float32:
        X = X.astype(np.float64)  # which a list's numbers are
    plain = X.astype(np.float64) if dtype in (int, bool) else X
    rows = ROWS[kind](X)
    assert_same_model(small().fit(rows, y), small().fit(plain, y), rows, plain)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scaling", [None, "auto"])
def test_the_rows_of_the_caller_are_not_changed(binary, dtype, scaling):
    X, y = binary[0].astype(dtype), binary[1].copy()
    kept = X.copy()
    small(scaling=scaling).fit(X, y).predict(X)
    assert np.array_equal(X, kept)
    assert np.array_equal(y, binary[1])


# ------------------------------------------------------------------------------------ randomness


@pytest.mark.parametrize("heads", ["shared", "separate"])
def test_the_same_seed_gives_the_same_result_to_the_bit_and_another_another(multiclass, heads):
    X, y = multiclass
    settings = {"heads": heads, "anchor": "kmeans", "post_size": 100, "early_stopping": True}
    one, other = (small(**settings).fit(X, y) for _ in range(2))
    assert_same_model(one, other, X)
    assert_same_model(one.fit(X, y), other, X)  # fitting again starts anew
    for seed in (1, None):
        another = small(**settings, random_state=seed).fit(X, y)
        assert not np.array_equal(another.predict_proba(X), one.predict_proba(X))


@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_a_generator_gives_another_fit_at_every_use_and_the_same_from_the_same_state(binary, kind):
    X, y = binary
    one, other = kind(5), kind(5)
    first, second = (small(random_state=one).fit(X, y).predict_proba(X) for _ in range(2))
    again = small(random_state=other).fit(X, y).predict_proba(X)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("seed", [0, None])
def test_the_global_random_state_is_neither_used_nor_changed(binary, seed):
    X, y = binary
    results = []
    for state in (1, 2):
        np.random.seed(state)  # noqa: NPY002
        torch.manual_seed(state)
        before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
        clf = small(random_state=seed, anchor="kmeans", post_size=99, early_stopping=True)
        results.append(clf.fit(X, y, groups=np.arange(len(y)) // 2).predict_proba(X))
        assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
        assert torch.equal(torch.get_rng_state(), before[1])
    assert np.array_equal(*results) == (seed is not None)


# ---------------------------------------------------------- a row's result is its own, to the bit


SHAPES = {
    "defaults": lambda: small(n_members=10, encoder=(64,), out_features="auto", max_steps=2),
    "separate": lambda: small(heads="separate", max_steps=2),
    "alone": lambda: alone(max_steps=2, encoder=(256,)),
    "PAPER": lambda: preset("PAPER"),
    "REFERENCE": lambda: preset("REFERENCE"),
    "kmeans": lambda: small(max_steps=2, anchor="kmeans", output=7),
}


@pytest.mark.parametrize(
    ("shape", "features", "dtype", "classes"),
    [
        ("defaults", 384, np.float64, 2),
        ("defaults", 384, np.float32, 3),
        ("defaults", 1, np.float64, 2),
        ("separate", 5, np.float32, 3),
        ("alone", 384, np.float32, 2),
        ("PAPER", 384, np.float32, 3),
        ("REFERENCE", 384, np.float32, 2),
        ("kmeans", 7, np.float32, 2),
        ("kmeans", 1, np.float64, 3),
    ],
)
def test_the_result_of_a_row_depends_on_no_other_row_and_no_batch(
    shape, features, dtype, classes, rng, monkeypatch
):
    y = np.arange(1000) % 10 % (2 * classes) // 2  # unequal classes
    X = (rng.standard_normal((1000, features)) + y[:, None] / 4).astype(dtype)
    clf = SHAPES[shape]().fit(X[:300], y[:300])
    scores, embedded, shares = clf.decision_function(X), clf.transform(X), clf.predict_proba(X)
    assert len(np.unique(scores.round(12))) > 100, "the scores tell rows apart"
    for size in (BLOCK, 3 * BLOCK):
        monkeypatch.setattr("setconv.model.BATCH", size)
        assert np.array_equal(clf.decision_function(X), scores), size
        assert np.array_equal(clf.transform(X), embedded), size
    for part in ([0], [255], [256], [999], np.arange(3, 600), rng.permutation(1000)[:777]):
        assert np.array_equal(clf.decision_function(X[part]), scores[part])
        assert np.array_equal(clf.predict_proba(X[part]), shares[part])
        assert np.array_equal(clf.transform(X[part]), embedded[part])


# ---------------------------------------------------------------------------------- scikit-learn


def test_it_works_at_the_end_and_in_the_middle_of_a_pipeline(binary):
    X, y = binary
    assert make_pipeline(MinMaxScaler(), small()).fit(X, y).predict_proba(X).shape == (240, 2)
    middle = make_pipeline(small(), sklearn.linear_model.LogisticRegression()).fit(X, y)
    assert middle.predict(X).shape == (240,)
    assert middle[:-1].get_feature_names_out().tolist() == [f"setconv{n}" for n in range(12)]
    framed = small().set_output(transform="pandas").fit(X, y)
    assert list(framed.transform(X).columns) == list(framed.get_feature_names_out())


def test_weights_and_groups_reach_the_fit_through_metadata_routing(binary):
    X, y = MinMaxScaler().fit_transform(binary[0]), binary[1]
    weights, groups = np.random.default_rng(0).uniform(0.1, 3, len(y)), np.arange(len(y)) // 4
    with sklearn.config_context(enable_metadata_routing=True):
        clf = small(early_stopping=True).set_fit_request(sample_weight=True, groups=True)
        pipeline = make_pipeline(MinMaxScaler(), clf)
        pipeline.fit(binary[0], y, sample_weight=weights, groups=groups)
        clf.set_fit_request(groups=False).set_score_request(sample_weight=False)
        grid = GridSearchCV(clf, {"max_steps": [6]}, cv=2).fit(X, y, sample_weight=weights)
    assert_same_model(pipeline[-1], clone(clf).fit(X, y, weights, groups=groups), X)
    assert_same_model(grid.best_estimator_, clone(clf).fit(X, y, weights), X)


# ---------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("early", [False, True])
def test_rows_of_weight_zero_are_as_if_they_were_not_there(multiclass, rng, early):
    X, y = multiclass
    weights = rng.uniform(0.5, 2, len(y))
    weights[rng.permutation(len(y))[:150]] = 0
    groups = np.arange(len(y)) // 3
    kept = weights > 0
    clf = small(early_stopping=early, anchor="kmeans")
    zero = clone(clf).fit(X, y, weights, groups=groups)
    gone = clone(clf).fit(X[kept], y[kept], weights[kept], groups=groups[kept])
    assert_same_model(zero, gone, X)


@KINDS
def test_equal_weights_of_rows_or_classes_are_no_weights(kind, request):
    X, y = request.getfixturevalue(kind)
    plain = small().fit(X, y)
    for weights in (np.ones(len(y)), np.full(len(y), 4.0), 1.0):
        assert_same_model(small().fit(X, y, weights), plain, X)
    for weights in ("balanced", {0: 1, 1: 1}, {}):
        assert_same_model(small(class_weight=weights).fit(X, y), plain, X)


def test_a_weighted_row_counts_like_copies_in_anchor_and_representatives(binary):
    X, y = binary
    twice = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(len(y)), twice.astype(int))
    # Without scaling, which a class of more rows would move: weights speak within a class.
    weighted = alone(max_steps=0, scaling=None).fit(X, y, twice)
    repeated = alone(max_steps=0, scaling=None).fit(X[rows], y[rows])
    assert np.allclose(weighted.representatives_, repeated.representatives_, atol=1e-6)
    assert np.allclose(weighted.anchor_, repeated.anchor_)


@pytest.mark.parametrize(
    ("kind", "weights", "ratios"),
    [
        ("binary", {1: 3}, 3),
        ("binary", {0: 2, 1: 6}, 3),
        # Weights 1, 1, 4, 1: class 2 against rests of mean 1, the others against rests of mean 2.
        ("multiclass", {2: 4.0}, [1 / 2, 1 / 2, 4, 1 / 2]),
    ],
)
def test_a_class_weight_moves_the_log_odds_by_its_logarithm(kind, weights, ratios, request):
    X, y = request.getfixturevalue(kind)
    plain = alone(max_steps=0).fit(X, y)
    weighted = alone(max_steps=0, class_weight=weights).fit(X, y)
    moved = weighted.decision_function(X) - plain.decision_function(X)
    assert np.allclose(moved, np.log(ratios), atol=1e-6)


@pytest.mark.parametrize("count", [4, 1])
def test_several_anchors_lay_their_embeddings_side_by_side(multiclass, count, monkeypatch):
    monkeypatch.setattr("setconv.model.CENTROIDS", count)
    clf = alone(anchor="kmeans").fit(*multiclass)
    assert clf.anchor_.shape == ((4, count, 8) if count > 1 else (4, 8))
    assert clf.representatives_.shape == (4, 2, 4 * count)
    assert len(clf.get_feature_names_out()) == clf.transform(multiclass[0]).shape[1] == 16 * count


# ----------------------------------------------------------------------- training: steps, subsets


def test_representatives_can_come_from_a_random_subset(multiclass, binary):
    X, y = binary
    clf = alone(post_size=2).fit(X, y)
    # One row of the rare class is left: its embedding is the representative.
    nearest = np.abs(clf.transform(X) - clf.representatives_[1]).max(axis=1)
    assert nearest.min() < 1e-6
    assert y[nearest.argmin()] == 1
    assert_same_model(small(post_size=400).fit(*multiclass), small().fit(*multiclass), X)


def test_no_steps_leave_fresh_weights_and_represent_the_classes(binary):
    X, y = binary
    clf = alone(max_steps=60).fit(X, y).set_params(max_steps=0).fit(X, y)
    assert (clf.n_steps_, clf.history_) == (0, [])
    assert_same_weights(clf, alone(max_steps=0).fit(X, y))
    assert not clf.network_.setconv.attention.detach().any(), "attention starts uniform"
    assert np.allclose(clf.representatives_, representatives_by_hand(clf, X, X, y), atol=1e-5)


# ------------------------------------------------------------------------------------ partial_fit


@pytest.mark.parametrize("weighted", [False, True])
def test_partial_fit_makes_the_representatives_those_of_all_rows(binary, rng, weighted):
    X, y = binary
    weights = rng.uniform(0, 3, 100) if weighted else np.ones(100)
    clf = alone().fit(X[:140], y[:140])
    before, embedded = clf.representatives_, clf.transform(X)
    network, anchor = weights_of(clf), clf.anchor_
    assert clf.partial_fit(X[140:], y[140:], sample_weight=weights) is clf
    expected = representatives_by_hand(clf, X[:140], X, y, np.concatenate([np.ones(140), weights]))
    assert np.allclose(clf.representatives_, expected, atol=1e-5)
    assert np.abs(clf.representatives_ - before).max() > 1e-3, "the new rows count"
    # Network, anchor and scaling stay as they were.
    assert all(np.array_equal(one, network[name]) for name, one in weights_of(clf).items())
    assert np.array_equal(clf.anchor_, anchor)
    assert np.array_equal(clf.transform(X), embedded)


def test_a_batch_may_lack_a_class(multiclass):
    X, y = multiclass
    clf = alone().fit(X, y)
    before = clf.representatives_
    after = clf.partial_fit(X[y == 2], y[y == 2]).representatives_
    assert clf.class_counts_.tolist() == (np.bincount(y) * [1, 1, 2, 1]).tolist()
    # The rows are on the class's side of head 2, and on the rest's side of the others.
    assert np.array_equal(after[[0, 1, 3], 1], before[[0, 1, 3], 1])
    assert np.array_equal(after[2, 0], before[2, 0])
    assert not np.array_equal(after[0, 0], before[0, 0])


@pytest.mark.parametrize("weighted", [False, True])
@KINDS
def test_partial_fit_from_the_start_is_a_fit_once_all_classes_were_seen(
    kind, weighted, request, rng
):
    X, y = request.getfixturevalue(kind)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    order = np.argsort(y, kind="stable")
    names = np.array(["fire", "flood", "hail", "none"])[: y.max() + 1]
    cut = np.flatnonzero(y[order] == y.max())[0]
    clf = small()
    for part in np.array_split(order[:cut], 3):
        clf.partial_fit(X[part], names[y[part]], names[::-1], weights[part])
        for method in (clf.predict, clf.transform):
            with pytest.raises(NotFittedError, match=names[-1]):
                method(X)
    clf.partial_fit(X[order[cut:]], names[y[order[cut:]]], sample_weight=weights[order[cut:]])
    assert_same_model(clf, small().fit(X[order], names[y[order]], weights[order]), X)


def test_a_class_seen_only_with_weight_zero_is_missing(binary):
    X, y = binary
    clf = small().partial_fit(X, y, classes=[0, 1], sample_weight=(y == 0).astype(float))
    with pytest.raises(NotFittedError, match=r"\[1\]"):
        clf.predict(X)


def test_a_fit_forgets_rows_that_wait(binary, plain):
    X, y = binary
    clf = small().partial_fit(X[y == 0] + 100, y[y == 0], classes=[0, 1])
    assert_same_model(clf.fit(X, y), plain, X)


# --------------------------------------------------------------------------------- early stopping


@pytest.mark.parametrize("kind", [None, int, str])
def test_held_out_rows_are_a_stratified_part_and_groups_never_straddle(multiclass, kind):
    X, y = multiclass
    groups = None if kind is None else (np.arange(len(y)) // 2).astype(kind)
    clf = small(early_stopping=True, validation_fraction=0.25).fit(X, y, groups=groups)
    inside = clf.predict_out_of_fold().rows
    outside = np.setdiff1d(np.arange(len(y)), inside)
    assert np.allclose(np.bincount(y[outside]), 0.25 * np.bincount(y), atol=4)
    assert clf.class_counts_.tolist() == np.bincount(y[inside]).tolist()
    assert groups is None or not set(groups[inside]) & set(groups[outside])
    given = clf.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    assert np.array_equal(given.predict_out_of_fold().rows, np.arange(300))


# Long steps, so that looks differ.
WATCHED = {"early_stopping": True, "lr": 1.0, "schedule": "constant", "max_steps": 16}
WATCHED |= {"dropout": 0.0, "input_dropout": 0.0}


def looks(clf):
    return {r["step"]: r["validation"] for r in clf.history_ if "validation" in r}


@pytest.fixture
def best_at_six(monkeypatch):
    """Let the third look, at step 6, be the best of eight."""
    monkeypatch.setattr("setconv.training.loop.LOOKS", 8)
    figures = iter([0.1, 0.5, 0.9, 0.3, 0.9, 0.2, 0.1, 0.8])
    monkeypatch.setattr("setconv.fitting.monitored_figure", lambda *_: next(figures))


def test_the_restored_weights_are_those_of_a_run_that_ends_there(binary, request):
    class StopAtSix(Callback):
        def on_step_end(self, state):
            state.stop = state.step == 6

    X, y = binary
    split = {"X_val": X[:60], "y_val": y[:60]}
    whole = alone(**WATCHED | {"early_stopping": False})
    short = clone(whole).set_params(callbacks=[StopAtSix()]).fit(X[60:], y[60:], **split)
    last = clone(whole).fit(X[60:], y[60:], **split)
    request.getfixturevalue("best_at_six")
    clf = alone(**WATCHED, patience=None).fit(X[60:], y[60:], **split)
    assert (short.n_steps_, clf.n_steps_, last.n_steps_) == (6, 16, 16)
    assert_same_weights(clf, short)
    assert np.array_equal(clf.representatives_, short.representatives_)
    assert not np.array_equal(clf.representatives_, last.representatives_)


@pytest.mark.usefixtures("best_at_six")
@pytest.mark.parametrize(("patience", "steps"), [(1, 8), (4, 14), (5, 16), (50, 16)])
def test_training_stops_after_so_many_looks_without_improvement(binary, patience, steps):
    clf = small(**WATCHED, patience=patience).fit(*binary)
    assert clf.n_steps_ == steps
    assert list(looks(clf)) == list(range(2, steps + 1, 2))


def test_the_watched_loss_is_that_of_the_restored_model(binary):
    X, y = binary
    val = slice(150, None)
    clf = alone(**WATCHED, patience=None).fit(X[:150], y[:150], X_val=X[val], y_val=y[val])
    margins = np.where(y[val] == 1, 1, -1) * clf.decision_function(X[val])
    losses = np.log1p(np.exp(-margins))
    balanced = np.mean([losses[y[val] == side].mean() for side in (0, 1)])
    assert max(looks(clf).values()) == pytest.approx(-balanced, rel=1e-6)


def test_validation_rows_without_early_stopping_are_only_looked_at(binary):
    X, y = binary
    plain = small().fit(X[:180], y[:180])
    for rows, labels in ((X[180:], y[180:]), (X[180:] * 9, 1 - y[180:])):
        looked = small().fit(X[:180], y[:180], X_val=rows, y_val=labels)
        assert len(looks(looked)) == looked.n_steps_ == 6
        assert_same_weights(looked, plain)
        assert np.array_equal(looked.representatives_, plain.representatives_)
        assert looked.threshold_ == plain.threshold_
        assert looked.report_ == plain.report_


# -------------------------------------------------------------------------------- small and smaller


@pytest.mark.parametrize("sizes", [[3, 3], [10, 1], [1, 1], [1, 1, 1], [5, 2, 1]])
@pytest.mark.parametrize("shape", ["defaults", "PAPER", "kmeans", "separate"])
@pytest.mark.filterwarnings("ignore:All", "ignore:Classes that cannot be judged")
def test_very_few_rows_are_enough_for_a_model(sizes, shape, rng):
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.standard_normal((len(y), 3)) + 5 * y[:, None]
    clf = SHAPES[shape]().fit(X, y)
    assert clf.class_counts_.tolist() == sizes
    shares = clf.predict_proba(X)
    assert np.isfinite(shares).all()
    assert np.allclose(shares.sum(axis=1), 1)


@pytest.mark.filterwarnings("ignore:All", "ignore:Classes that cannot be judged")
def test_rows_that_are_all_alike_give_even_chances():
    clf = small().fit(np.ones((20, 3)), [0, 1] * 10)
    assert np.allclose(clf.predict_proba(np.ones((2, 3))), 0.5)


def test_rows_far_outside_of_what_was_seen_are_predicted(fitted):
    far = np.full((2, 8), [[1e30], [-1e30]])
    assert np.isfinite(fitted.predict_proba(far)).all()


# --------------------------------------------------------------------------------------- it learns


@pytest.mark.parametrize("shape", ["defaults", "PAPER", "REFERENCE"])
def test_it_learns_an_easy_problem(shape, rng):
    y = (np.arange(600) % 12 == 0).astype(int)
    X = rng.standard_normal((600, 6)) + 2.5 * y[:, None]
    train, test = slice(0, 400), slice(400, None)
    # Features of one sign, as those of the encoder that the presets were made for.
    rows = X if shape == "defaults" else np.abs(X + 3)
    clf = {
        "defaults": small(max_steps=80, lr=0.02, n_episodes=8),
        "PAPER": preset("PAPER", max_steps=150),
        "REFERENCE": preset("REFERENCE", max_steps=150, encoder=(32,)),
    }[shape].fit(rows[train], y[train])
    assert roc_auc_score(y[test], clf.decision_function(rows[test])) > 0.95


def test_a_fit_writes_nothing_to_the_terminal_and_changes_no_logging(binary, capsys):
    logger = logging.getLogger("setconv")
    before = (list(logger.handlers), logger.level, list(logging.getLogger().handlers))
    small(early_stopping=True, progress="auto").fit(*binary).predict(binary[0])
    assert capsys.readouterr() == ("", "")
    after = (list(logger.handlers), logger.level, list(logging.getLogger().handlers))
    assert after == before
