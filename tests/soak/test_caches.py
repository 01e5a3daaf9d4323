"""Whatever happened to a cache of embeddings: the right numbers to the bit, and it can be used."""

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from datetime import datetime

import numpy as np
import pytest
from harness import damaged, pick, soak
from typer.testing import CliRunner

from setconv.cli.app import app
from setconv.text.cache import EmbeddingCache
from setconv.text.encoder import TextEncoder

pytest.importorskip("transformers", reason="TextEncoder needs transformers")

VALUES = ["NULL", "''", "'x'", "x'00'", "-1", "1e300", "9223372036854775807", "zeroblob(100000)"]
SCHEMAS = [
    "DROP TABLE entries",
    "DROP TABLE vectors; CREATE VIEW vectors AS SELECT id, key AS value FROM entries",
    "ALTER TABLE vectors RENAME TO others",
    "ALTER TABLE entries RENAME COLUMN used TO unused",
    "ALTER TABLE entries DROP COLUMN checksum",
    "CREATE TRIGGER no BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'no'); END",
    "CREATE TRIGGER no BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END",
    "CREATE TABLE more (a); INSERT INTO more VALUES (1)",
    "PRAGMA user_version = 77; PRAGMA application_id = 99",
    "PRAGMA journal_mode = DELETE; PRAGMA encoding = 'UTF-16'",
    "DELETE FROM spaces",
    "UPDATE entries SET space = 999",
    "UPDATE vectors SET value = (SELECT value FROM vectors ORDER BY id DESC LIMIT 1)",
]


class Caches:
    errors = ()  # not even an own one: a cache is never a reason not to encode

    def __init__(self, folder):
        from tiny_bert import make_texts, save_tiny_bert

        self.texts = make_texts(12)
        self.folder = folder
        self.tiny = save_tiny_bert(folder / "tiny")
        self.right = self.encode(False)
        place = folder / "good"
        assert np.array_equal(self.encode(place), self.right)
        self.name = EmbeddingCache(place).path.name
        # While the file is open, what was written last is in the file beside it.
        with closing(sqlite3.connect(place / self.name)) as held:
            held.execute("SELECT COUNT(*) FROM entries").fetchone()
            TextEncoder(self.tiny, device="cpu", cache=place).transform(["the cat", "the dog"])
            self.files = {path.name: path.read_bytes() for path in place.iterdir()}
        assert len(self.files) == 3, self.files.keys()

    def encode(self, cache):
        return TextEncoder(self.tiny, device="cpu", cache=cache).transform(self.texts)

    def case(self, rng):
        place = self.folder / "case"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for name, content in self.files.items():
            (place / name).write_bytes(content)
        kinds = [
            self.bytes,
            self.bytes,
            self.pages,
            self.header,
            self.rows,
            self.schema,
            self.place,
        ]
        what = pick(rng, kinds)(rng, place)
        return what, lambda: self.use(place)

    def use(self, place):
        cache = EmbeddingCache(place)
        for _ in range(2):
            assert np.array_equal(self.encode(cache), self.right)
            found = cache.info()
            assert all(type(one) is int for one in (found.entries, found.bytes))
            for space in found.spaces:
                assert type(space.last_used) is datetime
                assert [type(one) for one in (space.model, space.entries)] == [str, int]
        said = CliRunner().invoke(app, ["cache", "info"], env={"SETCONV_CACHE": str(place)})
        assert said.exit_code == 0, said.exception
        assert type(cache.clear()) is int
        assert cache.info().entries == 0
        assert np.array_equal(self.encode(cache), self.right)

    def bytes(self, rng, place):
        path = place / pick(rng, sorted(self.files))
        what, content = damaged(path.read_bytes(), rng)
        path.write_bytes(content)
        return f"{path.name}: {what}"

    def pages(self, rng, place):
        """Pages in each other's place, as a disk without order leaves them."""
        content = bytearray((place / self.name).read_bytes())
        size = int.from_bytes(content[16:18], "big")
        one, other = (size * int(n) for n in rng.integers(0, len(content) // size, 2))
        halves = content[one : one + size], content[other : other + size]
        content[other : other + size], content[one : one + size] = halves
        (place / self.name).write_bytes(content)
        return f"pages at {one} and {other} swapped"

    def header(self, rng, place):
        content = bytearray((place / self.name).read_bytes())
        at = int(rng.integers(100))
        content[at] = pick(rng, [0, 1, 255, int(rng.integers(256))])
        (place / self.name).write_bytes(content)
        return f"byte {at} of the header is {content[at]}"

    def rows(self, rng, place):
        columns = {"entries": ["id", "key", "space", "bytes", "checksum", "used"]}
        columns |= {"vectors": ["id", "value"], "spaces": ["id", "digest", "model", "pooling"]}
        columns["spaces"] += ["max_length", "dtype"]
        table = pick(rng, list(columns))
        column, value = pick(rng, columns[table]), pick(rng, VALUES)
        which = pick(rng, ["1", f"id % {rng.integers(1, 6)} = 0"])
        # NULL as well, which the schema forbids only when something is written.
        self.constrain(place, "NOT NULL", "/*NOT*/ NULL")
        statement = f"UPDATE OR REPLACE {table} SET {column} = {value} WHERE {which}"
        what = self.sql(place, statement)
        self.constrain(place, "/*NOT*/ NULL", "NOT NULL")
        return what

    def schema(self, rng, place):
        return self.sql(place, pick(rng, SCHEMAS))

    def sql(self, place, statement):
        with closing(sqlite3.connect(place / self.name)) as database, suppress(sqlite3.Error):
            database.executescript(statement)
            database.commit()
        return statement

    def constrain(self, place, old, new):
        with closing(sqlite3.connect(place / self.name)) as database:
            database.execute("PRAGMA writable_schema = 1")
            database.execute("UPDATE sqlite_master SET sql = replace(sql, ?, ?)", (old, new))
            database.commit()

    def place(self, rng, place):
        path = place / pick(rng, sorted(self.files))
        what = pick(rng, ["folder", "link", "loop", "fifo", "empty", "gone", "foreign", "locked"])
        path.unlink()
        if what == "folder":
            path.mkdir()
        elif what == "fifo":
            os.mkfifo(path)
        elif what == "link":
            path.symlink_to(self.folder / "nowhere" / "file")
        elif what == "loop":
            path.symlink_to(path.name)
        elif what == "foreign":
            path.write_bytes(pick(rng, list(self.files.values())))
        elif what in ("empty", "locked"):
            path.write_bytes(b"" if what == "empty" else self.files[path.name])
            path.chmod(0o444 if what == "locked" else 0o666)
        return f"{path.name}: {what}"


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("part", range(2))
def test_a_damaged_cache_gives_the_right_numbers_and_can_be_used(part, tmp_path, cases):
    soak(Caches, range(part, cases(500), 2), tmp_path)
