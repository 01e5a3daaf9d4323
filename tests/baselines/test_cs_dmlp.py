"""CS-DMLP: the weighted loss, the corrected posterior, costs, and early stopping."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from setconv.baselines.base import FallbackWarning
from setconv.baselines.cs_dmlp import CostSensitiveDMLPClassifier, _auc, forward
from setconv.errors import DivergedError

SMALL = {"hidden_layer_sizes": (8,), "max_epochs": 15, "lr": 0.01, "random_state": 0}


def rows_of(counts, d=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts)), counts)
    rng.shuffle(y)
    return rng.standard_normal((len(y), d)) + 1.5 * y[:, None], y


# ------------------------------------------------------------------------------------- the loss


@pytest.mark.parametrize(
    ("cost", "weights"),
    [("none", [1, 1, 1]), ("balanced", [70 / 150, 70 / 45, 70 / 15]), ({1: 5.0, 2: 2}, [1, 5, 2])],
)
@pytest.mark.parametrize("batch_size", [9, 70])
def test_the_loss_of_the_first_epoch_equals_the_weighted_formula(cost, weights, batch_size):
    X, y = rows_of([50, 15, 5])
    clf = CostSensitiveDMLPClassifier(
        hidden_layer_sizes=(6, 5),
        cost=cost,
        dropout=0.0,
        alpha=0.01,
        lr=1e-12,  # leaves the first weights as they are
        batch_size=batch_size,
        max_epochs=1,
        early_stopping=False,
        random_state=0,
    ).fit(X, y)
    hidden = (X - X.mean(axis=0)) / X.std(axis=0)
    for matrix, bias in zip(clf.coefs_[:-1], clf.intercepts_[:-1], strict=True):
        hidden = np.maximum(hidden @ matrix + bias, 0)
    powers = np.exp(hidden @ clf.coefs_[-1] + clf.intercepts_[-1])
    chances = (powers / powers.sum(axis=1, keepdims=True))[np.arange(70), y]
    each = np.array(weights)[y]
    penalty = 0.01 * sum((matrix**2).sum() for matrix in clf.coefs_)
    wanted = -(each * np.log(chances)).sum() / each.sum() + penalty
    assert clf.loss_curve_ == pytest.approx([wanted], rel=1e-5)


@pytest.mark.parametrize("dropout", [0.2, 0.5])
def test_dropout_leaves_out_its_share_and_keeps_the_mean(dropout):
    generator = torch.Generator().manual_seed(0)
    layers = [(torch.eye(3), torch.zeros(3)), (torch.eye(3), torch.zeros(3))]
    outputs = forward(torch.ones(20_000, 3), layers, dropout, generator)
    assert outputs.unique().tolist() == pytest.approx([0, 1 / (1 - dropout)])
    assert outputs.mean().item() == pytest.approx(1, abs=0.02)


# ------------------------------------------------------------------------------------ the costs


def test_the_posterior_mode_trains_without_costs_and_corrects_afterwards():
    X, y = rows_of([120, 30, 10])
    plain = CostSensitiveDMLPClassifier(**SMALL, cost="none").fit(X, y)
    corrected = CostSensitiveDMLPClassifier(**SMALL, cost="posterior").fit(X, y)
    weighted = plain.predict_proba(X) * (160 / (3 * np.array([120, 30, 10])))
    wanted = weighted / weighted.sum(axis=1, keepdims=True)
    assert np.allclose(corrected.predict_proba(X), wanted)
    assert np.array_equal(corrected.predict(X), wanted.argmax(axis=1))


# ------------------------------------------------------------------------------- early stopping


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=40))
def test_the_auc_by_ranks_is_that_of_the_curve(pairs):
    positive, scores = np.array([one for one, _ in pairs]), np.array([two for _, two in pairs])
    if 0 < positive.sum() < len(positive):
        assert _auc(positive, scores) == pytest.approx(roc_auc_score(positive, scores))


def test_training_stops_after_patience_and_keeps_the_best_epoch():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 20)), rng.integers(0, 2, 400)  # nothing to learn
    parameters = {**SMALL, "max_epochs": 100, "patience": 4}
    clf = CostSensitiveDMLPClassifier(**parameters).fit(X, y)
    best = int(np.argmax(clf.validation_auc_))
    assert clf.n_epochs_ == len(clf.validation_auc_) == best + 1 + 4 < 100
    stopped_there = clone(clf).set_params(max_epochs=best + 1).fit(X, y)
    assert np.array_equal(stopped_there.predict_proba(X), clf.predict_proba(X))


@pytest.mark.parametrize(("counts", "judged"), [([60, 40, 1], True), ([500, 1], False)])
def test_a_class_with_too_few_rows_to_set_aside_is_said(counts, judged):
    X, y = rows_of(counts)
    with pytest.warns(FallbackWarning, match=r"\(1\)"):
        clf = CostSensitiveDMLPClassifier(**SMALL).fit(X, y)
    assert len(clf.fallbacks_) == 1
    assert len(clf.validation_auc_) == (clf.n_epochs_ if judged else 0)
    assert judged or clf.n_epochs_ == 15


# ------------------------------------------------------------------------------------ the whole


def test_the_global_generator_is_left_alone():
    X, y = rows_of([60, 20])
    before = torch.get_rng_state()
    CostSensitiveDMLPClassifier(**SMALL).fit(X, y)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_loss_out_of_the_range_of_numbers_is_an_error_that_names_the_step():
    X, y = rows_of([30, 30])
    with pytest.raises(DivergedError):
        CostSensitiveDMLPClassifier(lr=1e30, early_stopping=False).fit(X, y)
