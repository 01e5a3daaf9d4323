"""The cache of embeddings: what is found, what is damaged, what must go."""

import copy
import os
import sqlite3
import sys
from pathlib import Path

import numpy as np
import pytest
from cache_work import SPACE, WIDTH, texts_of, vectors_of, wrong_rows
from hypothesis import given
from hypothesis import strategies as st

from setconv.errors import ParameterError
from setconv.text.cache import EmbeddingCache, Space, default_folder


@pytest.fixture
def cache(tmp_path):
    """A cache with 100 texts in it."""
    made = EmbeddingCache(tmp_path / "here")
    made.store(SPACE, texts_of(0, 100), vectors_of(texts_of(0, 100)))
    return made


def change(cache, statement):
    database = sqlite3.connect(cache.path)
    with database:
        database.execute(statement)
    database.close()


# ------------------------------------------------------------------------------ found or not found


def test_what_was_stored_is_found_to_the_bit_and_the_rest_is_not(cache):
    assert wrong_rows(cache, texts_of(50, 150)) == (50, 0)


def test_a_lookup_in_a_cache_that_is_not_there_makes_no_file(tmp_path):
    cache = EmbeddingCache(tmp_path / "nowhere")
    assert wrong_rows(cache, texts_of(0, 3)) == (0, 0)
    assert cache.info().entries == 0
    assert cache.clear() == 0
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    "other",
    [
        {"identity": "hub:some/model@2"},
        {"pooling": "cls"},
        {"max_length": 128},
        {"dtype": "bfloat16"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_each_setting_has_embeddings_of_its_own(cache, other):
    space = Space(**{**vars(SPACE), **other})
    out = np.empty((100, WIDTH), dtype=np.float32)
    assert not cache.lookup(space, texts_of(0, 100), out).any()


def test_the_same_model_under_another_name_shares_its_embeddings(cache):
    space = Space(**{**vars(SPACE), "model": "/a/copy"})
    out = np.empty((100, WIDTH), dtype=np.float32)
    assert cache.lookup(space, texts_of(0, 100), out).all()


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True))
def test_different_texts_have_different_keys(texts):
    assert len(set(SPACE.keys(texts))) == len(texts)


def test_more_texts_than_fit_in_a_statement_are_found(tmp_path):
    cache = EmbeddingCache(tmp_path)
    texts = texts_of(0, 5000)
    cache.store(SPACE, texts, vectors_of(texts))
    assert wrong_rows(cache, texts[::-1]) == (5000, 0)


def test_caches_compare_and_copy_by_their_settings(cache):
    assert copy.deepcopy(cache) == cache
    assert EmbeddingCache("a") != EmbeddingCache("b")


# --------------------------------------------------------------------------------------- damaged


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE vectors SET value = zeroblob(length(value)) WHERE id = 7",
        "UPDATE vectors SET value = substr(value, 5) WHERE id = 7",
        "UPDATE vectors SET value = (SELECT value FROM vectors WHERE id = 8) WHERE id = 7",
        "DELETE FROM vectors WHERE id = 7",
    ],
    ids=["overwritten", "cut", "of another text", "lost"],
)
def test_a_damaged_entry_is_not_used_and_can_be_stored_again(cache, statement, caplog):
    change(cache, statement)
    assert wrong_rows(cache, texts_of(0, 100)) == (99, 0)
    assert ("damaged entries" in caplog.text) == statement.startswith("UPDATE")
    cache.store(SPACE, texts_of(0, 100), vectors_of(texts_of(0, 100)))
    assert wrong_rows(cache, texts_of(0, 100)) == (100, 0)
    assert cache.info().entries == 100


def test_a_damaged_entry_is_encoded_again(make, encode):
    first = make().transform(["the dog", "a cat"])
    change(EmbeddingCache(), "UPDATE vectors SET value = zeroblob(length(value)) WHERE id = 1")
    again = encode(make(), ["the dog", "a cat"])
    assert (again.n_cached, again.n_encoded) == (1, 1)
    np.testing.assert_allclose(again.vectors, first, atol=1e-6)
    assert encode(make(), ["the dog", "a cat"]).n_encoded == 0


@pytest.mark.parametrize("damage", ["foreign", "overwritten pages"])
def test_a_damaged_file_is_moved_aside_and_a_new_one_begun(cache, damage, caplog):
    content = cache.path.read_bytes()
    if damage == "foreign":
        cache.path.write_text("this is no database " * 1000)
    else:
        cache.path.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    assert wrong_rows(cache, texts_of(0, 100)) == (0, 0)
    assert "is damaged" in caplog.text
    assert len(list(cache.path.parent.glob("*.damaged-*"))) >= 1
    cache.store(SPACE, texts_of(0, 100), vectors_of(texts_of(0, 100)))
    assert wrong_rows(cache, texts_of(0, 100)) == (100, 0)


# -------------------------------------------------------------------------------- not to be used


def check_goes_on(make, folder, encode, caplog):
    encoder = make(cache=folder)
    first, second = encode(encoder, ["the dog"]), encode(encoder, ["the dog"])
    assert (first.n_encoded, second.n_encoded) == (1, 1)
    assert caplog.text.count("cannot be used") == 1
    assert "SETCONV_CACHE" in caplog.text


def test_a_folder_that_cannot_be_made_is_warned_of_once_and_encoding_goes_on(
    make, tmp_path, encode, caplog
):
    (tmp_path / "file").write_text("in the way")
    check_goes_on(make, tmp_path / "file" / "cache", encode, caplog)


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="root may write where others may not"
)
def test_a_read_only_folder_is_warned_of_once_and_encoding_goes_on(make, tmp_path, encode, caplog):
    (tmp_path / "closed").mkdir(mode=0o500)
    check_goes_on(make, tmp_path / "closed", encode, caplog)


def test_a_full_disk_is_warned_of_once_and_encoding_goes_on(
    make, tmp_path, encode, caplog, monkeypatch
):
    def full(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("setconv.text.cache._add", full)
    check_goes_on(make, tmp_path / "full", encode, caplog)


# ------------------------------------------------------------------------------- bounded, cleared


def test_the_file_stays_within_its_limit_and_the_newest_stay(tmp_path):
    limit = 2**20
    cache = EmbeddingCache(tmp_path, max_bytes=limit)
    for start in range(0, 2000, 100):
        some = texts_of(start, start + 100)
        cache.store(SPACE, some, vectors_of(some))
        assert cache.path.stat().st_size <= limit
    assert cache.info().bytes == cache.path.stat().st_size
    found, wrong = wrong_rows(cache, texts_of(0, 2000))
    assert limit / 2 < found * WIDTH * 4 < limit
    assert wrong == 0
    assert wrong_rows(cache, texts_of(1900, 2000)) == (100, 0)


def test_what_was_used_lately_outlives_what_was_not(tmp_path):
    cache = EmbeddingCache(tmp_path, max_bytes=2**20)
    cache.store(SPACE, texts_of(0, 400), vectors_of(texts_of(0, 400)))
    change(cache, "UPDATE entries SET used = used - 100000")
    wrong_rows(cache, texts_of(0, 50))
    for start in range(400, 1000, 100):
        some = texts_of(start, start + 100)
        cache.store(SPACE, some, vectors_of(some))
        wrong_rows(cache, texts_of(0, 50))
        change(cache, "UPDATE entries SET used = used - 10000")
    assert wrong_rows(cache, texts_of(0, 50)) == (50, 0)
    assert wrong_rows(cache, texts_of(50, 400)) == (0, 0)


def test_reading_again_within_the_hour_writes_nothing(cache):
    wrong_rows(cache, texts_of(0, 100))
    before = cache.path.read_bytes()
    wrong_rows(cache, texts_of(0, 100))
    assert cache.path.read_bytes() == before


def test_info_counts_by_what_made_the_embeddings(cache):
    other = Space(**{**vars(SPACE), "pooling": "cls"})
    cache.store(other, texts_of(0, 10), vectors_of(texts_of(0, 10)))
    info = cache.info()
    assert (info.folder, info.entries, info.max_bytes) == (cache.path.parent, 110, 4 * 2**30)
    assert info.bytes == cache.path.stat().st_size
    counts = {(one.model, one.pooling): (one.entries, one.bytes) for one in info.spaces}
    assert counts == {
        ("some/model", "mean"): (100, 100 * WIDTH * 4),
        ("some/model", "cls"): (10, 10 * WIDTH * 4),
    }
    assert all(one.last_used.tzinfo is not None for one in info.spaces)


def test_a_model_or_everything_can_be_cleared(cache):
    other = Space(**{**vars(SPACE), "model": "another", "identity": "hub:another@1"})
    cache.store(other, texts_of(0, 10), vectors_of(texts_of(0, 10)))
    with pytest.raises(ParameterError, match="'anothr' is not in the cache; there is another"):
        cache.clear("anothr")
    assert cache.clear("another") == 10
    assert wrong_rows(cache, texts_of(0, 100)) == (100, 0)
    large = cache.path.stat().st_size
    assert cache.clear() == 100
    assert cache.info().entries == 0
    assert cache.path.stat().st_size < large


def test_a_limit_that_is_too_small_is_refused():
    with pytest.raises(ParameterError, match=r"max_bytes=1000.*1 MiB"):
        EmbeddingCache(max_bytes=1000)


def test_the_default_folder_is_the_one_that_the_environment_names(monkeypatch, tmp_path):
    monkeypatch.setenv("SETCONV_CACHE", str(tmp_path / "mine"))
    assert EmbeddingCache().path.parent == tmp_path / "mine"
    monkeypatch.delenv("SETCONV_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_folder() == tmp_path / "setconv"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder() == Path.home() / ".cache" / "setconv"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_folder() == Path.home() / "Library" / "Caches" / "setconv"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    assert default_folder() == tmp_path / "setconv" / "Cache"
