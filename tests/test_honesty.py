"""No figure on rows that were seen: noise, and labels that were shuffled, through every way in.

Where labels have nothing to do with the rows, no honest AUC lies far above one half. Each test here
knows the truth: an AUC that is shown for a class of at least 30 different rows may exceed .5 by at
most four standard errors under the null hypothesis, or the class is said not to be judged. Where
rows do tell something, figures are compared with those on many fresh rows.
"""

import html
import json
import math
import re
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from imblearn.over_sampling import SMOTE, RandomOverSampler
from scipy import sparse
from scipy.stats import beta, binom
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from sklearn.utils.class_weight import compute_sample_weight
from small_models import Interrupt

from setconv.classifier import SetConvClassifier
from setconv.errors import CheckpointError, DataError, ParameterError
from setconv.pipelines import SetConvTableClassifier, SetConvTextClassifier, load
from setconv.report import make_report

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def classifier(**parameters):
    return SetConvClassifier(
        **{"random_state": 0, "progress": False, "max_steps": 120} | parameters
    )


def noise(counts=(260, 40), d=20, seed=0):
    """Rows of which the labels know nothing."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    return rng.normal(size=(len(y), d)), y


def highest_honest_auc(y, label, copies=None):
    """One half and four null standard errors, copies counted once."""
    y = np.asarray(y)
    if copies is not None:
        first = np.unique(copies, return_index=True)[1]
        y = y[first]
    n1 = int((y == label).sum())
    n0 = len(y) - n1
    return 0.5 + 4 * math.sqrt((n1 + n0 + 1) / (12 * n1 * n0)), n1


def assert_honest(report, y, copies=None, judged=None):
    """Check the AUC of every class; ``judged`` says which classes must have one."""
    unjudged = getattr(report, "unjudged", {})
    for label in report.classes:
        highest, n1 = highest_honest_auc(y, label, copies)
        auc = report[label].auc
        if math.isnan(auc):
            # Of two classes neither can be ranked against one that is not judged.
            assert label in unjudged or (unjudged and len(report.classes) == 2)
        elif n1 >= 30:
            assert auc <= highest, (label, auc, highest)
        if judged is not None:
            assert (label not in unjudged) == (label in judged)


# ----------------------------------------------------- every shape of rows, with and without copies


def write_parquet(path, X, **columns):
    table = {f"x{n}": X[:, n] for n in range(X.shape[1])}
    pq.write_table(pa.table(table | columns), path)
    return path


def copied(how, X, y, seed=0):
    """Return rows with copies, their labels, and which row each is a copy of."""
    rows = np.arange(len(y))
    if how == "oversampled":
        rows = RandomOverSampler(random_state=seed).fit_resample(rows[:, None], y)[0][:, 0]
    elif how == "minority tiled":
        rows = np.concatenate([rows, *[rows[y == 1]] * 5])
    elif how == "all tiled":
        rows = np.tile(rows, 3)
    elif how == "bootstrap":
        rows = np.random.default_rng(seed).choice(rows, 3 * len(rows))
    return X[rows], y[rows], rows


TWO, FIVE = (260, 40), (300, 60, 40, 40, 40)
SHAPES = ["array", "wide", "sparse", "sparse wide", "disk", "table"]
WAYS = [(shape, counts, "once") for shape in SHAPES for counts in (TWO, FIVE)]
WAYS += [("array", TWO, how) for how in ("minority tiled", "all tiled", "bootstrap")]
WAYS += [(shape, TWO, "oversampled") for shape in ("array", "wide", "sparse wide", "disk")]
WAYS += [(shape, TWO, "oversampled") for shape in ("groups", "early stopping")]
WAYS += [("few values", (600, 100), "oversampled"), ("array", FIVE, "oversampled")]
WAYS += [("array", (150, 150), "once")]


@pytest.mark.parametrize(("shape", "counts", "how"), WAYS)
def test_noise_stays_noise(shape, counts, how, tmp_path, monkeypatch):
    X, y = noise(counts, d=150 if shape == "wide" else 20)
    clf, named = classifier(max_steps=60 if how == "once" else 120), {}
    if shape.startswith("sparse"):
        width = 700 if shape == "sparse wide" else 40
        X = sparse.random(len(y), width, 0.1, format="csr", random_state=0, dtype=np.float64)
    elif shape == "few values":
        X = np.random.default_rng(0).integers(0, 2, (len(y), 8)).astype(float)
    X, y, copies = copied(how, X, y)
    if shape == "few values":
        copies = np.unique(np.c_[X, y], axis=0, return_inverse=True)[1].ravel()
    given, labels = X, y
    if shape == "disk":
        monkeypatch.setenv("SETCONV_IN_MEMORY", "0")
        given, labels = write_parquet(tmp_path / "rows.parquet", X, label=y), "label"
    elif shape == "table":
        clf = SetConvTableClassifier(classifier=clf)
        given = pd.DataFrame(X[:, :6]).add_prefix("x")
        given["kind"] = np.random.default_rng(1).choice(list("abc"), len(y))
    elif shape == "groups":  # copies lie in different groups
        named["groups"] = np.random.default_rng(0).integers(0, 100, len(y))
    elif shape == "early stopping":
        clf.set_params(early_stopping=True, monitor="auc")
    clf.fit(given, labels, **named)
    # Where groups share copies, all may hang together; then nothing is judged, and that is said.
    judged = None if shape == "groups" else set(range(len(counts)))
    assert_honest(clf.report_, y, copies, judged=judged)


# -------------------------------------------------------------------------------- forward in time


def assert_forward(clf, when, units=None):
    """Every row that is judged lies behind all that its judge knows, and is no copy of it."""
    inner = getattr(clf, "classifier_", clf)
    found, known = inner.predict_out_of_fold(), inner._model.sums.weight.numpy()
    assert (found.left_out.sum(axis=0) == 1).all()
    for judge in np.flatnonzero(found.left_out.any(axis=1)):
        rows = found.rows[found.left_out[judge]]
        learned = int(known[judge * inner.network_.n_heads].sum())
        earlier = np.argsort(when, kind="stable")[:learned]
        assert when[earlier].max() < when[rows].min()
        if units is not None:
            assert not set(units[earlier]) & set(units[rows])
    # The others predict, and have seen rows of all times, but for a fold each.
    speakers = ~found.left_out.any(axis=1)
    shares = known.reshape(len(speakers), -1, 2)[speakers].sum(axis=2) / len(when)
    assert (shares < 1).all()
    assert (shares > 0.6).all()
    return found


FORWARD = [("array", TWO), ("array", FIVE), ("wide", TWO), ("sparse wide", TWO), ("table", TWO)]
FORWARD += [("disk", TWO), ("groups", TWO), ("copies", TWO), ("texts", TWO)]


@pytest.mark.parametrize(("shape", "counts"), FORWARD)
def test_noise_stays_noise_forward_in_time(shape, counts, tmp_path, monkeypatch):
    X, y = noise(counts, d=150 if shape == "wide" else 20)
    clf, named, units = classifier(max_steps=60), {}, None
    if shape == "copies":
        X, y, units = copied("oversampled", X, y)
    if shape == "sparse wide":
        X = sparse.random(len(y), 700, 0.1, format="csr", random_state=0, dtype=np.float64)
    when = np.random.default_rng(2).integers(0, 200, len(y))
    given, labels, named["time"] = X, y, when
    if shape == "disk":
        monkeypatch.setenv("SETCONV_IN_MEMORY", "0")
        given = write_parquet(tmp_path / "rows.parquet", X, label=y, when=when)
        labels, named["time"] = "label", "when"
    elif shape == "table":
        clf, given = SetConvTableClassifier(classifier=clf), pd.DataFrame(X[:, :6]).add_prefix("x")
    elif shape == "texts":
        clf, given = SetConvTextClassifier("tfidf", clf), make_texts(len(y), 0).tolist()
    elif shape == "groups":
        named["groups"] = units = np.random.default_rng(0).integers(0, 150, len(y))
    clf.fit(given, labels, **named)
    found = assert_forward(clf, when, units)
    assert len(found) < len(y)
    assert_honest(clf.report_, y[found.rows], None if units is None else units[found.rows])
    assert set(clf.report_.unjudged) <= ({1} if shape == "copies" else set())
    (note,) = (one for one in clf.report_.remarks() if "forward in time" in one)
    assert ("nor" in note) == (units is not None)
    if shape == "disk":
        assert "when" not in clf.feature_names_in_


def attacks(count, seed, rare=6, common=40):
    """Rows of the rare class come in attacks, each of a kind that was not there before."""
    rng = np.random.default_rng(seed)
    when = np.repeat(np.arange(count), rare + common)
    y = np.tile(np.repeat([1, 0], [rare, common]), count)
    X = rng.normal(size=(len(y), 8))
    kinds = rng.normal(size=(count, 8))
    kinds *= 3 / np.linalg.norm(kinds, axis=1, keepdims=True)
    return np.where(y[:, None] == 1, 0.4 * X + kinds[when] + 0.5, X), y, when


def test_forward_folds_tell_what_later_rows_will_be_like_and_random_folds_flatter():
    random, forward, later, errors = [], [], [], []
    for seed in range(3):
        X, y, when = attacks(40, seed)
        fresh, truth, attack = attacks(300, seed + 100)
        random.append(classifier().fit(X, y).oof_report_[1].auc)
        clf = classifier().fit(X, y, time=when)
        forward.append(clf.oof_report_[1].auc)
        judged = assert_forward(clf, when).rows
        # Attacks, not rows, are drawn: the error is that of the mean over as many as were judged.
        scores = clf.predictions(fresh).scores
        usual = np.sort(scores[truth == 0])
        found = np.searchsorted(usual, scores[truth == 1]) / len(usual)
        aucs = np.bincount(attack[truth == 1], found) / 6
        later.append(aucs.mean())
        errors.append(aucs.std() / math.sqrt(len(np.unique(when[judged]))))
        # The model raises about as many alarms as its judges did.
        said = (clf.predict_out_of_fold().labels[y[judged] == 0] == 1).mean()
        assert (clf.predict(fresh)[truth == 0] == 1).mean() == pytest.approx(said, rel=0.4)
    error = math.sqrt(np.mean(np.square(errors)) / 3)
    assert abs(np.mean(forward) - np.mean(later)) < 3 * error
    assert np.mean(random) > np.mean(later) + 3 * error


@pytest.mark.parametrize(("passed", "named"), [(80, True), (120, False)])
def test_from_which_auc_on_a_feature_is_named(passed, named):
    """One of 100 rare rows lies below so many of 1,000 others: an AUC of .9992, or of .9988."""
    X, y = noise((1000, 100), d=3)
    X[:, 1] = np.where(y == 1, 2000.0, 0.0) + np.arange(len(y))
    X[y == 1, 1] += 10.0
    X[np.flatnonzero(y == 1)[0], 1] = np.sort(X[y == 0, 1])[-passed] - 0.5
    assert roc_auc_score(y, X[:, 1]) == pytest.approx(1 - passed / 100_000)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier(max_steps=1, n_members=2).fit(X, y)
    said = [str(one.message) for one in caught if "alone" in str(one.message)]
    assert len(said) == named
    if named:
        assert "column 1 (class 1, AUC 0.9992)" in said[0]


@pytest.mark.parametrize("seed", range(2))
def test_shuffled_labels_of_real_rows_say_nothing(seed):
    X, digit = load_digits(return_X_y=True)
    X, y = X[:600], np.random.default_rng(seed).permutation(digit[:600] == 8)
    assert_honest(classifier().fit(X, y).oof_report_, y, judged={False, True})


# ------------------------------------------------------------------ rows that no member could leave


def test_a_class_of_one_row_is_not_judged():
    X, y = noise((200, 40))
    y[np.flatnonzero(y == 0)[0]] = 2
    clf = classifier(objective={"recall": 0.95, "class": 2})
    with pytest.warns(UserWarning, match="2 .*single row"):
        clf.fit(X, y)
    assert_honest(clf.oof_report_, y, judged={0, 1})
    assert all(math.isnan(v) for v in vars(clf.oof_report_[2]).values() if isinstance(v, float))
    assert math.isnan(clf.oof_report_.g_mean)
    assert not clf._decision.rule.met


def test_a_class_that_lives_in_one_group_is_not_judged():
    X, y = noise((260, 60))
    groups = np.where(y == 1, 99, np.arange(len(y)) % 20)
    clf = classifier(objective="recall>=0.95")
    with pytest.warns(UserWarning, match="1 .*one group"):
        clf.fit(X, y, groups=groups)
    report = clf.oof_report_
    assert_honest(report, y, judged={0})
    assert math.isnan(report[1].sensitivity)
    # The promise of 95 % is not made, for it is not kept.
    fresh, truth = noise((2000, 2000), seed=5)
    assert (clf.predict(fresh)[truth == 1] == 1).mean() < 0.9
    assert not clf._decision.rule.met
    assert clf.threshold_ == 0
    # What is said of the other class is true.
    assert report[0].sensitivity == pytest.approx((clf.predict(fresh) == 0).mean(), abs=0.15)


def test_rows_of_one_group_are_not_judged():
    X, y = noise((260, 60))
    clf = classifier().fit(X, y, groups=np.zeros(len(y)))
    assert_honest(clf.oof_report_, y, judged=set())
    assert clf.oof_report_.confusion.sum() == 0
    with pytest.raises(ParameterError):
        clf.predict_out_of_fold()
    assert np.isfinite(clf.predict_proba(X)).all()


@pytest.mark.parametrize("kind", ["one class each", "different shares"])
def test_groups_do_not_flatter(kind):
    X, y = noise((240, 60))
    if kind == "one class each":  # ten groups of positives, forty of negatives, as documents
        groups = 1000 * y
        for label in (0, 1):
            groups[y == label] += np.arange((y == label).sum()) // 6
    else:
        rng = np.random.default_rng(0)
        groups = np.arange(300) // 50
        y = (rng.random(300) < np.array([0.02, 0.05, 0.1, 0.3, 0.6, 0.9])[groups]).astype(int)
    assert_honest(classifier().fit(X, y, groups=groups).oof_report_, y, judged={0, 1})


# --------------------------------------------------------------------------------------- copies


def test_a_row_that_every_group_has_does_not_keep_the_others_from_being_judged():
    X, y = noise((240, 60))
    groups = np.arange(300) % 50
    # The same greeting in every group, of the rare class in all of them.
    X, y = np.concatenate([X, np.repeat(X[:1], 50, axis=0)]), np.append(y, [1] * 50)
    groups = np.append(groups, np.arange(50))
    clf = classifier().fit(X, y, groups=groups)
    found = clf.predict_out_of_fold()
    assert np.array_equal(found.rows, np.arange(1, 300))
    assert_honest(clf.oof_report_, y[1:300], judged={0, 1})


def make_texts(n, seed):
    rng = np.random.default_rng(seed)
    return np.array([" ".join(f"w{word}" for word in row) for row in rng.integers(0, 99, (n, 12))])


def test_copies_of_texts_do_not_cross_the_folds():
    texts, y, copies = copied("minority tiled", make_texts(240, 0), noise((200, 40))[1])
    # The same again to a reader: another case, more spaces, a link, a mention.
    other = (str, str.upper, lambda t: t.replace(" ", "  "), lambda t: f"@user {t} https://t.co/1")
    told = [other[n % 4](text) for n, text in enumerate(texts.tolist())]
    model = SetConvTextClassifier("tfidf", classifier()).fit(told, y)
    assert_honest(model.oof_report_, y, copies, judged={0, 1})


def test_a_class_that_is_one_row_many_times_is_not_judged():
    X, y = noise((260, 1))
    X, y = (np.concatenate([a, np.repeat(a[y == 1], 59, axis=0)]) for a in (X, y))
    report = classifier(max_steps=20).fit(X, y).oof_report_
    assert_honest(report, y, judged={0})


@pytest.mark.parametrize("columns", [1, 3, 7])
def test_rows_of_few_values_are_alike_by_nature_and_are_judged(columns):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (1000, columns)).astype(float)
    chance = 0.05 + 0.25 * X[:, 0] + 0.1 * X[:, -1]
    y = (rng.random(1000) < chance).astype(int)
    report = classifier().fit(X, y).oof_report_
    assert not getattr(report, "unjudged", {})
    # As good as knowing the truth allows, on rows that are new.
    fresh = rng.integers(0, 2, (20_000, columns)).astype(float)
    known = 0.05 + 0.25 * fresh[:, 0] + 0.1 * fresh[:, -1]
    best = roc_auc_score(rng.random(20_000) < known, known)
    assert abs(report[1].auc - best) < 0.07


def test_what_is_learned_without_labels_counts_copies_once():
    X, y = noise()
    tiled = np.concatenate([np.arange(300), *[np.flatnonzero(y == 1)] * 20])
    one, many = (classifier(max_steps=0).fit(X[r], y[r])._model for r in (np.arange(300), tiled))
    for number in (0, 1):  # weighted quantiles, of the third, lie a little beside plain ones
        np.testing.assert_allclose(
            many.scaler.views[number](X), one.scaler.views[number](X), atol=1e-5
        )
    # A class that is copied would else have the longer rows after the projection.
    rows = sparse.random(300, 700, 0.05, format="csr", random_state=0, dtype=np.float64)
    clf = classifier(max_steps=0).fit(rows[tiled], y[tiled])
    assert any(note.startswith(f"{20 * 40} rows are copies") for note in clf.oof_report_.notes)
    front = clf._model.front
    lengths = np.square(front(rows)).sum(axis=1)
    assert lengths[y == 1].mean() < 1.2 * lengths[y == 0].mean()


def test_classes_of_equal_counts_are_warned_of_and_ordinary_rows_are_not():
    for sampler in (SMOTE, RandomOverSampler):
        X, y = sampler(random_state=0).fit_resample(*noise())
        with pytest.warns(UserWarning, match="exactly 260 rows"):
            classifier(max_steps=5).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = classifier(max_steps=5).fit(*noise()).oof_report_
    (remark,) = report.remarks()
    assert remark.startswith("Each row is judged by 2 of 10 members")


# -------------------------------------------------------------------------------------- leaks


def leaky(shape):
    """Noise, and a number that was written after the fact."""
    X, y = noise((400, 40))
    after = np.where(y == 1, 9.0, -9.0) + X[:, :1].ravel()
    after[np.flatnonzero(y == 1)[0]] = -8.0  # but for one row
    if shape == "sparse":
        X = sparse.random(len(y), 2000, 0.02, format="csr", random_state=0, dtype=np.float64)
        return sparse.csr_matrix(
            sparse.hstack([X, sparse.csr_matrix((after * (y == 1))[:, None])])
        ), y
    return np.c_[X, after], y


@pytest.mark.parametrize("shape", ["array", "reversed", "sparse", "frame", "table", "disk"])
def test_a_feature_that_tells_the_class_alone_is_named(shape, tmp_path, monkeypatch):
    X, y = leaky(shape)
    clf, given, labels, name = classifier(max_steps=1), X, y, f"column {X.shape[1] - 1} "
    monkeypatch.setattr("setconv.survey._LEAK_AUC", 0.97)  # one row of forty is not told
    if shape == "reversed":
        given = -X
    elif shape in ("frame", "table"):
        given, name = pd.DataFrame(X).add_prefix("x"), "'x20' "
        clf = SetConvTableClassifier(classifier=clf) if shape == "table" else clf
    elif shape == "disk":
        monkeypatch.setenv("SETCONV_IN_MEMORY", "0")
        given, labels, name = write_parquet(tmp_path / "r.parquet", X, label=y), "label", "'x20' "
    with pytest.warns(UserWarning, match=re.escape(f"alone: {name}(class 1, AUC 0.9")) as caught:
        clf.fit(given, labels)
    assert len([one for one in caught if "alone" in str(one.message)]) == 1


def test_at_most_five_features_are_named_and_of_more_classes_each_has_its_own():
    X, y = noise((300, 40, 40))
    for code in range(3):
        X[:, 3 * code : 3 * code + 3] += 30 * (y == code)[:, None]
    with pytest.warns(UserWarning, match=r"column 0 \(class 0.*column 4 \(class 1.* and 4 more"):
        classifier(max_steps=1).fit(X, y)


@pytest.mark.parametrize("kind", ["luck", "copies", "constant", "almost"])
def test_features_that_tell_by_luck_or_not_quite_are_not_named(kind):
    X, y = noise((40, 3), d=2000) if kind == "luck" else noise((400, 40))
    if kind == "copies":  # one row, of which any column tells
        X, y = (np.concatenate([a[:400], np.repeat(a[400:401], 40, axis=0)]) for a in (X, 0 * y))
        y[400:] = 1
    elif kind == "constant":
        X[:, 3] = 1.0
    elif kind == "almost":
        X[:, 3] += 4 * y
        assert 0.98 < roc_auc_score(y, X[:, 3]) < 0.999
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*alone")
        classifier(max_steps=1, n_members=1).fit(X, y)


# ---------------------------------------------------------------------------- fits after a fit


@pytest.mark.parametrize("update", ["partial_fit", "post_train"])
def test_new_rows_leave_a_report_that_says_it_is_older(update, tmp_path):
    X, y = noise()
    clf = classifier(max_steps=20).fit(X, y)
    before = clf.oof_report_
    getattr(clf, update)(X[:70], y[:70])
    assert_honest(clf.oof_report_, y, judged={0, 1})
    assert clf.oof_report_[1] == before[1]
    clf.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    for report in (clf.oof_report_, loaded.set_objective("f1").oof_report_):
        _, note = report.notes
        assert f"{update} (70 rows)" in note
    for _ in range(3):  # said once, however many batches come
        loaded.partial_fit(X[70:80], y[70:80])
    _, note = loaded.oof_report_.notes
    assert f"partial_fit ({100 if update == 'partial_fit' else 30} rows)" in note


@pytest.mark.parametrize("forward", [False, True])
def test_a_resumed_fit_is_as_honest(tmp_path, monkeypatch, forward):
    X, y, copies = copied("oversampled", *noise())
    monkeypatch.setattr("setconv.training.loop.CHECKPOINT_EVERY", 20)
    named = {"checkpoint_dir": tmp_path}
    when = np.random.default_rng(0).random(len(y)) if forward else None
    with pytest.raises(KeyboardInterrupt):
        classifier(**named, callbacks=[Interrupt(40)]).fit(X, y, time=when)
    with pytest.raises(CheckpointError):
        classifier(**named).fit(X, y, time=np.arange(len(y)), resume_from=tmp_path)
    resumed = classifier(**named).fit(X, y, time=when, resume_from=tmp_path)
    rows = resumed.predict_out_of_fold().rows
    assert_honest(resumed.oof_report_, y[rows], copies[rows], judged={0, 1})
    assert resumed.oof_report_ == classifier().fit(X, y, time=when).oof_report_


# ----------------------------------------------------------------------------- validation rows


@pytest.mark.parametrize("members", ["auto", 1])
@pytest.mark.parametrize("given", [False, True], ids=["own split", "X_val"])
def test_rows_that_chose_the_weights_are_not_reported_on(members, given):
    # So many looks at so few rows find an AUC far above one half.
    worst = []
    for seed in range(3):
        X, y = noise((200, 60), seed=seed)
        extra, labels = noise((60, 30), seed=seed + 50)
        clf = classifier(early_stopping=True, n_members=members, monitor="auc", patience=None)
        clf.fit(X, y, **({"X_val": extra, "y_val": labels} if given else {}))
        worst.append(max(r["validation"] for r in clf.history_ if "validation" in r))
        assert_honest(clf.report_, labels if given else y, judged=set() if members == 1 else {0, 1})
    assert max(worst) > 0.55


def test_training_rows_validate_nothing():
    X, y = noise()
    for named in ({"X_val": X, "y_val": y}, {}):
        clf = classifier(n_members=1, max_steps=300).fit(X, y, **named)
        assert_honest(clf.report_, y, judged=set())
        assert not hasattr(clf, "oof_report_")
    mixed = classifier(n_members=1, max_steps=300)
    fresh, truth = noise((200, 40), seed=9)
    both = np.concatenate([X, fresh]), np.concatenate([y, truth])
    mixed.fit(X, y, X_val=both[0], y_val=both[1])
    assert mixed.report_.confusion.sum() == len(truth)
    assert_honest(mixed.report_, truth, judged={0, 1})


def test_training_texts_validate_nothing():
    texts, fresh = make_texts(120, 0).tolist(), make_texts(40, 1).tolist()
    y = np.arange(160) % 4 == 0
    given = [text.upper() for text in texts[:60]] + fresh
    model = SetConvTextClassifier("tfidf", classifier(n_members=1, max_steps=10))
    model.fit(texts, y[:120], X_val=given, y_val=y[:100])
    assert model.report_.confusion.sum() == len(fresh)


@pytest.mark.parametrize("given", [False, True], ids=["own split", "X_val"])
def test_the_report_follows_the_decision_after_early_stopping(given):
    X, y = signal(600, 0.2)
    extra, labels = signal(200, 0.2, seed=3)
    named = {"X_val": extra, "y_val": labels} if given else {}
    clf = classifier(early_stopping=True, max_steps=60).fit(X, y, **named)
    before = clf.report_[1]
    clf.set_objective("recall>=0.95")
    assert clf.report_[1].sensitivity > before.sensitivity
    clf.set_prior(0.02)
    assert clf.report_[1].precision < 0.5 * before.precision


# --------------------------------------------------------------------- weights, prior, decisions


def signal(n, share, seed=0, d=6, gap=0.8):
    rng = np.random.default_rng(seed)
    y = (np.arange(n) < share * n).astype(int)
    return rng.normal(size=(n, d)) + gap * y[:, None], y


def weightings(y, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "balanced": compute_sample_weight("balanced", y),
        "at random": rng.choice([0.2, 1.0, 5.0], len(y)),
        "both": rng.choice([0.5, 2.0], len(y)) * np.where(y == 1, 30.0, 1.0),
    }


@pytest.mark.parametrize("kind", ["balanced", "at random", "both", "class_weight"])
def test_weights_leave_probabilities_and_minimums_true(kind):
    X, y = signal(1500, 0.07)
    fresh, truth = signal(40_000, 0.07, seed=1)
    clf = classifier(class_weight={1: 13.0} if kind == "class_weight" else None)
    clf.fit(X, y, sample_weight=weightings(y).get(kind))
    assert clf.predict_proba(fresh)[:, 1].mean() == pytest.approx(0.07, abs=0.02)
    decided = clf.set_objective("precision>=0.7").predict(fresh) == 1
    assert truth[decided].mean() > 0.55
    decided = clf.set_objective("recall>=0.9").predict(fresh) == 1
    assert decided[truth == 1].mean() > 0.82
    assert getattr(clf.oof_report_, "weighted", None) is (kind in ("at random", "both"))


@pytest.mark.parametrize("kind", ["balanced", "at random", "both", "prior"])
def test_weights_and_a_prior_do_not_make_noise_tell(kind):
    X, y = noise()
    clf = classifier().fit(X, y, sample_weight=weightings(y).get(kind))
    clf.set_prior(0.01 if kind == "prior" else None)
    assert_honest(clf.oof_report_, y, judged={0, 1})


def test_balanced_weights_are_no_weights():
    X, y = signal(300, 0.2)
    plain = classifier(max_steps=30).fit(X, y)
    weighed = classifier(max_steps=30).fit(X, y, compute_sample_weight("balanced", y))
    np.testing.assert_allclose(weighed.predict_proba(X), plain.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("objective", ["f1", "precision>=0.5", "balanced"])
def test_the_report_after_a_prior_is_for_that_prevalence(objective):
    X, y = signal(3000, 0.2, gap=1.0)
    clf = classifier(objective=objective).fit(X, y).set_prior(0.02)
    fresh, truth = signal(60_000, 0.02, seed=1, gap=1.0)
    decided = clf.predict(fresh) == 1
    report = clf.oof_report_
    assert report[1].precision == pytest.approx(truth[decided].mean(), abs=0.08)
    assert report[1].sensitivity == pytest.approx(decided[truth == 1].mean(), abs=0.06)
    assert report.brier == pytest.approx(
        np.mean((clf.predict_proba(fresh)[:, 1] - truth) ** 2), abs=0.003
    )
    assert dict(report.prior) == pytest.approx({0: 0.98, 1: 0.02})
    assert clf.set_prior(None).oof_report_.prior is None


# ----------------------------------------------------------------- what is given, what comes back


def test_out_of_fold_rows_have_their_numbers():
    X, y = noise((200, 60))
    weights = np.ones(len(y))
    weights[::7] = 0
    # One class more, in one group with others, that nobody leaves out.
    y[[5, 9]], groups = 2, np.arange(len(y))
    groups[[5, 9, 11]] = 5
    clf = classifier(max_steps=20).fit(X, y, weights, groups=groups)
    found = clf.predict_out_of_fold()
    expected = np.setdiff1d(np.flatnonzero(weights), [5, 9, 11])
    assert np.array_equal(np.sort(found.rows), expected)
    assert np.array_equal(found.truth, y[found.rows])
    assert len(found.labels) == len(found.scores) == len(found.probabilities) == len(expected)


def test_labels_among_the_features_of_a_file_are_refused(tmp_path):
    X, y = noise()
    for kind in (int, bool, float):
        path = write_parquet(tmp_path / "rows.parquet", X, target=y.astype(kind))
        with pytest.raises(DataError) as caught:
            classifier().fit(path, y)
        assert caught.value.column == "target"
    classifier(max_steps=1).fit(path, "target")


# -------------------------------------------------------------------------- command line and page


def test_the_page_and_the_terminal_of_a_fit_are_out_of_fold(tmp_path):
    X, y = noise((400, 100))
    labels = np.where(y == 1, "rare", "usual")
    columns = {f"x{n}": X[:, n] for n in range(20)}
    pd.DataFrame({**columns, "label": labels}).to_csv(tmp_path / "rows.csv", index=False)
    command = [sys.executable, "-m", "setconv", "fit", "rows.csv", "--label", "label"]
    command += ["-o", "model", "--report", "page.html", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    highest, _ = highest_honest_auc(labels, "rare")
    (rare,) = (r for r in json.loads(done.stdout)["report"]["per_class"] if r["class"] == "rare")
    assert rare["auc"] <= highest
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    shown = re.findall(r'<th scope="row">AUC</th><td class="n value">([\d.]+)</td>', page)
    assert [float(one) for one in shown] == [pytest.approx(rare["auc"], abs=5e-4)]
    (found,) = re.findall(r"<strong>([\d.]+)</strong><span>of 100 that are “rare” are found", page)
    assert float(found) == pytest.approx(100 * rare["sensitivity"], abs=0.51)


# ------------------------------------------------------------------------- confidences, intervals


def shifted(counts, seed, gap=1.6, d=6):
    """Two normal classes, one shifted along one direction."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1], counts))
    return rng.normal(size=(len(y), d)) + gap * y[:, None] / math.sqrt(d) * 2, y


class NeverTrained(Interrupt):
    """Fails the test if a step is taken."""

    def on_step_end(self, state):  # noqa: ARG002
        raise AssertionError("training began")


@pytest.mark.parametrize("tied", ["copies", "groups", "early stopping", "shared copies", "time"])
def test_what_a_confidence_needs_is_checked_before_training(tied):
    X, y = shifted((300, 20), 0)
    named, parameters = {}, {}
    if tied in ("copies", "groups"):  # 100 rows, of which 20 stand alone
        rows = np.append(np.flatnonzero(y == 0), np.repeat(np.flatnonzero(y == 1), 5))
        X, y = X[rows], y[rows]
        if tied == "groups":
            X = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)
            named["groups"] = rows
        why = "takes 45 rows .* there are 20"
    elif tied == "early stopping":
        parameters = {"n_members": 1, "early_stopping": True}
        why = "choose the weights"
    elif tied == "shared copies":
        named["groups"] = np.arange(len(y)) % 9
        X[:9] = X[0]
        why = "copies of rows in common"
    else:
        named["time"] = np.arange(len(y))
        why = "later rows"
    clf = classifier(objective="recall>=0.95 @ 90%", callbacks=[NeverTrained(0)], **parameters)
    with pytest.raises(ParameterError, match=why) as caught:
        clf.fit(X, y, **named)
    assert caught.value.parameter == "objective"
    if tied != "early stopping":
        return
    fitted = classifier(**parameters).fit(X, y)
    with pytest.raises(ParameterError, match="chose the weights"):
        fitted.set_objective("recall>=0.5 @ 60%")


def test_noise_promises_no_precision_and_nothing_changes_where_it_is_refused(tmp_path):
    X, y = noise()
    clf = classifier(objective="precision>=0.5 @ 90%")
    with pytest.warns(UserWarning, match="cannot be shown"):
        clf.fit(X, y)
    assert clf._decision.rule.met is False
    assert clf.threshold_basis_.endswith("precision>=0.5 @ 90% is not known to be met")
    clf.set_objective("balanced")
    before = clf.threshold_, clf.oof_report_, clf.objective, clf.threshold_basis_
    for objective in ("precision>=0.5 @ 90%", "recall>=0.99 @ 90%", "recall>=2 @ 90%"):
        with pytest.raises(ParameterError):
            clf.set_objective(objective)
    assert (clf.threshold_, clf.oof_report_, clf.objective, clf.threshold_basis_) == before
    # After new rows the scores are of another model.
    clf.set_objective("recall>=0.8 @ 90%").save(tmp_path / "model")
    assert load(tmp_path / "model").threshold_basis_ == clf.threshold_basis_
    assert clf.threshold_basis_.endswith(
        "recall>=0.8 @ 90% is kept in at least 90 of 100 such fits"
    )
    clf.partial_fit(X[:9], y[:9])
    assert clf.threshold_basis_.endswith("recall>=0.8 @ 90% is not known to be met")
    with pytest.raises(ParameterError, match="as it was before"):
        clf.set_objective("recall>=0.8 @ 90%")


@pytest.mark.parametrize("objective", ["recall>=0.85", "precision>=0.4"])
def test_how_many_fits_miss_a_minimum_is_said_wherever_the_threshold_is(objective, tmp_path):
    X, y = shifted((270, 30), 0)
    clf = classifier(objective=objective).fit(X, y)
    scores = clf.predict_out_of_fold().scores
    if objective.startswith("recall"):  # floor(31 x .15) = 4: fewer than 4 of 30 below the .15
        share = binom.cdf(3, 30, 0.15)
    else:
        alarms = y[clf.predict_out_of_fold().rows][scores > clf.threshold_]
        share = beta.cdf(0.4, alarms.sum() + 0.5, (1 - alarms).sum() + 0.5)
    assert (
        clf.set_objective({"recall": 0.85, "class": 0})
        .threshold_basis_.split("; ")[1]
        .startswith("recall>=0.85 of 0 is met on average")
    )
    clf.set_objective(objective)
    said = f"{objective} is met on average: up to about {100 * share:.0f} of 100 such fits miss it"
    clf.save(tmp_path / "model")
    page = make_report(clf, X, y, out_of_fold=True).html
    card = (tmp_path / "model" / "README.md").read_text()
    for place in (clf.threshold_basis_, html.unescape(page), card):
        assert said in place


def test_what_is_stated_is_kept_and_intervals_hold_as_often_as_they_say():
    """40 fits to 30 rare rows, each judged by 20,000 rows that it has not seen."""
    fresh, truth = shifted((18_000, 2000), 999)
    missed, above = dict.fromkeys(("recall>=0.8 @ 80%", "precision>=0.4 @ 80%"), 0), 0
    stated = missed.copy()
    for seed in range(40):
        X, y = shifted((270, 30), seed)
        clf = classifier(max_steps=40, n_members=5, random_state=seed).fit(X, y)
        scores = clf.predictions(fresh).scores
        above += clf.oof_report_[1].intervals["auc"][0] > roc_auc_score(truth, scores)
        for objective in missed:
            try:
                clf.set_objective(objective)
            except ParameterError:
                continue
            alarms = scores > clf.threshold_
            recall = objective.startswith("recall")
            kept = alarms[truth == 1].mean() if recall else truth[alarms].mean()
            stated[objective] += 1
            missed[objective] += kept < float(objective[objective.index("=") + 1 :][:3])
    assert min(stated.values()) >= 20
    # At most a fifth; more than 13 of 40 would be no chance. Of intervals one in forty.
    assert max(missed.values()) <= 13
    assert above <= 4


def test_intervals_of_noise_hold_a_half_with_copies_and_groups_too():
    above = 0
    for seed in range(12):
        X, y = noise((200, 40), seed=seed)
        X, y, rows = copied(["once", "oversampled", "all tiled"][seed % 3], X, y, seed)
        groups = rows if seed % 2 else None
        report = classifier(max_steps=40, n_members=5).fit(X, y, groups=groups).oof_report_
        above += report[1].intervals["auc"][0] > 0.5
        if seed % 3:  # as wide as 40 rows are, however often each is there
            assert np.diff(report[1].intervals["sensitivity"])[0] > 0.15
    assert above <= 2
