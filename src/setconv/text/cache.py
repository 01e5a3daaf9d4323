"""Embeddings on disk, so that no text is encoded twice.

A `Space` is an encoder with its settings. Space and text decide what an embedding is, and a digest
of both is the key under which `EmbeddingCache` keeps it, in one SQLite file for all spaces that
several processes may read and write. `fill` takes embeddings from there, and has the others encoded
and stored. The last part of the module is what happens in the database: it is opened if it is sound
and else set aside, a block of keys is read, rows are added, and what was unused longest makes room.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from setconv.messages import check_choice, check_integer

logger = logging.getLogger("setconv")

_FILE = "embeddings-1.sqlite"  # the number is that of the format
_SCHEMA = """
CREATE TABLE IF NOT EXISTS spaces (
    id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE,
    model TEXT NOT NULL, pooling TEXT NOT NULL, max_length INTEGER NOT NULL, dtype TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS entries (
    id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, space INTEGER NOT NULL,
    bytes INTEGER NOT NULL, checksum INTEGER NOT NULL, used INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS vectors (id INTEGER PRIMARY KEY, value BLOB NOT NULL);
"""
_STORED = np.dtype("<f4")
_PAGE_SIZE = 16384  # several embeddings fit on a page
_TIMEOUT = 60.0  # seconds to wait for another process, whose transactions are short
# What says nothing against the file. Any other error does, whatever its kind: what is read from a
# damaged file may be of any type and value.
_PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}
_TROUBLE = (sqlite3.Error, OSError, ValueError, TypeError, ArithmeticError, LookupError)

_FULL = 0.9  # of the limit is left when something has to go, so that it does not go one by one
_FRESH = 3600  # dates of use are good to the hour, so that most reads write nothing

_BLOCK = 900  # read at a time: older builds of SQLite take no more than 999 values in a statement
_PORTION, _SECONDS = 512, 2.0  # texts, and time, after which fresh embeddings are stored

_Result = TypeVar("_Result")
_warned: set[Path] = set()


@dataclass(frozen=True)
class Space:
    """What decides, with the text, what an embedding is.

    Attributes
    ----------
    model : str
        The encoder's name, for people.
    identity : str
        See `setconv.text.transformer.EncoderFiles`.
    pooling, max_length, dtype : str, int, str
    """

    model: str
    identity: str
    pooling: str
    max_length: int
    dtype: str

    @property
    def digest(self) -> bytes:
        """The space in a few bytes; the name does not count, the way of computing does."""
        deciding = asdict(self) | {"model": None, "batches": "of one length"}
        return hashlib.blake2b(json.dumps(deciding, sort_keys=True).encode()).digest()

    def keys(self, texts: Sequence[str]) -> list[bytes]:
        """Return the address of each text's embedding."""
        space = self.digest
        return [hashlib.blake2b(space + text.encode(), digest_size=16).digest() for text in texts]


@dataclass(frozen=True)
class SpaceInfo:
    """The embeddings of one encoder with one setting.

    Attributes
    ----------
    model, pooling, max_length, dtype : str, str, int, str
        What made them.
    entries : int
    bytes : int
        The embeddings alone.
    last_used : datetime
        To the hour.
    """

    model: str
    pooling: str
    max_length: int
    dtype: str
    entries: int
    bytes: int
    last_used: datetime


@dataclass(frozen=True)
class CacheInfo:
    """What is in a cache.

    Attributes
    ----------
    folder : Path
    entries : int
        The number of embeddings.
    bytes, max_bytes : int
        The size of the file on disk, and what it may be.
    spaces : tuple of SpaceInfo
        The most recently used first.
    """

    folder: Path
    entries: int
    bytes: int
    max_bytes: int
    spaces: tuple[SpaceInfo, ...]


@dataclass(frozen=True)
class EmbeddingCache:
    """Embeddings on disk, addressed by encoder, settings and text.

    Several processes may use a folder at once, and one that is killed leaves it usable. Damaged
    entries are removed and encoded again; a damaged file is set aside with a warning, as
    ``*.damaged`` in the place of an older one, and a new one begun. Where the folder cannot be
    used, a warning is logged and texts are encoded without it.

    Parameters
    ----------
    folder : str or Path, optional
        By default ``$SETCONV_CACHE``, else ``setconv`` in the system's folder for caches
        (``~/.cache`` on Linux).
    max_bytes : int, default=4 GiB
        The most that it takes on disk; what was unused longest is removed first.

    Examples
    --------
    >>> import tempfile
    >>> EmbeddingCache(tempfile.mkdtemp()).info().entries
    0
    """

    folder: str | Path | None = None
    max_bytes: int = 4 * 2**30

    def __post_init__(self) -> None:
        check_integer("max_bytes", self.max_bytes, least=2**20)

    @property
    def path(self) -> Path:
        """The file in which the embeddings are."""
        folder = default_folder() if self.folder is None else Path(self.folder).expanduser()
        return folder / _FILE

    def lookup(
        self, space: Space, texts: Sequence[str], out: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """Write the embeddings that are there into the rows of ``out``; return which rows."""
        keys = space.keys(texts)

        def read(database: sqlite3.Connection) -> NDArray[np.bool_]:
            known = np.zeros(len(texts), dtype=bool)
            for start in range(0, len(texts), _BLOCK):
                block = slice(start, start + _BLOCK)
                known[block] = _read_block(database, keys[block], out[block])
            return known

        return self._run(read, np.zeros(len(texts), dtype=bool))

    def store(self, space: Space, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add embeddings, a row for each text."""
        values = [row.tobytes() for row in np.ascontiguousarray(vectors, dtype=_STORED)]
        pairs = list(zip(space.keys(texts), values, strict=True))
        self._run(lambda database: _add(database, space, pairs, self.max_bytes), None, make=True)

    def info(self) -> CacheInfo:
        """Return what is in the cache."""
        spaces: tuple[SpaceInfo, ...] = self._run(_read_spaces, ())
        size = 0
        with suppress(OSError):  # as above, where it is not there or cannot be used
            size = self.path.stat().st_size
        entries = sum(space.entries for space in spaces)
        return CacheInfo(self.path.parent, entries, size, self.max_bytes, spaces)

    def clear(self, model: str | None = None) -> int:
        """Remove everything, or what one model has encoded; return how many embeddings.

        Parameters
        ----------
        model : str, optional
            A model as `info` names it.
        """
        known = sorted({space.model for space in self.info().spaces})
        if model is None:
            _discard(_aside(self.path))
        elif known:
            check_choice("model", model, known)
        return self._run(lambda database: _remove(database, model), 0)

    def _run(
        self, work: Callable[[sqlite3.Connection], _Result], otherwise: _Result, make: bool = False
    ) -> _Result:
        """Do something with the database; trouble with it is reported but never fatal."""
        if not make and not os.path.lexists(self.path):
            return otherwise
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            before = _identity(self.path)
            try:
                with _opened(self.path) as database:
                    return work(database)
            except _TROUBLE as error:
                if _identity(self.path) == before:  # else another process was here first
                    # The lower byte of the code is the kind, the others say more about it.
                    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSING:
                        raise
                    _set_aside(self.path, error)
            with _opened(self.path) as database:
                return work(database)
        except _TROUBLE as error:
            if self.path not in _warned:
                _warned.add(self.path)
                logger.warning(
                    "the cache of embeddings %s cannot be used (%s): going on without it; choose "
                    "another folder with cache= or SETCONV_CACHE",
                    *(self.path, error),
                )
            return otherwise


def default_folder() -> Path:
    """Return ``$SETCONV_CACHE``, else the place for caches of the system with ``setconv`` in it."""
    if chosen := os.environ.get("SETCONV_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local or Path.home() / "AppData" / "Local") / "setconv" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "setconv"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "setconv"


def open_cache(cache: bool | str | os.PathLike[str] | EmbeddingCache) -> EmbeddingCache | None:
    """Return the cache that a parameter names: True for the usual one, False for none."""
    if isinstance(cache, EmbeddingCache):
        return cache
    if isinstance(cache, bool):
        return EmbeddingCache() if cache else None
    return EmbeddingCache(Path(cache))


def fill(
    out: NDArray[np.float32],
    texts: Sequence[str],
    space: Space,
    cache: EmbeddingCache | None,
    encode: Callable[[Sequence[str]], Iterable[tuple[NDArray[np.intp], NDArray[np.float32]]]],
) -> int:
    """Write the embedding of each text into its row of ``out``; return how many were encoded.

    Parameters
    ----------
    out : array of shape (n_texts, width)
    texts : sequence of str
    space : Space
    cache : EmbeddingCache or None
    encode : callable
        Takes the texts that the cache does not have, and yields embeddings with the numbers of
        their texts. They are stored every few seconds, and at the end however it comes.
    """
    known = np.zeros(len(texts), dtype=bool) if cache is None else cache.lookup(space, texts, out)
    missing = np.flatnonzero(~known)
    if not missing.size:
        return 0
    fresh: list[int] = []
    stored = time.monotonic()

    def store() -> None:
        if cache is not None and fresh:
            cache.store(space, [texts[row] for row in fresh], out[fresh])
        fresh.clear()

    try:
        for numbers, vectors in encode([texts[row] for row in missing.tolist()]):
            rows = missing[numbers]
            out[rows] = vectors
            fresh += rows.tolist()
            if len(fresh) >= _PORTION or time.monotonic() - stored > _SECONDS:
                store()
                stored = time.monotonic()
    finally:
        store()
    return len(missing)


def _identity(path: Path) -> int | None:
    """Return what tells a file from another one that came into its place."""
    with suppress(FileNotFoundError):
        return path.lstat().st_ino
    return None


def _set_aside(path: Path, error: Exception) -> None:
    """Move a damaged file out of the way, in the place of one that was damaged before."""
    aside = _aside(path)
    _discard(aside)
    for one, place in zip(_files(path), _files(aside), strict=True):
        with suppress(FileNotFoundError):
            one.replace(place)
    logger.warning(
        "the cache of embeddings %s is damaged (%s): moved to %s, and a new one begun",
        *(path, error, aside.name),
    )


def _aside(path: Path) -> Path:
    return path.with_name(f"{path.name}.damaged")


def _files(path: Path) -> list[Path]:
    """Return the file itself, and those that SQLite keeps beside it."""
    return [path.with_name(path.name + side) for side in ("", "-wal", "-shm")]


def _discard(path: Path) -> None:
    for one in _files(path):
        with suppress(OSError):
            if one.is_dir() and not one.is_symlink():
                shutil.rmtree(one)
            else:
                one.unlink()


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file, made if it is not there; a block of ``with database`` is one transaction."""
    for one in _files(path):  # SQLite would wait for a pipe
        before = _identity(one)
        usable = before is None or (one.is_file() and os.access(one, os.R_OK | os.W_OK))
        if not usable and _identity(one) == before:  # else another process has just closed it
            raise sqlite3.DatabaseError(f"{one.name} is no file that can be read and written")
    connection = sqlite3.connect(path, timeout=_TIMEOUT, isolation_level="IMMEDIATE")
    with closing(connection) as database:
        database.execute(f"PRAGMA page_size = {_PAGE_SIZE}")
        with suppress(sqlite3.OperationalError):  # another process is doing the same just now
            database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        if not _read_schema(database):
            database.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT")
        if _read_schema(database) != _right_schema():  # other tables, or triggers on them
            raise sqlite3.DatabaseError("its tables are not those of a cache")
        yield database


@cache
def _right_schema() -> set[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(_SCHEMA)
        return _read_schema(database)


def _read_schema(database: sqlite3.Connection) -> set[tuple[str, ...]]:
    return set(database.execute("SELECT type, name, tbl_name, sql FROM sqlite_master"))


def _read_block(
    database: sqlite3.Connection, keys: Sequence[bytes], out: NDArray[np.float32]
) -> NDArray[np.bool_]:
    """Fill the rows of ``out`` whose keys are there; note their use, and remove damaged ones."""
    place = {key: row for row, key in enumerate(keys)}
    now = int(time.time())
    known = np.zeros(len(keys), dtype=bool)
    stale, damaged = [], []
    found = database.execute(
        "SELECT id, key, value, checksum, used FROM entries JOIN vectors USING (id) "
        f"WHERE key IN ({','.join('?' * len(keys))})",
        keys,
    )
    for number, key, value, checksum, used in found:
        if _checksum(key, value) != checksum or len(value) != out.shape[1] * _STORED.itemsize:
            damaged.append((number,))
            continue
        known[place[key]] = True
        out[place[key]] = np.frombuffer(value, dtype=_STORED)
        if used < now - _FRESH:
            stale.append((now, number))
    if damaged:
        logger.warning("%d damaged entries of the cache are encoded again", len(damaged))
    if damaged or stale:
        with database:
            database.executemany("DELETE FROM vectors WHERE id = ?", damaged)
            database.executemany("DELETE FROM entries WHERE id = ?", damaged)
            database.executemany("UPDATE entries SET used = ? WHERE id = ?", stale)
    return known


def _checksum(key: bytes, value: bytes) -> int:
    """Return what tells a damaged value, or one under a wrong key, from a sound one."""
    digest = hashlib.blake2b(key + value, digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)  # as SQLite keeps whole numbers


def _add(
    database: sqlite3.Connection, space: Space, pairs: Sequence[tuple[bytes, bytes]], max_bytes: int
) -> None:
    """Add keys with their values in one transaction; what was unused longest makes room."""
    now = int(time.time())
    digest = space.digest
    with database:
        database.execute(
            "INSERT INTO spaces (digest, model, pooling, max_length, dtype) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET model = excluded.model, "
            "pooling = excluded.pooling, max_length = excluded.max_length, dtype = excluded.dtype",
            (digest, space.model, space.pooling, space.max_length, space.dtype),
        )
        _make_room(database, sum(len(value) for _, value in pairs), max_bytes)
        ((number,),) = database.execute("SELECT id FROM spaces WHERE digest = ?", (digest,))
        database.executemany(
            "INSERT INTO entries (key, space, bytes, checksum, used) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET space = excluded.space, "
            "bytes = excluded.bytes, checksum = excluded.checksum, used = excluded.used",
            [(key, number, len(value), _checksum(key, value), now) for key, value in pairs],
        )
        database.executemany(
            "INSERT OR REPLACE INTO vectors SELECT id, ? FROM entries WHERE key = ?",
            [(value, key) for key, value in pairs],
        )


def _make_room(database: sqlite3.Connection, incoming: int, max_bytes: int) -> None:
    limit: float = max_bytes
    while _bytes_in_use(database) + incoming > limit:
        limit = _FULL * max_bytes
        ((entries,),) = database.execute("SELECT COUNT(*) FROM entries")
        if not entries:
            database.execute("DELETE FROM vectors")  # whose entries were lost
            return
        oldest = f"SELECT id FROM entries ORDER BY used, id LIMIT {entries // 10 + 1}"
        database.execute(f"DELETE FROM vectors WHERE id IN ({oldest})")
        gone = database.execute(f"DELETE FROM entries WHERE id IN ({oldest})")
        if not gone.rowcount:
            raise sqlite3.DatabaseError("its entries cannot be removed")


def _bytes_in_use(database: sqlite3.Connection) -> int:
    """Return the bytes of the file without the pages that will be used again."""
    ((size,),) = database.execute(
        "SELECT (page_count - freelist_count) * page_size "
        "FROM pragma_page_count, pragma_freelist_count, pragma_page_size"
    )
    return int(size)


def _read_spaces(database: sqlite3.Connection) -> tuple[SpaceInfo, ...]:
    """Count the entries by what made them."""
    rows = database.execute(
        "SELECT model, pooling, max_length, dtype, COUNT(*), SUM(bytes), MAX(used) "
        "FROM entries LEFT JOIN spaces ON spaces.id = entries.space "
        "GROUP BY spaces.id ORDER BY MAX(used) DESC, spaces.id DESC"
    )
    spaces = []
    for row in rows:
        if [type(value) for value in row] != [str, str, int, str, int, int, int]:
            raise sqlite3.DatabaseError("its entries are not those of a cache")
        made_of = (*row[:-1], datetime.fromtimestamp(row[-1], UTC))
        spaces.append(SpaceInfo(*made_of))
    return tuple(spaces)


def _remove(database: sqlite3.Connection, model: str | None) -> int:
    """Remove what a model has encoded, or everything; return how many entries that were."""
    of_model = "WHERE ?1 IS NULL OR space IN (SELECT id FROM spaces WHERE model = ?1)"
    chosen = f"SELECT id FROM entries {of_model}"
    with database:
        database.execute(f"DELETE FROM vectors WHERE ?1 IS NULL OR id IN ({chosen})", (model,))
        gone = database.execute(f"DELETE FROM entries {of_model}", (model,))
        database.execute("DELETE FROM spaces WHERE ?1 IS NULL OR model = ?1", (model,))
    with suppress(sqlite3.OperationalError):  # in use elsewhere: the room is used again, at least
        database.execute("VACUUM")
    return gone.rowcount
