"""The figures of docs/claims.md that no table of the reports has as such.

    python -m benchmarks.quality.claims [--results FOLDER]

The gap between specificity and sensitivity, and how far the curves of the post-training size move,
are from the reports in docs/stand-ins. The worst event is from the results of the study itself,
``FOLDER/stand-ins-comparison/results.sqlite``.
"""

from __future__ import annotations

import argparse
import sqlite3
from pathlib import Path

import pandas as pd

QUERY = """
    SELECT dataset, method, split, value FROM results
    WHERE dataset LIKE '% by event' AND metric LIKE 'g_mean%'
"""
REPORTS = Path(__file__).resolve().parents[2] / "docs" / "stand-ins"


def gaps() -> pd.Series:
    """Return the mean difference of specificity and sensitivity over units split at random."""
    means = pd.read_csv(REPORTS / "stand-ins-comparison" / "tables.csv")
    table = means[~means.unit.str.endswith("by event")].pivot_table(
        index=["method", "unit"], columns="metric", values="mean"
    )
    gap = (table.specificity - table.sensitivity).abs()
    return gap.groupby("method").mean().sort_values()


def movement() -> pd.DataFrame:
    """Return how far each curve moves, from 250 rows on and from 1,000 on."""
    curves = pd.read_csv(REPORTS / "stand-ins-sensitivity" / "curves.csv")
    curves = curves[curves.curve == "post-training size"]
    mean = curves.groupby(["method", "unit", "metric", "setting"]).value.mean().unstack()
    spans = {f"from {least}": _span(mean.loc[:, mean.columns >= least]) for least in (250, 1000)}
    return pd.DataFrame(spans)


def _span(curves: pd.DataFrame) -> pd.Series:
    return curves.max(axis=1) - curves.min(axis=1)


def worst_events(results: Path) -> pd.DataFrame:
    """Return G-mean of the mean and of the worst left-out event."""
    store = results / "stand-ins-comparison" / "results.sqlite"
    with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
        found = pd.read_sql_query(QUERY, connection)
    return found.groupby(["dataset", "method"]).value.agg(["mean", "min"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, help="folder of the study's results")
    options = parser.parse_args()
    pd.set_option("display.max_rows", None)
    print("|Spec - Sens|, mean over units split at random\n", gaps().round(3), sep="")
    print("\nRange of the curves over the post-training size\n", movement().round(3), sep="")
    if options.results is not None:
        print("\nG-mean by left-out event\n", worst_events(options.results).round(3), sep="")


if __name__ == "__main__":
    main()
