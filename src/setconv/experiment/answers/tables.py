"""All tables of a study, in the order in which they are read."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.naming import PROBED, higher_is_better, metric_name
from setconv.experiment.answers.table_entries import (
    ALPHA,
    BETTER,
    NOTHING,
    WORSE,
    Entry,
    Key,
    measured_entries,
    published_entries,
    scores_by_split,
)
from setconv.experiment.answers.table_sheet import (
    NO_FIGURE,
    Section,
    Sheet,
    SheetRow,
    Shown,
    aligned,
    counted,
    line,
    number,
    p_value,
    plain,
)
from setconv.experiment.answers.table_standing import Standing, standing
from setconv.experiment.statistics.pairwise import WilcoxonHolm

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["curve_metrics", "sections"]

_LOWER = "↓"
_LONGEST = 200

# A method in a table of scores: its name, whether others published it, and its figures.
_Row = tuple[str, bool, list[Entry]]
_Block = tuple[str, list[_Row]]


def sections(findings: Findings) -> list[Section]:
    """Return the tables of a study under their headings.

    Parameters
    ----------
    findings : Findings

    Returns
    -------
    list of Section
        Scores by unit, scores by metric (where there are several units), average ranks,
        metrics along a parameter, figures that others published on other data, time and memory,
        and failed cells. A section without tables says why in its text, or is left out where
        there is nothing to say.
    """
    found = []
    if findings.metrics and findings.units:
        found.append(Section("Scores by unit", "", tuple(by_unit(findings))))
        if len(findings.units) > 1:
            found.append(Section("Scores by metric", "", tuple(by_metric(findings))))
        found.append(_ranks(findings))
    if curves := curve_sheets(findings):
        found.append(Section("Along a parameter", "", curves))
    if (elsewhere := published_elsewhere(findings)) is not None:
        found.append(Section("Published figures", "", (elsewhere,)))
    if (costs := cost_sheet(findings)) is not None:
        found.append(Section("Cost", "", (costs,)))
        failures = failure_sheet(findings)
        text = "" if failures else "No cell failed."
        found.append(Section("Failed cells", text, (failures,) if failures else ()))
    return found


def by_unit(findings: Findings) -> list[Sheet]:
    """Return a table for each data set, as Table 4 of the paper: a block a unit, metrics across."""
    measured, sheets = measured_entries(findings), []
    for dataset in dict.fromkeys(unit.dataset for unit in findings.units):
        units = [unit for unit in findings.units if unit.dataset == dataset]
        columns = [[(unit.name, metric) for metric in findings.metrics] for unit in units]
        blocks = [
            (unit.title, _rows(findings, measured, its))
            for unit, its in zip(units, columns, strict=True)
        ]
        title = blocks[0][0] if len(blocks) == 1 else dataset
        sheets.append(_score_sheet(findings, title, _heads(findings.metrics), blocks))
    return sheets


def by_metric(findings: Findings) -> list[Sheet]:
    """Return a table for each metric: units across, then the average rank over units."""
    by_split, sheets = scores_by_split(findings), []
    measured = measured_entries(findings)
    for metric in findings.metrics:
        rows = _rows(findings, measured, [(unit.name, metric) for unit in findings.units])
        head = [unit.title for unit in findings.units]
        found = standing(findings, metric, by_split)
        ranks: dict[str, str] | None = None
        remarks: tuple[str, ...] = ()
        if isinstance(found, Standing):
            ranks = {str(name): f"{rank:.2f}" for name, rank in found.ranks.average.items()}
            remarks = found.notes
        (title,) = _heads([metric])
        sheets.append(_score_sheet(findings, title, head, [("", rows)], ranks, remarks))
    return sheets


def published_elsewhere(findings: Findings) -> Sheet | None:
    """Return the published figures of units that are not in this study; None if there are none."""
    here = {unit.name for unit in findings.units}
    others = dict.fromkeys(
        key.unit
        for key in published_entries(findings)
        if key.unit not in here and key.metric in findings.metrics
    )
    if not others:
        return None
    blocks = [
        (unit, _published_rows(findings, [(unit, metric) for metric in findings.metrics]))
        for unit in others
    ]
    title = "Published figures of other data" + (f": {blocks[0][0]}" if len(blocks) == 1 else "")
    caption = (
        "Reported by others on data that is not in this study. These figures cannot be compared "
        "with those above."
    )
    return _laid_out(title, caption, _heads(findings.metrics), blocks)


def _rows(
    findings: Findings, measured: Mapping[Key, Entry], columns: Sequence[tuple[str, str]]
) -> list[_Row]:
    """Return a row for each method of the study, and for each that others report any figure of."""
    own: list[_Row] = [
        (method, False, [measured[Key(unit, method, metric)] for unit, metric in columns])
        for method in findings.methods
    ]
    return own + _published_rows(findings, columns)


def _published_rows(findings: Findings, columns: Sequence[tuple[str, str]]) -> list[_Row]:
    entries = published_entries(findings)
    methods = dict.fromkeys(key.method for key in entries if (key.unit, key.metric) in columns)
    return [
        (
            f"{method} (published)",
            True,
            [entries.get(Key(unit, method, metric), NOTHING) for unit, metric in columns],
        )
        for method in methods
    ]


def _heads(metrics: Iterable[str]) -> list[str]:
    return [
        metric_name(metric) + ("" if higher_is_better(metric) else f" {_LOWER}")
        for metric in metrics
    ]


def _score_sheet(
    findings: Findings,
    title: str,
    head: Sequence[str],
    blocks: Sequence[_Block],
    ranks: Mapping[str, str] | None = None,
    remarks: Sequence[str] = (),
) -> Sheet:
    entries = [entry for _, rows in blocks for _, _, row in rows for entry in row]
    lower = any(_LOWER in text for text in (title, *head))
    said = _caption(findings, entries, lower)
    return _laid_out(title, said, head, blocks, ranks, (*_notes(entries), *remarks))


def _laid_out(
    title: str,
    caption: str,
    head: Sequence[str],
    blocks: Sequence[_Block],
    ranks: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
) -> Sheet:
    lines: list[SheetRow] = []
    several = len(blocks) > 1
    for name, rows in blocks:
        for place, (method, published, entries) in enumerate(rows):
            cells = [Shown(name if place == 0 else "")] * several + [Shown(method)]
            cells += [entry.shown for entry in entries]
            if ranks is not None:
                cells.append(Shown(ranks.get(method, "")))
            # A line stands where a block begins, and above what others published.
            rule = published and not rows[place - 1][1] if place else bool(lines)
            lines.append(SheetRow(tuple(cells), rule))
    names = ("unit", "method") if several else ("method",)
    figures = (*head, "rank") if ranks is not None else tuple(head)
    alignment = aligned(len(names), len(figures))
    return Sheet(title, caption, (*names, *figures), alignment, tuple(lines), notes)


def _caption(findings: Findings, entries: Sequence[Entry], lower: bool) -> str:
    """Say what the figures are, which test was made, and what it is no evidence of."""
    counts = {entry.n_splits for entry in entries if entry.kind == "measured" and not entry.partial}
    splits = "splits"
    if counts:
        least, most = min(counts), max(counts)
        splits = counted(most, "split") if least == most else f"{least} to {most} splits"
    parts = [f"Mean ± standard deviation over {splits}; the best mean is bold."]
    if lower:
        parts.append(f"{_LOWER} lower is better.")
    if any(not math.isnan(entry.p_value) for entry in entries):
        others = sum(method != findings.ours[0] for method in findings.methods)
        parts.append(
            f"{WORSE} significantly worse, {BETTER} better than {findings.ours[0]}: corrected "
            "resampled t test (Nadeau and Bengio, 2003) over the splits of a unit, "
            f"p ≤ {number(ALPHA, 2)} after Holm's correction for up to "
            f"{counted(others, 'method')}. Units may share rows or a source: they are not "
            "independent evidence, and marks must not be counted over them."
        )
    elif findings.ours:
        parts.append(
            f"Nothing is tested: {findings.ours[0]} shares fewer than two splits with any other "
            "method."
        )
    return " ".join(parts)


def _notes(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Explain what stands in place of a figure or beside it, with how often it does."""
    kinds = Counter(entry.kind for entry in entries)
    partial = sum(entry.partial for entry in entries)
    found = {
        f"failed ({kinds['failed']}): no split of the method ended well.": kinds["failed"],
        f"{NO_FIGURE} ({kinds['missing']}): not computed yet.": kinds["missing"],
        f"n/a ({kinds['undefined']}): the metric is not defined on any split.": kinds["undefined"],
        "A number in brackets is the number of splits behind a mean that has fewer than others "
        f"({partial}): the rest failed, is not computed yet or has no defined value. Such a mean "
        "is never bold.": partial,
        "(published): reported by others, not measured here; never bold and not tested.": kinds[
            "published"
        ],
    }
    return tuple(text for text, count in found.items() if count)


def _ranks(findings: Findings) -> Section:
    by_split = scores_by_split(findings)
    sheets, reasons = [], []
    for metric in findings.metrics:
        one = standing(findings, metric, by_split)
        if isinstance(one, Standing):
            sheets.append(rank_sheet(one))
        else:
            reasons.append(" ".join([f"{metric_name(metric)}: {one.reason}", *one.notes]))
    return Section("Average ranks", " ".join(reasons), tuple(sheets))


def rank_sheet(standing: Standing) -> Sheet:
    """Return the average ranks of a metric, the best first."""
    pairs = standing.against_ours
    average = standing.ranks.average.sort_values(kind="stable")
    shown = {str(method): f"{rank:.2f}" for method, rank in average.items()}
    best = next(iter(shown.values()))
    rows = []
    for method, rank in shown.items():
        cells = [Shown(method), Shown(rank, rank == best)]
        if pairs is not None:
            cells += _against(pairs, method)
        rows.append(SheetRow(tuple(cells)))
    head: tuple[str, ...] = ("method", "rank")
    if pairs is not None:
        head += ("difference", "won/tied/lost", "p (Holm)")
    title = f"{metric_name(standing.metric)}: average ranks"
    alignment = aligned(1, len(head) - 1)
    return Sheet(title, _rank_caption(standing), head, alignment, tuple(rows), standing.notes)


def _against(pairs: WilcoxonHolm, method: str) -> list[Shown]:
    if method == pairs.control:
        return [Shown("")] * 3
    one = pairs.comparisons.loc[method].astype(float).to_dict()
    mark = ""
    if pairs.significant[method]:
        mark = WORSE if one["wins"] > one["losses"] else BETTER
    return [
        Shown(number(one["difference"], sign=True)),
        Shown(f"{one['wins']:.0f}/{one['ties']:.0f}/{one['losses']:.0f}"),
        Shown(p_value(one["p_holm"]), after=mark),
    ]


def _rank_caption(standing: Standing) -> str:
    level = number(ALPHA, 2)
    parts = [
        f"{counted(standing.n_units, 'unit')} of {counted(standing.n_sources, 'source')}. "
        "Rank 1 is best; ranks are averaged within a source, then over sources."
    ]
    if (test := standing.omnibus) is not None:
        p = p_value(test.f_p_value)
        parts.append(
            f"Friedman's test, as corrected by Iman and Davenport: F = {test.f_statistic:.2f}, "
            f"p {p if p.startswith('<') else f'= {p}'}."
        )
    if (every := standing.all_pairs) is not None:
        parts.append(f"Nemenyi's critical difference at {level}: {every.critical_difference:.2f}.")
    if (pairs := standing.against_ours) is not None:
        parts.append(
            f"Difference: median over sources of {pairs.control} minus the method; won, tied and "
            f"lost by {pairs.control}; p-value of Wilcoxon's signed-rank test, corrected by Holm."
        )
        if pairs.claimed:
            parts.append(
                f"{WORSE} significantly worse than {pairs.control}, {BETTER} better (p ≤ {level})."
            )
    return " ".join(filter(None, [*parts, standing.reason]))


def curve_sheets(findings: Findings) -> tuple[Sheet, ...]:
    """Return a table for each curve, unit and metric: mean and deviation over the splits."""
    sheets: list[Sheet] = []
    if findings.curves.empty:
        return ()
    for (curve, unit), rows in findings.curves.groupby(["curve", "unit"], sort=False):
        for metric in curve_metrics(rows, findings):
            title = f"{metric_name(metric)} along {curve}: {unit}"
            sheets.append(_curve_sheet(title, rows[rows["metric"] == metric], findings.methods))
    return tuple(sheets)


def curve_metrics(rows: pd.DataFrame, findings: Findings) -> list[str]:
    """Return the metrics of a curve that have numbers: those of the study, then the probed."""
    present = set(rows.dropna(subset=["value"])["metric"])
    return [metric for metric in (*findings.metrics, *PROBED) if metric in present]


def _curve_sheet(title: str, rows: pd.DataFrame, methods: tuple[str, ...]) -> Sheet:
    settings = sorted(rows["setting"].unique())
    groups = rows.groupby(["method", "setting"])["value"]
    spread = {key: Entry(one.mean(), one.std(), len(one)) for key, one in groups}
    missing = Entry(math.nan, math.nan, 0, kind="missing")
    lines = [
        SheetRow((Shown(name), *(spread.get((name, one), missing).shown for one in settings)))
        for name in methods
        if name in set(rows["method"])
    ]
    head = ("method", *(f"{setting:,g}" for setting in settings))
    caption = "Mean ± standard deviation over the splits."
    return Sheet(title, caption, head, aligned(1, len(settings)), tuple(lines))


def cost_sheet(findings: Findings) -> Sheet | None:
    """Return median seconds and peak memory of each method on each data set; None without cells."""
    cells = findings.cells
    if cells.empty:
        return None
    rows: list[SheetRow] = []
    for dataset in _ordered([unit.dataset for unit in findings.units], cells["dataset"]):
        here = cells[cells["dataset"] == dataset]
        for place, method in enumerate(_ordered(findings.methods, here["method"])):
            done = here[(here["method"] == method) & (here["status"] == "ok")]
            median, peak = done["seconds"].median(), done["peak_mb"].max()
            seconds = f"{median:.2f}" if median < 10 else f"{median:,.0f}"
            memory = f"{peak:,.0f}"
            told = (NO_FIGURE if one == "nan" else one for one in (seconds, memory))
            name = "" if place else dataset
            rows.append(line(name, method, str(len(done)), *told, rule=not place and bool(rows)))
    return Sheet(
        "Time and memory",
        "Median wall time of a cell, and the highest peak memory of a worker process, over the "
        "cells that ended well. A worker's memory includes the packages that it has loaded.",
        ("data set", "method", "cells", "median seconds", "peak MB"),
        aligned(2, 3),
        tuple(rows),
    )


def failure_sheet(findings: Findings) -> Sheet | None:
    """Return the cells that did not end well, by the last line of their error; None without."""
    cells = findings.cells
    failed = cells if cells.empty else cells[cells["status"] != "ok"]
    if failed.empty:
        return None
    splits: dict[tuple[str, ...], list[int]] = {}
    columns = failed[["dataset", "method", "status", "error", "split"]]
    for dataset, method, status, error, split in columns.itertuples(index=False):
        key = (str(dataset), str(method), str(status), last_line(str(error)))
        splits.setdefault(key, []).append(int(split))
    rows = [
        line(dataset, method, ", ".join(map(str, sorted(which))), status, error)
        for (dataset, method, status, error), which in splits.items()
    ]
    return Sheet(
        "Failed cells",
        f"{counted(len(failed), 'cell')} of {len(cells)} did not end well: the last line of the "
        "error. The store has the whole of it.",
        ("data set", "method", "splits", "status", "error"),
        ("left", "left", "wrapped", "left", "wrapped"),
        tuple(rows),
    )


def last_line(error: str) -> str:
    """Return the last line of an error that says anything, of bounded length."""
    lines = [one for one in map(plain, error.splitlines()) if one]
    last = lines[-1] if lines else "no message"
    return last if len(last) <= _LONGEST else last[:_LONGEST].rstrip() + " …"


def _ordered(first: Sequence[str], present: Iterable[str]) -> list[str]:
    """Return the names that are present: in the order of the study, then the others."""
    here = set(map(str, present))
    return [*dict.fromkeys(name for name in first if name in here), *sorted(here - set(first))]
