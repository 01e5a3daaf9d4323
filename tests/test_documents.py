"""The code in the documents runs, and docs/cli.md is what the commands say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from setconv import fitting

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", ["README.md", "docs/user-guide.md", "docs/baselines.md"])
def test_the_python_in_a_document_runs_from_top_to_bottom(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Whether it runs does not depend on how long training takes.
    monkeypatch.setattr(fitting, "automatic_steps", lambda *_: 30)
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    names = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"{name}, block {number}", "exec"), names)


def test_every_file_that_the_readme_links_to_is_there():
    targets = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(targets) > 5
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_page_on_the_command_line_is_current():
    program = ROOT / "tools" / "cli_docs.py"
    done = subprocess.run([sys.executable, str(program), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
