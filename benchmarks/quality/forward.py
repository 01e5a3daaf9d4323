"""Folds forward in time against random ones, on made rows that drift and that do not.

    python -m benchmarks.quality.forward [--seeds N] [--jobs N] [--publish]

"Attacks" has rare rows in attacks, each of a kind that was not there before. In the other problems
the rare rows are shifted along a direction, which turns with time or stays. What the out-of-fold
rows say is compared with rows that come after all of them.
"""

from __future__ import annotations

import argparse
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.quality import raw
from benchmarks.quality.markdown import number, table

RAW = "forward.csv"
LATER = 8000  # rows that come after
Sample = tuple[NDArray, NDArray, NDArray]


class Problem(NamedTuple):
    """Rows, columns and the share of the rare class; the angle by which its direction turns."""

    rows: int
    columns: int
    share: float
    turn: float


PROBLEMS = {
    "attacks of new kinds": None,
    "2,000 x 20, turning": Problem(2000, 20, 0.06, 1.2),
    "1,500 x 150, turning": Problem(1500, 150, 0.08, 1.2),
    "2,000 x 20": Problem(2000, 20, 0.06, 0.0),
    "1,500 x 150": Problem(1500, 150, 0.08, 0.0),
    "500 x 20": Problem(500, 20, 0.1, 0.0),
}


def attacks(count: int, seed: int) -> Sample:
    """Return rows, classes and times of attacks of six rows each among forty others."""
    rng = np.random.default_rng(seed)
    when = np.repeat(np.arange(count), 46)
    y = np.tile(np.repeat([1, 0], [6, 40]), count)
    X = rng.normal(size=(len(y), 8))
    kinds = rng.normal(size=(count, 8))
    kinds *= 3 / np.linalg.norm(kinds, axis=1, keepdims=True)
    return np.where(y[:, None] == 1, 0.4 * X + kinds[when] + 0.5, X), y, when


def shifted(problem: Problem, n: int, first: float, last: float, seed: int) -> Sample:
    """Return rows, classes and times between two moments; 0 to 1 is the time of training."""
    rng = np.random.default_rng(seed)
    when = np.sort(rng.uniform(first, last, n))
    y = (rng.random(n) < problem.share).astype(np.int64)
    X = rng.normal(size=(n, problem.columns))
    angle = problem.turn * when
    X[:, 0] += 1.6 * y * np.cos(angle)
    X[:, 1] += 1.6 * y * np.sin(angle)
    X[:, 2:10] += 0.5 * y[:, None]
    return X, y, when


def evaluate(cell: tuple[str, int]) -> dict[str, Any]:
    """Fit with random folds and forward in time; return what they say and what comes later."""
    import torch

    from setconv import SetConvClassifier
    from setconv.metrics import report

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    name, seed = cell
    problem = PROBLEMS[name]
    if problem is None:
        (X, y, when), (new, truth, _) = attacks(40, seed), attacks(300, seed + 100)
    else:
        X, y, when = shifted(problem, problem.rows, 0.0, 1.0, seed)
        new, truth, _ = shifted(problem, LATER, 1.0, 1.15, seed + 1000)
    found: dict[str, Any] = {"problem": name, "seed": seed}
    for folds, time in (("random", None), ("forward", when)):
        model = SetConvClassifier(random_state=seed, progress=False).fit(X, y, time=time)
        said = model.predictions(new)
        later = report(truth, said.labels, said.scores)[1]
        for what, of in (("said", model.oof_report_[1]), ("later", later)):
            found[f"{folds}_auc_{what}"] = of.auc
            found[f"{folds}_recall_{what}"] = of.sensitivity
            found[f"{folds}_alarms_{what}"] = 1 - of.specificity
    return found


def figures(found: pd.DataFrame) -> str:
    """Return means over the seeds: AUC, recall and false alarms, as said and on later rows."""
    rows = []
    for name, one in found.groupby("problem", sort=False):
        means = one.drop(columns="problem").mean()
        ratios = [(one[f"{f}_alarms_later"] / one[f"{f}_alarms_said"]).mean() for f in _FOLDS]
        both = [[number(means[f"{f}_{figure}_{what}"]) for figure in ("auc", "recall")
                 for what in ("said", "later")] for f in _FOLDS]  # fmt: skip
        rows.append([name, *(cell for part, ratio in zip(both, ratios, strict=True)
                             for cell in (*_pairs(part), f"{ratio:.2f}"))])  # fmt: skip
    head = [f"{folds}: {what}" for folds in _FOLDS for what in ("AUC", "recall", "false alarms")]
    return table(["rows", *head], rows)


_FOLDS = ("random", "forward")


def _pairs(four: list[str]) -> list[str]:
    return [f"{four[0]} / {four[1]}", f"{four[2]} / {four[3]}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--publish", action="store_true", help="put the results into docs/quality")
    options = parser.parse_args()
    commit = raw.head() if options.publish else ""
    with ProcessPoolExecutor(options.jobs) as pool:
        cells = list(product(PROBLEMS, range(options.seeds)))
        found = pd.DataFrame(list(pool.map(evaluate, cells)))
    print(figures(found))
    if options.publish:
        command = f"python -m benchmarks.quality.forward --seeds {options.seeds} --publish"
        raw.record(RAW, found, command, commit)


if __name__ == "__main__":
    main()
