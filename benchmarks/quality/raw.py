"""The raw results that published tables are built from, and which code made them, and when.

A study hands its results, a row a split and a figure, to `record`: they lie in ``docs/quality`` at
full precision, and ``made.json`` there has the commit, the day and the command of every file.
`benchmarks.quality.publish` builds the tables of the documents from them.
"""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "quality"


def head() -> str:
    """Return the commit that is checked out, before anything is computed with it."""
    if changed := _git("status", "--porcelain", "--", "src", "benchmarks"):
        raise SystemExit(f"results to publish are made by committed code; changed:\n{changed}")
    return _git("rev-parse", "HEAD")


def record(name: str, results: pd.DataFrame, command: str, commit: str) -> None:
    """Write the raw results of a study, and what made them."""
    # Without the time in its header a gzip file is the same whenever it is written.
    how = {"method": "gzip", "mtime": 0} if name.endswith(".gz") else None
    results.to_csv(FOLDER / name, index=False, lineterminator="\n", compression=how)
    day = datetime.now(UTC).date().isoformat()
    known = _made() | {name: {"commit": commit, "date": day, "command": command}}
    text = json.dumps(dict(sorted(known.items())), indent=1)
    (FOLDER / "made.json").write_text(text + "\n", encoding="utf-8")


def read(name: str) -> pd.DataFrame:
    """Return the raw results of a file."""
    return pd.read_csv(FOLDER / name)


def made(name: str, link: str) -> str:
    """Return the sentence that says what made a file; a note tells what else there is to know."""
    found = _made()[name]
    note = f" {found['note']}" if "note" in found else ""
    return (
        f"Built from [{Path(name).name}]({link}), made on {found['date']} at commit "
        f"`{found['commit'][:7]}` by `{found['command']}`.{note}"
    )


def _made() -> dict[str, dict[str, str]]:
    return json.loads((FOLDER / "made.json").read_text(encoding="utf-8"))


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
