"""Time and peak memory of a fit of each baseline, and how they grow with the rows.

    python benchmarks/speed/baselines.py [--rows N ...] [--methods NAME ...] [--limit SECONDS]

Each fit has a process of its own. Its peak memory is all that the process ever held: the
interpreter, the libraries and the rows (the line "nothing" has these alone), and the fit. The rows
are made: two overlapping Gaussians in 50 hidden dimensions, mixed into all columns with noise, 9.75
rows of the one for each of the other. Growth is the exponent b of rows^b, by least squares on
logarithms. The table is Markdown; timings count on an idle machine only.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
import warnings
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

import setconv.baselines

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.speed.growth import exponent
from benchmarks.speed.made import dense_rows
from benchmarks.speed.processes import peak_gigabytes

IMBALANCE = 9.75
NOTHING = "nothing"


class Cost(NamedTuple):
    """What a fit took; not a number where it did not end."""

    seconds: float
    gigabytes: float


def fit(name: str, rows: int, columns: int, results: Connection) -> None:
    """Say when the fit begins and send what it took; runs in a process of its own."""
    warnings.simplefilter("ignore")
    X, y = dense_rows(rows, columns, (IMBALANCE, 1))
    results.send("begins")
    started = time.perf_counter()
    if name != NOTHING:
        (entry,) = (entry for entry in setconv.baselines.all() if entry.name == name)
        entry.make(0).fit(X, y)
    seconds = time.perf_counter() - started
    results.send(Cost(seconds, peak_gigabytes()))


def measured(name: str, rows: int, columns: int, limit: float) -> Cost:
    """Run a fit in a fresh process and stop it at the limit."""
    context = multiprocessing.get_context("spawn")
    results, sender = context.Pipe(duplex=False)
    process = context.Process(target=fit, args=(name, rows, columns, sender))
    process.start()
    sender.close()
    try:
        results.recv()
        if results.poll(limit):
            return Cost(*results.recv())
        print(f"{name} at {rows} rows: stopped after {limit:.0f} s", file=sys.stderr)
    except EOFError:
        print(f"{name} at {rows} rows: failed, see above", file=sys.stderr)
    finally:
        process.terminate()
        process.join()
    return Cost(np.nan, np.nan)


def line(name: str, rows: list[int], costs: list[Cost]) -> str:
    """One line of the table."""
    cells = [name]
    for values, digits in (([c.seconds for c in costs], 1), ([c.gigabytes for c in costs], 2)):
        cells += ["-" if np.isnan(value) else f"{value:.{digits}f}" for value in values]
        growth = np.nan if name == NOTHING else exponent(rows, values)
        cells.append("-" if np.isnan(growth) else f"{growth:.2f}")
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[5_000, 20_000, 40_000])
    parser.add_argument("--columns", type=int, default=1024)
    parser.add_argument("--methods", nargs="+", metavar="NAME", help="all where none is named")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds for one fit")
    options = parser.parse_args()
    known = [entry.name for entry in setconv.baselines.all()]
    unknown = set(options.methods or []) - set(known)
    if unknown:
        parser.error(f"unknown methods {sorted(unknown)}; there are {known}")
    print(
        f"{options.columns} columns of float32, imbalance ratio {IMBALANCE}, "
        f"{torch.get_num_threads()} threads\n"
    )
    seconds = [f"{rows:,} rows, s" for rows in options.rows]
    memory = [f"{rows:,} rows, GB" for rows in options.rows]
    print(f"| method | {' | '.join(seconds)} | growth | {' | '.join(memory)} | growth |")
    print("|---" + "|---:" * (2 * len(options.rows) + 2) + "|")
    for name in [NOTHING, *(options.methods or known)]:
        costs = [measured(name, rows, options.columns, options.limit) for rows in options.rows]
        print(line(name, options.rows, costs), flush=True)


if __name__ == "__main__":
    main()
