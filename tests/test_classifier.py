"""The estimator as its users meet it."""

import logging
import math
import pickle
from itertools import pairwise

import joblib
import numpy as np
import pytest
import sklearn
import torch
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import setconv.classifier
from setconv import presets
from setconv.classifier import SetConvClassifier
from setconv.errors import NotFittedError
from setconv.metrics.report import Report
from setconv.model import BLOCK
from setconv.nn.network import SetConvNetwork
from setconv.training import Callback

SMALL = {"n_members": 3, "encoder": (16,), "out_features": 8, "n_episodes": 2, "max_steps": 6}
# The mechanics of one network: no other members, the rows standardised, the paper's rule.
ALONE = {"n_members": 1, "objective": None, "scaling": "standard"}


def small(**parameters):
    return SetConvClassifier(**{**SMALL, "random_state": 0, "progress": False, **parameters})


def alone(**parameters):
    return small(**{**ALONE, **parameters})


def small_preset(name, **parameters):
    """A preset with its own architecture but few steps."""
    values = {**getattr(presets, name), "max_steps": 4}
    return SetConvClassifier(**{**values, "random_state": 0, "progress": False, **parameters})


def weights_of(clf):
    return {name: tensor.numpy().copy() for name, tensor in clf.network_.state_dict().items()}


def same_weights(one, other):
    return one.keys() == other.keys() and all(
        np.array_equal(array, other[name]) for name, array in one.items()
    )


def assert_same_fit(one, other, X):
    """Equal to the bit."""
    assert same_weights(weights_of(one), weights_of(other))
    assert np.array_equal(one.representatives_, other.representatives_)
    assert np.array_equal(one.anchor_, other.anchor_)
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    assert one.history_ == other.history_


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


class Spy:
    """Stands before the real fit_model and keeps the rows that it is given."""

    def __init__(self, monkeypatch):
        self._real = setconv.classifier.fit_model
        monkeypatch.setattr(setconv.classifier, "fit_model", self)

    def __call__(self, parameters, classes, train, **named):
        self.train, self.validation = train, named["validation"]
        return self._real(parameters, classes, train, **named)


@pytest.fixture(scope="module")
def plain(binary):
    """The model that others are compared with; never changed."""
    return small().fit(*binary)


@pytest.fixture(scope="module")
def plain_multiclass(multiclass):
    return small().fit(*multiclass)


@pytest.fixture(scope="module")
def one_network(binary):
    return alone(max_steps=30).fit(*binary)


@pytest.fixture(scope="module")
def one_network_multiclass(multiclass):
    return alone(max_steps=60).fit(*multiclass)


# ------------------------------------------------------------------- what a fit leaves, in shapes


def test_two_classes_are_one_head(binary):
    X, y = binary
    clf = alone().fit(X, y)
    assert clf.fit(X, y) is clf
    assert clf.classes_.tolist() == [0, 1]
    assert clf.class_counts_.tolist() == np.bincount(y).tolist()
    assert clf.n_features_in_ == 8
    assert clf.anchor_.shape == (8,)
    assert clf.representatives_.shape == (2, 8)
    assert isinstance(clf.network_, SetConvNetwork)
    assert clf.network_.n_heads == 1
    assert clf.n_steps_ == 6
    assert isinstance(clf.report_, Report)
    assert clf.report_source_ == "none"
    assert clf.predict(X).shape == (240,)
    assert clf.predict_proba(X).shape == (240, 2)
    assert clf.decision_function(X).shape == (240,)
    assert clf.transform(X).shape == (240, 8)


@pytest.mark.parametrize("heads", ["shared", "separate"])
def test_more_classes_are_one_head_each(multiclass, heads):
    X, y = multiclass
    clf = alone(heads=heads).fit(X, y)
    assert clf.classes_.tolist() == [0, 1, 2, 3]
    assert clf.anchor_.shape == (4, 8)
    assert clf.representatives_.shape == (4, 2, 8)
    assert clf.network_.n_heads == 4
    assert clf.network_.encoder[0].weight.shape == ((8, 16) if heads == "shared" else (4, 8, 16))
    assert clf.predict_proba(X).shape == clf.decision_function(X).shape == (400, 4)
    assert clf.transform(X).shape == (400, 4 * 8)


def test_probabilities_of_two_classes_are_the_logistic_of_the_log_odds(one_network, binary):
    X, _ = binary
    scores, shares = one_network.decision_function(X), one_network.predict_proba(X)
    assert np.allclose(shares[:, 1], expit(scores), rtol=1e-12)
    assert np.allclose(shares.sum(axis=1), 1, rtol=1e-12)
    assert np.array_equal(one_network.predict(X), (scores > 0).astype(int))


def test_probabilities_of_more_classes_are_shares_and_the_largest_wins(
    one_network_multiclass, multiclass
):
    X, _ = multiclass
    scores, shares = (
        one_network_multiclass.decision_function(X),
        one_network_multiclass.predict_proba(X),
    )
    each = expit(scores)
    assert np.allclose(shares, each / each.sum(axis=1, keepdims=True), rtol=1e-9)
    assert np.array_equal(one_network_multiclass.predict(X), shares.argmax(axis=1))


def test_a_score_is_the_scaled_difference_of_similarities(one_network, binary):
    X, _ = binary
    embedded = one_network.transform(X).astype(np.float64)
    assert np.allclose(np.linalg.norm(embedded, axis=1), 1, atol=1e-6)
    rest, rare = one_network.representatives_.astype(np.float64)
    temperature = math.exp(one_network.network_.log_temperature.item())
    assert np.allclose(
        one_network.decision_function(X), temperature * (embedded @ (rare - rest)), atol=1e-5
    )


def test_representatives_are_the_mean_embeddings_of_the_classes(one_network, binary):
    X, y = binary
    by_hand = representatives_by_hand(one_network, X, X, y)
    assert np.allclose(one_network.representatives_, by_hand, atol=1e-5)


def test_the_anchor_is_the_mean_of_the_rarer_class_in_the_units_of_the_rows(binary, multiclass):
    X, y = binary
    X = 1000 + 50 * X
    assert np.allclose(alone().fit(X, y).anchor_, X[y == 1].mean(axis=0))
    assert np.allclose(alone().fit(X, 1 - y).anchor_, X[y == 1].mean(axis=0))
    rows, codes = multiclass
    several = alone().fit(rows, codes).anchor_
    assert np.allclose(several[1], rows[codes == 1].mean(axis=0))
    assert np.allclose(several[0], rows[codes != 0].mean(axis=0)), "the rest is the smaller side"


def test_history_records_the_loss_and_the_learning_rate(binary):
    history = alone(max_steps=10, lr=0.25, schedule="constant").fit(*binary).history_
    assert [record["step"] for record in history] == list(range(1, 11))
    for record in history:
        assert record.keys() == {"step", "loss", "lr"}
        assert 0 < record["loss"] < 10
        assert record["lr"] == 0.25


def test_history_with_validation_rows_has_the_watched_figure_at_every_look(binary):
    X, y = binary
    history = small(max_steps=25).fit(X, y, X_val=X, y_val=y).history_
    looks = [record["step"] for record in history if "validation" in record]
    assert looks == [*range(2, 25, 2), 25]


def test_the_report_is_that_of_validation_rows_that_chose_nothing(binary):
    X, y = binary
    clf = alone().fit(X[60:], y[60:], X_val=X[:60], y_val=y[:60])
    assert clf.report_source_ == "validation"
    assert clf.report_.confusion.sum() == 60
    assert clf.report_[1].auc == pytest.approx(roc_auc_score(y[:60], clf.decision_function(X[:60])))
    stopped = alone(**WATCHED).fit(X[60:], y[60:], X_val=X[:60], y_val=y[:60])
    assert stopped.report_source_ == "none"
    assert math.isnan(stopped.report_[1].auc)


# ------------------------------------------------------------------------------- labels and rows


@pytest.mark.parametrize(
    "names",
    [
        np.array([0, 1]),
        np.array([-5, 12]),
        np.array([1.0, 2.0]),
        np.array([False, True]),
        np.array(["ham", "spam"]),
        np.array(["ham", "spam"], dtype=object),
    ],
    ids=["ints", "other ints", "floats", "bools", "strings", "objects"],
)
def test_labels_of_any_kind_give_the_same_model_and_come_back(binary, names, plain):
    X, y = binary
    clf = small().fit(X, names[y])
    assert clf.classes_.dtype == names.dtype
    assert clf.classes_.tolist() == names.tolist()
    assert np.array_equal(clf.predict(X), names[plain.predict(X)])
    assert clf.predict(X).dtype == names.dtype
    assert_same_fit(clf, plain, X)


def test_the_order_of_the_classes_is_that_of_the_sorted_labels(multiclass):
    X, y = multiclass
    names = np.array(["d", "a", "c", "b"])
    clf = small().fit(X, names[y])
    assert clf.classes_.tolist() == ["a", "b", "c", "d"]
    assert clf.class_counts_.tolist() == [np.sum(names[y] == name) for name in "abcd"]


@pytest.mark.parametrize("kind", ["pandas", "polars", "lists", "fortran", "strided"])
def test_rows_of_any_kind_give_the_same_model(binary, kind, plain):
    X, y = binary
    rows, labels = X, y
    if kind == "pandas":
        pandas = pytest.importorskip("pandas")
        rows, labels = pandas.DataFrame(X, columns=list("abcdefgh")), pandas.Series(y)
    elif kind == "polars":
        polars = pytest.importorskip("polars")
        rows, labels = polars.DataFrame(X, schema=list("abcdefgh")), polars.Series(y)
    elif kind == "lists":
        rows, labels = X.tolist(), y.tolist()
    elif kind == "fortran":
        rows = np.asfortranarray(X)
    else:
        rows = np.repeat(X, 2, axis=1)[:, ::2]
    clf = small().fit(rows, labels)
    assert same_weights(weights_of(clf), weights_of(plain))
    assert np.array_equal(clf.representatives_, plain.representatives_)
    assert np.array_equal(clf.predict_proba(rows), plain.predict_proba(X))
    assert np.array_equal(clf.transform(rows), plain.transform(X))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_of_float32_gives_the_model_of_an_array_of_float32(binary, library):
    frames = pytest.importorskip(library)
    X, y = binary[0].astype(np.float32), binary[1]
    frame = frames.DataFrame({f"column {number}": X[:, number] for number in range(8)})
    clf, plain = small().fit(frame, y), small().fit(X, y)
    assert np.array_equal(clf.predict_proba(frame), plain.predict_proba(X))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_names_of_columns_are_kept(binary, library):
    frames = pytest.importorskip(library)
    X, y = binary
    frame = frames.DataFrame({f"column {number}": X[:, number] for number in range(8)})
    clf = small().fit(frame, y)
    assert clf.feature_names_in_.tolist() == [f"column {number}" for number in range(8)]
    assert clf.n_features_in_ == 8
    with pytest.warns(UserWarning, match="valid feature names"):
        clf.predict(X)


def test_names_of_an_earlier_fit_are_forgotten(binary):
    pandas = pytest.importorskip("pandas")
    X, y = binary
    clf = small().fit(pandas.DataFrame(X, columns=list("abcdefgh")), y)
    clf.fit(X, y)
    assert not hasattr(clf, "feature_names_in_")


def test_integers_and_bools_are_numbers_too(binary):
    X, y = binary
    whole = np.round(X).astype(int)
    assert_same_fit(small().fit(whole, y), small().fit(whole.astype(float), y), whole)
    signs = X > 0
    assert_same_fit(small().fit(signs, y), small().fit(signs.astype(float), y), signs)


def test_labels_in_a_column_are_taken_with_a_warning(binary, plain):
    X, y = binary
    with pytest.warns(sklearn.exceptions.DataConversionWarning):
        clf = small().fit(X, y[:, None])
    assert_same_fit(clf, plain, X)


# ------------------------------------------------------------------------------------ randomness


@pytest.mark.parametrize("heads", ["shared", "separate"])
def test_the_same_seed_gives_the_same_result_to_the_bit(multiclass, heads):
    X, y = multiclass
    one, other = (
        small(heads=heads, anchor="kmeans", post_size=100, early_stopping=True).fit(X, y)
        for _ in range(2)
    )
    assert_same_fit(one, other, X)


def test_fitting_again_starts_anew(binary):
    X, y = binary
    clf = small().fit(X, y)
    first = clf.predict_proba(X)
    assert np.array_equal(clf.fit(X, y).predict_proba(X), first)


def test_another_seed_gives_another_result(binary):
    X, y = binary
    one, other = (small(random_state=seed).fit(X, y) for seed in (0, 1))
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))


def test_without_a_seed_every_fit_is_another(binary):
    X, y = binary
    one, other = (small(random_state=None).fit(X, y) for _ in range(2))
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))


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
        clf.set_params(max_steps=3)
        clf.fit(X, y, groups=np.arange(len(y)) // 2)
        results.append(clf.predict_proba(X))
        assert np.array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
        assert torch.equal(torch.get_rng_state(), before[1])
    assert np.array_equal(*results) == (seed is not None)


def test_the_rows_of_the_caller_are_not_changed(binary):
    X, y = (array.copy() for array in binary)
    for dtype in (np.float32, np.float64):
        rows = X.astype(dtype)
        kept = rows.copy()
        small(scaling=None).fit(rows, y).predict(rows)
        small().fit(rows, y).predict(rows)
        assert np.array_equal(rows, kept)
    assert np.array_equal(y, binary[1])


# ---------------------------------------------------------- a row's result is its own, to the bit


SHAPES = {
    "defaults": lambda: SetConvClassifier(
        n_members=10, encoder=(64,), max_steps=2, random_state=0, progress=False
    ),
    "separate": lambda: small(heads="separate", n_members=3, max_steps=2),
    "alone": lambda: alone(max_steps=2, encoder=(256,)),
    "PAPER": lambda: small_preset("PAPER"),
    "REFERENCE": lambda: small_preset("REFERENCE"),
    "kmeans": lambda: small(max_steps=2, anchor="kmeans", output=7),
}


@pytest.mark.parametrize(
    ("shape", "features", "dtype", "classes"),
    [
        ("defaults", 384, np.float32, 2),
        ("defaults", 384, np.float64, 2),
        ("defaults", 384, np.float32, 3),
        ("defaults", 1, np.float64, 2),
        ("defaults", 5, np.float64, 3),
        ("separate", 5, np.float32, 3),
        ("alone", 384, np.float32, 2),
        ("PAPER", 384, np.float64, 2),
        ("PAPER", 384, np.float32, 3),
        ("REFERENCE", 384, np.float32, 2),
        ("REFERENCE", 7, np.float64, 3),
        ("kmeans", 7, np.float32, 2),
        ("kmeans", 100, np.float64, 3),
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
    for row in (0, 1, 255, 256, 511, 999):
        assert np.array_equal(clf.decision_function(X[row : row + 1]), scores[row : row + 1])
        assert np.array_equal(clf.predict_proba(X[row : row + 1]), shares[row : row + 1])
        assert np.array_equal(clf.transform(X[row : row + 1]), embedded[row : row + 1])
    order = rng.permutation(1000)[:777]
    assert np.array_equal(clf.decision_function(X[order]), scores[order])
    assert np.array_equal(clf.decision_function(X[3:600]), scores[3:600])


def test_the_size_of_a_batch_does_not_change_a_fit(multiclass, monkeypatch):
    X, y = multiclass
    reference = small(early_stopping=True).fit(X, y)
    monkeypatch.setattr("setconv.model.BATCH", BLOCK)
    assert_same_fit(small(early_stopping=True).fit(X, y), reference, X)


# ---------------------------------------------------------------------------------- scikit-learn


def test_it_works_at_the_end_and_in_the_middle_of_a_pipeline(binary):
    X, y = binary
    last = make_pipeline(StandardScaler(), small()).fit(X, y)
    assert last.predict_proba(X).shape == (240, 2)
    middle = make_pipeline(small(), sklearn.linear_model.LogisticRegression()).fit(X, y)
    assert middle.predict(X).shape == (240,)
    assert middle[:-1].get_feature_names_out().tolist() == [f"setconv{n}" for n in range(24)]


def test_the_embedding_can_be_a_frame(multiclass):
    pandas = pytest.importorskip("pandas")
    X, y = multiclass
    clf = small().set_output(transform="pandas").fit(X, y)
    frame = clf.transform(X)
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(clf.get_feature_names_out())
    assert frame.shape == (400, 3 * 32)


def test_grid_search_finds_the_better_of_two(binary):
    X, y = binary
    grid = GridSearchCV(
        small(max_steps=30, lr=0.01), {"max_steps": [0, 30]}, scoring="roc_auc", cv=3
    ).fit(X, y)
    assert grid.best_params_ == {"max_steps": 30}
    assert grid.best_estimator_.predict(X).shape == (240,)


def test_weights_reach_the_fit_through_metadata_routing(binary):
    X, y = binary
    weights = np.random.default_rng(0).uniform(0.1, 3, len(y))
    folds = StratifiedKFold(2)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = small().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        found = cross_validate(
            clf,
            X,
            y,
            cv=folds,
            params={"sample_weight": weights},
            return_estimator=True,
        )
        grid = GridSearchCV(clf, {"lr": [clf.lr]}, cv=folds)
        grid.fit(X, y, sample_weight=weights)
    for estimator, (train, _) in zip(found["estimator"], folds.split(X, y), strict=True):
        weighted = small().fit(X[train], y[train], weights[train])
        plain = small().fit(X[train], y[train])
        assert np.array_equal(estimator.representatives_, weighted.representatives_)
        assert not np.array_equal(estimator.representatives_, plain.representatives_)
    assert_same_fit(grid.best_estimator_, small().fit(X, y, weights), X)


def test_groups_reach_the_fit_through_metadata_routing(binary):
    X, y = binary
    groups = np.arange(len(y)) // 4
    with sklearn.config_context(enable_metadata_routing=True):
        clf = small(early_stopping=True).set_fit_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), clf).fit(X, y, groups=groups)
    alone = clone(clf).fit(StandardScaler().fit_transform(X), y, groups=groups)
    assert np.array_equal(pipeline[-1].representatives_, alone.representatives_)


def test_it_can_be_calibrated(binary, one_network):
    X, y = binary
    calibrated = CalibratedClassifierCV(alone(), cv=3, method="sigmoid").fit(X, y)
    shares = calibrated.predict_proba(X)
    # The network's own probabilities are for classes that are equally frequent.
    assert abs(shares[:, 1].mean() - y.mean()) < 0.05
    assert shares[:, 1].mean() < one_network.predict_proba(X)[:, 1].mean()


@pytest.mark.parametrize("module", [pickle, joblib])
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_a_model_survives_pickle_and_joblib(module, kind, tmp_path, request):
    X, y = request.getfixturevalue(kind)
    clf = small(anchor="kmeans").fit(X, y)
    if module is pickle:
        again = pickle.loads(pickle.dumps(clf))
    else:
        joblib.dump(clf, tmp_path / "model.joblib")
        again = joblib.load(tmp_path / "model.joblib")
    assert_same_fit(again, clf, X)
    again.partial_fit(X[:50], y[:50])
    clf.partial_fit(X[:50], y[:50])
    assert np.array_equal(again.representatives_, clf.representatives_)


def test_a_clone_has_the_parameters_and_no_model(fitted, binary):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not [name for name in vars(copy) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        copy.predict(binary[0])


def test_the_constructor_keeps_its_arguments_untouched():
    given = {"encoder": [3, 4], "lr": {"encoder": 1}, "callbacks": [Callback()], "max_steps": "?"}
    clf = SetConvClassifier(**given)
    for name, value in given.items():
        assert getattr(clf, name) is value


def test_parameters_are_not_changed_by_a_fit(binary):
    clf = small(max_steps=3, encoder=[16])
    before = dict(clf.get_params())
    clf.fit(*binary)
    assert clf.get_params() == before
    assert all(clf.get_params()[name] is value for name, value in before.items())


# ---------------------------------------------------------------------------------------- weights


@pytest.mark.parametrize("early", [False, True])
def test_rows_of_weight_zero_are_as_if_they_were_not_there(multiclass, rng, early):
    X, y = multiclass
    weights = rng.uniform(0.5, 2, len(y))
    weights[rng.permutation(len(y))[:150]] = 0
    groups = np.arange(len(y)) // 3
    kept = weights > 0
    parameters = {"early_stopping": early, "anchor": "kmeans"}
    zero = small(**parameters).fit(X, y, weights, groups=groups)
    gone = small(**parameters).fit(X[kept], y[kept], weights[kept], groups=groups[kept])
    assert_same_fit(zero, gone, X)
    assert zero.class_counts_.tolist() == gone.class_counts_.tolist()


def test_equal_weights_are_no_weights(binary, plain):
    X, y = binary
    for weights in (np.ones(len(y)), np.full(len(y), 4.0), 1.0):
        assert_same_fit(small().fit(X, y, weights), plain, X)


def test_a_weight_weighs_a_row_within_its_class(binary, rng):
    X, y = binary
    weights = rng.uniform(0.2, 3, len(y))
    clf = alone(max_steps=0, scaling=None).fit(X, y, weights)
    rare = y == 1
    assert np.allclose(clf.anchor_, np.average(X[rare], axis=0, weights=weights[rare]))
    embedded = clf._model.network.prepare(clf._model.scaled_anchors())(
        clf.network_.encode(torch.from_numpy(X.astype(np.float32)))
    )[0].detach()
    for side in (0, 1):
        mean = np.average(embedded.numpy()[y == side], axis=0, weights=weights[y == side])
        assert np.allclose(clf.representatives_[side], mean / np.linalg.norm(mean), atol=1e-5)


def test_a_weighted_row_in_training_counts_like_its_weight_in_the_representatives(binary):
    X, y = binary
    twice = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    doubled = np.concatenate([X, X[twice == 2]]), np.concatenate([y, y[twice == 2]])
    # Without scaling, which a class of more rows would move: weights speak within a class.
    weighted = alone(max_steps=0, scaling=None).fit(X, y, twice)
    repeated = alone(max_steps=0, scaling=None).fit(*doubled)
    assert np.allclose(weighted.representatives_, repeated.representatives_, atol=1e-6)
    assert np.allclose(weighted.anchor_, repeated.anchor_)


@pytest.mark.parametrize("weights", [{0: 1, 1: 3}, {1: 3}, {0: 2, 1: 6}])
def test_a_class_weight_moves_the_log_odds_by_its_logarithm(binary, weights):
    X, y = binary
    plain = alone(max_steps=0).fit(X, y)
    weighted = alone(max_steps=0, class_weight=weights).fit(X, y)
    moved = weighted.decision_function(X) - plain.decision_function(X)
    assert np.allclose(moved, math.log(3), atol=1e-6)


def test_a_class_weight_moves_every_head_against_the_mean_weight_of_the_rest(multiclass):
    X, y = multiclass
    plain = alone(max_steps=0).fit(X, y)
    weighted = alone(max_steps=0, class_weight={2: 4.0}).fit(X, y)
    moved = weighted.decision_function(X) - plain.decision_function(X)
    # Weights 1, 1, 4, 1: class 2 against rests of mean 1, the others against rests of mean 2.
    expected = np.log([1 / 2, 1 / 2, 4, 1 / 2])
    assert np.allclose(moved, expected, atol=1e-6)


def test_a_heavier_class_is_predicted_more_often_after_training(binary):
    X, y = binary
    rates = [
        alone(class_weight={0: 1, 1: weight}).fit(X, y).predict(X).mean() for weight in (0.1, 1, 10)
    ]
    assert rates == sorted(rates)
    assert rates[0] < rates[-1]


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
@pytest.mark.parametrize("weights", ["balanced", {0: 1, 1: 1}, {}])
def test_balanced_class_weights_are_no_weights(kind, weights, request):
    X, y = request.getfixturevalue(kind)
    assert_same_fit(small(class_weight=weights).fit(X, y), small().fit(X, y), X)


# ---------------------------------------------------------------------------------------- anchors


def test_a_subset_of_all_rows_is_their_mean(binary, monkeypatch):
    X, y = binary
    clf = alone(anchor="subset").fit(X, y)
    assert np.allclose(clf.anchor_, X[y == 1].mean(axis=0))
    monkeypatch.setattr("setconv.model.SUBSET", 1)
    single = alone(anchor="subset").fit(X, y).anchor_
    assert any(np.allclose(single, row) for row in X[y == 1])


@pytest.mark.parametrize("count", [4, 3, 1])
def test_centroids_lay_their_embeddings_side_by_side(binary, multiclass, count, monkeypatch):
    monkeypatch.setattr("setconv.model.CENTROIDS", count)
    X, y = binary
    clf = alone(anchor="kmeans").fit(X, y)
    assert clf.anchor_.shape == ((count, 8) if count > 1 else (8,))
    assert clf.representatives_.shape == (2, 8 * count)
    assert clf.transform(X).shape == (240, 8 * count)
    several = alone(anchor="kmeans").fit(*multiclass)
    assert several.anchor_.shape == ((4, count, 8) if count > 1 else (4, 8))
    assert several.representatives_.shape == (4, 2, 8 * count)
    assert len(several.get_feature_names_out()) == several.transform(X).shape[1] == 32 * count


@pytest.mark.parametrize("shape", [(8,), (1, 8), (3, 8), (1, 3, 8)])
def test_an_array_is_the_anchor_itself(binary, rng, shape):
    anchor = rng.standard_normal(shape)
    clf = alone(anchor=anchor).fit(*binary)
    assert np.array_equal(clf.anchor_.ravel(), anchor.ravel())


def test_an_array_may_have_an_anchor_for_each_head(multiclass, rng):
    anchor = rng.standard_normal((4, 2, 8))
    assert np.array_equal(alone(anchor=anchor).fit(*multiclass).anchor_, anchor)


def test_a_callable_makes_the_anchor_from_the_rows_of_the_smaller_side(multiclass):
    X, y = multiclass
    seen = []

    def median(rows):
        seen.append(rows)
        return np.median(rows, axis=0)

    clf = alone(anchor=median).fit(X, y)
    assert [len(rows) for rows in seen] == [np.sum(y != 0), *np.bincount(y)[1:]]
    assert np.array_equal(seen[2], X[y == 2])
    assert np.allclose(clf.anchor_[3], np.median(X[y == 3], axis=0))


# ----------------------------------------------------------------------- training: steps, subsets


@pytest.mark.parametrize("post_size", [2, 3])
def test_representatives_can_come_from_a_random_subset(binary, post_size):
    X, y = binary
    clf = alone(post_size=post_size).fit(X, y)
    embedded = clf.transform(X)
    # One row of the rare class is left: its embedding is the representative.
    nearest = np.abs(embedded - clf.representatives_[1]).max(axis=1)
    assert nearest.min() < 1e-6
    assert y[nearest.argmin()] == 1


def test_a_subset_of_all_rows_is_all_rows(multiclass, plain_multiclass):
    X, y = multiclass
    assert_same_fit(small(post_size=400).fit(X, y), plain_multiclass, X)
    assert_same_fit(small(post_size=10**6).fit(X, y), plain_multiclass, X)


def test_no_steps_leave_fresh_weights_and_represent_the_classes(binary):
    X, y = binary
    clf = alone(max_steps=0).fit(X, y)
    assert (clf.n_steps_, clf.history_) == (0, [])
    assert np.allclose(clf.representatives_, representatives_by_hand(clf, X, X, y), atol=1e-5)
    assert not clf.network_.setconv.attention.detach().any(), "attention starts uniform"
    assert clf.report_.unjudged.keys() == {0, 1}


def test_the_weights_of_a_fit_are_fresh(binary):
    X, y = binary
    clf = small(max_steps=60).fit(X, y)
    clf.set_params(max_steps=0).fit(X, y)
    assert same_weights(weights_of(clf), weights_of(small(max_steps=0).fit(X, y)))


# ------------------------------------------------------------------------------------ partial_fit


def test_partial_fit_makes_the_representatives_those_of_all_rows(binary, rng):
    X, y = binary
    order = rng.permutation(len(y))
    first, then = order[:150], order[150:]
    clf = alone().fit(X[first], y[first])
    before = clf.representatives_.copy()
    assert clf.partial_fit(X[then], y[then]) is clf
    both = np.concatenate([first, then])
    expected = representatives_by_hand(clf, X[first], X[both], y[both])
    assert np.allclose(clf.representatives_, expected, atol=1e-5)
    assert np.abs(clf.representatives_ - before).max() > 1e-3, "the new rows count"


def test_partial_fit_counts_weights(binary, rng):
    X, y = binary
    weights = rng.uniform(0, 3, 100)
    clf = alone().fit(X[:140], y[:140])
    clf.partial_fit(X[140:], y[140:], sample_weight=weights)
    expected = representatives_by_hand(clf, X[:140], X, y, np.concatenate([np.ones(140), weights]))
    assert np.allclose(clf.representatives_, expected, atol=1e-5)


def test_partial_fit_leaves_network_anchor_and_scaling_as_they_were(binary):
    X, y = binary
    clf = small().fit(X[:150], y[:150])
    weights, anchor = weights_of(clf), clf.anchor_.copy()
    embedded = clf.transform(X)
    clf.partial_fit(50 + X[150:], y[150:])
    assert same_weights(weights_of(clf), weights)
    assert np.array_equal(clf.anchor_, anchor)
    assert np.array_equal(clf.transform(X), embedded), "the scaling is that of the fit"
    assert clf.class_counts_.tolist() == np.bincount(y).tolist()


@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_partial_fit_does_not_depend_on_the_order_or_the_size_of_batches(kind, request, rng):
    X, y = request.getfixturevalue(kind)
    rest = np.arange(150, len(y))
    results = []
    for parts in (1, 2, 30):
        clf = small().fit(X[:150], y[:150])
        for part in np.array_split(rng.permutation(rest), parts):
            clf.partial_fit(X[part], y[part])
        results.append((clf.representatives_, clf.class_counts_))
    for one, other in pairwise(results):
        assert np.allclose(one[0], other[0], rtol=0, atol=1e-6)
        assert np.array_equal(one[1], other[1])


def test_a_batch_may_lack_a_class(multiclass):
    X, y = multiclass
    clf = alone().fit(X, y)
    before = clf.representatives_.copy()
    clf.partial_fit(X[y == 2], y[y == 2])
    assert clf.class_counts_.tolist() == (np.bincount(y) * [1, 1, 2, 1]).tolist()
    after = clf.representatives_
    # The rows are on the class's side of head 2, and on the rest's side of the others.
    assert np.array_equal(after[[0, 1, 3], 1], before[[0, 1, 3], 1])
    assert np.array_equal(after[2, 0], before[2, 0])
    assert not np.array_equal(after[0, 0], before[0, 0])


def test_rows_of_a_class_pull_its_representative_towards_them(binary):
    X, y = binary
    clf = alone().fit(X, y)
    row = X[:1] + 3
    similarity = clf.transform(row) @ clf.representatives_[1]
    clf.partial_fit(np.repeat(row, 200, axis=0), [1] * 200)
    assert clf.transform(row) @ clf.representatives_[1] > similarity


def test_partial_fit_from_the_start_equals_fit_once_every_class_was_seen(multiclass):
    X, y = multiclass
    order = np.argsort(y, kind="stable")
    clf = small()
    for part in np.array_split(order, 5):
        clf.partial_fit(X[part], y[part], classes=[3, 1, 0, 2])
    assert clf.class_counts_.tolist() == np.bincount(y).tolist()
    assert_same_fit(clf, small().fit(X[order], y[order]), X)


def test_partial_fit_with_all_classes_at_once_equals_fit(binary, plain):
    X, y = binary
    assert_same_fit(small().partial_fit(X, y, classes=[0, 1]), plain, X)


def test_until_every_class_was_seen_prediction_names_the_missing_ones(multiclass):
    X, y = multiclass
    names = np.array(["fire", "flood", "hail", "none"])
    clf = small().partial_fit(X[y == 1], names[y[y == 1]], classes=names)
    for method in (clf.predict, clf.predict_proba, clf.transform):
        with pytest.raises(
            NotFittedError, match=r"missing: \['fire', 'hail', 'none'\].*partial_fit"
        ):
            method(X)
    clf.partial_fit(X[y != 2], names[y[y != 2]])
    with pytest.raises(NotFittedError, match=r"missing: \['hail'\]"):
        clf.predict(X)
    clf.partial_fit(X[y == 2], names[y[y == 2]])
    assert set(clf.predict(X)) <= set(names)


def test_a_class_seen_only_with_weight_zero_is_missing(binary):
    X, y = binary
    clf = small().partial_fit(X, y, classes=[0, 1], sample_weight=(y == 0).astype(float))
    with pytest.raises(NotFittedError, match=r"missing: \[1\]"):
        clf.predict(X)


def test_rows_that_wait_survive_pickle(binary):
    X, y = binary
    clf = small().partial_fit(X[y == 0], y[y == 0], classes=[0, 1])
    again = pickle.loads(pickle.dumps(clf)).partial_fit(X[y == 1], y[y == 1])
    order = np.argsort(y, kind="stable")
    assert_same_fit(again, small().fit(X[order], y[order]), X)


def test_a_fit_forgets_rows_that_wait(binary, plain):
    X, y = binary
    clf = small().partial_fit(X[y == 0] + 100, y[y == 0], classes=[0, 1])
    assert_same_fit(clf.fit(X, y), plain, X)
    assert clf.class_counts_.tolist() == np.bincount(y).tolist()


def test_waiting_rows_keep_their_weights(binary, rng):
    X, y = binary
    weights = rng.uniform(0.5, 2, len(y))
    order = np.argsort(y, kind="stable")
    clf = small()
    for part in np.array_split(order, 3):
        clf.partial_fit(X[part], y[part], classes=[0, 1], sample_weight=weights[part])
    # The last part completes the classes with the second; it is added to the fit, or to the sums.
    seen = order if set(y[order[:160]]) == {0} else None
    assert seen is not None, "only the last part has the rare class"
    assert_same_fit(clf, small().fit(X[order], y[order], weights[order]), X)


# --------------------------------------------------------------------------------- early stopping


def test_held_out_rows_are_a_stratified_part(multiclass, monkeypatch):
    X, y = multiclass
    spy = Spy(monkeypatch)
    clf = small(early_stopping=True, validation_fraction=0.25).fit(X, y)
    inside, outside = (set(map(tuple, rows.features)) for rows in (spy.train, spy.validation))
    assert not inside & outside
    assert inside | outside == set(map(tuple, X))
    assert np.allclose(np.bincount(spy.validation.codes), 0.25 * np.bincount(y), atol=1)
    assert clf.class_counts_.tolist() == np.bincount(spy.train.codes).tolist()
    assert clf.report_source_ == "out_of_fold"
    assert clf.report_.confusion.sum() == len(inside)


def test_held_out_groups_never_straddle(binary, monkeypatch):
    X, y = binary
    groups = np.random.default_rng(1).integers(0, 40, len(y))
    spy = Spy(monkeypatch)
    small(early_stopping=True).fit(np.column_stack([X, groups]), y, groups=groups)
    inside, outside = (set(rows.features[:, -1]) for rows in (spy.train, spy.validation))
    assert outside
    assert not inside & outside
    assert inside | outside == set(groups)


def test_groups_may_be_names(binary, monkeypatch):
    X, y = binary
    groups = np.arange(len(y)) % 30
    spy = Spy(monkeypatch)
    names = np.array([f"patient {group}" for group in groups])
    small(early_stopping=True).fit(np.column_stack([X, groups]), y, groups=names)
    assert not set(spy.train.features[:, -1]) & set(spy.validation.features[:, -1])


def test_validation_rows_of_the_caller_are_used_and_none_held_out(binary, monkeypatch):
    X, y = binary
    spy = Spy(monkeypatch)
    clf = small(early_stopping=True).fit(X[:180], y[:180], X_val=X[180:], y_val=y[180:])
    assert np.array_equal(spy.train.features, X[:180])
    assert np.array_equal(spy.validation.features, X[180:])
    assert clf.class_counts_.sum() == 180
    assert clf.report_.confusion.sum() == 180


# Long steps, so that looks differ.
WATCHED = {
    "early_stopping": True,
    "lr": 1.0,
    "schedule": "constant",
    "max_steps": 16,
    "dropout": 0.0,
    "input_dropout": 0.0,
}


def looks(clf):
    return {r["step"]: r["validation"] for r in clf.history_ if "validation" in r}


@pytest.fixture
def best_at_six(monkeypatch):
    """Let the third look, at step 6, be the best of eight."""
    monkeypatch.setattr("setconv.training.loop.LOOKS", 8)
    figures = iter([0.1, 0.5, 0.9, 0.3, 0.9, 0.2, 0.1, 0.8])
    monkeypatch.setattr("setconv.fitting.monitored_figure", lambda *_: next(figures))


@pytest.fixture(scope="module")
def hard(binary):
    """Rows with so many wrong labels that no figure reaches its best."""
    X, y = binary
    wrong = np.random.default_rng(0).random(len(y)) < 0.25
    return X, np.where(wrong, 1 - y, y)


def test_the_restored_weights_are_those_of_a_run_that_ends_there(binary, request):
    class StopAtSix(Callback):
        def on_step_end(self, state):
            state.stop = state.step == 6

    X, y = binary
    short = alone(**WATCHED, callbacks=[StopAtSix()], monitor="loss")
    split = {"X_val": X[:60], "y_val": y[:60]}
    short.set_params(early_stopping=False).fit(X[60:], y[60:], **split)
    last = alone(**{**WATCHED, "early_stopping": False}).fit(X[60:], y[60:], **split)
    request.getfixturevalue("best_at_six")
    clf = alone(**WATCHED, patience=None).fit(X[60:], y[60:], **split)
    assert (short.n_steps_, clf.n_steps_, last.n_steps_) == (6, 16, 16)
    assert same_weights(weights_of(clf), weights_of(short))
    assert np.array_equal(clf.representatives_, short.representatives_)
    assert not same_weights(weights_of(clf), weights_of(last))


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
    looked = small(**{**WATCHED, "early_stopping": False}).fit(X, y, X_val=X, y_val=y)
    plain = small(**{**WATCHED, "early_stopping": False}).fit(X, y)
    assert same_weights(weights_of(looked), weights_of(plain))
    assert looked.n_steps_ == 16
    assert len(looks(looked)) == 16
    assert looks(plain) == {}


def test_the_validation_rows_do_not_take_part_in_the_model(binary):
    X, y = binary
    one = small().fit(X[:180], y[:180], X_val=X[180:], y_val=y[180:])
    other = small().fit(X[:180], y[:180], X_val=X[180:] * 9, y_val=1 - y[180:])
    plain = small().fit(X[:180], y[:180])
    assert same_weights(weights_of(one), weights_of(plain))
    assert same_weights(weights_of(other), weights_of(plain))
    assert np.array_equal(one.representatives_, other.representatives_)


# -------------------------------------------------------------------------------- small and smaller


@pytest.mark.parametrize("sizes", [[3, 3], [3, 3, 3], [10, 1], [1, 1], [1, 1, 1]])
@pytest.mark.parametrize("shape", ["defaults", "PAPER", "kmeans", "separate"])
def test_very_few_rows_are_enough_for_a_model(sizes, shape, rng):
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.standard_normal((len(y), 3)) + 5 * y[:, None]
    clf = small(heads="separate", max_steps=4) if shape == "separate" else SHAPES[shape]()
    clf.fit(X, y)
    assert clf.class_counts_.tolist() == sizes
    shares = clf.predict_proba(X)
    assert np.isfinite(shares).all()
    assert np.allclose(shares.sum(axis=1), 1)


@pytest.mark.parametrize("sizes", [[3, 3], [10, 1], [5, 2, 1]])
def test_very_few_rows_can_be_stopped_early(sizes, rng):
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.standard_normal((len(y), 3)) + 5 * y[:, None]
    clf = small(early_stopping=True, monitor="g_mean").fit(X, y)
    assert clf.report_source_ == "out_of_fold"
    assert np.isfinite(clf.predict_proba(X)).all()
    assert all(count >= 1 for count in clf.class_counts_)


@pytest.mark.parametrize("shape", ["defaults", "PAPER", "REFERENCE", "kmeans"])
def test_one_feature_is_enough(shape, rng):
    y = (np.arange(60) % 5 == 0).astype(int)
    clf = SHAPES[shape]().fit((y + rng.standard_normal(60))[:, None], y)
    assert clf.n_features_in_ == 1
    assert np.isfinite(clf.decision_function([[0.5], [-2.0]])).all()


@pytest.mark.parametrize(
    "value",
    [
        0.0,
        -3.5,
        1e20,
    ],
)
def test_constant_columns_do_not_stand_in_the_way(binary, value):
    X, y = binary
    padded = np.column_stack([X, np.full(len(X), value)])
    clf = small(max_steps=30, lr=0.02).fit(padded, y)
    assert np.isfinite(clf.predict_proba(padded)).all()
    assert clf.report_[1].auc > 0.9


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
        "PAPER": small_preset("PAPER", max_steps=150),
        "REFERENCE": small_preset("REFERENCE", max_steps=150, encoder=(32,)),
    }[shape].fit(rows[train], y[train])
    assert roc_auc_score(y[test], clf.decision_function(rows[test])) > 0.95


def test_it_learns_several_classes(multiclass):
    X, y = multiclass
    train, test = slice(0, 300), slice(300, None)
    for heads in ("shared", "separate"):
        clf = small(heads=heads, max_steps=60, lr=0.03, n_episodes=4, dropout=0.1)
        clf.set_params(input_dropout=0.1).fit(X[train], y[train])
        auc = roc_auc_score(y[test], clf.predict_proba(X[test]), multi_class="ovr")
        assert auc > 0.95


# ------------------------------------------------------------------------------------------- quiet


def test_a_fit_writes_nothing_to_the_terminal_and_changes_no_logging(binary, capsys):
    logger = logging.getLogger("setconv")
    before = (list(logger.handlers), logger.level, list(logging.getLogger().handlers))
    small(early_stopping=True, progress="auto").fit(*binary).predict(binary[0])
    assert capsys.readouterr() == ("", "")
    after = (list(logger.handlers), logger.level, list(logging.getLogger().handlers))
    assert after == before
