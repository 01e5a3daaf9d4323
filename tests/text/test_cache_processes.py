"""The cache with several processes, and with one that is killed."""

import multiprocessing
import sqlite3
import time
from contextlib import closing

import cache_work
import numpy as np
import pytest
from cache_work import texts_of, wrong_rows
from tiny_bert import make_texts

from setconv.text.cache import EmbeddingCache

pytestmark = pytest.mark.timeout(120)


def start(job, *arguments):
    process = multiprocessing.get_context("spawn").Process(target=job, args=arguments)
    process.start()
    return process


def kill_at(n_entries, process, cache):
    """Kill the process when it has written so many entries; return how many there are then."""
    while cache.info().entries < n_entries:
        assert process.is_alive()
        time.sleep(0.05)
    process.kill()
    process.join()
    return cache.info().entries


def is_sound(cache):
    with closing(sqlite3.connect(cache.path)) as database:
        return database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_two_processes_write_the_same_texts_at_once(tmp_path):
    processes = [start(cache_work.share, tmp_path, *span) for span in [(0, 400), (200, 600)]]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    cache = EmbeddingCache(tmp_path)
    assert wrong_rows(cache, texts_of(0, 600)) == (600, 0)
    assert cache.info().entries == 600
    assert is_sound(cache)


def test_a_process_that_is_killed_while_it_writes_leaves_whole_entries(tmp_path):
    cache = EmbeddingCache(tmp_path)
    entries = kill_at(200, start(cache_work.write_endlessly, tmp_path), cache)
    assert entries % 50 == 0
    assert wrong_rows(cache, texts_of(0, entries + 50)) == (entries, 0)
    assert is_sound(cache)


def test_what_a_killed_run_has_encoded_is_not_encoded_again(tiny, make, tmp_path, encode):
    cache = EmbeddingCache(tmp_path)
    kept = kill_at(40, start(cache_work.encode_slowly, tmp_path, tiny), cache)
    texts = make_texts(600)
    done = encode(make(cache=cache), texts)
    assert done.n_cached == kept
    np.testing.assert_array_equal(done.vectors, make(cache=False).transform(texts))
