"""The classifier on sparse rows: the same as on dense ones, and never dense as a whole."""

import hashlib
import json
import shutil
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from scipy import sparse
from sklearn.base import clone

from setconv import presets
from setconv.classifier import SetConvClassifier
from setconv.errors import DataError, DivergedError, ModelFileError
from setconv.linear import Discriminants, SparseLines
from setconv.model import BLOCK
from setconv.pipelines import load
from setconv.preprocessing import Densify, SparseProjection
from setconv.training import Callback

WIDE = 600
pytestmark = pytest.mark.filterwarnings("ignore:With scaling=None")


def make_rows(n=200, d=WIDE, classes=2, seed=0):
    """Counts of words; each class has words that it uses more often."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(classes, n, p=[0.7, *[0.3 / (classes - 1)] * (classes - 1)])
    codes[: 6 * classes] = np.arange(6 * classes) % classes
    telling = np.arange(d) % (4 * classes) == codes[:, None]
    counts = rng.poisson(np.where(telling, 8, 1) * 6 / d)
    return sparse.csr_matrix(counts, dtype=np.float32), codes


def small(**parameters):
    values = {"n_members": 2, "encoder": (8,), "out_features": 4, "n_episodes": 2, "max_steps": 6}
    return SetConvClassifier(**{**values, "random_state": 0, "progress": False, **parameters})


def assert_same_scores(one, other, rows, other_rows=None):
    found = other.predictions(rows if other_rows is None else other_rows).scores
    assert np.array_equal(one.predictions(rows).scores, found)
    assert np.array_equal(one.threshold_, other.threshold_)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model of 600 sparse columns, projected to 16."""
    folder = tmp_path_factory.mktemp("sparse") / "model"
    small(max_steps=2).fit(*make_rows(60)).save(folder)
    return folder


@pytest.fixture(scope="module")
def data():
    return make_rows()


@pytest.fixture(scope="module")
def model(data):
    return small(max_steps=40).fit(*data)


# ---------------------------------------------------------------------------- what comes in


FORMS = {
    "csr array": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "csc array": sparse.csc_array,
    "coo": sparse.coo_matrix,
    "coo array": sparse.coo_array,
    "lil": sparse.lil_matrix,
    "float64": lambda rows: rows.astype(np.float64),
    "int": lambda rows: rows.astype(np.int32),
    "64-bit indices": lambda rows: sparse.csr_matrix(
        (rows.data, rows.indices.astype(np.int64), rows.indptr.astype(np.int64)), rows.shape
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_sparse_rows_is_the_same(data, form):
    rows, codes = data
    given = FORMS[form](rows)
    one = small().fit(given, codes)
    assert one.n_features_in_ == WIDE
    expected = small().fit(rows, codes)
    np.testing.assert_allclose(
        one.predictions(given).scores, expected.predictions(rows).scores, rtol=1e-4, atol=1e-4
    )


def untidy(rows):
    """The same matrix with its columns in disorder and each number in two parts."""
    indices, values, starts = [], [], [0]
    for row in range(rows.shape[0]):
        part = slice(*rows.indptr[row : row + 2])
        indices += [*rows.indices[part][::-1], *rows.indices[part]]
        values += [*rows.data[part][::-1] * 0.25, *rows.data[part] * 0.75]
        starts.append(len(indices))
    return sparse.csr_matrix((np.array(values, np.float32), indices, starts), rows.shape)


def test_columns_in_disorder_and_named_twice_are_put_in_order_in_a_copy(data, model):
    rows, codes = data
    given = untidy(rows)
    before = given.data.copy(), given.indices.copy(), given.indptr.copy()
    assert_same_scores(small(max_steps=40).fit(given, codes), model, rows)
    assert np.array_equal(model.predict(given), model.predict(rows))
    for array, kept in zip((given.data, given.indices, given.indptr), before, strict=True):
        assert np.array_equal(array, kept)


@pytest.mark.parametrize("scaling", ["auto", None])
def test_the_users_matrix_is_left_as_it_is(data, scaling):
    rows, codes = data
    given = rows.copy()
    given.data[::5] = 0  # stored zeros stay, too
    before = given.copy()
    for array in (given.data, given.indices, given.indptr):
        array.flags.writeable = False
    clf = small(scaling=scaling).fit(given, codes)
    clf.predict(given)
    clf.partial_fit(given, codes)
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(given, name), getattr(before, name))


def test_stored_zeros_are_zeros(data):
    rows, codes = data
    stored = rows.copy()
    stored.data[::5] = 0
    gone = stored.copy()
    gone.eliminate_zeros()
    one, other = small().fit(stored, codes), small().fit(gone, codes)
    np.testing.assert_allclose(
        one.predictions(rows).scores, other.predictions(rows).scores, rtol=1e-4, atol=1e-4
    )


# Not scaled, it is two members' two episodes of 80 rows, or a block of 256.
@pytest.mark.parametrize(
    ("parameters", "most"), [({}, 24_000), ({"scaling": None}, 320 * 3000)], ids=str
)
def test_wide_rows_are_never_made_dense_as_a_whole(monkeypatch, parameters, most):
    rows, codes = make_rows(n=900, d=3000)

    def refuse(self, *_, **__):
        if np.prod(self.shape) > most:
            raise AssertionError(f"rows of shape {self.shape} were made dense")
        return original(self)

    original = sparse.csr_matrix.toarray
    for kind in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_matrix):
        for name in ("toarray", "todense"):
            monkeypatch.setattr(kind, name, refuse)
    clf = small(**parameters).fit(rows, codes)
    clf.partial_fit(rows, codes)
    assert np.isfinite(clf.predict_proba(rows)).all()
    assert clf.transform(rows).shape == (900, 8)


# -------------------------------------------------------------------------- what it is made of


def test_auto_is_a_projection_and_a_line_over_all_columns(model):
    front, lines = model._model.front, model._model.discriminants
    assert isinstance(front, SparseProjection)
    assert (front.n_features, front.width) == (WIDE, 50)
    assert isinstance(lines, SparseLines)
    assert lines.weights.shape == (WIDE, 2)
    assert model.anchor_.shape == (2, 50)


def test_a_model_of_sparse_rows_tells_the_classes_apart(model):
    rows, codes = make_rows(seed=5)
    assert (model.predict(rows) == codes).mean() > 0.85
    assert model.oof_report_[1].auc > 0.85


@pytest.mark.parametrize("columns", [8, 150])
def test_narrow_sparse_rows_are_dense_rows(columns):
    rows, codes = make_rows(d=columns)
    one, dense = small().fit(rows, codes), small().fit(rows.toarray(), codes)
    assert one._model.front == Densify(columns)
    assert isinstance(one._model.discriminants, Discriminants | None)
    assert_same_scores(one, dense, rows, rows.toarray())
    assert one.oof_report_ == dense.oof_report_


UNSCALED = {
    "shared": {},
    "separate, dropout": {"heads": "separate", "input_dropout": 0.5, "dropout": 0.3},
    "no encoder": {"n_members": 1, "encoder": (), "output": 3},
    "given anchors": {"anchor": np.linspace(-1, 1, 2 * WIDE).reshape(2, WIDE)},
    "subset": {"anchor": "subset", "post_size": 60},
}


@pytest.mark.parametrize("name", UNSCALED)
@pytest.mark.parametrize("classes", [2, 3])
def test_without_scaling_the_network_learns_what_it_learns_from_dense_rows(classes, name):
    rows, codes = make_rows(classes=classes)
    values = {"dropout": 0.0, "input_dropout": 0.0, "linear_share": 0.0, "lr": 0.003}
    values |= UNSCALED[name]
    clf = small(**values, scaling=None, max_steps=12)
    with pytest.warns(UserWarning, match="all 600 columns"):
        one = clone(clf).fit(rows, codes)
    dense = clone(clf).fit(rows.toarray(), codes)
    assert one._model.front == Densify(WIDE)
    np.testing.assert_allclose(one.anchor_, dense.anchor_, rtol=1e-5, atol=1e-6)
    scores = dense.predictions(rows.toarray()).scores
    np.testing.assert_allclose(
        one.predictions(rows).scores, scores, rtol=1e-2, atol=2e-3 * np.abs(scores).max()
    )


@pytest.mark.parametrize("preset", ["PAPER", "REFERENCE"])
@pytest.mark.parametrize("classes", [2, 3])
def test_the_presets_look_at_all_columns_of_sparse_rows(preset, classes, tmp_path):
    rows, codes = make_rows(classes=classes)
    values = {**getattr(presets, preset), "max_steps": 8, "out_features": 6}
    clf = SetConvClassifier(**values, random_state=0, progress=False)
    with pytest.warns(UserWarning, match="scaling="):
        clf.fit(rows, codes)
    assert clf._model.front == Densify(WIDE)
    assert np.isfinite(clf.predict_proba(rows)).all()
    clf.save(tmp_path / "model")
    assert_same_scores(clf, load(tmp_path / "model"), rows)


# ----------------------------------------------------------------------------- the same scores


KINDS = {
    "projected": {},
    "projected, separate": {"heads": "separate"},
    "without a line": {"linear_share": 0.0},
    "several anchors": {"anchor": "kmeans"},
    "not scaled": {"scaling": None},
    "not scaled, without a line": {"scaling": None, "linear_share": 0.0},
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", KINDS)
def test_scores_depend_on_the_row_alone(name, classes, tmp_path, monkeypatch):
    rows, codes = make_rows(n=300, classes=classes)
    clf = small(**KINDS[name]).fit(rows, codes)
    whole = clf.predictions(rows).scores
    assert whole.shape == ((300,) if classes == 2 else (300, 3))
    with monkeypatch.context() as patch:
        patch.setattr("setconv.model.BATCH", BLOCK)
        assert np.array_equal(clf.predictions(rows).scores, whole)
    chosen = np.random.default_rng(0).permutation(300)[:31]
    assert np.array_equal(clf.predictions(rows[chosen]).scores, whole[chosen])
    # Dense rows to a model that was fitted on sparse ones.
    dense = clf.predictions(rows[chosen].toarray()).scores
    np.testing.assert_allclose(dense, whole[chosen], rtol=1e-4, atol=1e-5)
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_same_scores(clf, loaded, rows)
    assert np.array_equal(clf.transform(rows), loaded.transform(rows))
    assert loaded._model.front.width == clf._model.front.width


def test_dense_rows_give_exactly_the_same_where_they_are_projected(data, model):
    rows, _ = data
    assert np.array_equal(model.predictions(rows.toarray()).scores, model.predictions(rows).scores)


def test_sparse_rows_to_a_model_of_dense_rows_give_the_same_scores(data):
    rows, codes = data
    clf = small().fit(rows.toarray(), codes)
    assert np.array_equal(clf.predictions(rows).scores, clf.predictions(rows.toarray()).scores)
    other = clone(clf).fit(rows.toarray(), codes)
    for one, given in ((clf, rows), (other, rows.toarray())):
        one.partial_fit(given, codes)
    assert_same_scores(clf, other, rows)


def test_the_same_seed_gives_the_same_result_and_another_another(data):
    one, two, other = (small(random_state=seed).fit(*data) for seed in (3, 3, 4))
    assert_same_scores(one, two, data[0])
    assert one.history_ == two.history_
    assert not np.array_equal(one.predictions(data[0]).scores, other.predictions(data[0]).scores)


# -------------------------------------------------------------------------------- all else


def test_new_rows_join_the_representatives_exactly(data):
    rows, codes = data
    at_once = small().fit(rows[:150], codes[:150])
    in_parts, dense = (clone(at_once).fit(rows[:150], codes[:150]) for _ in range(2))
    at_once.partial_fit(rows[150:], codes[150:])
    for part in (slice(150, 160), slice(160, 200)):
        in_parts.partial_fit(rows[part], codes[part])
        dense.partial_fit(rows[part].toarray(), codes[part])
    np.testing.assert_allclose(at_once.representatives_, in_parts.representatives_, rtol=1e-5)
    np.testing.assert_allclose(at_once.representatives_, dense.representatives_, rtol=1e-5)
    assert at_once.class_counts_.tolist() == np.bincount(codes).tolist()


def test_partial_fit_of_a_new_estimator_keeps_sparse_rows_until_all_classes_are_there(data):
    rows, codes = data
    order = np.argsort(codes, kind="stable")
    rows, codes = rows[order], codes[order]
    clf = small()
    for part in (slice(0, 30), slice(30, 200)):
        clf.partial_fit(rows[part], codes[part], classes=[0, 1])
    assert_same_scores(clf, small().fit(rows, codes), rows)


def test_dense_and_sparse_parts_of_a_new_estimator_go_together(data):
    rows, codes = data
    order = np.argsort(codes, kind="stable")
    rows, codes = rows[order], codes[order]
    clf = small().partial_fit(rows[:30].toarray(), codes[:30], classes=[0, 1])
    clf.partial_fit(rows[30:], codes[30:])
    assert_same_scores(clf, small().fit(rows, codes), rows)


def test_post_training_makes_the_representatives_anew(data):
    rows, codes = data
    clf, other = small().fit(rows, codes), small().fit(rows, codes)
    clf.post_train(rows[:80], codes[:80])
    other.post_train(rows[:80].toarray(), codes[:80])
    assert clf.class_counts_.sum() == 80
    np.testing.assert_allclose(clf.representatives_, other.representatives_, rtol=1e-5)


def test_rows_of_weight_zero_are_left_out_and_weights_count(data):
    rows, codes = data
    weights = np.random.default_rng(0).integers(0, 3, 200).astype(float)
    kept = np.flatnonzero(weights)
    one = small().fit(rows, codes, weights)
    other = small().fit(rows[kept], codes[kept], weights[kept])
    assert_same_scores(one, other, rows)
    equal = small().fit(rows[kept], codes[kept])
    assert not np.array_equal(one.predictions(rows).scores, equal.predictions(rows).scores)


def test_groups_are_kept_together_and_early_stopping_looks_at_sparse_rows(data):
    rows, codes = data
    groups = np.arange(200) // 4
    clf = small(early_stopping=True, validation_fraction=0.2)
    clf.fit(rows, codes, groups=groups)
    assert clf.report_source_ == "out_of_fold"
    assert [one["step"] for one in clf.history_ if "validation" in one] == list(range(1, 7))
    assert int(clf.report_.confusion.sum()) == clf.class_counts_.sum() < 200


@pytest.mark.parametrize("form", ["sparse", "dense"])
@pytest.mark.parametrize("scaling", ["auto", None])
def test_validation_rows_may_be_sparse_or_dense(data, form, scaling):
    rows, codes = data
    extra, labels = make_rows(n=60, seed=7)
    clf = small(scaling=scaling, n_members=1, objective=None)
    clf.fit(rows, codes, X_val=extra if form == "sparse" else extra.toarray(), y_val=labels)
    decided = clf.predict(extra)
    expected = [[np.sum((labels == a) & (decided == b)) for b in (0, 1)] for a in (0, 1)]
    assert clf.report_.confusion.tolist() == expected


class Interrupt(Callback):
    def on_step_end(self, state):
        if state.step == 5:
            raise KeyboardInterrupt


@pytest.mark.parametrize("scaling", ["auto", None])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_run_that_was_interrupted_goes_on_to_the_same_end(
    classes, scaling, tmp_path, monkeypatch
):
    monkeypatch.setattr("setconv.training.loop.CHECKPOINT_EVERY", 2)
    rows, codes = make_rows(classes=classes)
    settings = {"scaling": scaling, "max_steps": 9}
    whole = small(**settings).fit(rows, codes)
    clf = small(**settings, checkpoint_dir=tmp_path, callbacks=[Interrupt()])
    with pytest.raises(KeyboardInterrupt):
        clf.fit(rows, codes)
    clf.set_params(callbacks=()).fit(rows, codes, resume_from=tmp_path)
    assert_same_scores(clf, whole, rows)
    assert clf.history_ == whole.history_
    changed = rows.copy()
    changed.data[0] += 1
    with pytest.raises(ValueError, match="other data"):
        clf.fit(changed, codes, resume_from=tmp_path)


@pytest.mark.parametrize("scaling", ["auto", None])
def test_columns_that_are_never_filled_do_no_harm(data, scaling):
    rows, codes = data
    empty = sparse.csr_matrix((200, 3), dtype=np.float32)
    wide = sparse.csr_matrix(sparse.hstack([empty, rows, empty]))
    clf = small(scaling=scaling).fit(wide, codes)
    assert np.isfinite(clf.predict_proba(wide)).all()
    new = wide.tolil()
    new[:, 0] = 1
    assert np.isfinite(clf.predict_proba(new.tocsr())).all()


@pytest.mark.parametrize("scaling", ["auto", None])
@pytest.mark.parametrize("columns", [20, WIDE])
def test_rows_of_nothing_but_zeros_can_be_fitted(columns, scaling):
    rows = sparse.csr_matrix((60, columns))
    codes = np.arange(60) % 3 // 2
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        clf = small(scaling=scaling).fit(rows, codes)
        shares = clf.predict_proba(rows)
    assert np.isfinite(shares).all()
    assert np.ptp(shares, axis=0).max() == 0


@pytest.mark.parametrize("factor", [1e-25, 1e-12, 1e12, 1e25])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_unit_of_rows_that_are_projected_is_nothing(data, dtype, factor):
    rows, codes = data
    given = rows.astype(dtype) * dtype(factor)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = small().fit(given, codes).predictions(given).scores
    np.testing.assert_allclose(found, small().fit(rows, codes).predictions(rows).scores, atol=0.01)


def test_rows_that_are_too_large_for_the_network_are_refused_with_what_to_do(data):
    rows, codes = data
    with pytest.raises((DataError, DivergedError), match="scale"):
        small(scaling=None).fit(rows * np.float32(1e12), codes)


def test_only_the_ratios_of_weights_count(data):
    rows, codes = data
    weights = np.random.default_rng(0).random(200) + 0.5
    one, other = (small().fit(rows, codes, factor * weights) for factor in (1, 1000))
    np.testing.assert_allclose(
        one.predictions(rows).scores, other.predictions(rows).scores, atol=0.01
    )


def test_a_column_named_twice_with_numbers_too_large_together_is_refused(data):
    rows, codes = data
    given = untidy(rows)
    given.data[given.indptr[3] : given.indptr[4]] = 3e38
    with pytest.raises(DataError, match="infinity"):
        small().fit(given, codes)


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        ("front/columns", (599,)),
        ("front/directions", (600, 3)),
        ("front/directions", (600,)),
        ("linear/weights", (599, 2)),
        ("linear/weights", (2, 600)),
        ("linear/intercepts", (1,)),
        ("anchors", (2, 1, 600)),
    ],
)
def test_parts_of_a_sparse_model_that_do_not_fit_are_a_clear_error(saved, tmp_path, key, shape):
    folder = shutil.copytree(saved, tmp_path / "model")
    stored = load_tensors((folder / "model.safetensors").read_bytes())
    assert key in stored
    stored[key] = torch.ones(shape, dtype=stored[key].dtype)
    content = save_tensors(stored)
    (folder / "model.safetensors").write_bytes(content)
    config = json.loads((folder / "config.json").read_text())
    config["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ModelFileError):
        load(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"parts": {"views/0": "standard", "linear": "lines"}},
        {"parts": {"views/0": "standard", "front": "dense", "linear": "lines"}},
        {"parts": {"views/0": "standard", "front": "projection", "linear": "discriminants"}},
        {"n_features": 601},
    ],
    ids=str,
)
def test_figures_of_a_sparse_model_that_cannot_be_are_a_clear_error(saved, tmp_path, change):
    folder = shutil.copytree(saved, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(ModelFileError):
        load(folder)
