"""What the tests of encoders share: a cache of their own and a tiny random BERT."""

import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import setconv
from setconv.text.encoder import TextEncoder

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("SETCONV_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    """The folder of a random BERT with 16 columns that knows the words of `tiny_bert`."""
    pytest.importorskip("transformers", reason="TextEncoder needs transformers")
    from tiny_bert import save_tiny_bert

    return save_tiny_bert(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def make(tiny):
    """Make an encoder with the tiny BERT."""
    return lambda **parameters: TextEncoder(tiny, device="cpu", **parameters)


@pytest.fixture
def encode(caplog):
    """Encode texts; say how many of them came from the cache and how many from the network."""

    def run(encoder, texts):
        caplog.set_level(logging.INFO, "setconv")
        vectors = encoder.transform(texts)
        n_cached, n_encoded = caplog.records[-1].args[2:]
        return SimpleNamespace(vectors=vectors, n_cached=n_cached, n_encoded=n_encoded)

    return run


@pytest.fixture
def run_python():
    """Run a program in a process of its own; return what it says of an error."""

    def run(program, **environment):
        source = str(Path(setconv.__file__).parent.parent)
        done = subprocess.run(
            [sys.executable, "-c", program],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1", **environment},
            timeout=60,  # most of it the imports on a busy machine
        )
        return done.stderr

    return run
