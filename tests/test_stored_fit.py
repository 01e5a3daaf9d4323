"""Rows on disk: fit and predict as if they were in memory, and nothing is left behind."""

import json
import tempfile
import threading
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import setconv.validation
from setconv.classifier import SetConvClassifier
from setconv.errors import CheckpointError, DataError, LabelError, ParameterError
from setconv.io.disk import GatheredRows
from setconv.pipelines import load
from setconv.training import Callback
from setconv.training.loop import Feed

N_ROWS, N_COLUMNS = 230, 12
DESCRIPTORS = Path("/proc/self/fd")
NAMES = [f"c{number}" for number in range(N_COLUMNS)]


def make_rows(classes=2, seed=0, n=N_ROWS):
    rng = np.random.default_rng(seed)
    codes = rng.choice(classes, n, p=[0.7, *[0.3 / (classes - 1)] * (classes - 1)])
    codes[: 5 * classes] = np.arange(5 * classes) % classes
    rows = rng.standard_normal((n, N_COLUMNS)) + 1.5 * np.eye(classes, N_COLUMNS)[codes]
    return rows.astype(np.float32), np.array(["none", "fire", "storm", "flood", "quake"])[codes]


def make_table(rows, labels):
    """Features with the label among them, and texts that are no features."""
    table = pa.table(dict(zip(NAMES, rows.T, strict=True)))
    table = table.add_column(2, "label", pa.array(labels))
    return table.append_column("id", pa.array([f"row {number}" for number in range(len(rows))]))


def write_folder(folder, table):
    folder.mkdir()
    for number, start in enumerate(range(0, len(table), 100)):
        part = table.slice(start, 100)
        pq.write_table(part, folder / f"part-{number}.parquet", row_group_size=33)
    return folder


def small(**parameters):
    values = {"n_members": 2, "encoder": (8,), "out_features": 4, "n_episodes": 2, "max_steps": 8}
    values |= {"scaling": "standard", "random_state": 0, "progress": False}
    return SetConvClassifier(**{**values, **parameters})


ROWS, LABELS = make_rows()
TABLE = make_table(ROWS, LABELS)
THREE = make_rows(classes=3, seed=1)
FIVE = make_rows(classes=5, seed=3)
NEW = make_rows(seed=2, n=170)


@pytest.fixture(autouse=True)
def on_disk(monkeypatch):
    """Let small files be large ones: nothing is read into memory, and batches are small."""
    monkeypatch.setenv("SETCONV_IN_MEMORY", "0")
    monkeypatch.setattr(setconv.validation, "_BATCH", 60)


@pytest.fixture(params=["few", "many"])
def limits(request, monkeypatch):
    """Lie below and beyond the numbers of rows from which on things are done in another way."""
    if request.param == "many":
        monkeypatch.setattr("setconv.sampling.MANY_ROWS", 100)
        monkeypatch.setattr("setconv.fitting.MOST_EVIDENCE", 120)
        monkeypatch.setattr("setconv.model.MOST_ANCHOR_ROWS", 20)


@pytest.fixture
def feeds_from_disk(monkeypatch):
    """Count the feeds that read rows from disk."""
    made = []

    class Counted(Feed):
        def __init__(self, features, *arguments):
            super().__init__(features, *arguments)
            if isinstance(features, GatheredRows):
                made.append(self)

    monkeypatch.setattr("setconv.fitting.Feed", Counted)
    return made


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folders of files that tests only read, by what is in them."""
    base = tmp_path_factory.mktemp("stored")
    tables = {
        "binary": TABLE,
        "three": make_table(*THREE),
        "five": make_table(*FIVE),
        "new": make_table(*NEW),
    }
    return {name: write_folder(base / name, table) for name, table in tables.items()}


@pytest.fixture(scope="module")
def in_memory():
    """The model that rows in memory give."""
    return small().fit(ROWS, LABELS)


def map_rows(path, rows, dtype=np.float32):
    mapped = np.memmap(path, dtype, "w+", shape=rows.shape)
    mapped[:] = rows
    mapped.flush()
    return np.memmap(path, dtype, "r", shape=rows.shape)


SOURCES = {
    "folder": lambda base, table: write_folder(base / "folder", table),
    "text": lambda base, table: str(write_folder(base / "folder", table)),
    "dataset": lambda base, table: ds.dataset(write_folder(base / "folder", table)),
    "table": lambda _, table: table,
    "memmap": lambda base, table: map_rows(base / "rows.bin", np.stack(table.select(NAMES), 1)),
}


def assert_same_model(one, other, rows=ROWS):
    """The same scores of an array, decisions and history, to the bit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an array has no names of columns
        found, expected = (model.predictions(rows) for model in (one, other))
    assert np.array_equal(found.scores, expected.scores)
    assert np.array_equal(found.labels, expected.labels)
    assert np.array_equal(one.threshold_, other.threshold_)
    assert one.class_counts_.tolist() == other.class_counts_.tolist()
    assert (one.report_source_, one.history_) == (other.report_source_, other.history_)
    assert json.dumps(one.report_.to_dict()) == json.dumps(other.report_.to_dict())
    assert one.threshold_basis_ == other.threshold_basis_
    if one.report_source_ == "out_of_fold":
        mine, theirs = (model.predict_out_of_fold() for model in (one, other))
        for name in ("rows", "scores", "probabilities", "labels", "left_out"):
            assert np.array_equal(getattr(mine, name), getattr(theirs, name))


def assert_nothing_left(scratch):
    """No file in the folder, none of it still open, and no thread."""
    assert list(scratch.iterdir()) == []
    opened = [str(one.readlink()) for one in DESCRIPTORS.glob("*") if one.is_symlink()]
    assert not [name for name in opened if name.startswith(str(scratch))]
    assert not [one for one in threading.enumerate() if one.name.startswith("setconv-prefetch")]


# ------------------------------------------------------------------------------------- fitting


@pytest.mark.parametrize("kind", SOURCES)
def test_a_fit_from_disk_is_the_fit_from_memory(kind, tmp_path, in_memory, feeds_from_disk):
    X = SOURCES[kind](tmp_path, TABLE)
    mapped = "memmap" in kind
    clf = small().fit(X, LABELS if mapped else "label")
    assert len(feeds_from_disk) == 1, "rows were drawn from disk"
    assert_same_model(clf, in_memory)
    assert clf.n_features_in_ == N_COLUMNS
    assert mapped or clf.feature_names_in_.tolist() == NAMES


OPTIONS = {
    "a subset in the end": {"post_size": 80},
    "an anchor from a subset": {"anchor": "subset", "dropout": 0.3, "input_dropout": 0.4},
    "several anchors": {"anchor": "kmeans", "query_source": "disjoint"},
    "a callable": {"anchor": lambda rows: np.median(rows, axis=0), "linear_share": 0.4},
    "one member": {"n_members": 1, "objective": None, "scaling": None},
    "separate heads": {"heads": "separate"},
}


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("problem", ["binary", "five"])
def test_every_way_to_fit_gives_the_same_from_disk(folders, problem, name, feeds_from_disk):
    rows, labels = (ROWS, LABELS) if problem == "binary" else FIVE
    from_disk = small(**OPTIONS[name]).fit(folders[problem], "label")
    assert len(feeds_from_disk) == 1
    assert_same_model(from_disk, small(**OPTIONS[name]).fit(rows, labels), rows)


WITH_ROWS = {
    "weights": {"sample_weight": np.random.default_rng(0).uniform(0.1, 3, N_ROWS)},
    "weights of which some are zero, and groups": {
        "sample_weight": np.random.default_rng(0).integers(0, 3, N_ROWS),
        "groups": np.arange(N_ROWS) // 5,
    },
    "times": {"time": np.arange(N_ROWS) // 10},
}


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("kind", WITH_ROWS)
def test_what_comes_with_each_row_counts_the_same(folders, kind, feeds_from_disk):
    given, members = WITH_ROWS[kind], {"n_members": 4}
    from_disk = small(**members).fit(folders["binary"], "label", **given)
    assert len(feeds_from_disk) == 1
    assert_same_model(from_disk, small(**members).fit(ROWS, LABELS, **given))


@pytest.mark.usefixtures("limits")
def test_copies_are_left_out_together_wherever_they_lie(tmp_path):
    rows, labels = np.repeat(ROWS[:90], 3, axis=0), np.repeat(LABELS[:90], 3)
    folder = write_folder(tmp_path / "copies", make_table(rows, labels))
    for groups in (None, np.arange(270) % 40, np.arange(270) // 9):
        both = [
            small(n_members=5).fit(*given, groups=groups)
            for given in ((folder, "label"), (rows, labels))
        ]
        assert_same_model(*both, rows=rows)


def test_sums_over_several_blocks_of_rows_are_the_same_too(tmp_path, monkeypatch):
    monkeypatch.setattr("setconv.data.MERGED", 8192)
    rows, labels = make_rows(n=20_000)
    wide = np.tile(rows, (1, 10))
    pq.write_table(
        pa.table({f"w{n}": column for n, column in enumerate(wide.T)} | {"label": labels}),
        tmp_path / "wide.parquet",
    )
    both = [
        small(max_steps=2, linear_share=0.3).fit(*given)
        for given in ((tmp_path / "wide.parquet", "label"), (wide, labels))
    ]
    assert_same_model(*both, rows=wide[:1000])
    monkeypatch.setattr("setconv.data.MERGED", 1 << 16)  # one block: only last digits differ
    other = small(max_steps=2, linear_share=0.3).fit(wide, labels)
    found, expected = (one.decision_function(wide[:1000]) for one in (both[1], other))
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("form", ["path", "table"])
def test_validation_rows_of_rows_in_memory_come_from_wherever(folders, form):
    X_val = {"path": folders["new"], "table": make_table(*NEW)}[form]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = small().fit(ROWS, LABELS, X_val=X_val, y_val="label")
    other = small().fit(ROWS, LABELS, X_val=NEW[0], y_val=NEW[1])
    assert_same_model(found, other)
    assert found.report_.confusion.tolist() == other.report_.confusion.tolist()
    with pytest.raises(DataError):
        small().fit(ROWS, LABELS, X_val=X_val, y_val="other")


def test_what_looks_at_all_rows_again_and_again_is_refused_before_they_are_read(folders):
    class Unread:
        def __getattr__(self, name):
            raise AssertionError("read")

    with pytest.raises(ParameterError, match="SETCONV_IN_MEMORY") as caught:
        small().fit(folders["binary"], "label", X_val=Unread(), y_val="label")
    assert caught.value.parameter == "X_val"
    with pytest.raises(ParameterError) as caught:
        small(early_stopping=True).fit(folders["binary"], "label")
    assert caught.value.parameter == "early_stopping"


@pytest.mark.parametrize("given", ["many", "-1", "1 TB", "", "1e6"])
def test_a_limit_of_memory_that_means_nothing_is_refused(folders, monkeypatch, given):
    monkeypatch.setenv("SETCONV_IN_MEMORY", given)
    with pytest.raises(ParameterError, match="SETCONV_IN_MEMORY"):
        small().fit(folders["binary"], "label")


def test_auto_scaling_standardises_rows_on_disk(folders, in_memory):
    assert_same_model(small(scaling="auto").fit(folders["binary"], "label"), in_memory)


def test_a_small_file_is_read_into_memory(folders, monkeypatch, feeds_from_disk):
    monkeypatch.setenv("SETCONV_IN_MEMORY", "1 MB")
    clf = small(scaling="auto", n_members=3).fit(folders["binary"], "label")
    assert not feeds_from_disk
    assert_same_model(clf, small(scaling="auto", n_members=3).fit(ROWS, LABELS))


class Interrupt(Callback):
    def __init__(self, error, step=5):
        self.error, self.step = error, step

    def on_step_end(self, state):
        if state.step == self.step:
            raise self.error


def test_a_run_that_was_interrupted_goes_on_to_the_same_end(folders, tmp_path, monkeypatch):
    monkeypatch.setattr("setconv.training.loop.CHECKPOINT_EVERY", 2)
    folder = folders["three"]
    whole = small().fit(folder, "label")
    clf = small(checkpoint_dir=tmp_path, callbacks=[Interrupt(KeyboardInterrupt())])
    with pytest.raises(KeyboardInterrupt):
        clf.fit(folder, "label")
    clf.set_params(callbacks=()).fit(folder, "label", resume_from=tmp_path)
    assert clf.history_ == whole.history_
    scores = [one.predictions(folder).scores for one in (clf, whole)]
    assert np.array_equal(*scores)
    with pytest.raises(CheckpointError):
        clf.fit(folders["new"], "label", resume_from=tmp_path)


# ------------------------------------------------------------------------------- new rows


@pytest.mark.parametrize("kind", SOURCES)
def test_new_rows_join_the_representatives_from_disk(kind, tmp_path):
    clf, other = (small().fit(ROWS, LABELS) for _ in range(2))
    clf.feature_names_in_ = np.array(NAMES, dtype=object)
    X = SOURCES[kind](tmp_path, make_table(*NEW))
    y = NEW[1] if "memmap" in kind else "label"
    for method in ("partial_fit", "post_train"):
        getattr(clf, method)(X, y)
        getattr(other, method)(*NEW)
        assert_same_model(clf, other)
        assert np.array_equal(clf.representatives_, other.representatives_)


def test_a_new_estimator_does_not_keep_rows_that_are_too_large_for_memory(folders):
    with pytest.raises(DataError):
        small().partial_fit(folders["binary"], "label", classes=["fire", "none"])


# ---------------------------------------------------------------------------------- prediction


@pytest.mark.parametrize("kind", SOURCES)
def test_predictions_of_files_are_those_of_arrays(kind, tmp_path, in_memory):
    X = SOURCES[kind](tmp_path, make_table(*NEW))
    # A model without names of columns takes all columns of numbers.
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        assert np.array_equal(getattr(in_memory, method)(X), getattr(in_memory, method)(NEW[0]))


@pytest.fixture
def model(folders):
    return small().fit(folders["binary"], "label")


def test_columns_are_found_by_their_names(model, folders, tmp_path):
    model.save(tmp_path / "model")
    expected = model.predict_proba(folders["new"])
    mixed = make_table(*NEW).select([*NAMES[::-1], "label"])
    mixed = mixed.append_column("more", pa.array(NEW[0][:, 0] * 9))
    for one in (model, load(tmp_path / "model")):
        assert np.array_equal(one.predict_proba(mixed), expected)
    assert model.partial_fit(mixed, "label").class_counts_.sum() == N_ROWS + len(mixed)


def test_columns_that_are_not_there_are_named(model, tmp_path):
    table = make_table(*NEW).drop(["c7"])
    for call in (
        lambda: model.predict(table),
        lambda: model.partial_fit(table, "label"),
        lambda: model.predict_to(table, tmp_path / "out.parquet"),
    ):
        with pytest.raises(DataError) as caught:
            call()
        assert caught.value.column == "c7"
    assert list(tmp_path.iterdir()) == []


def test_another_number_of_columns_than_in_the_fit_is_refused(tmp_path):
    clf = small().fit(map_rows(tmp_path / "rows.bin", ROWS), LABELS)
    other = map_rows(tmp_path / "other.bin", ROWS[:, :5])
    for method, given in ((clf.predict, ()), (clf.partial_fit, [LABELS])):
        with pytest.raises(DataError):
            method(other, *given)
    assert clf.fit(other, LABELS).n_features_in_ == 5


def test_a_row_whose_score_is_too_large_is_named_by_its_place_in_the_file():
    clf = small(scaling=None, similarity="dot", n_members=1, objective=None).fit(ROWS, LABELS)
    rows = ROWS.copy()
    rows[130] = 1e38
    with pytest.raises(DataError, match="Row 130 "):
        clf.predict(pa.table(dict(zip(NAMES, rows.T, strict=True))))


# ------------------------------------------------------------------------ predictions to a file


@pytest.mark.parametrize("kind", [*SOURCES, "array"])
def test_predictions_go_to_a_file(kind, tmp_path, in_memory):
    X = NEW[0] if kind == "array" else SOURCES[kind](tmp_path, make_table(*NEW))
    out = tmp_path / "out" / "predicted.parquet"
    out.parent.mkdir()
    assert in_memory.predict_to(X, out) == 170
    found = pq.read_table(out)
    assert found.column_names == ["predicted_label", "probability_fire", "probability_none"]
    said = in_memory.predictions(NEW[0])
    assert found["predicted_label"].to_pylist() == said.labels.tolist()
    assert np.array_equal(np.stack(found.columns[1:], axis=1), said.probabilities)
    assert [path.name for path in out.parent.iterdir()] == ["predicted.parquet"]


def test_columns_are_kept_as_they_are(model, folders, tmp_path):
    out = tmp_path / "out.parquet"
    assert model.predict_to(folders["new"], out, keep=["id", "label", "c3"]) == 170
    found, table = pq.read_table(out), make_table(*NEW)
    assert found.column_names[:4] == ["id", "label", "c3", "predicted_label"]
    assert found.select(["id", "label", "c3"]).equals(table.select(["id", "label", "c3"]))
    with pytest.raises(DataError):
        model.predict_to(folders["new"], out, keep=["nothing"])


def test_after_an_error_the_file_is_as_it_was(model, tmp_path):
    rows = NEW[0].copy()
    rows[150, 4] = np.nan  # in the last batch
    out = tmp_path / "out.parquet"
    out.write_bytes(b"what was there")
    with pytest.raises(DataError) as caught:
        model.predict_to(make_table(rows, NEW[1]), out)
    assert (caught.value.row, caught.value.column) == (150, "c4")
    assert list(tmp_path.iterdir()) == [out]
    assert out.read_bytes() == b"what was there"


# ----------------------------------------------------------------------------- what is refused


def test_labels_that_cannot_be_are_refused(folders, tmp_path):
    with pytest.raises(DataError) as caught:
        small().fit(folders["binary"], "labels")
    assert (caught.value.parameter, caught.value.column) == ("y", "labels")
    with pytest.raises(LabelError):
        small().fit(folders["binary"], LABELS[:200])
    with pytest.raises(ParameterError) as caught:
        small().fit(map_rows(tmp_path / "rows.bin", ROWS), "label")
    assert caught.value.parameter == "label"


@pytest.mark.parametrize("scaling", ["normal", "pieces", ["standard", "normal"]])
def test_a_scaling_that_sorts_columns_is_refused(folders, scaling, scratch):
    with pytest.raises(ParameterError):
        small(scaling=scaling).fit(folders["binary"], "label")
    assert_nothing_left(scratch)


# ------------------------------------------------------------------------- nothing is left


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """The folder for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("stop")], ids=str)
def test_after_an_interruption_nothing_is_left(folders, error, scratch):
    clf = small(callbacks=[Interrupt(error)])
    with pytest.raises(type(error)):
        clf.fit(folders["binary"], "label")
    assert_nothing_left(scratch)
    assert not hasattr(clf, "n_features_in_")


def test_after_an_error_in_the_file_or_the_labels_nothing_is_left(folders, scratch):
    rows = ROWS.copy()
    rows[-1, 0] = np.nan
    for X, y in ((make_table(rows, LABELS), "label"), (folders["binary"], LABELS[:3])):
        with pytest.raises(DataError):
            small().fit(X, y)
        assert_nothing_left(scratch)


class Rewrite(Callback):
    """Another process writes one of the files again, in the middle of training."""

    def __init__(self, path, table):
        self.path, self.table = path, table

    def on_step_end(self, state):
        if state.step == 5:
            pq.write_table(self.table, self.path)


@pytest.mark.usefixtures("scratch")
def test_a_file_that_changes_between_passes_is_named_and_nothing_is_left(tmp_path):
    folder = write_folder(tmp_path / "folder", TABLE)
    before = {path.name for path in tmp_path.iterdir()}
    # As many rows of as many columns: by its content alone it is another one.
    other = make_table(*make_rows(seed=9, n=100))
    clf = small(callbacks=[Rewrite(folder / "part-1.parquet", other)])
    with pytest.raises(DataError, match=r"part-1\.parquet changed"):
        clf.fit(folder, "label")
    assert not hasattr(clf, "classes_")
    assert {path.name for path in tmp_path.iterdir()} == before


def test_new_rows_leave_nothing(model, folders, scratch):
    model.partial_fit(folders["new"], "label").post_train(folders["new"], "label")
    with pytest.raises(LabelError):
        model.partial_fit(folders["three"], "label")
    assert_nothing_left(scratch)
