"""What an import costs, and what works without transformers."""

import os
import subprocess
import sys
from pathlib import Path

import setconv

PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"transformers", "huggingface_hub"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
from setconv.text.cache import EmbeddingCache
from setconv.text.encoder import TextEncoder
from setconv.text.tfidf import TfidfEncoder

assert TfidfEncoder(2).fit_transform(["a dog", "a cat"]).shape == (2, 2)
assert EmbeddingCache().info().entries == 0
TextEncoder(pooling="cls")
"""


def test_without_transformers_all_but_encoding_works():
    source = str(Path(setconv.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
