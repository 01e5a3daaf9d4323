"""The store of a study: whole cells, one file."""

import sqlite3

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setconv.errors import StudyError
from setconv.experiment.store import Cell, Outcome, Store

START = "2020-01-01T00:00:00+00:00"


def outcome(dataset="a", method="m", split=0, status="ok", **fields):
    results = {"f1": 0.5, "auc": 0.25} if status == "ok" else {}
    return Outcome(
        Cell(dataset, method, split), status, START, 1.5, **{"results": results, **fields}
    )


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "study.sqlite") as opened:
        yield opened


# ---------------------------------------------------------------------------------------- tables


def test_results_are_sorted_whatever_the_order_of_the_cells(store):
    for dataset, split in (("b", 0), ("a", 1), ("a", 0)):
        store.record(outcome(dataset, split=split))
    rows = [list(row) for row in store.results().itertuples(index=False)]
    keys = [("a", "m", 0), ("a", "m", 1), ("b", "m", 0)]
    assert rows == [[*key, *score] for key in keys for score in (("auc", 0.25), ("f1", 0.5))]


def test_a_cell_that_is_recorded_again_replaces_all_it_had(store):
    store.record(outcome())
    store.record(outcome(results={"mcc": 1.0}))
    assert store.results()["metric"].tolist() == ["mcc"]
    assert store.finished() == {Cell(np.str_("a"), "m", np.int64(0))}
    store.record(outcome(status="error", error="broken"))
    assert store.results().empty
    assert store.failed() == {Cell("a", "m", 0)}


@given(st.dictionaries(st.text(max_size=5), st.floats(allow_infinity=False), min_size=1))
def test_every_figure_comes_back_as_it_was(tmp_path_factory, figures):
    with Store(tmp_path_factory.mktemp("store") / "study.sqlite") as store:
        store.record(outcome(results=figures))
        back = store.results().set_index("metric")["value"].to_dict()
    assert set(back) == set(figures)
    np.testing.assert_array_equal([back[name] for name in figures], list(figures.values()))


# ------------------------------------------------------------------------------------ durability


def test_a_replacement_that_fails_half_way_leaves_the_old_cell(store):
    store.record(outcome())
    with pytest.raises(sqlite3.Error):
        store.record(outcome(results={"f1": object()}))
    assert store.results()["value"].tolist() == [0.25, 0.5]
    with pytest.raises(sqlite3.Error):
        store.record(outcome("new", results={"f1": 0.5, "auc": object()}))
    with Store(store.path) as other:  # what another process sees
        assert other.finished() == {Cell("a", "m", 0)}


# --------------------------------------------------------------------------------- foreign files


def no_database(path):
    path.write_bytes(b"not a database, but long enough to be one" * 10)


def another_database(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE other (x)")
    database.close()


def another_format(path):
    Store(path).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()


@pytest.mark.parametrize("make", [no_database, another_database, another_format])
def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path, make):
    make(tmp_path / "s")
    before = (tmp_path / "s").read_bytes()
    with pytest.raises(StudyError):
        Store(tmp_path / "s")
    assert (tmp_path / "s").read_bytes() == before


def test_a_cell_of_another_version_is_not_there_and_replaces_it(tmp_path):
    with Store(tmp_path / "s.sqlite") as store:
        for version, value in (("a", 0.1), ("b", 0.2)):
            cell = Cell("iris", "tree", 0, version)
            assert cell not in store.finished()
            store.record(Outcome(cell, "ok", "2020-01-01", 0.5, {"f1": value}, notes={"seed": 3}))
        assert store.finished() == {Cell("iris", "tree", 0, "b")}
        assert store.results().value.tolist() == [0.2]
        assert store.cells().notes.tolist() == ['{"seed": 3}']


def test_a_full_disk_loses_nothing_that_was_finished(tmp_path):
    figures = {f"metric {number}": 0.5 for number in range(2000)}
    with Store(tmp_path / "s.sqlite") as store:
        store.record(Outcome(Cell("iris", "tree", 0), "ok", "2020-01-01", 0.5, {"f1": 0.9}))
        pages = store._database.execute("PRAGMA page_count").fetchone()[0]
        store._database.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(StudyError):
            store.record(Outcome(Cell("iris", "tree", 1), "ok", "2020-01-01", 0.5, figures))
        assert store.finished() == {Cell("iris", "tree", 0)}
    with Store(tmp_path / "s.sqlite") as store:  # as a new process finds it
        assert store.results().value.tolist() == [0.9]
        store.record(Outcome(Cell("iris", "tree", 1), "ok", "2020-01-01", 0.5, figures))
        assert len(store.finished()) == 2
