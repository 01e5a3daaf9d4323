"""Texts to embeddings: from the cache what is there, the rest through the network."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from setconv.text.batching import plan_batches
from setconv.text.cache import EmbeddingCache
from setconv.text.cache_writer import CacheWriter
from setconv.text.models import EncoderFiles
from setconv.text.network import Network, load_network
from setconv.text.pooling import Pooling, pool
from setconv.text.space import Space

# So many texts are tokenised and sorted by length at a time: enough for batches with hardly any
# padding, few enough that their tokens are nothing next to the embeddings.
_WINDOW = 4096
_logger = logging.getLogger("setconv")
_warned: set[str] = set()


@dataclass(frozen=True)
class Encoding:
    """An encoder with all that was "auto" decided; see `setconv.text.TextEncoder`.

    Attributes
    ----------
    files : EncoderFiles
    pooling, max_length, batch_size, device, dtype : str, int, int, str, str
    cache : EmbeddingCache or None
    progress : bool
    """

    files: EncoderFiles
    pooling: Pooling
    max_length: int
    batch_size: int
    device: str
    dtype: str
    cache: EmbeddingCache | None
    progress: bool

    @property
    def space(self) -> Space:
        """What decides, with the text, what an embedding is."""
        files = self.files
        return Space(files.name, files.identity, self.pooling, self.max_length, self.dtype)

    def fill(self, texts: Sequence[str], out: NDArray[np.float32]) -> int:
        """Write the embeddings of different texts into ``out``; return how many were encoded."""
        known = np.zeros(len(texts), dtype=bool)
        if self.cache is not None:
            known = self.cache.lookup(self.space, texts, out)
        missing = np.flatnonzero(~known)
        if missing.size:
            unknown = [texts[row] for row in missing.tolist()]
            for rows, vectors in self._encode(unknown):
                out[missing[rows]] = vectors
        return int(missing.size)

    def _encode(
        self, texts: Sequence[str]
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float32]]]:
        """Yield embeddings batch by batch, each with the numbers of its texts; cache them too."""
        network = self._load()
        hidden = not self.progress
        bar = tqdm(total=len(texts), unit="text", desc="encoding", smoothing=0, disable=hidden)
        with bar, CacheWriter(self.cache, self.space) as writer:
            for start in range(0, len(texts), _WINDOW):
                tokens = network.tokenise(texts[start : start + _WINDOW], self.max_length)
                for batch in plan_batches([len(one) for one in tokens], self.batch_size):
                    states, mask = network.hidden_states([tokens[row] for row in batch])
                    vectors = pool(states, mask, self.pooling).cpu().numpy()
                    rows = start + batch
                    yield rows, vectors
                    writer.add([texts[row] for row in rows.tolist()], vectors)
                    bar.update(len(rows))

    def _load(self) -> Network:
        files = self.files
        network = load_network(files.folder, files.identity, self.device, self.dtype)
        if self.max_length > network.longest and files.identity not in _warned:
            _warned.add(files.identity)
            _logger.warning(
                "max_length=%d, but %s reads at most %d tokens: texts are cut there",
                *(self.max_length, files.name, network.longest),
            )
        return network
