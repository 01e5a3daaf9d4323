"""What the tests of explanations share."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from text_models import TextModel, write_texts


@pytest.fixture(scope="session")
def reports():
    return write_texts()


@pytest.fixture(scope="session")
def text_model(reports):
    return TextModel().fit(*reports)
