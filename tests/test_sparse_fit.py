"""The classifier on sparse rows: the same as on dense ones, and never dense as a whole."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from small_models import Interrupt, assert_same_model, preset, small

from setconv.errors import CheckpointError, DataError, DivergedError
from setconv.linear import Discriminants, SparseLines
from setconv.model import BLOCK
from setconv.pipelines import load
from setconv.preprocessing import Densify, SparseProjection

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


def scores(clf, rows):
    return clf.predictions(rows).scores


def assert_close(one, other, **tolerance):
    np.testing.assert_allclose(one, other, **{"rtol": 1e-4, "atol": 1e-4} | tolerance)


@pytest.fixture(scope="module")
def data():
    return make_rows()


@pytest.fixture(scope="module")
def model(data):
    return small(max_steps=40).fit(*data)


# ---------------------------------------------------------------------------- what comes in


def without_zeros(rows):
    gone = rows.copy()
    gone.eliminate_zeros()
    return gone


FORMS = {
    "csr array": sparse.csr_array,
    "coo array": sparse.coo_array,
    "int": lambda rows: rows.astype(np.int32),
    "64-bit indices": lambda rows: sparse.csr_matrix(
        (rows.data.astype(np.float64), rows.indices.astype(np.int64), rows.indptr), rows.shape
    ),
    "without stored zeros": without_zeros,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_sparse_rows_is_the_same(data, form):
    rows, codes = data[0].copy(), data[1]
    rows.data[::5] = 0
    one, expected = small().fit(FORMS[form](rows), codes), small().fit(rows, codes)
    assert one.n_features_in_ == WIDE
    assert_close(scores(one, FORMS[form](rows)), scores(expected, rows))


def untidy(rows):
    """The same matrix with its columns in disorder and each number in two parts."""
    indices, values, starts = [], [], [0]
    for row in range(rows.shape[0]):
        part = slice(*rows.indptr[row : row + 2])
        indices += [*rows.indices[part][::-1], *rows.indices[part]]
        values += [*rows.data[part][::-1] * 0.25, *rows.data[part] * 0.75]
        starts.append(len(indices))
    return sparse.csr_matrix((np.array(values, np.float32), indices, starts), rows.shape)


@pytest.mark.parametrize("scaling", ["auto", None])
def test_the_users_matrix_is_left_as_it_is_and_put_in_order_in_a_copy(data, scaling):
    rows, codes = data
    given = untidy(rows)
    before = [getattr(given, name).copy() for name in ("data", "indices", "indptr")]
    for name in ("data", "indices", "indptr"):
        getattr(given, name).flags.writeable = False
    clf, tidy = small(scaling=scaling).fit(given, codes), small(scaling=scaling).fit(rows, codes)
    assert_same_model(clf, tidy, given, rows)
    assert_same_model(clf.partial_fit(given, codes), tidy.partial_fit(rows, codes), given, rows)
    for name, kept in zip(("data", "indices", "indptr"), before, strict=True):
        assert np.array_equal(getattr(given, name), kept)


# Not scaled, it is two members' two episodes of 80 rows, or a block of 256.
@pytest.mark.parametrize(
    ("parameters", "most"), [({}, 24_000), ({"scaling": None}, 320 * 3000)], ids=str
)
def test_wide_rows_are_never_made_dense_as_a_whole(monkeypatch, parameters, most):
    rows, codes = make_rows(n=900, d=3000)
    original = sparse.csr_matrix.toarray

    def refuse(self, *_, **__):
        if np.prod(self.shape) > most:
            raise AssertionError(f"rows of shape {self.shape} were made dense")
        return original(self)

    for kind in (sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.coo_matrix):
        for name in ("toarray", "todense"):
            monkeypatch.setattr(kind, name, refuse)
    clf = small(n_members=2, **parameters).fit(rows, codes).partial_fit(rows, codes)
    assert np.isfinite(clf.predict_proba(rows)).all()
    assert clf.transform(rows).shape == (900, 8)


# -------------------------------------------------------------------------- what it is made of


def test_auto_is_a_projection_and_a_line_over_all_columns_and_learns(model):
    front, lines = model._model.front, model._model.linear
    assert isinstance(front, SparseProjection)
    assert (front.n_features, front.width) == (WIDE, 50)
    assert isinstance(lines, SparseLines)
    assert lines.weights.shape == (WIDE, 3)
    rows, codes = make_rows(seed=5)
    assert np.array_equal(scores(model, rows.toarray()), scores(model, rows))
    assert (model.predict(rows) == codes).mean() > 0.85
    assert model.oof_report_[1].auc > 0.85


@pytest.mark.parametrize("columns", [8, 150])
def test_narrow_sparse_rows_are_dense_rows(columns):
    rows, codes = make_rows(d=columns)
    one, dense = small().fit(rows, codes), small().fit(rows.toarray(), codes)
    assert isinstance(one._model.front, Densify)
    assert isinstance(one._model.linear, Discriminants | None)
    assert_same_model(one, dense, rows, rows.toarray())


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
    clf = small(**values | UNSCALED[name], scaling=None, max_steps=12)
    with pytest.warns(UserWarning, match="all 600 columns"):
        one = clone(clf).fit(rows, codes)
    dense = clone(clf).fit(rows.toarray(), codes)
    assert isinstance(one._model.front, Densify)
    assert_close(one.anchor_, dense.anchor_, rtol=1e-5, atol=1e-6)
    expected = scores(dense, rows.toarray())
    assert_close(scores(one, rows), expected, rtol=1e-2, atol=2e-3 * np.abs(expected).max())


# ----------------------------------------------------------------------------- the same scores


KINDS = {
    "projected": {},
    "projected, separate": {"heads": "separate"},
    "without a line": {"linear_share": 0.0},
    "several anchors": {"anchor": "kmeans"},
    "not scaled": {"scaling": None},
    "PAPER": {"scaling": None, "linear_share": 0.0},
    "REFERENCE": {},
}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", KINDS)
def test_scores_depend_on_the_row_alone(name, classes, tmp_path, monkeypatch):
    rows, codes = make_rows(n=300, classes=classes)
    clf = (preset(name) if name.isupper() else small(**KINDS[name])).fit(rows, codes)
    whole = scores(clf, rows)
    assert whole.shape == ((300,) if classes == 2 else (300, 3))
    with monkeypatch.context() as patch:
        patch.setattr("setconv.model.BATCH", BLOCK)
        assert np.array_equal(scores(clf, rows), whole)
    chosen = np.random.default_rng(0).permutation(300)[:31]
    assert np.array_equal(scores(clf, rows[chosen]), whole[chosen])
    # Dense rows to a model that was fitted on sparse ones.
    assert_close(scores(clf, rows[chosen].toarray()), whole[chosen], atol=1e-5)
    clf.save(tmp_path)
    assert_same_model(clf, load(tmp_path), rows)


def test_sparse_rows_to_a_model_of_dense_rows_give_the_same_scores(data):
    rows, codes = data
    clf, other = (small().fit(rows.toarray(), codes) for _ in range(2))
    assert_same_model(clf, other, rows, rows.toarray())
    for one, given in ((clf, rows), (other, rows.toarray())):
        one.partial_fit(given, codes)
    assert_same_model(clf, other, rows)


# -------------------------------------------------------------------------------- all else


@pytest.mark.parametrize("update", ["partial_fit", "post_train"])
def test_new_rows_join_the_representatives_exactly(data, update):
    rows, codes = data
    found = [small().fit(rows[:150], codes[:150]) for _ in range(2)]
    for clf, given in zip(found, (rows[100:], rows[100:].toarray()), strict=True):
        getattr(clf, update)(given, codes[100:])
    expected = np.bincount(codes[100:]) + (update == "partial_fit") * np.bincount(codes[:150])
    assert found[0].class_counts_.tolist() == expected.tolist()
    np.testing.assert_allclose(found[0].representatives_, found[1].representatives_, rtol=1e-5)


@pytest.mark.parametrize("first", ["sparse", "dense"])
def test_a_new_estimator_keeps_sparse_rows_until_all_classes_are_there(data, first):
    order = np.argsort(data[1], kind="stable")
    rows, codes = data[0][order], data[1][order]
    part = rows[:30] if first == "sparse" else rows[:30].toarray()
    clf = small().partial_fit(part, codes[:30], classes=[0, 1])
    assert_same_model(clf.partial_fit(rows[30:], codes[30:]), small().fit(rows, codes), rows)


def test_rows_of_weight_zero_are_left_out_and_only_ratios_of_weights_count(data):
    rows, codes = data
    weights = np.random.default_rng(0).integers(0, 3, 200).astype(float)
    kept = np.flatnonzero(weights)
    one = small().fit(rows, codes, weights)
    assert_same_model(one, small().fit(rows[kept], codes[kept], weights[kept]), rows)
    scaled = small().fit(rows, codes, 1000 * weights)
    assert_close(scores(one, rows), scores(scaled, rows), atol=0.01)
    equal = small().fit(rows[kept], codes[kept])
    assert not np.array_equal(scores(one, rows), scores(equal, rows))


def test_groups_are_kept_together_and_early_stopping_looks_at_sparse_rows(data):
    clf = small(early_stopping=True, validation_fraction=0.2)
    clf.fit(*data, groups=np.arange(200) // 4)
    assert [one["step"] for one in clf.history_ if "validation" in one] == list(range(1, 7))
    assert int(clf.report_.confusion.sum()) == clf.class_counts_.sum() < 200


@pytest.mark.parametrize("scaling", ["auto", None])
def test_validation_rows_may_be_sparse_or_dense(data, scaling):
    extra, labels = make_rows(n=60, seed=7)
    clf = small(scaling=scaling, n_members=1, objective=None)
    for given in (extra, extra.toarray()):
        clf.fit(*data, X_val=given, y_val=labels)
        decided = clf.predict(extra)
        expected = [[np.sum((labels == a) & (decided == b)) for b in (0, 1)] for a in (0, 1)]
        assert clf.report_.confusion.tolist() == expected


@pytest.mark.parametrize("scaling", ["auto", None])
def test_a_run_that_was_interrupted_goes_on_to_the_same_end(scaling, tmp_path, monkeypatch):
    monkeypatch.setattr("setconv.training.loop.CHECKPOINT_EVERY", 2)
    rows, codes = make_rows(classes=3)
    settings = {"scaling": scaling, "max_steps": 9}
    clf = small(**settings, checkpoint_dir=tmp_path, callbacks=[Interrupt(5)])
    with pytest.raises(KeyboardInterrupt):
        clf.fit(rows, codes)
    clf.set_params(callbacks=()).fit(rows, codes, resume_from=tmp_path)
    assert_same_model(clf, small(**settings).fit(rows, codes), rows)
    rows.data[0] += 1
    with pytest.raises(CheckpointError):
        clf.fit(rows, codes, resume_from=tmp_path)


def test_numbers_that_are_too_large_for_the_network_or_together_are_refused(data):
    rows, codes = data
    with pytest.raises((DataError, DivergedError)):
        small(scaling=None).fit(rows * np.float32(1e12), codes)
    given = untidy(rows)
    given.data[given.indptr[3] : given.indptr[4]] = 3e38
    with pytest.raises(DataError) as caught:
        small().fit(given, codes)
    assert caught.value.row == 3
