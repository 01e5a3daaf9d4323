"""Texts with embeddings that can be told apart, and what other processes do to a cache in tests."""

from itertools import count

import numpy as np

from setconv.text import cache
from setconv.text.cache import EmbeddingCache, Space

SPACE = Space("some/model", "hub:some/model@1", "mean", 256, "float32")
WIDTH = 384


def texts_of(first, last):
    return [f"text {number}" for number in range(first, last)]


def vectors_of(texts):
    """Numbers that follow from the text, so that a mixture would be noticed."""
    seeds = np.array([int(text.split()[1]) for text in texts], dtype=np.float32)
    return seeds[:, None] + np.arange(WIDTH, dtype=np.float32) / WIDTH


def store(cache, first, last):
    texts = texts_of(first, last)
    cache.store(SPACE, texts, vectors_of(texts))


def wrong_rows(cache, texts):
    """How many texts are there, and how many of those with numbers of another text."""
    found = np.empty((len(texts), WIDTH), dtype=np.float32)
    known = cache.lookup(SPACE, texts, found)
    return known.sum(), int((found[known] != vectors_of(texts)[known]).any(axis=1).sum())


def share(folder, first, last):
    """Write texts in small portions, and read what others write in between."""
    cache = EmbeddingCache(folder)
    for start in range(first, last, 20):
        store(cache, start, start + 20)
        _, wrong = wrong_rows(cache, texts_of(0, 600))
        assert not wrong


def write_endlessly(folder):
    for start in count(step=50):
        store(EmbeddingCache(folder), start, start + 50)


def encode_slowly(folder, model):
    from tiny_bert import make_texts

    from setconv.text.encoder import TextEncoder

    cache._PORTION = 20
    TextEncoder(model, cache=folder, device="cpu").transform(make_texts(600))
