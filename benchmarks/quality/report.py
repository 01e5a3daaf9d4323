"""The whole report: one section a part, and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.quality import tables
from benchmarks.quality.figures import estimate_figure, rank_figure
from benchmarks.quality.markdown import number, section, table
from benchmarks.quality.peers import OURS
from benchmarks.quality.tasks import Spec, specs
from setconv.errors import DataError
from setconv.experiment import average_ranks, nemenyi

if TYPE_CHECKING:
    import pandas as pd

PARTS: dict[str, tuple[str, Callable[[Spec], bool]]] = {
    "text": ("Text", lambda spec: spec.kind == "text"),
    "tabular": ("Tabular, all sources", lambda spec: spec.kind == "tabular"),
    "tabular-choosing": (
        "Tabular, sources used for choosing defaults",
        lambda spec: spec.kind == "tabular" and spec.half == "choosing",
    ),
    "tabular-untouched": (
        "Tabular, untouched sources",
        lambda spec: spec.kind == "tabular" and spec.half == "untouched",
    ),
}


def parts(results: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame, dict[str, str]]]:
    """Yield key, complete results and the sources of their data sets, for the parts there are."""
    found = specs()
    for key, (_, belongs) in PARTS.items():
        sources = {spec.name: spec.source for spec in found if belongs(spec)}
        chosen = results[results["dataset"].isin(sources)]
        if OURS in set(chosen["method"]) and len(tables.ranked(chosen)) > 1:
            yield key, tables.complete(chosen), sources


def write(results: pd.DataFrame, folder: Path, *notes: str) -> str:
    """Write ``tables.md`` and the figures into a folder, and return the tables."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [_part(key, chosen, sources, folder) for key, chosen, sources in parts(results)]
    text = section("Tables of the quality study", *notes, *found, level=1).strip() + "\n"
    (folder / "tables.md").write_text(text, encoding="utf-8")
    return text


def _part(key: str, results: pd.DataFrame, sources: dict[str, str], at: Path) -> str:
    title, half = PARTS[key][0], key.startswith("tabular-")
    sections = [
        tables.score_section(results, sources),
        summary_section(results),
        tables.evidence_section(results, sources),
    ]
    if not half:
        sections += [
            tables.decision_section(results),
            tables.preset_section(results),
            tables.calibration_section(results),
            tables.estimate_section(results),
            tables.time_section(results),
            tables.loss_section(results),
        ]
        _estimates(key, results, at)
    _diagrams(key, title, results, sources, at)
    return section(title, *sections, level=2)


def summary_section(results: pd.DataFrame) -> str:
    """Return our mean score against logistic regression and against the best peer's mean."""
    rows = []
    for metric, title in tables.METRICS.items():
        means = tables.scores(results, metric).mean()
        others = means.drop(OURS)
        logistic = means[OURS] - others.get("logistic regression", float("nan"))
        gap = f"{number(means[OURS] - others.max(), 4, sign=True)} ({others.idxmax()})"
        rows.append([title, number(means[OURS], 4), number(logistic, 4, sign=True), gap])
    head = ["metric", OURS, "minus logistic regression", "minus the peer with the best mean"]
    return section("Means against peers", table(head, rows))


def _diagrams(
    key: str, title: str, results: pd.DataFrame, sources: dict[str, str], folder: Path
) -> None:
    for metric, name in tables.METRICS.items():
        by_source = average_ranks(tables.scores(results, metric), sources).by_source
        if len(by_source) > 1 and by_source.shape[1] > 2:
            path = folder / f"ranks-{key}-{metric}.svg"
            rank_figure(nemenyi(by_source), path, f"{title}: {name}")


def _estimates(key: str, results: pd.DataFrame, folder: Path) -> None:
    try:
        points = {name: tables.estimates(results, m) for m, name in tables.METRICS.items()}
    except DataError:
        return
    estimate_figure(points, folder / f"estimates-{key}.svg")


def failures(cells: pd.DataFrame) -> str:
    """Return the cells without figures, and why."""
    failed = cells[cells["status"] != "ok"]
    rows = [
        [one.dataset, one.method, one.split, one.status, one.error.strip().rpartition("\n")[2]]
        for one in failed.itertuples()
    ]
    head = ["set", "method", "split", "status", "error"]
    return section("Cells that failed", table(head, rows), level=2) if rows else ""
