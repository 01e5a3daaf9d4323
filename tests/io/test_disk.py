"""Rows of a file, indexed like an array."""

import gc
import io
import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setconv.errors import DataError
from setconv.io import disk
from setconv.io.disk import DiskRows

N_ROWS = 50
TABLE = np.random.default_rng(0).standard_normal((N_ROWS, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("disk") / "rows.bin"
    path.write_bytes(b"12345678" + TABLE.tobytes())
    return path


@pytest.fixture(scope="module")
def rows(path):
    with DiskRows(io.FileIO(path), TABLE.shape, np.float32, offset=8) as rows:
        yield rows


def test_it_looks_like_an_array(rows):
    assert rows.shape == (N_ROWS, 3)
    assert rows.dtype == np.float32
    assert rows.ndim == 2
    assert len(rows) == N_ROWS
    assert rows.nbytes == TABLE.nbytes
    assert repr(rows) == "<DiskRows of shape (50, 3), float32>"


@given(st.slices(N_ROWS))
def test_a_slice_is_what_numpy_gives(rows, key):
    np.testing.assert_array_equal(rows[key], TABLE[key])


@given(st.lists(st.integers(-N_ROWS, N_ROWS - 1), max_size=80))
def test_a_gather_is_what_numpy_gives(rows, numbers):
    numbers = np.array(numbers, dtype=np.int64)
    found = rows[numbers]
    np.testing.assert_array_equal(found, TABLE[numbers])
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert found.flags.writeable


@given(st.lists(st.booleans(), min_size=N_ROWS, max_size=N_ROWS))
def test_a_mask_is_what_numpy_gives(rows, mask):
    np.testing.assert_array_equal(rows[np.array(mask)], TABLE[np.array(mask)])


def test_a_gather_of_more_neighbours_than_one_call_takes(rows, monkeypatch):
    monkeypatch.setattr(disk, "_BUFFERS", 7)
    numbers = np.random.default_rng(1).permutation(N_ROWS)
    np.testing.assert_array_equal(rows[numbers], TABLE[numbers])


def test_one_row_lists_and_unsigned_numbers(rows):
    np.testing.assert_array_equal(rows[4], TABLE[4])
    np.testing.assert_array_equal(rows[np.int32(-1)], TABLE[-1])
    np.testing.assert_array_equal(rows[[3, 1]], TABLE[[3, 1]])
    np.testing.assert_array_equal(rows[np.array([3, 1], np.uint8)], TABLE[[3, 1]])


def test_neighbours_are_read_in_one_call_and_repeats_once(rows, monkeypatch):
    calls = []

    def counted(number, buffers, offset, real=os.preadv):
        calls.append((offset, sum(map(len, buffers))))
        return real(number, buffers, offset)

    monkeypatch.setattr(os, "preadv", counted)
    numbers = [9, 4, 5, 5, 20, 6, 9]
    np.testing.assert_array_equal(rows[numbers], TABLE[numbers])
    assert calls == [(8 + 12 * 4, 36), (8 + 12 * 9, 12), (8 + 12 * 20, 12)]


def test_short_reads_are_completed(rows, monkeypatch):
    def short(number, buffers, offset, real=os.preadv):
        return real(number, [buffers[0][:5]], offset)

    monkeypatch.setattr(os, "preadv", short)
    np.testing.assert_array_equal(rows[3:9], TABLE[3:9])
    np.testing.assert_array_equal(rows[[3, 4, 8]], TABLE[[3, 4, 8]])


def test_systems_without_positioned_reads_seek(rows, monkeypatch):
    monkeypatch.delattr(disk.os, "preadv")
    monkeypatch.delattr(disk.os, "posix_fadvise", raising=False)
    np.testing.assert_array_equal(rows[3:9], TABLE[3:9])
    numbers = np.arange(N_ROWS)[::-2].repeat(3)
    np.testing.assert_array_equal(rows[numbers], TABLE[numbers])


def test_many_reads_are_announced_to_the_disk(rows, monkeypatch):
    announced = []
    monkeypatch.setattr(disk, "_ADVISED", 2)
    monkeypatch.setattr(os, "posix_fadvise", lambda *a: announced.append(a[1:3]), raising=False)
    monkeypatch.setattr(os, "POSIX_FADV_WILLNEED", 3, raising=False)
    rows[[1, 2, 30]]
    assert announced == [(8 + 12, 24), (8 + 12 * 30, 12)]


@pytest.mark.parametrize("number", [N_ROWS, -N_ROWS - 1])
def test_a_row_that_is_not_there_is_refused(rows, number):
    with pytest.raises(IndexError, match=f"no row {number}: there are 50 rows"):
        rows[[0, number]]
    with pytest.raises(IndexError, match=f"no row {number}"):
        rows[number]


def test_other_keys_are_refused(rows):
    with pytest.raises(IndexError, match="mask of 3 for 50"):
        rows[np.array([True, False, True])]
    with pytest.raises(TypeError, match="1-D array of row numbers"):
        rows[np.array([1.0])]
    with pytest.raises(TypeError, match="shape"):
        rows[np.array([[1]])]
    with pytest.raises(TypeError):
        rows["a"]


def test_it_is_not_read_as_a_whole_by_accident(rows):
    with pytest.raises(TypeError, match="rows\\[:\\]"):
        np.asarray(rows)
    np.testing.assert_array_equal(rows[:], TABLE)


def test_a_file_that_was_cut_off_is_said_so(path):
    with DiskRows(io.FileIO(path), (N_ROWS + 1, 3), np.float32, offset=8) as rows:
        with pytest.raises(DataError, match="cut off"):
            rows[N_ROWS:]
        with pytest.raises(DataError, match="cut off"):
            rows[[N_ROWS]]


def test_threads_can_share_it(rows):
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        for _ in range(50):
            numbers = rng.integers(0, N_ROWS, 30)
            if not np.array_equal(rows[numbers], TABLE[numbers]):
                wrong.append(numbers)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_file_is_closed_with_the_rows_and_when_they_are_forgotten(path):
    file = io.FileIO(path)
    with DiskRows(file, TABLE.shape, np.float32, 8) as rows:
        pass
    assert file.closed
    rows.close()
    with pytest.raises(ValueError, match="closed"):
        rows[0:1]
    file = io.FileIO(path)
    rows = DiskRows(file, TABLE.shape, np.float32, 8)
    del rows
    gc.collect()
    assert file.closed
