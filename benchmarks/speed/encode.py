"""TextEncoder against a hand-written length-sorted loop, and cache hits against encoding.

    python benchmarks/speed/encode.py

The loop is what one would write with transformers: tokenise, sort by length, pad to the longest of
64 texts, mean over the tokens. Both use the same weights and take turns in one run; the texts are
generated, most of them short, some longer than what is read. The ratios are what counts, on an idle
machine.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from setconv.text import TextEncoder

BATCH, LENGTH = 64, 256
SYLLABLES = ("ka", "to", "re", "mi", "sol", "un", "der", "ing", "ly", "pro", "ba", "nu", "est")


def make_texts(n: int) -> list[str]:
    """Return different texts with a median of about 25 words, one in twenty beyond 150."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(SYLLABLES, rng.integers(1, 4))) for _ in range(3000)]
    lengths = np.clip(rng.lognormal(np.log(25), 1.1, n), 1, 400).astype(int)
    return [f"{row} {' '.join(rng.choice(words, length))}" for row, length in enumerate(lengths)]


def load_by_hand(folder: Path, device: str) -> Callable[[list[str]], np.ndarray]:
    """Return the loop that one would write without setconv."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model: Any = AutoModel.from_pretrained(folder, local_files_only=True).float().to(device).eval()

    def encode(texts: list[str]) -> np.ndarray:
        tokens = tokenizer(texts, truncation=True, max_length=LENGTH)["input_ids"]
        order = sorted(range(len(texts)), key=lambda row: -len(tokens[row]))
        rows = np.empty((len(texts), model.config.hidden_size), dtype=np.float32)
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            batch = tokenizer.pad({"input_ids": [tokens[row] for row in some]}, return_tensors="pt")
            batch = batch.to(device)
            with torch.inference_mode():
                states = model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1)
            rows[some] = ((states * mask).sum(1) / mask.sum(1)).cpu().numpy()
        return rows

    return encode


def seconds(job: Callable[[], object]) -> float:
    started = time.perf_counter()
    job()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--model", default="all-MiniLM-L6-v2")
    parser.add_argument("--device", default="cpu")
    size = parser.parse_args()
    texts = make_texts(size.texts)
    common = {"device": size.device, "dtype": "float32", "max_length": LENGTH}
    fresh = TextEncoder(size.model, cache=False, **common)
    by_hand = load_by_hand(fresh.find_files().folder, size.device)
    warm = texts[:64]
    gap = np.abs(fresh.transform(warm) - by_hand(warm)).max()
    with tempfile.TemporaryDirectory() as folder:
        cached = TextEncoder(size.model, cache=folder, **common)
        cached.transform(texts)
        jobs = {
            "by hand": lambda: by_hand(texts),
            "TextEncoder": lambda: fresh.transform(texts),
            "from the cache": lambda: cached.transform(texts),
        }
        runs: dict[str, list[float]] = {name: [] for name in jobs}
        for _ in range(size.turns):
            for name, job in jobs.items():
                runs[name].append(seconds(job))
    medians = {name: statistics.median(values) for name, values in runs.items()}
    print(f"{size.texts} texts, {torch.get_num_threads()} threads, {size.device}")
    print(f"largest difference of the embeddings: {gap:.1e}")
    for name, value in medians.items():
        print(f"{name:15} {value:9.3f} s {size.texts / value:10.0f} texts/s")
    print(f"TextEncoder is {medians['by hand'] / medians['TextEncoder']:.2f}x as fast as by hand")
    print(f"a cache hit is {medians['TextEncoder'] / medians['from the cache']:.0f}x as fast")


if __name__ == "__main__":
    main()
