"""What is in a cache, for people to read."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path


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


def read_spaces(database: sqlite3.Connection) -> tuple[SpaceInfo, ...]:
    """Count the entries by what made them."""
    rows = database.execute(
        "SELECT model, pooling, max_length, dtype, COUNT(*), SUM(bytes), MAX(used) "
        "FROM entries JOIN spaces ON spaces.id = entries.space "
        "GROUP BY spaces.id ORDER BY MAX(used) DESC, spaces.id DESC"
    )
    return tuple(
        SpaceInfo(model, pooling, length, dtype, entries, size, datetime.fromtimestamp(used, UTC))
        for model, pooling, length, dtype, entries, size, used in rows
    )
