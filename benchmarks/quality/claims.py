"""The figures of docs/claims.md that no table of the reports has as such.

    python -m benchmarks.quality.claims [--data DIR]

The gap between specificity and sensitivity, and how far the curves of the post-training size move,
are from the reports in docs/stand-ins. With ``--data`` the study of SMS messages is run first (it
resumes where it stopped), and its report and raw results are put there. The tables of events that
were never seen and of SMS messages are built by `benchmarks.quality.publish`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from benchmarks.quality import raw
from benchmarks.quality.markdown import number, table
from setconv.experiment import findings, read_study, run_study, write_report

REPORTS = raw.ROOT / "docs" / "stand-ins"
SMS = "stand-ins-sparse"
SMS_RAW = f"../stand-ins/{SMS}/scores.csv"  # seen from the folder of raw results
METRICS = {"auc": "AUC", "g_mean": "G-mean", "f1": "F1", "specificity": "Spec"}
METRICS |= {"sensitivity": "Sens"}
DECISIONS = {"auc": "AUC", "g_mean_natural": "own G-mean", "g_mean_tuned": "tuned G-mean"}


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


def new_events(results: pd.DataFrame) -> str:
    """Return a table of the study's tasks that are split by event, without incomplete methods."""
    tasks = {"incident_tweets/crash": "crash", "incident_tweets/fire": "fire"}
    found = results[results.dataset.isin(tasks) & results.metric.isin(DECISIONS)]
    means = found.pivot_table(index="method", columns=["dataset", "metric"], values="value")
    columns = [(task, metric) for task in tasks for metric in DECISIONS]
    means = means[columns].dropna().sort_values(columns[0], ascending=False)
    head = [f"{label}: {name}" for label in tasks.values() for name in DECISIONS.values()]
    rows = [[method, *map(number, means.loc[method])] for method in means.index]
    return table(["method", *head], rows)


def sms(scores: pd.DataFrame) -> str:
    """Return the means of the study of SMS messages."""
    means = scores.pivot_table(index="method", columns="metric", values="value", sort=False)
    rows = [[method, *map(number, means.loc[method, list(METRICS)])] for method in means.index]
    return table(["method", *METRICS.values()], rows)


def _run_sms(data: Path) -> None:
    commit = raw.head()
    study, folder = read_study(SMS), raw.ROOT / "benchmarks" / "results" / SMS
    run_study(study, folder, data=data, jobs=1, threads=1)
    found = findings(study, folder, f"setconv experiment run {SMS} --data FOLDER")
    write_report(found, REPORTS / SMS)
    command = "python -m benchmarks.quality.claims --data DIR"
    raw.record(SMS_RAW, found.scores, command, commit)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="as in benchmarks.quality: runs the SMS study")
    options = parser.parse_args()
    if options.data is not None:
        _run_sms(options.data)
    pd.set_option("display.max_rows", None)
    print("|Spec - Sens|, mean over units split at random\n", gaps().round(3), sep="")
    print("\nRange of the curves over the post-training size\n", movement().round(3), sep="")


if __name__ == "__main__":
    main()
