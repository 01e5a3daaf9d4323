"""How sure a fit is of itself: minimums that are stated, and intervals, on rows made in thousands.

    python -m benchmarks.quality.confidence [--fits N] [--large N] [--jobs N] [--publish]

Three kinds of made rows (a linear problem, interactions, clusters), another problem for each fit;
20 to 60 rare rows, or 200, of 3, 6 or 12 %; 40,000 test rows each. Every fit has the defaults. It
is asked for minimums with and without a confidence by `set_objective`, and the test rows say
whether they are kept and whether the intervals of `oof_report_` hold the figures there.
"""

from __future__ import annotations

import argparse
import math
import warnings
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.quality import raw
from benchmarks.quality.markdown import number, table

RAW = "confidence.csv.gz"
KINDS = ("linear", "interactions", "clusters")
TEST_ROWS = 40_000
WIDTH = 12
RECALLS, PRECISIONS = (0.8, 0.9, 0.95), (0.5, 0.7, 0.8)
FIGURES = {
    "auc": "AUC",
    "average_precision": "AP",
    "sensitivity": "recall",
    "precision": "precision",
}
# A precision is reachable if half of the rare test rows can be found with it.
REACHABLE = 0.5


class Cell(NamedTuple):
    """One fit: the kind of rows, its number, and whether it has 200 rare rows."""

    kind: str
    number: int
    large: bool


def draw(kind: str, problem: int, rare: NDArray[np.bool_], rng: np.random.Generator) -> NDArray:
    """Return rows of a problem, which is the same for the same number."""
    fixed = np.random.default_rng([problem, KINDS.index(kind)])
    X = rng.normal(size=(len(rare), WIDTH))
    if kind == "linear":
        direction = fixed.normal(size=WIDTH)
        return X + rare[:, None] * direction * (2.6 / np.linalg.norm(direction))
    if kind == "interactions":
        # The signs of four pairs of columns agree in rare rows; no column tells alone.
        pairs = fixed.permutation(WIDTH)[:8].reshape(2, 4)
        agreeing = np.sign(X[:, pairs[0]]) * np.abs(X[:, pairs[1]])
        X[:, pairs[1]] = np.where(rare[:, None], agreeing, X[:, pairs[1]])
        X[:, pairs[0]] *= np.where(rare[:, None], 1.3, 1.0)
        return X
    centres = 0.95 * fixed.normal(size=(4, WIDTH))
    return np.where(rare[:, None], centres[rng.integers(4, size=len(rare))] + 0.7 * X, 1.2 * X)


def evaluate(cell: Cell) -> list[dict[str, Any]]:
    """Fit once; return what was asked, what was said and what the test rows say."""
    import torch

    from setconv import SetConvClassifier
    from setconv.errors import ParameterError
    from setconv.metrics import report

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rng = np.random.default_rng([cell.number, KINDS.index(cell.kind), cell.large, 1])
    n_rare = 200 if cell.large else int(rng.integers(20, 61))
    share = float(rng.choice([0.03, 0.06, 0.12]))
    sizes = (round(n_rare / share), TEST_ROWS)
    (X, y), (new, truth) = (_sample(cell, n, round(n * share), rng) for n in sizes)
    model = SetConvClassifier(random_state=cell.number, progress=False).fit(X, y)
    known = {**cell._asdict(), "rare": int(y.sum()), "rows": len(y)}
    said = model.predictions(new)
    seen = report(truth, said.labels, said.scores)[True]
    ours = model.oof_report_[True]
    found = []
    for name in FIGURES:
        low, high = ours.intervals[name]
        figures = {"estimate": getattr(ours, name), "low": low, "high": high}
        found.append({**known, "asked": name, **figures, "truth": getattr(seen, name)})
    best = _best_precision(truth, said.scores)
    levels = [("recall", one) for one in RECALLS] + [("precision", one) for one in PRECISIONS]
    for (kind, level), sure in product(levels, ("", " @ 90%")):
        asked = {**known, "asked": f"{kind}>={level:g}{sure}", "level": level}
        asked["reachable"] = kind == "recall" or best >= level
        try:
            model.set_objective(asked["asked"])
        except ParameterError:
            found.append({**asked, "stated": False})
            continue
        rule = model._decision.rule
        alarms = said.scores > model.threshold_
        hits = float(truth[alarms].sum())
        # No alarm at all has no precision, and counts as a miss.
        kept = hits / truth.sum() if kind == "recall" else hits / (alarms.sum() or math.nan)
        found.append({**asked, "stated": rule.met, "may_miss": rule.may_miss, "truth": kept})
    return found


def _sample(
    cell: Cell, n: int, n_rare: int, rng: np.random.Generator
) -> tuple[NDArray, NDArray[np.bool_]]:
    rare = rng.permutation(np.arange(n) < n_rare)
    return draw(cell.kind, cell.number, rare, rng), rare


def _best_precision(truth: NDArray[np.bool_], scores: NDArray) -> float:
    """Return the precision at the threshold that finds half of the rare rows."""
    hits = np.cumsum(truth[np.argsort(-scores, kind="stable")])
    alarms = int(np.searchsorted(hits, math.ceil(REACHABLE * truth.sum()))) + 1
    return float(hits[alarms - 1] / alarms)


def minimums(found: pd.DataFrame) -> str:
    """Return how often a minimum with a confidence was stated, and stated and missed."""
    rows = []
    for large, part in found[found.asked.str.contains("@")].groupby("large"):
        for asked, one in part.groupby("asked", sort=False):
            stated, missed = _stated(one)
            possible = one[one.reachable == True]  # noqa: E712 - a column of objects
            given = f"{_per_cent(possible.stated.mean())} of {len(possible)}" if large else ""
            rows.append([_size(large), asked, len(one), _per_cent(stated.mean()),
                         _per_cent(missed.mean()), given])  # fmt: skip
    head = [
        "rare rows",
        "asked for",
        "fits",
        "stated",
        "stated and missed",
        "given where reachable",
    ]
    return table(head, rows)


def averages(found: pd.DataFrame) -> str:
    """Return how often a minimum without a confidence was missed, and how often that was said."""
    rows = []
    part = found[found.asked.str.contains(">=") & ~found.asked.str.contains("@")]
    for (large, asked), one in part.groupby(["large", "asked"], sort=False):
        met, missed = _stated(one)
        truth = one.truth[met]
        rows.append([_size(large), asked, _per_cent(missed[met].mean()),
                     _per_cent(one.may_miss[met].mean()), number(truth.mean()),
                     number(truth.quantile(0.1)), number(truth.min())])  # fmt: skip
    head = ["rare rows", "asked for", "missed", "said to miss", "mean", "a tenth is below", "worst"]
    return table(head, rows)


def intervals(found: pd.DataFrame) -> str:
    """Return how often the interval of a figure holds it, and how far the figure itself is off."""
    rows = []
    part = found[found.asked.isin(list(FIGURES))]
    for (large, asked), one in part.groupby(["large", "asked"], sort=False):
        above, below = one.low > one.truth, one.high < one.truth
        rows.append([_size(large), FIGURES[asked], _per_cent(above.mean()), _per_cent(below.mean()),
                     _per_cent((~above & ~below).mean()),
                     number((one.estimate - one.truth).mean(), sign=True),
                     number((one.high - one.low).mean())])  # fmt: skip
    head = [
        "rare rows",
        "figure",
        "lower end above",
        "upper end below",
        "holds it",
        "mean gap",
        "width",
    ]
    return table(head, rows)


def _stated(one: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    stated = one.stated.astype(bool)
    return stated, stated & ~(one.truth >= one.level)


def _size(large: object) -> str:
    return "200" if large else "20 to 60"


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=402, help="with 20 to 60 rare rows")
    parser.add_argument("--large", type=int, default=120, help="with 200")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--publish", action="store_true", help="put the results into docs/quality")
    options = parser.parse_args()
    commit = raw.head() if options.publish else ""
    cells = [
        Cell(kind, fit, large)
        for large, total in ((False, options.fits), (True, options.large))
        for fit, kind in product(range(-(-total // len(KINDS))), KINDS)
    ]
    rows: list[dict[str, Any]] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for done, one in enumerate(pool.map(evaluate, cells), start=1):
            rows += one
            if done % 30 == 0:
                print(f"{done} of {len(cells)} fits", flush=True)
    found = pd.DataFrame(rows)
    print(minimums(found), averages(found), intervals(found), sep="\n\n")
    if options.publish:
        command = f"python -m benchmarks.quality.confidence --fits {options.fits}"
        raw.record(RAW, found, f"{command} --large {options.large} --publish", commit)


if __name__ == "__main__":
    main()
