"""The study in four tables: ranks, means, what is significant, and how honest the estimates are."""

from __future__ import annotations

import pandas as pd

from benchmarks.quality.markdown import number, table
from benchmarks.quality.peers import OURS
from benchmarks.quality.report import parts
from benchmarks.quality.tables import METRICS, better, estimates, scores
from setconv.experiment import average_ranks, wilcoxon_holm

_NAMES = {
    "text": "text",
    "tabular": "tables",
    "tabular-choosing": "tables, choosing half",
    "tabular-untouched": "tables, untouched half",
}


def ranks(results: pd.DataFrame) -> str:
    """Return our average rank, and the best peer's, by part; the better one is bold."""
    rows = []
    for key, chosen, sources in parts(results):
        ours: list[str] = [f"{_NAMES[key]}, {OURS}"]
        best: list[str] = [f"{_NAMES[key]}, best peer"]
        for metric in METRICS:
            found = average_ranks(scores(chosen, metric), sources).average
            others = found.drop(OURS)
            first, second = f"{found[OURS]:.1f}", f"{others.min():.1f}"
            ahead = found[OURS] <= others.min()
            ours.append(f"**{first}**" if ahead else first)
            best.append(f"{second if ahead else f'**{second}**'} {others.idxmin()}")
        rows += [ours, best]
    return table(["average rank", *METRICS.values()], rows)


def means(results: pd.DataFrame) -> str:
    """Return our mean, and its distance to logistic regression and to the best peer's mean."""
    rows = []
    for key, chosen, _ in parts(results):
        row = [_NAMES[key]]
        for metric in METRICS:
            found = scores(chosen, metric).mean()
            others = found.drop(OURS)
            gaps = (found[OURS] - one for one in (others["logistic regression"], others.max()))
            first, second = (number(gap, sign=True) for gap in gaps)
            row.append(f"{number(found[OURS])} ({first}, {second})")
        rows.append(row)
    return table(["mean", *METRICS.values()], rows)


def claims(results: pd.DataFrame) -> str:
    """Return from how many peers we differ for the better, by Wilcoxon's test after Holm."""
    rows = []
    for key, chosen, sources in parts(results):
        tests = [wilcoxon_holm(scores(chosen, metric), OURS, sources) for metric in METRICS]
        if tests[0].claimed:
            rows.append([f"{_NAMES[key]}, {tests[0].n_sources} sources", *map(better, tests)])
    return table(["better than", *METRICS.values()], rows)


def honesty(results: pd.DataFrame) -> str:
    """Return out-of-fold estimates minus the test part: mean, and mean absolute difference."""
    rows = []
    for key, chosen, _ in parts(results):
        if not key.startswith("tabular-"):
            found = (estimates(chosen, metric) for metric in METRICS)
            gaps = [one["estimate"] - one["test"] for one in found]
            means = (f"{number(g.mean(), sign=True)} ({number(g.abs().mean())})" for g in gaps)
            rows.append([_NAMES[key], *means])
    return table(["estimate minus test", *METRICS.values()], rows)
