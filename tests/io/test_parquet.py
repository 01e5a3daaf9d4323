"""Parquet files and folders: native types, bounded memory, damage, changes between passes."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from setconv.errors import DataError
from setconv.io import parquet
from setconv.io.parquet import ColumnReader, read_arrow
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


def test_columns_with_and_without_dictionaries_stay_together(tmp_path):
    """Those with dictionaries end a batch with each row group."""
    numbers = np.arange(20_000)
    table = pa.table(
        {
            "kind": pa.array((numbers // 900).astype(str)).dictionary_encode(),
            "text": (numbers // 7).astype(str),
            "n": numbers,
            "m": numbers / 2,
        }
    )
    strict = table.schema.field("m").with_nullable(False)
    table = table.cast(table.schema.set(3, strict))
    pq.write_table(table, tmp_path / "data.parquet", row_group_size=3000)
    with open_records(tmp_path / "data.parquet") as reader:
        tables = list(reader.tables(reader.columns))
        assert all(one.schema.equals(reader.schema) for one in tables)
    found = pa.concat_tables(tables)
    assert found.to_pydict() == table.to_pydict()


# ----------------------------------------------------------------------- files that are read again


def write_parts(folder, width):
    """Write a table as each of three files; return it, and the path of the second."""
    values = np.random.default_rng(0).standard_normal((600, width), dtype=np.float32)
    table = pa.table({f"f{number}": column for number, column in enumerate(values.T)})
    for number in range(3):
        path = folder / f"{number}.parquet"
        pq.write_table(table, path, compression="gzip", row_group_size=200)
    return table, folder / "1.parquet"


def reader_of(kind, folder):
    return read_arrow(ds.dataset(folder)) if kind == "dataset" else open_records(folder)


def change(path, how):
    whole = path.read_bytes()
    if how == "other":
        path.write_bytes(whole)
        os.utime(path, ns=(1, 1))
    elif how == "replaced":
        stat, new = path.stat(), path.with_name("new")
        new.write_bytes(whole)
        os.utime(new, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        new.replace(path)
    elif how == "short":
        path.write_bytes(whole[: len(whole) // 2])
    else:
        path.unlink()


KINDS = [("folder", 3), ("folder", 80), ("dataset", 3)]


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be replaced")
@pytest.mark.parametrize(("kind", "width"), KINDS)
@pytest.mark.parametrize("how", ["other", "replaced", "short", "gone"])
@pytest.mark.parametrize("during", [False, True])
def test_a_file_that_changes_between_or_during_passes_is_named(tmp_path, kind, width, how, during):
    table, middle = write_parts(tmp_path, width)
    reader = reader_of(kind, tmp_path)
    assert pa.concat_tables(reader.tables(["f0"])).equals(
        pa.concat_tables([table.select(["f0"])] * 3)
    )
    tables = reader.tables(reader.columns)
    if during:
        next(tables)
    change(middle, how)
    said = "went away" if how == "gone" else "changed"
    with pytest.raises(DataError, match=rf"1\.parquet {said} while it was being read"):
        for _ in tables:
            pass


@pytest.mark.skipif(os.name != "posix", reason="an open file cannot be changed")
@pytest.mark.parametrize(("kind", "width"), KINDS)
def test_a_file_that_changes_after_its_last_row_is_named(tmp_path, kind, width):
    _, middle = write_parts(tmp_path, width)
    middle.with_name("0.parquet").unlink()
    middle.with_name("2.parquet").unlink()
    tables = reader_of(kind, tmp_path).tables(["f0"])
    left = 600
    while left:
        left -= len(next(tables))
    os.utime(middle, ns=(1, 1))
    with pytest.raises(DataError, match=r"1\.parquet changed"):
        next(tables)


@pytest.mark.parametrize(("kind", "width"), KINDS)
def test_damage_in_the_middle_of_one_of_several_files_names_it(tmp_path, kind, width):
    _, middle = write_parts(tmp_path, width)
    group = pq.read_metadata(middle).row_group(1).column(width // 2)
    start, whole = group.data_page_offset, middle.read_bytes()
    end = start + group.total_compressed_size // 2
    middle.write_bytes(whole[:start] + b"\xff" * (end - start) + whole[end:])
    reader = reader_of(kind, tmp_path)
    with pytest.raises(DataError, match=r"1\.parquet is not a whole Parquet file"):
        list(reader.tables(reader.columns))


def test_the_files_of_a_dataset_that_are_gone_before_it_is_read_are_named(tmp_path):
    _, middle = write_parts(tmp_path, 3)
    dataset = ds.dataset(tmp_path)
    middle.unlink()
    with pytest.raises(DataError, match=r"1\.parquet"):
        list(read_arrow(dataset).tables(["f0"]))


@pytest.mark.parametrize("rows", [1, 5])
def test_a_pass_of_another_number_of_rows_is_refused(rows):
    given = pa.table({"n": range(rows)})
    reader = ColumnReader("The source", given.schema, 3, lambda names: iter([given.select(names)]))
    with pytest.raises(DataError, match=r"The source had 3 rows at first"):
        list(reader.tables(["n"]))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"a": [1], "b": [1.0]}, "'b' is double instead of int64"),
        ({"a": [1]}, "'b' is missing instead of int64"),
        ({"a": [1], "b": [1], "c": [1]}, "'c' is int64 instead of missing"),
        ({"b": [1], "a": [1]}, "column 1 is 'b' instead of 'a'"),
    ],
)
def test_a_file_of_other_columns_is_named_with_the_column(tmp_path, other, said):
    pq.write_table(pa.table({"a": [1], "b": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table(other), tmp_path / "2.parquet")
    with pytest.raises(DataError, match=rf"2\.parquet has other columns .*{said}"):
        open_records(tmp_path)


def test_a_column_that_may_have_nulls_in_one_file_only_is_named(tmp_path):
    table = pa.table({"a": [1], "b": [1]})
    strict = pa.schema([table.schema.field("a"), table.schema.field("b").with_nullable(False)])
    pq.write_table(table, tmp_path / "1.parquet")
    pq.write_table(table.cast(strict), tmp_path / "2.parquet")
    with pytest.raises(DataError, match=r"2\.parquet .*'b' may have nulls in one of them only"):
        open_records(tmp_path)
