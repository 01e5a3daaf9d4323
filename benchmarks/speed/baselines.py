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
import resource
import sys
import time
import warnings
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np
import torch

import setconv.baselines

IMBALANCE = 9.75
HIDDEN = 50
CHUNK = 4096
NOTHING = "nothing"


class Cost(NamedTuple):
    """What a fit took; not a number where it did not end."""

    seconds: float
    gigabytes: float


def made_rows(rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the rows chunk by chunk, so that making them needs no more memory than they do."""
    rng = np.random.default_rng(0)
    rare = rng.permutation(rows) < round(rows / (1 + IMBALANCE))
    scales = 1 / np.sqrt(1 + np.arange(HIDDEN, dtype=np.float32))
    mixing = rng.standard_normal((HIDDEN, columns), dtype=np.float32)
    shift = 0.5 * rng.standard_normal(HIDDEN, dtype=np.float32)
    X = np.empty((rows, columns), dtype=np.float32)
    for start in range(0, rows, CHUNK):
        part = X[start : start + CHUNK]
        hidden = rng.standard_normal((len(part), HIDDEN), dtype=np.float32)
        hidden += np.outer(rare[start : start + CHUNK], shift)
        rng.standard_normal(out=part, dtype=np.float32)
        part += (hidden * scales) @ mixing
    return X, rare.astype(int)


def fit(name: str, rows: int, columns: int, results: Connection) -> None:
    """Say when the fit begins and send what it took; runs in a process of its own."""
    warnings.simplefilter("ignore")
    X, y = made_rows(rows, columns)
    results.send("begins")
    started = time.perf_counter()
    if name != NOTHING:
        (entry,) = (entry for entry in setconv.baselines.all() if entry.name == name)
        entry.make(0).fit(X, y)
    seconds = time.perf_counter() - started
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    results.send(Cost(seconds, peak / 1e9))


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


def exponent(rows: list[int], values: list[float]) -> float:
    """Fit b of values ~ rows^b; not a number with fewer than two values."""
    known = [(n, value) for n, value in zip(rows, values, strict=True) if value > 0]
    if len({n for n, _ in known}) < 2:
        return np.nan
    return float(np.polyfit(*np.log(np.array(known)).T, deg=1)[0])


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
