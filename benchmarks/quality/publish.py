"""Every published table from its raw results: ``python -m benchmarks.quality.publish``.

Writes ``docs/quality/tables.md``, the figures of `FIGURES`, and in the documents whatever stands
between ``<!-- from FILE: TABLE -->`` and ``<!-- end -->``, with the commit that made ``FILE``. A
table is a function of the results in `TABLES`. What is there already stays the same to the byte.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from benchmarks.quality import (
    baselines,
    claims,
    confidence,
    forward,
    overview,
    raw,
    report,
    semeval,
    sparse,
)

STUDY = "results.csv.gz"
FIGURES = ("ranks-tabular-auc.svg", "ranks-tabular-g_mean_tuned.svg", "estimates-tabular.svg")
DOCUMENTS = (
    *("README.md", "docs/quality.md", "docs/baselines.md", "docs/claims.md"),
    "docs/user-guide.md",
)
TABLES: dict[str, Callable[[pd.DataFrame], str]] = {
    f"{STUDY}: ranks": overview.ranks,
    f"{STUDY}: means": overview.means,
    f"{STUDY}: claims": overview.claims,
    f"{STUDY}: honesty": overview.honesty,
    "sparse.csv: split 0": partial(sparse.ranks, place=0),
    "sparse.csv: split 1": partial(sparse.ranks, place=1),
    "sparse.csv: tasks": partial(sparse.tasks, vectors="words", place=1),
    "semeval.csv: gains": semeval.gains,
    f"{confidence.RAW}: minimums": confidence.minimums,
    f"{confidence.RAW}: averages": confidence.averages,
    f"{confidence.RAW}: intervals": confidence.intervals,
    f"{forward.RAW}: figures": forward.figures,
    "baselines.csv: tables": baselines.tables,
    f"{STUDY}: new events": claims.new_events,
    f"{claims.SMS_RAW}: means": claims.sms,
}
_BLOCK = re.compile(r"(<!-- from ((\S+): [^>]+) -->\n).*?(?=<!-- end -->)", re.DOTALL)


def document(path: Path) -> str:
    """Return a document with its tables built anew; what made a file is said at its first."""
    told: set[str] = set()

    def block(found: re.Match[str]) -> str:
        opening, table, name = found.groups()
        link = Path(os.path.relpath(raw.FOLDER / name, path.parent)).as_posix()
        origin = f"From [{link}]({link}) too." if name in told else raw.made(name, link)
        told.add(name)
        return f"{opening}\n{TABLES[table](raw.read(name))}\n\n{origin}\n\n"

    return _BLOCK.sub(block, path.read_text(encoding="utf-8"))


def study(folder: Path) -> str:
    """Write the figures of the study into a folder, and return its tables."""
    return report.write(raw.read(STUDY), folder, raw.made(STUDY, STUDY))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        text = study(Path(folder))
        for name in FIGURES:
            (raw.FOLDER / name).write_bytes((Path(folder) / name).read_bytes())
    (raw.FOLDER / "tables.md").write_text(text, encoding="utf-8")
    for name in DOCUMENTS:
        path = raw.ROOT / name
        path.write_text(document(path), encoding="utf-8")


if __name__ == "__main__":
    main()
