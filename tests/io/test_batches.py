"""Streaming for prediction: batches of one size, other columns beside them, Parquet out."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from setconv.errors import DataError, ParameterError
from setconv.io import parquet
from setconv.io.disk import Scratch
from setconv.io.opening import is_stored, read_batches, write_predictions

N_ROWS = 103
ROWS = np.random.default_rng(0).standard_normal((N_ROWS, 40)).astype(np.float32)
TABLE = pa.table({f"f{number}": ROWS[:, number] for number in range(40)}).append_column(
    "id", pa.array([f"row {number}" for number in range(N_ROWS)])
)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(TABLE.slice(0, 50), folder / "a.parquet", row_group_size=20)
    pq.write_table(TABLE.slice(50), folder / "b.parquet", row_group_size=20)
    return folder


@pytest.mark.parametrize("size", [1, 16, 50, 64, 103, 1000])
@pytest.mark.parametrize("block", [1, 4000, 10**6])
def test_batches_have_the_size_that_is_asked_for(folder, monkeypatch, size, block):
    monkeypatch.setattr(parquet, "BLOCK", block)
    monkeypatch.setattr(parquet, "TALL", block)
    names = ["f7", "f3"]
    batches = list(read_batches(folder, names, size, extra=["id", "f0"]))
    assert [len(batch.rows) for batch in batches[:-1]] == [size] * (len(batches) - 1)
    np.testing.assert_array_equal(np.concatenate([one.rows for one in batches]), ROWS[:, [7, 3]])
    extra = pa.concat_tables([batch.extra for batch in batches])
    assert extra.equals(TABLE.select(["id", "f0"]))
    assert [len(one.extra) for one in batches] == [len(one.rows) for one in batches]


@pytest.mark.parametrize("kind", ["table", "dataset", "file"])
def test_all_kinds_are_streamed_without_a_scratch_file(folder, monkeypatch, kind):
    monkeypatch.setattr(Scratch, "__init__", lambda *_: pytest.fail("wrote a scratch file"))
    X = {
        "table": TABLE,
        "dataset": ds.dataset(TABLE),
        "file": str(folder / "b.parquet"),
    }[kind]
    expected = ROWS[50:] if kind == "file" else ROWS
    batches = list(read_batches(X, size=25))
    assert [batch.extra for batch in batches] == [None] * len(batches)
    np.testing.assert_array_equal(np.concatenate([one.rows for one in batches]), expected)


def test_columns_that_are_handed_through_are_no_features_by_themselves():
    (batch,) = read_batches(TABLE.select(["f0", "f1", "f2"]), extra=["f1"])
    np.testing.assert_array_equal(batch.rows, ROWS[:, [0, 2]])


def test_names_of_elements_find_their_lists():
    table = pa.table({"v": pa.array(list(ROWS))})
    (batch,) = read_batches(table, [f"v_{number}" for number in range(40)])
    np.testing.assert_array_equal(batch.rows, ROWS)


def test_progress_is_told_after_each_batch(folder):
    told = []
    for batch in read_batches(folder, size=50, progress=lambda *a: told.append(a)):
        assert len(told) * 50 + len(batch.rows) <= N_ROWS
    assert told == [(50, N_ROWS), (100, N_ROWS), (N_ROWS, N_ROWS)]


def test_what_is_wrong_with_the_columns_is_said_at_once(folder):
    with pytest.raises(DataError, match="no column 'f99'"):
        read_batches(folder, ["f99"])
    with pytest.raises(DataError, match=r"no column 'ide'\. Did you mean 'id'"):
        read_batches(folder, ["f0"], extra=["ide"])
    with pytest.raises(DataError, match="'id' is string"):
        read_batches(folder, ["id"])
    with pytest.raises(ParameterError, match="at least 1 row"):
        read_batches(folder, size=0)


def test_what_is_wrong_with_a_row_is_said_with_its_number():
    column = np.zeros(40)
    column[33] = np.nan
    table = pa.concat_tables([pa.table({"a": part}) for part in np.split(column, 4)])
    batches = read_batches(table, size=10)
    for _ in range(3):
        next(batches)
    with pytest.raises(DataError, match="'a' has NaN in row 33"):
        next(batches)


def test_files_are_closed_when_a_reader_stops_early(folder):
    batches = read_batches(folder, size=10)
    next(batches)
    batches.close()
    assert list(batches) == []


def test_paths_and_arrow_data_are_stored(folder):
    stored = [str(folder), folder, TABLE, TABLE.to_batches()[0], ds.dataset(TABLE)]
    assert all(map(is_stored, [*stored, TABLE.to_reader()]))
    assert not any(map(is_stored, [ROWS, [[1.0]], None, b"x", {"a": 1}, TABLE["id"], 5]))


def test_predictions_are_streamed_to_one_file(tmp_path, folder):
    path = tmp_path / "out.parquet"

    def predicted():
        for batch in read_batches(folder, ["f0"], 10, extra=["id"]):
            assert not path.exists()
            yield batch.extra.append_column("score", pa.array(batch.rows[:, 0]))

    assert write_predictions(path, predicted()) == N_ROWS
    found = pq.read_table(path)
    assert found["id"].equals(TABLE["id"])
    np.testing.assert_array_equal(found["score"].to_numpy(), ROWS[:, 0])


def test_predictions_that_fail_leave_the_old_file(tmp_path):
    path = tmp_path / "out.parquet"
    path.write_bytes(b"old")

    def failing():
        yield pa.table({"a": [1]})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_predictions(path, failing())
    assert path.read_bytes() == b"old"
    assert [one.name for one in tmp_path.iterdir()] == ["out.parquet"]
    with pytest.raises(DataError, match="no rows"):
        write_predictions(path, [])
