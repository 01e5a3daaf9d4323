"""Embeddings in an SQLite file: the statements behind `setconv.text.EmbeddingCache`.

Keys and dates are in a small table, embeddings in a large one beside it: to note that an embedding
was used, to count and to choose what must go touches only the small one. Each operation opens the
file, does one short transaction and closes it, so nothing is shared between threads or processes.
"""

from __future__ import annotations

import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

_Value = TypeVar("_Value")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS spaces (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    model TEXT NOT NULL,
    pooling TEXT NOT NULL,
    max_length INTEGER NOT NULL,
    dtype TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    space INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    used INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS vectors (id INTEGER PRIMARY KEY, value BLOB NOT NULL);
"""
_PATIENCE = 60.0  # seconds to wait for another process, whose transactions are short
_PAGE = 16384  # several embeddings fit on a page
_AT_ONCE = 900  # older builds of SQLite take no more than 999 values in a statement
_FRESH = 3600  # dates of use are good to the hour, so that most reads write nothing
_FULL = 0.9  # of the limit is left when something has to go, so that it does not go one by one

Found = tuple[int, bytes, bytes, int, int]  # id, key, value, checksum, used


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file, made if it is not there; transactions begin where they are written."""
    with closing(sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)) as database:
        database.execute(f"PRAGMA page_size = {_PAGE}")
        with suppress(sqlite3.OperationalError):  # another process is doing the same just now
            database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.executescript(_SCHEMA)
        yield database


@contextmanager
def transaction(database: sqlite3.Connection) -> Iterator[None]:
    """Do all of the block or nothing of it."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


def checksum(key: bytes, value: bytes) -> int:
    """Return what tells a damaged value, or one under a wrong key, from a sound one."""
    return zlib.crc32(value, zlib.crc32(key))


def find(database: sqlite3.Connection, keys: Sequence[bytes]) -> Iterator[Found]:
    """Yield what is there of the keys."""
    for some in _portions(keys):
        yield from database.execute(
            "SELECT id, key, value, checksum, used FROM entries JOIN vectors USING (id) "
            f"WHERE key IN ({_marks(some)})",
            some,
        )


def note_use(database: sqlite3.Connection, found: Iterable[tuple[int, int]]) -> None:
    """Date what was found, given as (id, last used), where the date is not fresh."""
    now = int(time.time())
    stale = [number for number, used in found if used < now - _FRESH]
    if not stale:
        return
    with transaction(database):
        for some in _portions(stale):
            database.execute(
                f"UPDATE entries SET used = ? WHERE id IN ({_marks(some)})", (now, *some)
            )


def add(
    database: sqlite3.Connection,
    space: tuple[bytes, str, str, int, str],
    pairs: Sequence[tuple[bytes, bytes]],
    max_bytes: int,
) -> None:
    """Add keys with their values in one transaction; what was unused longest makes room."""
    now = int(time.time())
    with transaction(database):
        _make_room(database, sum(len(value) for _, value in pairs), max_bytes)
        database.execute(
            "INSERT OR IGNORE INTO spaces (digest, model, pooling, max_length, dtype) "
            "VALUES (?, ?, ?, ?, ?)",
            space,
        )
        ((number,),) = database.execute("SELECT id FROM spaces WHERE digest = ?", space[:1])
        database.executemany(
            "INSERT INTO entries (key, space, bytes, checksum, used) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET checksum = excluded.checksum, used = excluded.used",
            [(key, number, len(value), checksum(key, value), now) for key, value in pairs],
        )
        database.executemany(
            "INSERT OR REPLACE INTO vectors SELECT id, ? FROM entries WHERE key = ?",
            [(value, key) for key, value in pairs],
        )


def remove(database: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Remove entries by their ids."""
    with transaction(database):
        for some in _portions(numbers):
            for table in ("vectors", "entries"):
                database.execute(f"DELETE FROM {table} WHERE id IN ({_marks(some)})", some)


def remove_model(database: sqlite3.Connection, model: str | None) -> int:
    """Remove what a model has encoded, or everything; return how many entries that were."""
    chosen = "SELECT id FROM spaces WHERE ?1 IS NULL OR model = ?1"
    with transaction(database):
        inside = f"SELECT id FROM entries WHERE space IN ({chosen})"
        database.execute(f"DELETE FROM vectors WHERE id IN ({inside})", (model,))
        gone = database.execute(f"DELETE FROM entries WHERE space IN ({chosen})", (model,))
        database.execute("DELETE FROM spaces WHERE ?1 IS NULL OR model = ?1", (model,))
    with suppress(sqlite3.OperationalError):  # in use elsewhere: the room is used again, at least
        database.execute("VACUUM")
    return gone.rowcount


def _make_room(database: sqlite3.Connection, incoming: int, max_bytes: int) -> None:
    if _bytes_in_use(database) + incoming <= max_bytes:
        return
    while _bytes_in_use(database) + incoming > _FULL * max_bytes:
        ((entries,),) = database.execute("SELECT COUNT(*) FROM entries")
        if not entries:
            return
        oldest = f"SELECT id FROM entries ORDER BY used, id LIMIT {entries // 10 + 1}"
        database.execute(f"DELETE FROM vectors WHERE id IN ({oldest})")
        database.execute(f"DELETE FROM entries WHERE id IN ({oldest})")


def _bytes_in_use(database: sqlite3.Connection) -> int:
    """Return the bytes of the file without the pages that will be used again."""
    ((pages,),) = database.execute("PRAGMA page_count")
    ((free,),) = database.execute("PRAGMA freelist_count")
    ((size,),) = database.execute("PRAGMA page_size")
    return int((pages - free) * size)


def _portions(values: Sequence[_Value]) -> Iterator[list[_Value]]:
    rest = iter(values)
    while some := list(islice(rest, _AT_ONCE)):
        yield some


def _marks(values: Sequence[object]) -> str:
    return ",".join("?" * len(values))
