"""Memmaps: read from their file where that is right, else copied; equal to the array always."""

import os
from pathlib import Path

import numpy as np
import pytest

from setconv.errors import DataError, DataTypeError, ParameterError
from setconv.io import disk, opening
from setconv.io.disk import Scratch
from setconv.io.opening import is_stored, open_source, read_batches

N_ROWS = 60


@pytest.fixture
def mapped(tmp_path):
    def make(dtype=np.float32, order="C", offset=0, mode="r", n_columns=5):
        rng = np.random.default_rng(0)
        rows = (rng.standard_normal((N_ROWS, n_columns)) * 50).astype(dtype)
        path = tmp_path / "rows.bin"
        path.write_bytes(b"h" * offset + rows.tobytes(order))
        shape = rows.shape
        return np.memmap(path, dtype, mode, offset=offset, shape=shape, order=order)

    return make


@pytest.fixture
def copied(monkeypatch):
    """How many rows went to a scratch file."""
    counts = []
    real = Scratch.append

    def counted(self, rows):
        counts.append(len(rows))
        real(self, rows)

    monkeypatch.setattr(Scratch, "append", counted)
    return counts


def assert_rows(X, expected_type=None):
    with open_source(X) as source:
        assert source.rows.dtype == (expected_type or X.dtype)
        assert source.names is None
        assert source.labels is None
        np.testing.assert_array_equal(source.rows[:], np.asarray(X))
        numbers = np.array([7, 3, 3, 0])
        np.testing.assert_array_equal(source.rows[numbers], np.asarray(X)[numbers])
    streamed = np.concatenate([batch.rows for batch in read_batches(X, size=7)])
    np.testing.assert_array_equal(streamed, np.asarray(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0, 12, 5000])
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_plain_floats_are_read_where_they_lie(mapped, copied, dtype, offset, mode):
    X = mapped(dtype, offset=offset, mode=mode)
    assert_rows(X)
    assert_rows(X[11:40])
    assert_rows(X[11:][:20])
    assert not copied


def test_what_load_gives_is_read_where_it_lies(tmp_path, copied):
    np.save(tmp_path / "rows.npy", np.arange(60.0).reshape(20, 3))
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert_rows(X)
    assert_rows(X[5:])
    assert not copied


def test_no_more_than_a_block_is_read_at_once(mapped, monkeypatch):
    monkeypatch.setattr(disk, "BLOCK", 5 * 4 * 8)
    monkeypatch.setattr(disk, "_LOOK", 5)
    sizes = []

    def counted(number, buffers, offset, real=os.preadv):
        sizes.append(sum(map(len, buffers)))
        return real(number, buffers, offset)

    monkeypatch.setattr(os, "preadv", counted)
    open_source(mapped())
    assert sum(sizes) >= N_ROWS * 5 * 4
    assert max(sizes) == 5 * 4 * 8


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float16", np.float32),
        ("int8", np.float32),
        ("uint16", np.float32),
        ("bool", np.float32),
        ("int32", np.float64),
        ("int64", np.float64),
        (">f4", np.float32),
        (">f8", np.float64),
    ],
)
def test_other_numbers_are_copied(mapped, copied, dtype, expected):
    assert_rows(mapped(dtype), expected)
    assert sum(copied) == N_ROWS


def test_other_orders_and_views_are_copied(mapped, copied):
    X = mapped()
    assert_rows(X[::2])
    assert_rows(X[:, 1:4])
    assert_rows(X[::-1])
    assert_rows(mapped(order="F"))
    assert sum(copied) == 30 + 3 * N_ROWS


def test_changes_that_are_only_in_memory_count(mapped, copied):
    X = mapped(mode="c")
    X[20] = 7.0
    assert_rows(X)
    assert sum(copied) == N_ROWS


def test_changes_that_are_shared_with_the_file_count(mapped):
    X = mapped(mode="r+")
    X[20] = 7.0
    assert_rows(X)


@pytest.mark.skipif(os.name != "posix", reason="a mapped file cannot be removed there")
@pytest.mark.parametrize("replaced", [None, b"x", bytes(N_ROWS * 20)])
def test_a_file_that_is_no_longer_the_mapped_one_is_not_read(mapped, copied, replaced):
    X = mapped()
    Path(X.filename).unlink()
    if replaced is not None:
        Path(X.filename).write_bytes(replaced)
    assert_rows(X)
    assert sum(copied) == N_ROWS


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_is_refused_with_column_and_row(mapped, monkeypatch, value):
    monkeypatch.setattr(disk, "BLOCK", 5 * 4 * 8)
    X = mapped(mode="r+")
    X[33, 2] = value
    for read in (open_source, lambda X: list(read_batches(X, size=9))):
        with pytest.raises(DataError, match=r"Column 2 has (NaN|infinity) in row 33"):
            read(X)


def test_names_must_be_as_many_as_columns(mapped):
    X = mapped()
    with open_source(X, columns=list("abcde")) as source:
        assert source.names == list("abcde")
    for read in (open_source, read_batches):
        with pytest.raises(DataError, match="has 5 columns without names, and 2 names"):
            read(X, columns=["a", "b"])


def test_what_a_memmap_cannot_give_is_refused(mapped, tmp_path):
    with pytest.raises(ParameterError, match=r"no named columns.*as an array"):
        open_source(mapped(), label="y")
    with pytest.raises(ParameterError, match="no named columns"):
        read_batches(mapped(), extra=["y"])
    with pytest.raises(DataTypeError, match="rows and columns"):
        open_source(mapped()[0])
    with pytest.raises(DataTypeError, match="numbers"):
        open_source(np.memmap(tmp_path / "rows.bin", "S4", "r", shape=(5, 3)))
    with pytest.raises(DataError, match="no rows"):
        open_source(np.memmap(tmp_path / "empty.bin", np.float32, "w+", shape=(0, 3)))


def test_progress_is_told_to_the_end(mapped, monkeypatch):
    monkeypatch.setattr(disk, "BLOCK", 5 * 4 * 25)
    told = []
    open_source(mapped(), progress=lambda *a: told.append(a))
    assert told == [(25, 60), (50, 60), (60, 60)]


def test_only_large_memmaps_of_numbers_are_stored(mapped, monkeypatch):
    X = mapped()
    assert not is_stored(X)
    monkeypatch.setattr(opening, "SMALL", 100)
    assert is_stored(X)
    assert is_stored(X[:10])
    assert not is_stored(X[:1])
    assert not is_stored(X + 1)  # computed: it lies in memory
    assert not is_stored(np.asarray(X))
    assert not is_stored(X.reshape(-1))
