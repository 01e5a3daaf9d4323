"""docs/cli.md is what the commands say."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_page_on_the_command_line_is_current():
    program = ROOT / "tools" / "cli_docs.py"
    done = subprocess.run([sys.executable, str(program), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
