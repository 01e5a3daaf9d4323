"""Parquet files and folders: native types, bounded memory, damage."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from setconv.errors import DataError
from setconv.io import parquet
from setconv.io.reading import open_records


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
        assert reader.progress() == 0.0
        found = reader.read()
        assert reader.progress() == 1.0
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


def test_a_folder_without_parquet_is_refused(tmp_path):
    (tmp_path / "data.csv").write_bytes(b"a\n1\n")
    with pytest.raises(DataError, match="folder without Parquet files"):
        open_records(tmp_path)
    with pytest.raises(DataError, match="Only Parquet"):
        open_records(tmp_path, format="csv")


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ({"a": [1]}, "'b' is missing"),
        ({"a": ["1"], "b": [1]}, "'a' is string instead of int64"),
        ({"a": [1], "b": [1], "c": [1]}, "'c' is only there"),
    ],
)
def test_files_of_a_folder_with_other_columns_are_refused(tmp_path, other, difference):
    pq.write_table(pa.table({"a": [1], "b": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table(other), tmp_path / "2.parquet")
    with pytest.raises(DataError, match=rf"2\.parquet has other columns.*{difference}"):
        open_records(tmp_path)


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"n": list(range(1000))}), path)
    whole = path.read_bytes()
    for content in (whole[:-10], whole[:100], b"a,b\n1,2\n"):
        path.write_bytes(content)
        with pytest.raises(DataError, match="not a whole Parquet file"):
            open_records(path)


def test_damaged_pages_are_refused_when_they_are_reached(tmp_path):
    path = tmp_path / "data.parquet"
    pq.write_table(pa.table({"n": np.arange(10_000)}), path, compression="gzip")
    whole = bytearray(path.read_bytes())
    whole[100:2000] = b"\xff" * 1900
    path.write_bytes(whole)
    with open_records(path) as reader, pytest.raises(DataError, match="not a whole Parquet file"):
        reader.read()


def test_a_file_without_rows_is_refused(tmp_path):
    pq.write_table(pa.table({"a": pa.array([], pa.int64())}), tmp_path / "data.parquet")
    with pytest.raises(DataError, match="has 1 column but no rows"):
        open_records(tmp_path / "data.parquet")


def test_a_wide_row_group_read_in_slabs_has_the_same_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "SLAB", 1 << 15)
    values = np.random.default_rng(0).standard_normal((2000, 50), dtype=np.float32)
    columns = {f"c.{number}": column for number, column in enumerate(values.T)}
    table = pa.table({"c": [f"t{row}" for row in range(2000)], **columns})
    pq.write_table(table, tmp_path / "data.parquet")
    with open_records(tmp_path / "data.parquet") as reader:
        tables = list(reader.batches(300))
    assert [len(one) for one in tables] == [300] * 6 + [200]
    assert pa.concat_tables(tables).equals(table)


def test_a_row_group_of_many_columns_with_dictionaries_streams_in_bounded_memory(
    tmp_path, monkeypatch
):
    """The default of pyarrow's writer: one row group, a dictionary for each column of floats."""
    values = np.random.default_rng(0).standard_normal((384, 20_000), dtype=np.float32)
    table = pa.table([pa.array(column) for column in values], names=[f"f{n}" for n in range(384)])
    pq.write_table(table, tmp_path / "data.parquet", compression="none")
    pool = pa.default_memory_pool()

    def most_held(slab):
        monkeypatch.setattr(parquet, "SLAB", slab)
        before = pool.bytes_allocated()
        with open_records(tmp_path / "data.parquet") as reader:
            return max(pool.bytes_allocated() - before for _ in reader.batches(1000))

    assert most_held(slab=1 << 22) < 12 << 20
    assert most_held(slab=1 << 40) > values.nbytes
