"""What the tests of encoders share: a cache of their own and a tiny random BERT."""

import logging
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

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
