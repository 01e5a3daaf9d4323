"""Parquet files, Arrow datasets and tables as rows on disk: equal to memory, and every refusal."""

import logging
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from setconv.errors import DataError, DataTypeError, LabelError
from setconv.io import matrix, parquet
from setconv.io.matrix import Piece, fill
from setconv.io.opening import open_source
from setconv.io.reading import open_tables

N_ROWS = 103


def make_table(n_columns=70, seed=0, dtype=np.float32):
    """Rows and labels, and a table of both with the label among the features."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((N_ROWS, n_columns)).astype(dtype)
    table = pa.table({f"f{number}": rows[:, number] for number in range(n_columns)})
    labels = np.array(["no", "yes"])[rng.integers(0, 2, N_ROWS)]
    return rows, labels, table.add_column(2, "label", pa.array(labels))


def write_folder(table, folder, row_group_size=10):
    for number, start in enumerate(range(0, N_ROWS, 40)):
        piece = table.slice(start, 40)
        pq.write_table(piece, folder / f"part-{number}.parquet", row_group_size=row_group_size)
    return folder


def assert_source(source, rows, labels, names=None):
    with source:
        assert source.rows.dtype == rows.dtype
        np.testing.assert_array_equal(source.rows[:], rows)
        np.testing.assert_array_equal(source.labels, labels)
        assert source.names == (names or [f"f{number}" for number in range(rows.shape[1])])


@pytest.mark.parametrize("kind", ["file", "folder", "text", "dataset", "table", "batch"])
def test_every_kind_of_source_gives_the_same_rows(tmp_path, kind):
    rows, labels, table = make_table()
    if kind in ("folder", "text", "dataset"):
        write_folder(table, tmp_path)
    else:
        pq.write_table(table, tmp_path / "one.parquet")
    found = {
        "file": lambda: tmp_path / "one.parquet",
        "folder": lambda: tmp_path,
        "text": lambda: str(tmp_path),
        "dataset": lambda: ds.dataset(tmp_path),
        "table": lambda: table,
        "batch": lambda: table.to_batches()[0],
    }[kind]()
    assert_source(open_source(found, label="label"), rows, labels)


@pytest.mark.parametrize("n_columns", [3, 70])
@pytest.mark.parametrize("block", [1, 2000, 10**6])
def test_rows_do_not_depend_on_how_they_are_cut_into_blocks(
    tmp_path, monkeypatch, block, n_columns
):
    monkeypatch.setattr(parquet, "BLOCK", block)
    monkeypatch.setattr(parquet, "TALL", 2 * block)
    monkeypatch.setattr(matrix, "BLOCK", block)
    rows, labels, table = make_table(n_columns)
    write_folder(table, tmp_path)
    assert_source(open_source(tmp_path, label="label"), rows, labels)
    assert_source(open_source(table, label="label"), rows, labels)


def test_blocks_stay_below_their_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "BLOCK", 70 * 4 * 25)
    _, _, table = make_table()
    write_folder(table, tmp_path)
    found = open_tables(tmp_path)
    heights = [len(block.rows) for block in found.blocks(found.plan(None, ["label"]), [])]
    # Files of 40, 40 and 23 rows in groups of ten: 25 rows fit into a block.
    assert heights == [20, 20, 20, 20, 23]


def test_filtered_and_partitioned_datasets_are_left_to_pyarrow(tmp_path):
    rows, labels, table = make_table()
    ds.write_dataset(
        table, tmp_path, format="parquet", partitioning=["label"], partitioning_flavor="hive"
    )
    dataset = ds.dataset(tmp_path, partitioning="hive")
    with open_source(dataset, label="label") as source:
        assert source.rows.shape == rows.shape
        assert sorted(source.labels) == sorted(labels)
        order = np.argsort(labels, kind="stable")
        np.testing.assert_array_equal(source.rows[:], rows[order])
    kept = rows[:, 0] > 0
    filtered = ds.dataset(table).filter(ds.field("f0") > 0)
    assert_source(open_source(filtered, label="label"), rows[kept], labels[kept])
    (tmp_path / "plain").mkdir()
    filtered = ds.dataset(write_folder(table, tmp_path / "plain")).filter(ds.field("f0") > 0)
    assert_source(open_source(filtered, label="label"), rows[kept], labels[kept])


def test_chosen_columns_come_in_the_order_that_is_asked_for(tmp_path):
    rows, labels, table = make_table()
    pq.write_table(table, tmp_path / "one.parquet")
    names = ["f60", "f2", "f3", "f0"]
    for X in (tmp_path / "one.parquet", table):
        source = open_source(X, columns=names, label="label")
        assert_source(source, rows[:, [60, 2, 3, 0]], labels, names)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["float32"], np.float32),
        (["float16", "int8", "int16", "uint8", "uint16", "bool", "float32"], np.float32),
        (["float32", "float64"], np.float64),
        (["float32", "int32"], np.float64),
        (["uint32"], np.float64),
        (["int64"], np.float64),
        (["uint64", "bool"], np.float64),
    ],
)
def test_the_type_holds_every_number_exactly(kinds, expected):
    values = [0, 1, 1, 0]
    columns = {
        f"{kind}{number}": pa.array(np.array(values, dtype=kind))
        for number, kind in enumerate(kinds)
    }
    with open_source(pa.table(columns)) as source:
        assert source.rows.dtype == expected
        assert source.labels is None
        np.testing.assert_array_equal(source.rows[:], np.array([values] * len(kinds)).T)


def test_float64_decimals_and_dictionaries_keep_their_values():
    columns = {
        "f": pa.array([0.1, 1e300]),
        "d": pa.array([1.25, 2.5]).cast(pa.decimal128(5, 2)),
        "c": pa.array([7, 8]).dictionary_encode(),
    }
    with open_source(pa.table(columns)) as source:
        np.testing.assert_array_equal(source.rows[:], [[0.1, 1.25, 7.0], [1e300, 2.5, 8.0]])


def test_sliced_and_chunked_columns_are_read_from_the_right_place():
    table = pa.concat_tables([pa.table({"a": [1.0, 2.0, 3.0], "b": [True, False, True]})] * 2)
    with open_source(table.slice(1, 4)) as source:
        np.testing.assert_array_equal(source.rows[:], [[2, 0], [3, 1], [1, 1], [2, 0]])


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 40), pa.large_list(pa.float32())]
)
def test_a_column_of_lists_counts_as_many_features(tmp_path, kind):
    rows = np.random.default_rng(0).standard_normal((N_ROWS, 40)).astype(np.float32)
    labels = np.arange(N_ROWS) % 3
    table = pa.table({"label": labels, "v": pa.array(list(rows), kind)})
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=10)
    names = [f"v_{number}" for number in range(40)]
    for X in (tmp_path / "one.parquet", table, table.slice(0), ds.dataset(table)):
        assert_source(open_source(X, label="label"), rows, labels, names)
    sliced = open_source(table.slice(7, 20), label="label")
    assert_source(sliced, rows[7:27], labels[7:27], names)


def test_elements_of_lists_can_be_chosen_and_mixed_with_columns():
    rows = np.arange(12, dtype=np.float32).reshape(3, 4)
    table = pa.table({"v": pa.array(list(rows)), "a": pa.array([7, 8, 9], pa.int8())})
    with open_source(table) as source:
        assert source.names == ["v_0", "v_1", "v_2", "v_3", "a"]
        np.testing.assert_array_equal(source.rows[:], np.column_stack([rows, [7, 8, 9]]))
    with open_source(table, columns=["v_2", "v_3", "a", "v_0"]) as source:
        assert source.names == ["v_2", "v_3", "a", "v_0"]
        expected = np.column_stack([rows[:, 2:], [7, 8, 9], rows[:, 0]])
        np.testing.assert_array_equal(source.rows[:], expected)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (pa.array([1, 0, 1]), np.array([1, 0, 1])),
        (pa.array([1, 0, 1], pa.int8()), np.array([1, 0, 1], np.int8)),
        (pa.array([True, False, True]), np.array([True, False, True])),
        (pa.array([0.0, 1.5, 0.0]), np.array([0.0, 1.5, 0.0])),
        (pa.array(["01", "b", "01"]), np.array(["01", "b", "01"])),
        (pa.array(["x", "y", "x"]).dictionary_encode(), np.array(["x", "y", "x"])),
        (pa.array(["x", "y", "x"], pa.large_string()), np.array(["x", "y", "x"])),
    ],
)
def test_labels_are_the_values_of_their_column(labels, expected):
    one = pa.table({"a": [1.0, 2.0, 3.0], "label": labels})
    with open_source(pa.concat_tables([one, one.slice(1)]), label="label") as source:
        assert source.labels.dtype == expected.dtype
        np.testing.assert_array_equal(source.labels, np.append(expected, expected[1:]))
        assert source.names == ["a"]


@pytest.mark.parametrize(
    "labels", [pa.array(["a", None]), pa.array([1, None]), pa.array([1.0, np.nan])]
)
def test_a_missing_label_is_refused_with_its_row(labels):
    whole = pa.table({"a": [1.0, 2.0], "y": labels.fill_null(labels[0])})
    if labels.null_count == 0:
        whole = whole.set_column(1, "y", pa.array([1.0, 1.0]))
    table = pa.concat_tables([whole, pa.table({"a": [1.0, 2.0], "y": labels})])
    with pytest.raises(LabelError, match=r"'y' has no label in row 3 .*Label such rows"):
        open_source(table, label="y")


def test_a_column_that_cannot_be_labels_is_refused():
    table = pa.table({"a": [1.0], "y": [[1.0]]})
    with pytest.raises(LabelError, match=r"'y' is list.*cannot be labels"):
        open_source(table, label="y")
    with pytest.raises(DataError, match="no column 'label'"):
        open_source(table, label="label")


def broken(value, row=57):
    """A table of 70 columns in which one value of f66 is broken."""
    rows, _, table = make_table()
    column = rows[:, 66].tolist()
    column[row] = value
    place = table.column_names.index("f66")
    return table.set_column(place, "f66", pa.array(column, pa.float32()))


@pytest.mark.parametrize(
    ("value", "said"), [(None, "no value"), (np.nan, "NaN"), (-np.inf, "infinity")]
)
@pytest.mark.parametrize("kind", ["folder", "table"])
def test_what_is_no_number_is_refused_with_column_and_row(tmp_path, value, said, kind):
    table = broken(value)
    X = write_folder(table, tmp_path) if kind == "folder" else table
    with pytest.raises(DataError, match=f"'f66' has {said}.*in row 57 .*first"):
        open_source(X, label="label")


def test_large_numbers_whose_sum_overflows_are_finite():
    with open_source(pa.table({"a": pa.array([3e38, 3e38], pa.float32())})) as source:
        assert np.isfinite(source.rows[:]).all()


@pytest.mark.parametrize(
    ("lists", "said"),
    [
        ([[1.0, 2.0], [1.0]], "list of 1 numbers in row 1 .*of 2 in row 0"),
        ([[1.0, 2.0], None], "'v' has no value .null. in row 1"),
        ([None, [1.0, 2.0]], "'v' has no list .null. in row 0"),
        ([[1.0, 2.0], [1.0, None]], "'v' has no value .null. in row 1"),
        ([[1.0, 2.0], [1.0, np.nan]], "'v_1' has NaN in row 1"),
        ([[], []], "empty"),
    ],
)
def test_lists_that_are_no_vectors_are_refused(lists, said):
    with pytest.raises(DataError, match=said):
        open_source(pa.table({"v": pa.array(lists, pa.list_(pa.float64()))}))


def test_text_is_left_out_with_a_warning_and_refused_by_name(caplog):
    table = pa.table({"a": [1.0], "id": ["x"], "when": pa.array([0], pa.timestamp("s"))})
    with caplog.at_level(logging.WARNING, "setconv"), open_source(table) as source:
        assert source.names == ["a"]
    assert "left out: 'id', 'when'" in caplog.text
    with pytest.raises(DataError, match=r"'id' is string, which is not numbers.*Encode it"):
        open_source(table, columns=["a", "id"])
    with pytest.raises(DataError, match="no column of numbers among 'id', 'when'"):
        open_source(table.select(["id", "when"]))


def test_columns_that_cannot_be_found_or_are_named_twice_are_refused():
    table = pa.table({"size": [1.0], "v": [[1.0, 2.0]], "y": [0]})
    with pytest.raises(DataError, match=r"no column 'sise'. Did you mean 'size'"):
        open_source(table, columns=["sise"])
    with pytest.raises(DataError, match="no 'v_2': the lists of column 'v' have 2 numbers"):
        open_source(table, columns=["v_2"])
    with pytest.raises(DataError, match="no column 'v_01'"):
        open_source(table, columns=["v_01"])
    with pytest.raises(DataError, match="Two features are called 'size'"):
        open_source(table, columns=["size", "size"])
    with pytest.raises(DataError, match="'y' is named both as a feature and as the label"):
        open_source(table, columns=["y"], label="y")
    with pytest.raises(DataError, match="Two features are called 'v_0'"):
        open_source(pa.table({"v": [[1.0]], "v_0": [1.0]}))
    with pytest.raises(DataError, match="both called 'a'"):
        open_source(pa.table([[1.0], [2.0]], names=["a", "a"]))


def test_a_name_with_a_dot_is_a_name(tmp_path):
    table = pa.table({"a": [1.0], "a.b": [2.0], "label": [0]})
    pq.write_table(table, tmp_path / "one.parquet")
    for X in (tmp_path / "one.parquet", ds.dataset(tmp_path), ds.dataset(table)):
        with open_source(X, label="label") as source:
            assert source.rows[:].tolist() == [[1.0, 2.0]]
        with open_source(X, ["a"], label="label") as source:
            assert source.rows[:].tolist() == [[1.0]]


def test_sources_without_rows_are_refused(tmp_path):
    empty = pa.table({"a": pa.array([], pa.float32()), "v": pa.array([], pa.list_(pa.float32()))})
    pq.write_table(empty, tmp_path / "one.parquet")
    for X in (empty, tmp_path / "one.parquet", ds.dataset(empty)):
        with pytest.raises(DataError, match="no rows"):
            open_source(X)


def test_files_that_are_missing_foreign_or_damaged_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"nothing.parquet"):
        open_source(tmp_path / "nothing.parquet")
    with pytest.raises(DataError, match="without Parquet files"):
        open_source(tmp_path)
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match=r"rows.csv is not a Parquet file"):
        open_source(tmp_path / "rows.csv")
    path = tmp_path / "one.parquet"
    pq.write_table(make_table()[2], path, compression="zstd")
    data = bytearray(path.read_bytes())
    data[50:4000] = bytes(3950)
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"one.parquet is damaged"):
        open_source(path, label="label")
    path.write_bytes(data[:-100])
    with pytest.raises(DataError, match=r"one.parquet is not a whole Parquet file"):
        open_source(path, label="label")


def test_fewer_values_than_a_file_promises_are_refused():
    part = [Piece("a", 0)]
    with pytest.raises(DataError, match=r"'a' has 2 values from row 7 on where 3 were promised"):
        fill(np.empty((3, 1)), pa.table({"a": [1.0, 2.0]}), part, first_row=7)


def test_other_things_are_no_sources():
    for X in (np.ones((3, 2)), [[1.0]], {"a": [1.0]}):
        with pytest.raises(DataTypeError, match="no source of rows on disk"):
            open_source(X)


def test_a_stream_is_refused_with_what_to_give_instead():
    table = make_table()[2]
    with pytest.raises(DataTypeError, match="read_all"):
        open_source(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))


def test_progress_is_told_to_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "BLOCK", 70 * 4 * 25)
    _, _, table = make_table()
    told = []
    open_source(write_folder(table, tmp_path), progress=lambda *a: told.append(a), label="label")
    assert told == [(done, N_ROWS) for done in (20, 40, 60, 80, 103)]


def test_pyarrow_is_imported_only_when_it_is_needed():
    code = (
        "import sys, setconv.io.opening as s; s.is_stored([1])\n"
        "assert 'pyarrow' not in sys.modules;"
        "sys.modules['pyarrow'] = None\n"
        "try: s.open_source('x.parquet')\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs pyarrow: pip install 'setconv[cli]'" in done.stdout
