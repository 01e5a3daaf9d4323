"""The document on model stores: its blocks, and the names that they leave behind."""

import os
import re
import sys
from pathlib import Path

import pytest

from setconv import fitting

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "text"))

# Read by MLflow at its import.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"

DOCUMENT = Path(__file__).parents[2] / "docs" / "model-stores.md"


@pytest.fixture(scope="session")
def blocks():
    """The Python of each section, by its heading; the first has none."""
    parts = re.split(r"^## (.*)$", "## \n" + DOCUMENT.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {
        heading: re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where the document is run."""
    return tmp_path_factory.mktemp("recipes")


@pytest.fixture(scope="module")
def names(blocks, place):
    """What the blocks define, run from top to bottom; those of the hub are run by a test."""
    import mlflow

    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.syspath_prepend(place)
        # As many steps as there are looks in a run.
        patch.setattr(fitting, "automatic_steps", lambda *_: 20)
        for heading, parts in blocks.items():
            for number, block in enumerate(parts if heading != "Hugging Face hub" else ()):
                if file := re.match(r"# (\w+\.py)\n", block):
                    Path(file[1]).write_text(block, "utf-8")
                else:
                    exec(compile(block, f"{heading}, block {number}", "exec"), found)
        yield found
        mlflow.set_tracking_uri(None)
