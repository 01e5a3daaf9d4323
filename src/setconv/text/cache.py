"""Embeddings that were computed before, on disk: no text is encoded twice."""

from __future__ import annotations

import difflib
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from setconv.errors import ParameterError
from setconv.text import cache_store
from setconv.text.cache_folder import default_folder
from setconv.text.cache_info import CacheInfo, SpaceInfo, read_spaces
from setconv.text.space import Space

_FILE = "embeddings-1.sqlite"  # the number is that of the format
_BLOCK = 4096  # embeddings that are read at a time
_SMALLEST = 2**20
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NUMBERS = np.dtype("<f4")
_Result = TypeVar("_Result")
_logger = logging.getLogger("setconv")
_warned: set[Path] = set()


@dataclass(frozen=True)
class EmbeddingCache:
    """Embeddings on disk, addressed by encoder, settings and text.

    Several processes may use a folder at once, and one that is killed leaves it usable. Damaged
    entries are removed and encoded again. Where the folder cannot be used, a warning is logged
    and texts are encoded without it.

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
        if self.max_bytes < _SMALLEST:
            raise ParameterError(f"max_bytes={self.max_bytes}: give at least {_SMALLEST} (1 MiB).")

    @property
    def path(self) -> Path:
        """The file in which the embeddings are."""
        folder = default_folder() if self.folder is None else Path(self.folder).expanduser()
        return folder / _FILE

    def lookup(
        self, space: Space, texts: Sequence[str], out: NDArray[np.float32]
    ) -> NDArray[np.bool_]:
        """Write the embeddings that are there into the rows of ``out``; return which rows."""
        nothing = np.zeros(len(texts), dtype=bool)
        if not self.path.exists():
            return nothing

        def read(database: sqlite3.Connection) -> NDArray[np.bool_]:
            known = np.zeros(len(texts), dtype=bool)
            for start in range(0, len(texts), _BLOCK):
                block = slice(start, start + _BLOCK)
                known[block] = _read_block(database, space.keys(texts[block]), out[block])
            return known

        return self._run(read, nothing)

    def store(self, space: Space, texts: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Add embeddings, a row for each text."""
        values = [row.tobytes() for row in np.ascontiguousarray(vectors, dtype=_NUMBERS)]
        pairs = list(zip(space.keys(texts), values, strict=True))
        known = (space.digest, space.model, space.pooling, space.max_length, space.dtype)
        self._run(lambda database: cache_store.add(database, known, pairs, self.max_bytes), None)

    def info(self) -> CacheInfo:
        """Return what is in the cache."""
        path = self.path
        nothing: tuple[SpaceInfo, ...] = ()
        spaces = self._run(read_spaces, nothing) if path.exists() else nothing
        size = path.stat().st_size if path.exists() else 0
        entries = sum(space.entries for space in spaces)
        return CacheInfo(path.parent, entries, size, self.max_bytes, spaces)

    def clear(self, model: str | None = None) -> int:
        """Remove everything, or what one model has encoded; return how many embeddings.

        Parameters
        ----------
        model : str, optional
            A model as `info` names it.
        """
        known = sorted({space.model for space in self.info().spaces})
        if model is not None and model not in known:
            close = difflib.get_close_matches(model, known) or known
            raise ParameterError(
                f"model={model!r} is not in the cache; there is {', '.join(close) or 'nothing'}."
            )
        if not self.path.exists():
            return 0
        return self._run(lambda database: cache_store.remove_model(database, model), 0)

    def _run(self, work: Callable[[sqlite3.Connection], _Result], otherwise: _Result) -> _Result:
        """Do something with the database; trouble with it is reported but never fatal."""
        try:
            before = _identity(self.path)
            try:
                return self._attempt(work)
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                if _identity(self.path) == before:  # else another process was here first
                    self._set_aside(error)
                return self._attempt(work)
        except (sqlite3.Error, OSError) as error:
            if self.path not in _warned:
                _warned.add(self.path)
                _logger.warning(
                    "the cache of embeddings %s cannot be used (%s): going on without it; choose "
                    "another folder with cache= or SETCONV_CACHE",
                    self.path,
                    error,
                )
            return otherwise

    def _attempt(self, work: Callable[[sqlite3.Connection], _Result]) -> _Result:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with cache_store.opened(self.path) as database:
            return work(database)

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        """Move a damaged file out of the way, with the files that SQLite keeps beside it."""
        aside = self.path.with_name(f"{self.path.name}.damaged-{time.time_ns()}")
        _logger.warning(
            "the cache of embeddings %s is damaged (%s): moved to %s, and a new one begun",
            self.path,
            error,
            aside.name,
        )
        for ending in ("", "-wal", "-shm"):
            with suppress(FileNotFoundError):
                self.path.with_name(self.path.name + ending).replace(
                    aside.with_name(aside.name + ending)
                )


def open_cache(cache: bool | str | os.PathLike[str] | EmbeddingCache) -> EmbeddingCache | None:
    """Return the cache that a parameter names: True for the usual one, False for none."""
    if isinstance(cache, EmbeddingCache):
        return cache
    if isinstance(cache, (str, os.PathLike)):
        return EmbeddingCache(Path(cache))
    if isinstance(cache, bool):
        return EmbeddingCache() if cache else None
    raise ParameterError(f"cache={cache!r}: give True, False, a folder or an EmbeddingCache.")


def _identity(path: Path) -> int | None:
    """Return what tells a file from another one that came into its place."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    # The lower byte is the kind, the others say more about it.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED


def _read_block(
    database: sqlite3.Connection, keys: Sequence[bytes], out: NDArray[np.float32]
) -> NDArray[np.bool_]:
    place = {key: row for row, key in enumerate(keys)}
    size = out.shape[1] * _NUMBERS.itemsize
    rows, values, used, damaged = [], [], [], []
    for number, key, value, checksum, date in cache_store.find(database, keys):
        if len(value) != size or cache_store.checksum(key, value) != checksum:
            damaged.append(number)
            continue
        rows.append(place[key])
        values.append(value)
        used.append((number, date))
    if damaged:
        _logger.warning("%d damaged entries of the cache are encoded again", len(damaged))
        cache_store.remove(database, damaged)
    cache_store.note_use(database, used)
    out[rows] = np.frombuffer(b"".join(values), dtype=_NUMBERS).reshape(len(rows), out.shape[1])
    known = np.zeros(len(keys), dtype=bool)
    known[rows] = True
    return known
