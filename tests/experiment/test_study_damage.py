"""Files of a study that were damaged, are another's or do not fit: never wrong figures."""

import contextlib
import json
import os
import shutil
import sqlite3

import numpy as np
import pytest
from harness import damaged, pick
from made_findings import made_up
from small_models import limited_files

from setconv.cli.app import exit_code
from setconv.errors import StudyFileError
from setconv.experiment.data import known_data, prepare, rows_of
from setconv.experiment.page import write_report
from setconv.experiment.store import Cell, Outcome, Store
from setconv.experiment.study import DataSpec, MethodSpec, Study

CASES = range(200)


def generator(number):
    return np.random.default_rng([496, number])


def rows(frame):
    return set(frame.fillna(-1).itertuples(index=False, name=None))


# --------------------------------------------------------------------------------- the store


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the bytes of a store, and what it holds."""
    path = tmp_path_factory.mktemp("whole") / "s.sqlite"
    rng = np.random.default_rng(0)
    with Store(path) as store:
        for split in range(12):
            figures = {f"metric {number}": float(rng.random()) for number in range(20)}
            figures["undefined"] = float("nan")
            cell = Cell("rows", "tree", split, "version")
            store.record(Outcome(cell, "ok", "2020-01-01", 0.5, figures, notes={"seed": split}))
        store.record(Outcome(Cell("rows", "broken", 0), "error", "2020-01-01", 0.1, error="no"))
        expected = rows(store.cells()), rows(store.results())
    return path.read_bytes(), expected


def flip(content, rng):
    """Another number or letter somewhere in the content, which no structure gives away."""
    changed = bytearray(content)
    changed[int(rng.integers(100, len(content)))] ^= 1 << int(rng.integers(8))
    return "bit", bytes(changed)


def test_a_damaged_store_is_refused_or_tells_what_was_written(tmp_path, whole):
    content, expected = whole
    refused = []
    for number in CASES:
        rng, path = generator(number), tmp_path / f"{number}.sqlite"
        what, mutant = pick(rng, [flip, damaged])(content, rng)
        path.write_bytes(mutant)
        try:
            with Store(path) as store:
                found = rows(store.cells()), rows(store.results())
                store.record(Outcome(Cell("new", "tree", 0), "ok", "2020-01-01", 0.5, {"f1": 0.5}))
        except StudyFileError as error:
            refused.append((exit_code(error), str(path) in str(error)))
            continue
        assert all(a <= b for a, b in zip(found, expected, strict=True)), (number, what)
        assert len(found[0]) in (0, len(expected[0])), (number, what)  # an empty file is a new one
        path.unlink()
    assert len(refused) > len(CASES) / 2
    assert set(refused) == {(4, True)}


def test_a_figure_that_another_program_changed_is_noticed(tmp_path, whole):
    path = tmp_path / "s.sqlite"
    for statement in (
        "UPDATE results SET value = value + 0.001 WHERE split = 3 AND metric = 'metric 4'",
        "DELETE FROM results WHERE split = 3 AND metric = 'metric 4'",
        "UPDATE cells SET status = 'ok' WHERE status = 'error'",
        "UPDATE cells SET version = 'another'",
    ):
        path.write_bytes(whole[0])
        with contextlib.closing(sqlite3.connect(path)) as database, database:
            database.execute(statement)
        with pytest.raises(StudyFileError, match="has changed"):
            Store(path)


def folder(path):
    path.mkdir()


@pytest.mark.skipif(os.name != "posix", reason="fifos are those of POSIX")
@pytest.mark.parametrize("make", [folder, os.mkfifo, lambda path: path.symlink_to(path.name)])
def test_what_is_no_file_is_no_store(tmp_path, make):
    make(tmp_path / "s.sqlite")
    with pytest.raises(StudyFileError) as caught:
        Store(tmp_path / "s.sqlite")
    assert "s.sqlite" in str(caught.value)


# --------------------------------------------------------------------------------- the rows


@pytest.fixture
def study(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.repeat(["no", "yes"], [45, 15])
    X[:4] = X[4:8]
    np.savez(tmp_path / "rows.npz", X=X, y=y, event=np.arange(60) % 6)
    spec = DataSpec("rows", "npz", {"path": "rows.npz", "group": "event"})
    return Study("s", (spec,), (MethodSpec("SetConv"),))


def same_rows(one, other):
    names = ("features", "labels", "groups", "copies")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def misplaced(path, rng):
    path.unlink()
    what = pick(rng, ["gone", "folder", "fifo", "empty"])
    if what == "folder":
        path.mkdir()
    elif what == "fifo":
        os.mkfifo(path)
    elif what == "empty":
        path.touch()
    return what


@pytest.mark.skipif(os.name != "posix", reason="fifos are those of POSIX")
def test_damaged_rows_are_made_anew_or_refused(tmp_path, study):
    ready = tmp_path / "ready"
    known = prepare(study, ready, tmp_path)
    expected = rows_of(ready, known["rows"].digest)
    in_the_way = []
    for number in CASES[:60]:
        rng, place = generator(number), tmp_path / f"{number}"
        shutil.copytree(ready, place)
        path = pick(rng, sorted(one for one in place.rglob("*") if one.is_file()))
        if rng.random() < 0.2:
            what = misplaced(path, rng)
        else:
            what, content = damaged(path.read_bytes(), rng)
            path.write_bytes(content)
        # As a report reads them: whole, or an own error; a note that is gone is not known.
        with contextlib.suppress(StudyFileError):
            assert known_data(study, place) in (known, {}), (number, what)
            assert same_rows(rows_of(place, known["rows"].digest), expected), (number, what)
        # As a run does: made anew, but where a folder is in the way.
        try:
            assert prepare(study, place, tmp_path) == known, (number, what)
        except StudyFileError as error:
            in_the_way.append((path.is_dir(), exit_code(error)))
            continue
        rows_of.cache_clear()
        assert same_rows(rows_of(place, known["rows"].digest), expected), (number, what)
    assert set(in_the_way) == {(True, 4)}


def test_a_note_with_another_number_is_not_believed(tmp_path, study):
    prepare(study, tmp_path / "r", tmp_path)
    (note,) = (tmp_path / "r").glob("*.json")
    told = json.loads(note.read_bytes())
    told["prepared"]["counts"]["yes"] += 1
    note.write_text(json.dumps(told))
    with pytest.raises(StudyFileError, match="Run the study again"):
        known_data(study, tmp_path / "r")


# ------------------------------------------------------------------------------ the full disk


def full(act, size):
    """Do something on a full disk; return the error, which has exit code 4."""
    with limited_files(size), pytest.raises(StudyFileError) as caught:
        act()
    assert exit_code(caught.value) == 4
    return str(caught.value)


def files(place):
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


def test_a_store_that_cannot_grow_keeps_what_it_has(tmp_path, whole):
    path = tmp_path / "s.sqlite"
    path.write_bytes(whole[0])
    figures = {f"metric {number}": 0.5 for number in range(2000)}
    late = Outcome(Cell("late", "tree", 0), "ok", "2020-01-01", 0.5, figures)
    with Store(path) as store:
        assert "s.sqlite cannot be" in full(lambda: store.record(late), len(whole[0]))
        assert (rows(store.cells()), rows(store.results())) == whole[1]
    assert path.read_bytes() == whole[0]
    assert list(tmp_path.iterdir()) == [path]
    assert "cannot be" in full(lambda: Store(tmp_path / "new.sqlite"), 1000)
    with Store(path) as store:
        store.record(late)


def test_rows_that_do_not_fit_leave_nothing_half(tmp_path, study):
    place = tmp_path / "r"
    assert "the disk is full" in full(lambda: prepare(study, place, tmp_path), 300)
    assert not [one for one in files(place) if one.name[0] == "." or one.suffix == ".json"]
    known = prepare(study, place, tmp_path)
    before = files(place)
    other = Study("s", (DataSpec("rows", "npz", {"path": "rows.npz"}),), study.methods)
    assert "the disk is full" in full(lambda: prepare(other, place, tmp_path), 300)
    assert prepare(study, place, tmp_path) == known
    assert files(place).items() >= before.items()


def test_a_report_that_does_not_fit_leaves_the_old_files(tmp_path):
    write_report(made_up(n_units=1), tmp_path)
    before = files(tmp_path)
    assert "the disk is full" in full(lambda: write_report(made_up(), tmp_path), 2000)
    assert files(tmp_path) == before
