"""The cache of embeddings: what is found, what is damaged, what must go."""

import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from cache_work import SPACE, WIDTH, store, texts_of, vectors_of, wrong_rows

from setconv.errors import ParameterError
from setconv.text.cache import EmbeddingCache, Space, default_folder


@pytest.fixture
def cache(tmp_path):
    """A cache with 100 texts in it."""
    made = EmbeddingCache(tmp_path / "here")
    store(made, 0, 100)
    return made


def change(cache, statement):
    with closing(sqlite3.connect(cache.path)) as database:
        database.executescript(statement)
        database.commit()


# ------------------------------------------------------------------------------ found or not found


def test_what_was_stored_is_found_to_the_bit_and_the_rest_is_not(tmp_path):
    cache = EmbeddingCache(tmp_path)
    store(cache, 0, 2000)  # more than fit in a statement
    assert wrong_rows(cache, texts_of(500, 2500)[::-1]) == (1500, 0)


def test_a_cache_that_is_not_there_is_empty_and_stays_away(tmp_path):
    cache = EmbeddingCache(tmp_path / "nowhere")
    assert wrong_rows(cache, texts_of(0, 3)) == (0, 0)
    assert cache.info().entries == cache.clear() == 0
    assert not (tmp_path / "nowhere").exists()


def test_each_setting_has_embeddings_of_its_own_but_a_name_has_not(cache):
    other = {"identity": "hub:some/model@2", "pooling": "cls", "max_length": 128}
    other |= {"dtype": "bfloat16", "model": "/a/copy"}
    for name, value in other.items():
        space = Space(**{**vars(SPACE), name: value})
        known = cache.lookup(space, texts_of(0, 100), np.empty((100, WIDTH), dtype=np.float32))
        assert known.sum() == (100 if name == "model" else 0)


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
    change(cache, "UPDATE entries SET bytes = 1 WHERE id = 7")
    assert wrong_rows(cache, texts_of(0, 100)) == (99, 0)
    assert bool(caplog.records) == statement.startswith("UPDATE")
    store(cache, 0, 100)
    assert wrong_rows(cache, texts_of(0, 100)) == (100, 0)
    (space,) = cache.info().spaces
    assert (space.entries, space.bytes) == (100, 100 * WIDTH * 4)


def check_usable(cache):
    """Right numbers or none, all of them once stored again; it can be looked at and cleared."""
    assert wrong_rows(cache, texts_of(0, 100))[1] == 0
    store(cache, 0, 100)
    assert wrong_rows(cache, texts_of(0, 100)) == (100, 0)
    assert [(one.model, one.entries) for one in cache.info().spaces] == [("some/model", 100)]
    assert cache.clear() == 100
    assert cache.info().entries == 0


def damaged_files(cache):
    return [path.name for path in cache.path.parent.glob("*.damaged*")]


@pytest.mark.parametrize("kept", [0, 100], ids=["foreign", "overwritten pages"])
def test_a_damaged_file_is_moved_aside_in_the_place_of_an_older_one(cache, kept, caplog):
    content = cache.path.read_bytes()
    for turn in range(1, 4):
        cache.path.write_bytes(content[:kept] + b"\xff" * (len(content) - kept))
        assert wrong_rows(cache, texts_of(0, 100)) == (0, 0)
        assert len(caplog.records) == turn
        assert damaged_files(cache) == [f"{cache.path.name}.damaged"]
    check_usable(cache)
    assert damaged_files(cache) == []  # cleared with the rest
    assert len(caplog.records) == 3


def test_no_byte_of_the_schema_stops_it(cache, caplog):
    content = cache.path.read_bytes()
    first = content.index(b"CREATE TABLE vectors")  # the last table comes first
    last = content.index(b"used INTEGER")
    for number, place in enumerate(range(first, last, 13), 1):
        flipped = bytearray(content)
        flipped[place] ^= 128  # no UTF-8 any more
        cache.path.write_bytes(flipped)
        check_usable(cache)
        assert len(caplog.records) == number, place


@pytest.mark.parametrize(
    "statement",
    [
        *(
            f"UPDATE {table} SET {column} = {value} WHERE id = 1"
            for table, columns in {
                "entries": ["space", "bytes", "checksum", "used"],
                "vectors": ["value"],
                "spaces": ["digest", "model", "max_length"],
            }.items()
            for column in columns
            for value in ("'x'", "x'00'", "1e300")
        ),
        "UPDATE entries SET used = 9223372036854775807",
        "UPDATE entries SET space = 999",
        "DELETE FROM spaces",
        "DROP TABLE entries",
        "DROP TABLE vectors; CREATE VIEW vectors AS SELECT id, key AS value FROM entries",
        "ALTER TABLE entries RENAME COLUMN used TO unused",
        "CREATE TRIGGER no BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'no'); END",
        "CREATE TRIGGER no BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END",
    ],
)
def test_wrong_values_and_wrong_tables_do_not_stop_it(cache, statement, caplog):
    change(cache, statement)
    check_usable(cache)
    assert len(caplog.records) <= 1


@pytest.mark.parametrize("side", ["", "-wal", "-shm"])
@pytest.mark.parametrize("what", ["folder", "pipe", "link to nowhere", "loop"])
def test_what_is_no_file_is_moved_out_of_the_way(cache, side, what, caplog):
    path = Path(f"{cache.path}{side}")
    path.unlink(missing_ok=True)
    if what == "folder":
        (path / "with").mkdir(parents=True)
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path.name if what == "loop" else "no/where")
    check_usable(cache)
    assert len(caplog.records) == 1


def test_a_file_that_is_only_busy_stays_where_it_is(cache, monkeypatch, caplog):
    monkeypatch.setattr("setconv.text.cache._TIMEOUT", 0.01)
    monkeypatch.setattr("setconv.text.cache._warned", set())
    with closing(sqlite3.connect(cache.path)) as other:
        other.execute("BEGIN IMMEDIATE")
        store(cache, 100, 200)
    assert "cannot be used" in caplog.text
    assert damaged_files(cache) == []
    assert wrong_rows(cache, texts_of(0, 200)) == (100, 0)


def test_where_it_cannot_be_used_one_warning_is_logged_and_encoding_goes_on(
    make, tmp_path, encode, caplog
):
    folder = tmp_path / "file" / "cache"
    folder.parent.write_text("in the way")
    assert [encode(make(cache=folder), ["the dog"]).n_encoded for _ in range(2)] == [1, 1]
    assert sum(str(folder) in record.getMessage() for record in caplog.records) == 1


# ------------------------------------------------------------------------------- bounded, cleared


def test_the_file_stays_within_its_limit_and_the_newest_stay(tmp_path):
    with pytest.raises(ParameterError):
        EmbeddingCache(max_bytes=1000)
    limit = 2**20
    cache = EmbeddingCache(tmp_path, max_bytes=limit)
    for start in range(0, 2000, 100):
        store(cache, start, start + 100)
        assert cache.path.stat().st_size <= limit
    found, wrong = wrong_rows(cache, texts_of(0, 2000))
    assert limit / 2 < found * WIDTH * 4 < limit
    assert wrong == 0
    assert wrong_rows(cache, texts_of(1900, 2000)) == (100, 0)


def test_what_was_used_lately_outlives_what_was_not(tmp_path):
    cache = EmbeddingCache(tmp_path, max_bytes=2**20)
    store(cache, 0, 400)
    change(cache, "UPDATE entries SET used = used - 100000")
    wrong_rows(cache, texts_of(0, 50))
    before = cache.path.read_bytes()
    wrong_rows(cache, texts_of(0, 50))
    assert cache.path.read_bytes() == before  # dates are good to the hour
    for start in range(400, 1000, 100):
        store(cache, start, start + 100)
        wrong_rows(cache, texts_of(0, 50))
        change(cache, "UPDATE entries SET used = used - 10000")
    assert wrong_rows(cache, texts_of(0, 50)) == (50, 0)
    assert wrong_rows(cache, texts_of(50, 400)) == (0, 0)


def test_what_is_in_it_is_counted_by_what_made_it_and_can_be_cleared(cache):
    other = Space(**{**vars(SPACE), "model": "another", "identity": "hub:another@1"})
    cache.store(other, texts_of(0, 10), vectors_of(texts_of(0, 10)))
    info = cache.info()
    assert (info.entries, info.bytes) == (110, cache.path.stat().st_size)
    counts = {one.model: (one.entries, one.bytes) for one in info.spaces}
    assert counts == {"some/model": (100, 100 * WIDTH * 4), "another": (10, 10 * WIDTH * 4)}
    with pytest.raises(ParameterError) as caught:
        cache.clear("anothr")
    assert caught.value.parameter == "model"
    assert cache.clear("another") == 10
    assert wrong_rows(cache, texts_of(0, 100)) == (100, 0)
    assert cache.clear() == 100
    assert cache.path.stat().st_size < info.bytes


@pytest.mark.parametrize(
    ("platform", "variable", "below"),
    [
        ("linux", "SETCONV_CACHE", "."),
        ("linux", "XDG_CACHE_HOME", "setconv"),
        ("linux", "HOME", ".cache/setconv"),
        ("darwin", "HOME", "Library/Caches/setconv"),
        ("win32", "LOCALAPPDATA", "setconv/Cache"),
    ],
)
def test_the_default_folder_is_that_of_the_system(platform, variable, below, monkeypatch, tmp_path):
    for name in ("SETCONV_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    assert default_folder() == tmp_path / Path(below)
