"""Rows of a file, indexed like an array; scratch files that leave nothing."""

import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
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
        monkeypatch.setattr(disk, "_BUFFERS", 7)
    numbers = np.arange(N_ROWS)[::-2].repeat(3)
    np.testing.assert_array_equal(rows[numbers], TABLE[numbers])
    np.testing.assert_array_equal(rows[3:9], TABLE[3:9])


def test_other_keys_are_refused(rows):
    for key in ([0, N_ROWS], [0, -1]):
        with pytest.raises(IndexError):
            rows[key]
    for key in (3, np.array([True, False, True]), np.array([1.0]), np.array([[1]]), "a"):
        with pytest.raises(TypeError):
            rows[key]


def test_a_file_that_was_cut_off_is_said_so(path):
    with DiskRows(io.FileIO(path), (N_ROWS + 1, 3), np.float32, offset=8) as rows:
        for key in (slice(N_ROWS, None), [N_ROWS]):
            with pytest.raises(DataError, match="cut off"):
                rows[key]


def test_threads_can_share_it(rows):
    draws = np.random.default_rng(0).integers(0, N_ROWS, (200, 30))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(rows.__getitem__, draws))
    np.testing.assert_array_equal(found, TABLE[draws])


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
