"""Rows of a file, indexed like an array; scratch files that leave nothing."""

import errno
import gc
import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setconv.errors import DataError
from setconv.io import disk
from setconv.io.disk import DiskRows, Scratch

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
    assert (rows.shape, rows.dtype, rows.ndim) == ((N_ROWS, 3), np.float32, 2)
    assert (len(rows), rows.nbytes) == (N_ROWS, TABLE.nbytes)
    with pytest.raises(TypeError):  # it is not read as a whole by accident
        np.asarray(rows)
    np.testing.assert_array_equal(rows[:], TABLE)


@given(st.slices(N_ROWS))
def test_a_slice_is_what_numpy_gives(rows, key):
    np.testing.assert_array_equal(rows[key], TABLE[key])


@given(st.lists(st.integers(0, N_ROWS - 1), max_size=80))
def test_a_gather_is_what_numpy_gives(rows, numbers):
    numbers = np.array(numbers, dtype=np.int64)
    found = rows[numbers]
    np.testing.assert_array_equal(found, TABLE[numbers])
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert found.flags.writeable
    np.testing.assert_array_equal(rows[numbers.astype(np.uint8).tolist()], found)
    np.testing.assert_array_equal(rows.subset(numbers)[::2], TABLE[numbers][::2])


def test_a_gather_of_more_neighbours_than_one_call_takes(rows, monkeypatch):
    monkeypatch.setattr(disk, "_BUFFERS", 7)
    numbers = np.random.default_rng(1).permutation(N_ROWS)
    np.testing.assert_array_equal(rows[numbers], TABLE[numbers])


def test_neighbours_are_read_in_one_call_and_repeats_once(rows, monkeypatch):
    calls = []

    def counted(number, buffers, offset, real=os.preadv):
        calls.append((offset, sum(map(len, buffers))))
        return real(number, buffers, offset)

    monkeypatch.setattr(os, "preadv", counted)
    numbers = [9, 4, 5, 5, 20, 6, 9]
    np.testing.assert_array_equal(rows[numbers], TABLE[numbers])
    assert calls == [(8 + 12 * 4, 36), (8 + 12 * 9, 12), (8 + 12 * 20, 12)]


@pytest.mark.parametrize("system", ["short reads", "no positioned reads", "many reads"])
def test_systems_differ_and_rows_do_not(rows, monkeypatch, system):
    if system == "short reads":

        def short(number, buffers, offset, real=os.preadv):
            return real(number, [buffers[0][:5]], offset)

        monkeypatch.setattr(os, "preadv", short)
    elif system == "no positioned reads":
        monkeypatch.delattr(disk.os, "preadv")
        monkeypatch.delattr(disk.os, "posix_fadvise", raising=False)
    else:
        monkeypatch.setattr(disk, "_ADVISED", 2)
    numbers = np.arange(N_ROWS)[::-2].repeat(3)
    np.testing.assert_array_equal(rows[numbers], TABLE[numbers])
    np.testing.assert_array_equal(rows[3:9], TABLE[3:9])


@pytest.mark.parametrize(
    ("key", "error"),
    [
        ([0, N_ROWS], IndexError),
        ([0, -1], IndexError),
        (3, TypeError),
        (np.array([True, False, True]), TypeError),
        (np.array([1.0]), TypeError),
        (np.array([[1]]), TypeError),
        ("a", TypeError),
    ],
)
def test_other_keys_are_refused(rows, key, error):
    with pytest.raises(error):
        rows[key]


def test_a_file_that_was_cut_off_is_said_so(path):
    with DiskRows(io.FileIO(path), (N_ROWS + 1, 3), np.float32, offset=8) as rows:
        for key in (slice(N_ROWS, None), [N_ROWS]):
            with pytest.raises(DataError, match="cut off"):
                rows[key]


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
    file = io.FileIO(path)
    rows = DiskRows(file, TABLE.shape, np.float32, 8)
    del rows
    gc.collect()
    assert file.closed


# -------------------------------------------------------------------------------- scratch files

HELD = """
import time
import pyarrow as pa
from setconv.io import open_source
source = open_source(pa.table({"a": [1.0, 2.0]}))
print(source.rows[1:].tolist(), flush=True)
time.sleep(60)
"""


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Scratch(3, np.float32, 50) as scratch:
        yield scratch


def test_rows_are_given_back_as_they_were_written(scratch, tmp_path, monkeypatch):
    scratch.append(TABLE[:1])
    whole = scratch._file

    class Short:
        def write(self, data):
            return whole.write(data[:7])

    monkeypatch.setattr(scratch, "_file", Short())
    scratch.append(TABLE[1:])
    monkeypatch.setattr(scratch, "_file", whole)
    np.testing.assert_array_equal(scratch.rows()[:], TABLE)
    assert os.name != "posix" or not list(tmp_path.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_killed_process_leaves_nothing(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HELD],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert process.stdout.readline() == "[[2.0]]\n"
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())


def test_too_little_room_is_said_before_anything_is_read(monkeypatch):
    usage = namedtuple("usage", "total used free")(10**9, 10**9, 3_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(DataError, match=r"scratch file of 6\.1 GB.*3\.0 MB free.*TMPDIR"):
        Scratch(1024, np.float32, 1_500_000)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_fills_up_is_said_so(scratch):
    with Path("/dev/full").open("wb", buffering=0) as full:
        scratch._file.close()
        scratch._file = full
        with pytest.raises(DataError, match=r"full after 0\.0 MB.*TMPDIR"):
            scratch.append(TABLE)


def test_other_errors_of_the_disk_stay_what_they_are(scratch, monkeypatch):
    class Broken:
        def write(self, _):
            raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(scratch, "_file", Broken())
    with pytest.raises(OSError, match="broken"):
        scratch.append(TABLE)
