"""Scratch files: room, errors, and nothing left behind."""

import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from setconv.errors import DataError
from setconv.io.disk import Scratch
from setconv.io.opening import open_source

TABLE = pa.table({"a": [1.0, 2.0, 3.0], "label": ["x", "y", "x"]})

HELD = """
import time
import pyarrow as pa
from setconv.io import open_source
source = open_source(pa.table({"a": [1.0, 2.0]}))
print(source.rows[1:].tolist(), flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_rows_are_given_back_as_they_were_written():
    rows = np.arange(12.0, dtype=np.float32).reshape(4, 3)
    with Scratch(3, np.float32, 4) as scratch:
        scratch.append(rows[:1])
        scratch.append(rows[1:])
        found = scratch.rows()
    np.testing.assert_array_equal(found[:], rows)


def test_short_writes_are_completed(monkeypatch):
    rows = np.arange(12.0).reshape(4, 3)
    with Scratch(3, np.float64, 4) as scratch:
        whole = scratch._file

        class Short:
            def write(self, data):
                return whole.write(data[:7])

        monkeypatch.setattr(scratch, "_file", Short())
        scratch.append(rows)
        monkeypatch.undo()
        np.testing.assert_array_equal(scratch.rows()[:], rows)


@pytest.mark.skipif(os.name != "posix", reason="an open file keeps its name there")
def test_the_file_has_no_name_even_while_it_is_used(tmp_path):
    source = open_source(TABLE, label="label")
    assert source.rows[1:].tolist() == [[2.0], [3.0]]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("failure", [DataError("no"), KeyboardInterrupt()])
def test_nothing_is_left_after_a_failure(tmp_path, monkeypatch, failure):
    files = []
    real = Scratch.append

    def fail(self, rows):
        real(self, rows)
        files.append(self._file)
        raise failure

    monkeypatch.setattr(Scratch, "append", fail)
    with pytest.raises(type(failure)):
        open_source(TABLE, label="label")
    assert [file.closed for file in files] == [True]
    assert not list(tmp_path.iterdir())


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
def test_a_disk_that_fills_up_is_said_so():
    with Scratch(2, np.float32, 3) as scratch:
        scratch.append(np.ones((3, 2)))
        with Path("/dev/full").open("wb", buffering=0) as full:
            scratch._file.close()
            scratch._file = full
            with pytest.raises(DataError, match=r"full after 0\.0 MB.*\(3 rows\).*TMPDIR"):
                scratch.append(np.ones((3, 2)))


def test_other_errors_of_the_disk_stay_what_they_are(monkeypatch):
    with Scratch(2, np.float32, 3) as scratch:

        class Broken:
            def write(self, _):
                raise OSError(errno.EIO, "broken")

            def close(self):
                pass

        monkeypatch.setattr(scratch, "_file", Broken())
        with pytest.raises(OSError, match="broken"):
            scratch.append(np.ones((3, 2)))
