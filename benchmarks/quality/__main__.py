"""The comparison study.

    python -m benchmarks.quality --data DIR [--part text|tabular] [--quick] [--tables] [--publish]

Cells that the results file has already are not computed again, so an interrupted run goes on
where it stopped. `benchmarks.quality.tasks` says which data sets there are, where they are
published and what DIR holds; the tabular part alone needs no DIR.
"""

from __future__ import annotations

import argparse
import logging
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.quality import raw, report
from benchmarks.quality.evaluate import work
from benchmarks.quality.study import ALL, cells
from benchmarks.quality.tasks import SEMEVAL_ROWS
from setconv.experiment import Store, run

RESULTS = Path(__file__).resolve().parent.parent / "results"


def main() -> None:
    arguments = _parser().parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    name = "quality-quick" if arguments.quick else "quality"
    results = arguments.results or RESULTS / f"{name}.sqlite"
    commit = raw.head() if arguments.publish else ""
    if not arguments.tables:
        _compute(arguments, results)
    with Store(results) as store:
        found, failed = store.results(), report.failures(store.cells())
    print(report.write(found, arguments.out or RESULTS / name, failed))
    if arguments.publish:
        splits = f" --splits {arguments.splits}" if arguments.splits else ""
        command = f"python -m benchmarks.quality --data DIR{splits}"
        raw.record("results.csv.gz", found, command, commit)


def _compute(arguments: argparse.Namespace, results: Path) -> None:
    if arguments.data is None and arguments.part != "tabular":
        raise SystemExit("text tasks need --data DIR; without one choose --part tabular")
    todo = cells(arguments.part, arguments.splits, arguments.methods, arguments.quick)
    # Scores on other rows are other cells.
    todo = [replace(cell, version=f"semeval_rows={arguments.semeval_rows}") for cell in todo]
    task = partial(work, data=arguments.data, semeval_rows=arguments.semeval_rows)
    with Store(results) as store:
        tally = run(
            todo,
            task,
            store,
            jobs=arguments.jobs,
            timeout=arguments.timeout,
            retry_failed=arguments.retry_failed,
            threads=1,
        )
    print(f"{tally.ok} cells computed, {tally.skipped} there already, {tally.failed} failed")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.quality",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--data", type=Path, help="folder with embeddings/*.npz, for the text part")
    add("--part", choices=("text", "tabular", "all"), default="all")
    add("--splits", type=int, help="splits of a task; 3 on text and 2 on tabular sets")
    add("--methods", nargs="+", choices=ALL, metavar="NAME", help=f"some of: {', '.join(ALL)}")
    add("--quick", action="store_true", help="one split of a few tasks: minutes")
    add("--semeval-rows", type=int, default=SEMEVAL_ROWS, help="tweets of SemEval that are used")
    add("--jobs", type=int, help="processes; one for each core")
    add("--timeout", type=float, default=1800.0, help="seconds that a cell may take")
    add("--retry-failed", action="store_true", help="compute failed cells again")
    add("--results", type=Path, help="SQLite file; benchmarks/results/quality.sqlite")
    add("--tables", action="store_true", help="compute nothing, only write tables and figures")
    add("--publish", action="store_true", help="put the results into docs/quality")
    add("--out", type=Path, help="folder for tables and figures; beside the results")
    return parser


if __name__ == "__main__":
    main()
