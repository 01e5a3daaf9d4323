"""Texts as `TextEncoder` encodes them on the CPU, in padded batches, from the cache, and alone."""

from __future__ import annotations

import tempfile
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.speed.processes import Alone
from benchmarks.speed.timing import medians
from setconv.text import TextEncoder
from setconv.text.encoder import plan_batches, pool
from setconv.text.transformer import load_network

TOKENS = 2048  # of a batch, padding included: short texts by the hundred, long ones by the dozen
LENGTH = 256
ALONE = 40  # texts that come one by one
SYLLABLES = ("ka", "to", "re", "mi", "sol", "un", "der", "ing", "ly", "pro", "ba", "nu", "est")


class Sizes(NamedTuple):
    texts: int = 1000
    turns: int = 3


FULL = Sizes()
QUICK = Sizes(texts=20, turns=1)


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:
    """Return, for short texts and for a mixture, seconds of each way."""
    return {"texts": sizes.texts, "mixes": alone(measure, sizes)}


def measure(sizes: Sizes) -> dict[str, dict[str, float]]:
    """Time the ways in turns, with MiniLM and by mean pooling."""
    short = np.random.default_rng(0).integers(4, 16, sizes.texts)
    mixed = np.random.default_rng(0).lognormal(np.log(25), 1.1, sizes.texts)
    lengths = {"short": short, "mixed": np.clip(mixed, 1, 400).astype(int)}
    return {name: _measure_mix(make_texts(words), sizes) for name, words in lengths.items()}


def make_texts(lengths: np.ndarray) -> list[str]:
    """Return different texts of so many made-up words, which have two or three tokens each."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(SYLLABLES, rng.integers(1, 4))) for _ in range(3000)]
    return [f"{row} {' '.join(rng.choice(words, length))}" for row, length in enumerate(lengths)]


def _measure_mix(texts: list[str], sizes: Sizes) -> dict[str, float]:
    common: dict[str, Any] = {"device": "cpu", "max_length": LENGTH}
    encoder = TextEncoder(cache=False, **common)
    network = load_network(encoder.find_files(), torch.device("cpu"), "float32")
    counts = [len(one) for one in network.tokenise(texts, LENGTH)]

    def in_batches() -> None:
        tokens = network.tokenise(texts, LENGTH)
        for batch in plan_batches(counts, TOKENS):
            pool(*network.hidden_states([tokens[row] for row in batch]), "mean")

    def bare() -> None:
        for text in texts[:ALONE]:
            pool(*network.hidden_states(network.tokenise([text], LENGTH)), "mean")

    def single() -> None:
        for text in texts[:ALONE]:
            encoder.transform([text])

    with tempfile.TemporaryDirectory() as folder:
        cached = TextEncoder(cache=folder, **common)
        cached.transform(texts)
        ways = {
            "fixed": lambda: encoder.transform(texts),
            "batches": in_batches,
            "cached": lambda: cached.transform(texts),
            "bare": bare,
            "single": single,
        }
        found = medians(ways, sizes.turns, warm_up=0)
    return {**found, "tokens": float(np.mean(counts))}
