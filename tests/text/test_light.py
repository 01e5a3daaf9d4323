"""What works without transformers, and without importing what is not needed."""

import os
import subprocess
import sys
from pathlib import Path

import setconv

PROGRAM = """
import sys

sys.modules["transformers"] = sys.modules["huggingface_hub"] = None
from setconv.text import EmbeddingCache, TextEncoder, TfidfEncoder

assert EmbeddingCache().info().entries == 0
assert TfidfEncoder(2).fit_transform(["a dog", "a cat"]).shape == (2, 2)
TextEncoder(pooling="cls")
assert "torch" not in sys.modules
"""


def test_without_transformers_all_but_encoding_works_and_torch_is_not_imported():
    source = str(Path(setconv.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, env=environment)
