"""Parquet files, Arrow data and memmaps as rows of numbers: equal to memory, and every refusal."""

import logging
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from setconv.errors import DataError, DataTypeError, LabelError, ParameterError
from setconv.io import disk
from setconv.io.opening import open_source, read_batches
from setconv.io.records import open_records

N_ROWS = 103


def make_table(n_columns=70, seed=0, dtype=np.float32):
    """Rows and labels, and a table of both with the label among the features."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((N_ROWS, n_columns)).astype(dtype)
    table = pa.table({f"f{number}": rows[:, number] for number in range(n_columns)})
    labels = np.array(["no", "yes"])[rng.integers(0, 2, N_ROWS)]
    return rows, labels, table.add_column(2, "label", pa.array(labels))


def write_folder(table, folder):
    folder.mkdir(exist_ok=True)
    for number, start in enumerate(range(0, N_ROWS, 40)):
        pq.write_table(table.slice(start, 40), folder / f"part-{number}.parquet", row_group_size=10)
    return folder


def assert_source(X, rows, labels, names=None, **options):
    source = open_source(X, label=None if labels is None else "label", **options)
    assert source.rows.dtype == rows.dtype
    for size in (7, 40, 1000):  # each is a pass of its own
        blocks = [block.copy() for block in source.rows.blocks(size)]
        assert {len(block) for block in blocks[:-1]} <= {size}
        np.testing.assert_array_equal(np.concatenate(blocks), rows)
    if labels is not None:
        np.testing.assert_array_equal(labels_of(source), labels)
    assert source.names == (names or [f"f{number}" for number in range(rows.shape[1])])


def labels_of(source):
    names, codes = source.labels()
    return names[codes]


def whole(X, **options):
    return open_source(X, **options).rows.whole()


@pytest.mark.parametrize("kind", ["file", "folder", "text", "dataset", "reader", "table", "batch"])
def test_every_kind_of_source_gives_the_same_rows(tmp_path, kind):
    rows, labels, table = make_table()
    folder = write_folder(table, tmp_path / "folder")
    pq.write_table(table, tmp_path / "one.parquet")
    found = {
        "file": tmp_path / "one.parquet",
        "folder": folder,
        "text": str(folder),
        "dataset": ds.dataset(folder),
        "reader": open_records(folder),
        "table": table,
        "batch": table.to_batches()[0],
    }[kind]
    assert_source(found, rows, labels)
    chosen = ["f60", "f2", "f3", "f0"]
    assert_source(found, rows[:, [60, 2, 3, 0]], labels, chosen, columns=chosen)


def test_filtered_and_partitioned_datasets_are_left_to_pyarrow(tmp_path):
    rows, labels, table = make_table()
    parts = {"partitioning": ["label"], "partitioning_flavor": "hive"}
    ds.write_dataset(table, tmp_path / "parts", format="parquet", **parts)
    order = np.argsort(labels, kind="stable")
    assert_source(ds.dataset(tmp_path / "parts", partitioning="hive"), rows[order], labels[order])
    kept = rows[:, 0] > 0
    for dataset in (ds.dataset(table), ds.dataset(write_folder(table, tmp_path / "plain"))):
        assert_source(dataset.filter(ds.field("f0") > 0), rows[kept], labels[kept])


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (["float32"], np.float32),
        (["float16", "int8", "int16", "uint8", "uint16", "bool", "float32"], np.float32),
        (["float32", "float64"], np.float64),
        (["float32", "int32"], np.float64),
        (["uint64", "bool"], np.float64),
    ],
)
def test_the_type_holds_every_number_exactly(kinds, expected):
    values = [0, 1, 1, 0]
    columns = {f"f{n}": pa.array(np.array(values, dtype=kind)) for n, kind in enumerate(kinds)}
    assert_source(pa.table(columns), np.array([values] * len(kinds), expected).T, None)


def test_decimals_dictionaries_slices_and_large_numbers_keep_their_values():
    columns = {
        "f0": pa.array([0.1, 1e300]),
        "f1": pa.array([1.25, 2.5]).cast(pa.decimal128(5, 2)),
        "f2": pa.array([7, 8]).dictionary_encode(),
    }
    assert_source(pa.table(columns), np.array([[0.1, 1.25, 7.0], [1e300, 2.5, 8.0]]), None)
    twice = pa.concat_tables([pa.table({"f0": [1.0, 2.0, 3.0], "f1": [True, False, True]})] * 2)
    assert_source(twice.slice(1, 4), np.array([[2.0, 0], [3, 1], [1, 1], [2, 0]]), None)
    large = np.array([[3e38], [3e38]], np.float32)  # the sum overflows
    assert_source(pa.table({"f0": large[:, 0]}), large, None)


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float32()), pa.list_(pa.float32(), 40), pa.large_list(pa.float32())]
)
def test_a_column_of_lists_counts_as_many_features(tmp_path, kind):
    rows = np.random.default_rng(0).standard_normal((N_ROWS, 40)).astype(np.float32)
    labels = np.arange(N_ROWS) % 3
    table = pa.table({"label": labels, "v": pa.array(list(rows), kind), "a": labels.astype("i1")})
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=10)
    names = [f"v_{number}" for number in range(40)]
    whole = np.column_stack([rows, labels.astype(np.float32)])
    for X in (tmp_path / "one.parquet", table, ds.dataset(table)):
        assert_source(X, whole, labels, [*names, "a"])
        chosen = ["v_2", "v_3", "a", "v_0"]
        assert_source(X, whole[:, [2, 3, 40, 0]], labels, chosen, columns=chosen)
    assert_source(table.slice(7, 20), whole[7:27], labels[7:27], [*names, "a"])


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (pa.array([1, 0, 1], pa.int8()), np.array([1, 0, 1], np.int8)),
        (pa.array([True, False, True]), np.array([True, False, True])),
        (pa.array([0.0, 1.5, 0.0]), np.array([0.0, 1.5, 0.0])),
        (pa.array(["01", "b", "01"]), np.array(["01", "b", "01"])),
        (pa.array(["x", "y", "x"]).dictionary_encode(), np.array(["x", "y", "x"])),
    ],
)
def test_labels_are_the_values_of_their_column(labels, expected):
    one = pa.table({"f0": [1.0, 2.0, 3.0], "label": labels})
    source = open_source(pa.concat_tables([one, one.slice(1)]), label="label")
    found = labels_of(source)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, np.append(expected, expected[1:]))
    assert source.names == ["f0"]


@pytest.mark.parametrize(
    "labels", [["a", "b", "a", None], [1, 2, 1, None], [1.0, 2.0, 1.0, np.nan], [[1.0]] * 4]
)
def test_labels_that_are_missing_or_none_are_refused(labels):
    table = pa.table({"a": [1.0, 2.0, 1.0, 2.0], "label": labels})
    with pytest.raises(LabelError) as caught:
        labels_of(open_source(table, label="label"))
    assert "'label'" in str(caught.value)
    assert caught.value.row == (None if isinstance(labels[0], list) else 3)


@pytest.mark.parametrize(("value", "said"), [(None, "null"), (np.nan, "NaN"), (-np.inf, "inf")])
@pytest.mark.parametrize("kind", ["folder", "table"])
def test_what_is_no_number_is_refused_with_column_and_row(tmp_path, value, said, kind):
    rows, _, table = make_table()
    column = rows[:, 66].tolist()
    column[57] = value
    place = table.column_names.index("f66")
    table = table.set_column(place, "f66", pa.array(column, pa.float32()))
    X = write_folder(table, tmp_path) if kind == "folder" else table
    for read in (whole, lambda X, **_: list(read_batches(X, size=10))):
        with pytest.raises(DataError, match=said) as caught:
            read(X, label="label")
        assert (caught.value.column, caught.value.row) == ("f66", 57)


@pytest.mark.parametrize(
    ("lists", "column", "row"),
    [
        ([[1.0, 2.0], [1.0]], "v", 1),
        ([[1.0, 2.0], None], "v", 1),
        ([None, [1.0, 2.0]], "v", 0),
        ([[1.0, 2.0], [1.0, None]], "v", 1),
        ([[1.0, 2.0], [1.0, np.nan]], "v_1", 1),
        ([[], []], "v", 0),
    ],
)
def test_lists_that_are_no_vectors_are_refused(lists, column, row):
    with pytest.raises(DataError) as caught:
        whole(pa.table({"v": pa.array(lists, pa.list_(pa.float64()))}))
    assert (caught.value.column, caught.value.row) == (column, row)


def test_text_is_left_out_with_a_warning(caplog):
    table = pa.table({"a": [1.0], "id": ["x"], "when": pa.array([0], pa.timestamp("s"))})
    with caplog.at_level(logging.WARNING, "setconv"):
        assert open_source(table).names == ["a"]
    assert "'id', 'when'" in caplog.text
    with pytest.raises(DataError, match="'id', 'when'"):
        open_source(table.select(["id", "when"]))


@pytest.mark.parametrize(
    ("columns", "column"),
    [
        (["sise"], "sise"),
        (["v_2"], "v_2"),
        (["v_01"], "v_01"),
        (["size", "size"], "size"),
        (["y"], "y"),
        (["id"], "id"),
        (None, "v_0"),
    ],
)
def test_columns_that_cannot_be_features_are_refused(columns, column):
    table = pa.table({"size": [1.0], "v": [[1.0, 2.0]], "y": [0], "id": ["x"]})
    if columns is None:
        table = table.append_column("v_0", pa.array([1.0]))
    with pytest.raises(DataError) as caught:
        open_source(table, columns, "y")
    assert caught.value.column == column


@pytest.mark.parametrize(
    "wrong",
    [{"columns": []}, {"columns": "size"}, {"columns": 3}, {"label": 3}, {"size": 1.5}],
    ids=repr,
)
def test_parameters_that_mean_nothing_are_refused_by_name(wrong):
    table = pa.table({"size": [1.0], "y": [0]})
    call = (lambda X, **more: list(read_batches(X, **more))) if "size" in wrong else open_source
    with pytest.raises((DataError, ParameterError)) as caught:
        call(table, **wrong)
    assert caught.value.parameter == ("y" if "label" in wrong else next(iter(wrong)))


def test_empty_parts_of_a_table_are_passed_over():
    parts = pa.chunked_array([pa.array([], pa.float64()), pa.array([1.0, 2.0])])
    assert_source(pa.table({"f0": parts}), np.array([[1.0], [2.0]]), None)


def test_a_name_with_a_dot_is_a_name(tmp_path):
    table = pa.table({"f0": [1.0], "f0.b": [2.0], "label": [0]})
    pq.write_table(table, tmp_path / "one.parquet")
    for X in (tmp_path / "one.parquet", ds.dataset(tmp_path), ds.dataset(table)):
        assert_source(X, np.array([[1.0, 2.0]]), [0], ["f0", "f0.b"])
        assert_source(X, np.array([[1.0]]), [0], columns=["f0"])


def test_what_is_no_source_is_refused(tmp_path):
    empty = pa.table({"a": pa.array([], pa.float32())})
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    for X, said in (
        (empty, "no rows"),
        (ds.dataset(empty), "no rows"),
        (pa.table([[1.0], [2.0]], names=["a", "a"]), "both called 'a'"),
        (tmp_path / "nothing.parquet", "nothing.parquet"),
        (tmp_path, "without Parquet files"),
        (tmp_path / "rows.csv", "not a Parquet file"),
    ):
        with pytest.raises(DataError, match=said):
            open_source(X)
    for X in (pa.table({"a": [1.0]}).to_reader(), pa.array([1.0])):
        with pytest.raises(DataTypeError):
            open_source(X)


# -------------------------------------------------------------------------------------- batches


@pytest.fixture
def folder(tmp_path):
    rows, labels, table = make_table(6)
    ids = pa.array([f"row {number}" for number in range(N_ROWS)])
    return write_folder(table.append_column("id", ids), tmp_path / "folder"), rows, labels


@pytest.mark.parametrize("size", [1, 17, 1000])
def test_batches_are_all_rows_in_their_order_with_what_was_asked_for(folder, size):
    path, rows, _ = folder
    told = []
    batches = list(read_batches(path, ["f3", "f0"], size, ["id", "f0"], lambda *a: told.append(a)))
    assert {len(batch.rows) for batch in batches[:-1]} <= {size}
    found = np.concatenate([batch.rows for batch in batches])
    np.testing.assert_array_equal(found, rows[:, [3, 0]])
    extra = pa.concat_tables([batch.extra for batch in batches])
    assert extra["id"].to_pylist() == [f"row {number}" for number in range(N_ROWS)]
    np.testing.assert_array_equal(extra["f0"].to_numpy(), rows[:, 0])
    assert told[-1] == (N_ROWS, N_ROWS)
    assert len(told) == len(batches)


# -------------------------------------------------------------------------------------- memmaps


@pytest.fixture
def mapped(tmp_path):
    def make(dtype=np.float32, offset=0, mode="r"):
        rows = (np.random.default_rng(0).standard_normal((60, 5)) * 50).astype(dtype)
        path = tmp_path / "rows.bin"
        path.write_bytes(b"h" * offset + rows.tobytes())
        return np.memmap(path, dtype, mode, offset=offset, shape=rows.shape)

    return make


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0, 12, 5000])
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_memmap_is_read_where_it_lies(mapped, monkeypatch, dtype, offset, mode):
    monkeypatch.setattr(disk, "_READ", 300)
    every = mapped(dtype, offset, mode)
    if mode == "r+":
        every[20] = 7.0
    for X in (every, every[11:40], every[11:][:20]):
        told = []
        source = open_source(X, bar=lambda told=told: nullcontext(lambda *a: told.append(a)))
        assert (source.rows.dtype, source.names) == (dtype, None)
        np.testing.assert_array_equal(source.rows.whole(), np.asarray(X))
        some = source.rows.subset(np.array([3, 7, 8])).subset(np.array([0, 2]))
        np.testing.assert_array_equal(some.whole(), np.asarray(X)[[3, 8]])
        assert told[-1] == (len(X), len(X))
        streamed = np.concatenate([batch.rows.copy() for batch in read_batches(X, size=7)])
        np.testing.assert_array_equal(streamed, np.asarray(X))


@pytest.mark.skipif(os.name != "posix", reason="a mapped file cannot be removed")
@pytest.mark.parametrize("replaced", [None, b"x", bytes(60 * 20)])
def test_a_file_that_is_no_longer_the_mapped_one_is_refused(mapped, replaced):
    X = mapped()
    Path(X.filename).unlink()
    if replaced is not None:
        Path(X.filename).write_bytes(replaced)
    with pytest.raises(DataError, match="asarray"):
        open_source(X)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_of_a_memmap_that_is_not_finite_is_refused(mapped, value):
    X = mapped(mode="r+")
    X[33, 2] = value
    for read in (whole, lambda X: list(read_batches(X, size=9))):
        with pytest.raises(DataError) as caught:
            read(X)
        assert (caught.value.column, caught.value.row) == (2, 33)


def test_other_memmaps_are_refused(mapped):
    X = mapped()
    for other in (mapped(np.int64), X[::2], X[:, 1:], X[0], mapped(mode="c")):
        with pytest.raises(DataTypeError):
            open_source(other)


def test_without_pyarrow_a_path_names_what_it_needs():
    program = (
        "import sys\n"
        "sys.modules['pyarrow'] = None\n"
        "from setconv import SetConvClassifier\n"
        "from setconv.errors import MissingDependencyError\n"
        "try:\n"
        "    SetConvClassifier().fit('rows.parquet', 'label')\n"
        "except MissingDependencyError as error:\n"
        "    assert \"pip install 'setconv[cli]'\" in str(error)\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
