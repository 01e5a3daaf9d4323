"""From results to tables: scores, ranks, evidence, decisions, calibration, estimates, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.quality.markdown import number, p_value, section, table
from benchmarks.quality.peers import CALIBRATED, OURS, PRESETS
from setconv.errors import DataError
from setconv.experiment import WilcoxonHolm, average_ranks, friedman, nemenyi, wilcoxon_holm

if TYPE_CHECKING:
    import pandas as pd

METRICS = {
    "auc": "AUC",
    "average_precision": "average precision",
    "g_mean_tuned": "G-mean",
    "f1_tuned": "F1",
}
_OOF = {
    "auc": "oof_auc",
    "average_precision": "oof_average_precision",
    "g_mean_tuned": "oof_g_mean",
    "f1_tuned": "oof_f1",
}
Sources = Mapping[str, str]


def ranked(results: pd.DataFrame) -> list[str]:
    """Return the methods that take part in ranks: presets and calibrated models stand apart."""
    apart = {*PRESETS, *CALIBRATED}
    present = list(dict.fromkeys(results["method"]))
    return [m for m in sorted(present, key=lambda m: (m != OURS, m)) if m not in apart]


def complete(results: pd.DataFrame) -> pd.DataFrame:
    """Return the splits that every ranked method has, so that a study can be read early."""
    methods = ranked(results)
    here = results[(results["metric"] == "auc") & results["method"].isin(methods)]
    counts = here.groupby(["dataset", "split"])["method"].nunique()
    kept = counts.index[counts == len(methods)]
    return results[results.set_index(["dataset", "split"]).index.isin(kept)]


def scores(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return data sets by methods, for the methods that are ranked."""
    return score_table(results, metric, ranked(results))


def score_table(
    results: pd.DataFrame, metric: str, methods: Sequence[str] | None = None
) -> pd.DataFrame:
    """Return means over the splits of the data sets that have every split of every method."""
    chosen = results[results["metric"] == metric]
    names = sorted(chosen["method"].unique()) if methods is None else list(methods)
    chosen = chosen[chosen["method"].isin(names)]
    by_split = chosen.pivot(index=["dataset", "split"], columns="method", values="value")[names]
    whole = by_split.notna().groupby(level="dataset").all().all(axis="columns")
    return by_split.groupby(level="dataset").mean()[whole]


def _intervals(by_source: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Return 95 % intervals of average ranks, by drawing sources with replacement."""
    values, size = by_source.to_numpy(), len(by_source)
    drawn = np.random.default_rng(0).multinomial(size, np.full(size, 1 / size), size=2000)
    bounds = np.quantile(drawn @ values / size, [0.025, 0.975], axis=0)
    return {name: (low, high) for name, low, high in zip(by_source, *bounds, strict=True)}


def score_section(results: pd.DataFrame, sources: Sources) -> str:
    """Return mean scores and average ranks with 95 % bootstrap intervals over sources."""
    tables = {metric: scores(results, metric) for metric in METRICS}
    ranks = {metric: average_ranks(found, sources) for metric, found in tables.items()}
    means = {metric: found.mean() for metric, found in tables.items()}
    n_sources = len(ranks["auc"].by_source)
    intervals = {
        metric: _intervals(found.by_source) if n_sources > 1 else None
        for metric, found in ranks.items()
    }
    rows = []
    for method in ranks["auc"].average.sort_values(kind="stable").index:
        row: list[object] = [_name(method)]
        for metric in METRICS:
            text = f"{ranks[metric].average[method]:.1f}"
            if (interval := intervals[metric]) is not None:
                low, high = interval[method]
                text += f" [{low:.1f}, {high:.1f}]"
            row += [number(means[metric][method]), text]
        rows.append(row)
    head = ["method", *[title for name in METRICS.values() for title in (name, "rank")]]
    found = tables["auc"]
    note = (
        f"{len(found)} data sets of {n_sources} sources, {len(found.columns)} methods. Scores are "
        "means over data sets; ranks are averaged within sources first, in brackets the 95 % "
        "bootstrap interval over sources. G-mean and F1 at thresholds tuned for the metric."
    )
    return section("Scores and ranks", note, table(head, rows))


def evidence_section(results: pd.DataFrame, sources: Sources) -> str:
    """Return Friedman's, Nemenyi's and Wilcoxon's tests."""
    if len(ranked(results)) < 3:
        return ""
    omnibus, pairs, reason = [], {}, ""
    for metric, title in METRICS.items():
        found = scores(results, metric)
        by_source = average_ranks(found, sources).by_source
        if len(by_source) < 2:
            return section("Evidence", "One source: nothing to test.")
        test, post = friedman(by_source), nemenyi(by_source)
        reason = test.reason
        apart = [m for m in post.ranks.index if m != OURS and post.significant.at[OURS, m]]
        omnibus.append(
            [
                title,
                f"{test.f_statistic:.2f}",
                p_value(test.f_p_value),
                f"{post.critical_difference:.2f}",
                ", ".join(apart) or "none",
            ]
        )
        pairs[metric] = wilcoxon_holm(found, OURS, sources)
    head = ["metric", "Friedman F", "p", "Nemenyi CD", f"{OURS} differs from"]
    return section("Evidence", reason, table(head, omnibus), _pairs(pairs))


def better(test: WilcoxonHolm) -> str:
    """Return than how many of the other methods the control is significantly better."""
    count = (test.significant & (test.comparisons["wins"] > test.comparisons["losses"])).sum()
    return f"{count} of {len(test.comparisons)}"


def _pairs(pairs: Mapping[str, WilcoxonHolm]) -> str:
    rows = []
    first = next(iter(pairs.values()))
    for method in first.comparisons.index:
        row = [method]
        for test in pairs.values():
            one = test.comparisons.loc[method]
            star = " *" if test.significant[method] else ""
            record = f"{one['wins']:.0f}/{one['ties']:.0f}/{one['losses']:.0f}"
            row += [number(one["difference"], sign=True), record, p_value(one["p_holm"]) + star]
        rows.append(row)
    titles = [(name, "won/tied/lost", "p (Holm)") for name in (METRICS[m] for m in pairs)]
    counts = ", ".join(f"{METRICS[metric]} {better(test)}" for metric, test in pairs.items())
    note = (
        f"{OURS} against each peer over sources: median difference, record, and the p-value of "
        f"Wilcoxon's test after Holm; * is significant at {first.alpha:g}. Significantly better "
        f"than: {counts}."
    )
    return note + "\n\n" + table(["peer", *[t for three in titles for t in three]], rows)


def decision_section(results: pd.DataFrame) -> str:
    """Return G-mean and F1 of each method's own predictions beside the tuned ones."""
    names = ["g_mean_natural", "g_mean_tuned", "f1_natural", "f1_tuned"]
    means = {name: scores(results, name).mean() for name in names}
    order = means["g_mean_natural"].sort_values(ascending=False).index
    rows = [[_name(m), *[number(means[name][m]) for name in names]] for m in order]
    head = ["method", "G-mean, own", "G-mean, tuned", "F1, own", "F1, tuned"]
    note = "Means over data sets of a method's own predictions, and of those at tuned thresholds."
    return section("Decisions as they come", note, table(head, rows))


def preset_section(results: pd.DataFrame) -> str:
    """Return the presets beside the defaults, on split 0 and without threshold tuning."""
    present = [m for m in PRESETS if (results["method"] == m).any()]
    if not present or OURS not in set(results["method"]):
        return ""
    first = results[results["split"] == 0]
    names = {"auc": "AUC", "average_precision": "average precision"}
    names |= {"g_mean_natural": "G-mean, own", "f1_natural": "F1, own"}
    rows = []
    for method in present:
        for who in (method, OURS):
            found = {n: _pair(first, n, method)[who].mean() for n in names}
            label = who if who == method else f"{OURS}, same sets"
            rows.append([label, len(_pair(first, "auc", method)), *map(number, found.values())])
    note = "Split 0 only, because of their cost; own predictions, nothing tuned."
    return section("Presets", note, table(["method", "sets", *names.values()], rows))


def _pair(results: pd.DataFrame, metric: str, method: str) -> pd.DataFrame:
    return score_table(results, metric, [OURS, method])


def calibration_section(results: pd.DataFrame) -> str:
    """Return Brier score and expected calibration error of the methods with probabilities."""
    found = {}
    for metric in ("brier", "ece"):
        chosen = results[(results["metric"] == metric) & results["value"].notna()]
        present = [m for m in dict.fromkeys(chosen["method"]) if m not in PRESETS]
        shown = score_table(results, metric, present)
        found[metric] = shown.mean()
    order = found["brier"].sort_values().index
    rows = [[_name(m), number(found["brier"][m], 4), number(found["ece"][m], 4)] for m in order]
    note = (
        f"Means over the {len(shown)} data sets that all of these methods have; lower is better. "
        "Expected calibration error over 15 bins with "
        "equally many rows. Weighted peers are not made for this and stand here for completeness."
    )
    return section("Calibration", note, table(["method", "Brier", "ECE"], rows))


def estimate_section(results: pd.DataFrame) -> str:
    """Return how close the out-of-fold estimates come to the test part, a row a metric."""
    rows = []
    for metric, title in METRICS.items():
        try:
            difference = estimates(results, metric)
        except DataError:
            return ""
        gap = difference["estimate"] - difference["test"]
        means = difference["estimate"].mean(), difference["test"].mean()
        figures = [number(v) for v in means] + [number(gap.mean(), sign=True)]
        rows.append([title, *figures, number(gap.abs().mean()), len(gap)])
    note = f"What `oof_report_` of {OURS} expects, and what the test part gives, by split."
    head = ["metric", "out-of-fold", "test", "mean difference", "mean absolute difference", "cells"]
    return section("Out-of-fold estimates", note, table(head, rows))


def estimates(results: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return data set and split by estimate and test, of our method."""
    ours = results[results["method"] == OURS]
    wide = ours.pivot(index=["dataset", "split"], columns="metric", values="value")
    if _OOF[metric] not in wide:
        raise DataError("the results have no out-of-fold estimates.")
    both = wide[[_OOF[metric], metric]].dropna()
    return both.set_axis(["estimate", "test"], axis=1)


def time_section(results: pd.DataFrame) -> str:
    """Return the seconds of a fit, of its tuning and of a prediction, means over cells."""
    names = {"fit_seconds": "fit", "tuning_seconds": "threshold tuning"}
    names |= {"predict_seconds": "prediction"}
    chosen = results[results["metric"].isin(names)]
    means = chosen.pivot_table(index="method", columns="metric", values="value", aggfunc="mean")
    means = means.reindex(columns=list(names)).sort_values("fit_seconds")
    rows = [[_name(m), *[number(v, 2) for v in means.loc[m]]] for m in means.index]
    note = "Seconds, on one thread; means over cells. The fit of our method decides already."
    return section("Time", note, table(["method", *names.values()], rows))


def loss_section(results: pd.DataFrame, metrics: Sequence[str] = tuple(METRICS)) -> str:
    """Return our score minus the best peer's on every data set."""
    tables = {metric: scores(results, metric) for metric in metrics}
    if any(found.shape[1] < 2 for found in tables.values()):
        return ""
    rows, won = [], dict.fromkeys(metrics, 0)
    for dataset in tables[metrics[0]].index:
        row: list[object] = [dataset]
        for metric in metrics:
            found = tables[metric]
            if dataset not in found.index:
                row.append("")
                continue
            others = found.loc[dataset].drop(OURS)
            gap = found.at[dataset, OURS] - others.max()
            won[metric] += gap >= 0
            row.append(f"{number(gap, sign=True)} ({others.idxmax()})")
        rows.append(row)
    counts = ", ".join(f"{METRICS[m]} {won[m]}" for m in metrics)
    note = (
        f"{OURS} minus the best of all peers on that data set, which nobody knows beforehand. "
        f"Best or equal on: {counts}, of {len(rows)}."
    )
    return section("Data set by data set", note, table(["set", *METRICS.values()], rows))


def _name(method: str) -> str:
    return f"**{method}**" if method == OURS else method
