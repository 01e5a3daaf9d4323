"""Parquet files and folders: native types, bounded memory, damage."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setconv.errors import DataError
from setconv.io import parquet
from setconv.io.records import open_records


def test_types_are_kept_and_the_number_of_rows_is_known(tmp_path):
    table = pa.table(
        {
            "text": ["a", None],
            "n": pa.array([1, 2], pa.int16()),
            "fixed": pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2)),
            "lists": pa.array([[1.0], [2.0, 3.0]], pa.list_(pa.float32())),
            "kind": pa.array(["x", "y"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "data.parquet")
    with open_records(tmp_path / "data.parquet") as reader:
        assert reader.n_rows == 2
        found = reader.read()
    assert found.equals(table)
    assert found.schema.types == table.schema.types


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path):
    (tmp_path / "part=1").mkdir()
    for number, name in enumerate(["part=1/b.parquet", "a.parquet"]):
        pq.write_table(pa.table({"n": [number]}), tmp_path / name)
    (tmp_path / "_SUCCESS").write_bytes(b"")
    (tmp_path / ".hidden.parquet").write_bytes(b"junk")
    with open_records(tmp_path) as reader:
        assert reader.n_rows == 2
        assert reader.read()["n"].to_pylist() == [1, 0]


def test_files_of_a_folder_with_other_columns_are_refused(tmp_path):
    pq.write_table(pa.table({"a": [1], "b": [1]}), tmp_path / "1.parquet")
    for other in ({"a": [1]}, {"a": ["1"], "b": [1]}, {"a": [1], "b": [1], "c": [1]}):
        pq.write_table(pa.table(other), tmp_path / "2.parquet")
        with pytest.raises(DataError, match=r"2\.parquet"):
            open_records(tmp_path)


def test_a_file_that_is_cut_off_damaged_or_without_rows_is_refused(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"n": np.arange(10_000)}), path, compression="gzip")
    whole = path.read_bytes()
    damaged = whole[:100] + b"\xff" * 1900 + whole[2000:]
    for content in (whole[:-10], whole[:100], b"a,b\n1,2\n", damaged):
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a whole Parquet file"):
            open_records(path).read()
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), path)
    with pytest.raises(DataError, match="no rows"):
        open_records(path)


@pytest.mark.parametrize("block", [1 << 12, 1 << 15, 1 << 26])
@pytest.mark.parametrize("width", [10, 80])
def test_rows_do_not_depend_on_how_they_are_cut(tmp_path, monkeypatch, block, width):
    monkeypatch.setattr(parquet, "BLOCK", block)
    monkeypatch.setattr(parquet, "TALL", 2 * block)
    values = np.random.default_rng(0).standard_normal((2000, width), dtype=np.float32)
    columns = {f"c.{number}": column for number, column in enumerate(values.T)}
    table = pa.table({"c": [f"t{row}" for row in range(2000)], **columns})
    pq.write_table(table, tmp_path / "data.parquet", row_group_size=700)
    with open_records(tmp_path / "data.parquet") as reader:
        chosen = reader.select(["c.7", "c"])
        tables = list(reader.batches(300))
    assert [len(one) for one in tables] == [300] * 6 + [200]
    assert pa.concat_tables(tables).equals(table)
    assert chosen.read().equals(table.select(["c.7", "c"]))


def test_a_row_group_of_many_columns_with_dictionaries_streams_in_bounded_memory(
    tmp_path, monkeypatch
):
    """The default of pyarrow's writer: one row group, a dictionary for each column of floats."""
    values = np.random.default_rng(0).standard_normal((384, 20_000), dtype=np.float32)
    table = pa.table([pa.array(column) for column in values], names=[f"f{n}" for n in range(384)])
    pq.write_table(table, tmp_path / "data.parquet", compression="none")
    pool = pa.default_memory_pool()

    def most_held(block):
        monkeypatch.setattr(parquet, "BLOCK", block)
        monkeypatch.setattr(parquet, "TALL", block)
        before = pool.bytes_allocated()
        with open_records(tmp_path / "data.parquet") as reader:
            return max(pool.bytes_allocated() - before for _ in reader.batches(1000))

    assert most_held(block=1 << 22) < 14 << 20
    assert most_held(block=1 << 40) > values.nbytes
