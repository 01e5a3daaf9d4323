"""What decides what the embedding of a text is."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Space:
    """What decides, with the text, what an embedding is.

    Attributes
    ----------
    model : str
        The encoder's name, for people.
    identity : str
        See `setconv.text.models.EncoderFiles`.
    pooling, max_length, dtype : str, int, str
    """

    model: str
    identity: str
    pooling: str
    max_length: int
    dtype: str

    @property
    def digest(self) -> bytes:
        """The space in a few bytes; the name does not count."""
        deciding = asdict(self) | {"model": None}
        return hashlib.blake2b(json.dumps(deciding, sort_keys=True).encode()).digest()

    def keys(self, texts: Sequence[str]) -> list[bytes]:
        """Return the address of each text's embedding."""
        start = hashlib.blake2b(self.digest, digest_size=16)
        keys = []
        for text in texts:
            one = start.copy()
            one.update(text.encode())
            keys.append(one.digest())
        return keys
