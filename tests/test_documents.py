"""The code in the documents runs."""

import re
from pathlib import Path

import pytest

from setconv import fitting

ROOT = Path(__file__).resolve().parent.parent


def python_blocks(path):
    return re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("name", ["README.md", "docs/user-guide.md", "docs/baselines.md"])
def test_the_python_in_a_document_runs_from_top_to_bottom(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Whether it runs does not depend on how long training takes.
    monkeypatch.setattr(fitting, "automatic_steps", lambda *_: 30)
    blocks = python_blocks(ROOT / name)
    assert blocks
    names = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{name}, block {number}", "exec"), names)


def test_every_file_that_the_readme_links_to_is_there():
    targets = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(targets) > 5
    assert [target for target in targets if not (ROOT / target).exists()] == []
