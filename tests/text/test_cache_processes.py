"""The cache with several processes, and with one that is killed."""

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from cache_work import texts_of, wrong_rows

import setconv
from setconv.text.cache import EmbeddingCache

pytestmark = pytest.mark.timeout(120)


def start(job, *arguments):
    source = str(Path(setconv.__file__).parent.parent)
    program = [sys.executable, str(Path(__file__).with_name("cache_work.py")), job]
    return subprocess.Popen(
        [*program, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_entries(cache, process, n):
    for _ in range(2000):
        assert process.poll() is None, process.stderr.read()
        if cache.info().entries >= n:
            return
        time.sleep(0.05)
    pytest.fail("the other process wrote nothing")


def kill(process):
    process.kill()
    process.wait()
    process.stderr.close()


def is_sound(cache):
    database = sqlite3.connect(cache.path)
    try:
        return database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        database.close()


def test_two_processes_write_the_same_texts_at_once(tmp_path):
    spans = [(0, 400), (200, 600)]
    processes = [start("share", tmp_path, *span) for span in spans]
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
        assert "cannot be used" not in errors
    cache = EmbeddingCache(tmp_path)
    assert wrong_rows(cache, texts_of(0, 600)) == (600, 0)
    assert cache.info().entries == 600
    assert is_sound(cache)


def test_a_process_that_is_killed_while_it_writes_leaves_whole_entries(tmp_path):
    cache = EmbeddingCache(tmp_path)
    process = start("endless", tmp_path)
    wait_for_entries(cache, process, 200)
    kill(process)
    entries = cache.info().entries
    assert entries >= 200
    assert entries % 50 == 0
    assert wrong_rows(cache, texts_of(0, entries + 50)) == (entries, 0)
    assert is_sound(cache)


def test_what_a_killed_run_has_encoded_is_not_encoded_again(tiny, make, tmp_path, encode):
    from tiny_bert import make_texts

    cache = EmbeddingCache(tmp_path)
    process = start("encode", tmp_path, tiny)
    wait_for_entries(cache, process, 40)
    kill(process)
    kept = cache.info().entries
    texts = make_texts(1500)
    done = encode(make(cache=cache), texts)
    assert done.n_cached == kept
    np.testing.assert_allclose(done.vectors, make(cache=False).transform(texts), atol=1e-5)
