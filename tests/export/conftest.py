"""What the tests of the export share; without the extra there is nothing to test."""

import sys
from pathlib import Path

import pytest

for package in ("onnx", "onnxruntime", "tokenizers"):
    pytest.importorskip(package, reason=f"{package} is not installed")

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "text")]


@pytest.fixture(autouse=True)
def cache_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("SETCONV_CACHE", str(tmp_path / "cache"))
