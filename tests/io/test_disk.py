"""Rows that are read from disk, in passes and by number; scratch files that leave nothing."""

import io
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setconv.errors import DataError
from setconv.io.disk import DiskRows, GatheredRows, StreamedRows

N_ROWS = 50
TABLE = np.random.default_rng(0).standard_normal((N_ROWS, 3)).astype(np.float32)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("disk") / "rows.bin"
    path.write_bytes(b"12345678" + TABLE.tobytes())
    return path


@pytest.fixture(scope="module")
def rows(path):
    return DiskRows(io.FileIO(path), TABLE.shape, np.float32, offset=8)


@given(st.integers(0, N_ROWS), st.integers(0, N_ROWS + 9))
def test_a_span_is_what_numpy_gives(rows, start, count):
    np.testing.assert_array_equal(rows.span(start, start + count), TABLE[start : start + count])


@given(st.lists(st.integers(0, N_ROWS - 1), max_size=80))
def test_a_gather_is_what_numpy_gives(rows, numbers):
    numbers = np.array(numbers, dtype=np.int64)
    found = rows.gather(numbers)
    np.testing.assert_array_equal(found, TABLE[numbers])
    assert found.dtype == np.float32
    assert found.flags.c_contiguous
    assert found.flags.writeable


def test_a_read_may_give_less_than_was_asked_for(path):
    class Short(io.FileIO):
        def readinto(self, buffer):
            return super().readinto(buffer[:5])

    short = DiskRows(Short(path), TABLE.shape, np.float32, offset=8)
    numbers = np.arange(N_ROWS)[::-2].repeat(3)
    np.testing.assert_array_equal(short.gather(numbers), TABLE[numbers])
    np.testing.assert_array_equal(short.span(3, 9), TABLE[3:9])


def test_a_file_that_was_cut_off_is_said_so(path):
    rows = DiskRows(io.FileIO(path), (N_ROWS + 1, 3), np.float32, offset=8)
    for read in (lambda: rows.span(N_ROWS, N_ROWS + 1), lambda: rows.gather(np.array([N_ROWS]))):
        with pytest.raises(DataError, match="cut off"):
            read()


def test_threads_can_share_it(rows):
    draws = np.random.default_rng(0).integers(0, N_ROWS, (200, 30))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(rows.gather, draws))
    np.testing.assert_array_equal(found, TABLE[draws])


# ------------------------------------------------------------------------------ streams of rows


def stream_of(heights, **options):
    """Rows that come in tables of these heights, as often as they are asked for."""
    ends = np.cumsum(heights)
    parts = list(zip(ends - heights, ends, strict=True))
    return StreamedRows(lambda: (TABLE[a:b] for a, b in parts), TABLE.shape, np.float32, **options)


heights = st.lists(st.integers(0, N_ROWS), max_size=6).map(
    lambda cuts: np.diff([0, *sorted(cuts), N_ROWS])
)


@given(heights, st.integers(1, 60), st.sets(st.integers(0, N_ROWS - 1)))
def test_blocks_are_all_rows_in_their_order_whatever_the_tables(some, size, chosen):
    stream, chosen = stream_of(some), np.array(sorted(chosen), dtype=np.int64)
    for rows, expected in (
        (stream, TABLE),
        (stream.subset(chosen), TABLE[chosen]),
        (stream.subset(chosen).subset(np.arange(len(chosen))[::2]), TABLE[chosen][::2]),
    ):
        blocks = [block.copy() for block in rows.blocks(size)]
        assert {len(block) for block in blocks[:-1]} <= {size}
        np.testing.assert_array_equal(np.concatenate([TABLE[:0], *blocks]), expected)
        np.testing.assert_array_equal(rows.whole(), expected)


# ------------------------------------------------------------------------------- gathered rows

HELD = """
import time
import numpy as np
from setconv.io.disk import GatheredRows, StreamedRows
rows = np.array([[1.0], [2.0]])
stream = StreamedRows(lambda: iter([rows]), (2, 1), np.float64)
held = GatheredRows(stream, np.array([0, 1]), np.array([1, 0]))
held.add(slice(0, 2), rows)
print(held[np.array([1])].tolist(), flush=True)
time.sleep(60)
"""


@given(st.permutations(range(N_ROWS)), st.integers(0, N_ROWS), st.integers(1, 60))
def test_gathered_rows_are_found_by_their_numbers(order, count, size):
    wanted = np.array(order[:count], dtype=np.int64)
    places = np.argsort(wanted, kind="stable")
    stream = stream_of([N_ROWS])
    with closing(GatheredRows(stream, wanted[places], places)) as rows:
        for start, block in zip(range(0, N_ROWS, size), stream.blocks(size), strict=True):
            rows.add(slice(start, start + len(block)), block)
        if count:
            asked = np.random.default_rng(0).choice(wanted, 30)
            np.testing.assert_array_equal(rows[asked], TABLE[asked])
            # In the file they lie in the order that was asked for.
            np.testing.assert_array_equal(rows._rows.span(0, count), TABLE[wanted])
        for other in set(range(N_ROWS)) - set(wanted.tolist()):
            with pytest.raises(IndexError):
                rows[np.array([other])]


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


def test_too_little_room_is_said_before_anything_is_written(monkeypatch):
    usage = namedtuple("usage", "total used free")(10**9, 10**9, 3_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    stream = StreamedRows(lambda: iter(()), (2_000_000, 1024), np.float32)
    with pytest.raises(DataError, match=r"scratch file of 6\.1 GB.*3\.0 MB free.*TMPDIR"):
        GatheredRows(stream, np.arange(1_500_000), np.arange(1_500_000))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_fills_up_is_said_so(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with (
        closing(GatheredRows(stream_of([N_ROWS]), np.arange(9), np.arange(9))) as rows,
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        rows._file = full
        with pytest.raises(DataError, match=r"disk of .* is full.*TMPDIR"):
            rows.add(slice(0, N_ROWS), TABLE)
    assert not list(tmp_path.iterdir())
