"""The tables of a study: scores, ranks, curves, costs and failures.

`sections` makes sheets of findings: tables whose cells are ready to be shown, in any format.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from setconv.experiment.results import (
    ALPHA,
    BETTER,
    DIGITS,
    WORSE,
    Findings,
    Ranking,
    heading,
    higher_is_better,
)
from setconv.messages import count_of
from setconv.report.words import readable

_LOWER = " ↓"
_OUTDATED = "†"
_NO_FIGURE = "\u2013"
_LONGEST_ERROR = 200
_MOST_COLUMNS = 6  # of figures, beside each other on a page of 1200 pixels
_SENTENCES = ("splits", "error", "warning", "version")  # columns that are no figures


@dataclass(frozen=True)
class Shown:
    """What a cell shows: a text that is not escaped, and what follows it and is never bold."""

    text: str
    bold: bool = False
    after: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.after}" if self.after else self.text


_EMPTY: Any = Shown("")
_MISSING: Any = Shown(_NO_FIGURE)


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table that is ready to be written.

    Attributes
    ----------
    title, caption : str
    table : DataFrame of Shown
        The levels of its index are the columns that name a row; rows with the same first name
        are a block.
    notes : sequence of str
        What stands below the table.
    """

    title: str
    caption: str
    table: pd.DataFrame
    notes: Sequence[str] = ()

    @property
    def head(self) -> list[str]:
        """The names of all columns."""
        return [*map(str, self.table.index.names), *map(str, self.table.columns)]

    @property
    def columns(self) -> str:
        """A letter for each column, as in LaTeX: l for names, r for figures, p for sentences."""
        figures = ["p" if name in _SENTENCES else "r" for name in self.table.columns]
        return "l" * self.table.index.nlevels + "".join(figures)

    @property
    def rows(self) -> list[list[Shown]]:
        """The cells of each row with the names before them; a block is named once."""
        names = self.table.index.to_frame().astype(str)
        if names.shape[1] > 1:
            names.iloc[:, 0] = names.iloc[:, 0].mask(names.iloc[:, 0].duplicated(), "")
        cells = zip(names.to_numpy().tolist(), self.table.to_numpy().tolist(), strict=True)
        return [[*map(Shown, named), *shown] for named, shown in cells]

    @property
    def parts(self) -> list[Sheet]:
        """The sheet in pieces that fit on a page side by side with the names, as even as can be."""
        n_columns = len(self.table.columns)
        pieces = np.array_split(np.arange(n_columns), max(1, math.ceil(n_columns / _MOST_COLUMNS)))
        return [replace(self, table=self.table.iloc[:, piece]) for piece in pieces]

    @property
    def rules(self) -> list[int]:
        """The rows above which a line stands: there a new block begins."""
        again = self.table.index.get_level_values(0).duplicated()
        return [int(number) for number in (~again).nonzero()[0] if number and again.any()]


@dataclass(frozen=True)
class Section:
    """Tables under one heading; the text says what comes before them, or why there are none."""

    title: str
    sheets: Sequence[Sheet] = ()
    text: str = ""


def sections(findings: Findings) -> list[Section]:
    """Return the tables of a study under their headings.

    Parameters
    ----------
    findings : Findings

    Returns
    -------
    list of Section
        Scores by unit, scores by metric (where there are several units), average ranks,
        metrics along a parameter, time and memory, and failed cells. A section without tables
        says why in its text, or is left out where there is nothing to say.
    """
    rankings = findings.rankings.values()
    unranked = [
        " ".join([f"{heading(one.metric)}: {one.reason}", *one.notes])
        for one in rankings
        if one.ranks is None
    ]
    ranked = [rank_sheet(one) for one in rankings if one.ranks is not None]
    found = [
        Section("Scores by unit", list(by_unit(findings))),
        Section("Scores by metric", list(by_metric(findings)) if len(findings.units) > 1 else ()),
        Section("Average ranks", ranked, " ".join(unranked)),
        Section("Along a parameter", list(curve_sheets(findings))),
    ]
    if len(findings.cells):
        failures = [failure_sheet(findings)] if len(findings.failed) else []
        found.append(Section("Cost", [cost_sheet(findings)]))
        found.append(Section("Failed cells", failures, "" if failures else "No cell failed."))
    return [one for one in found if one.sheets or one.text]


def by_unit(findings: Findings) -> Iterator[Sheet]:
    """Yield a table for each data set, as Table 4 of the paper: a block a unit, metrics across."""
    for dataset in dict.fromkeys(unit.dataset for unit in findings.units):
        units = {unit.name: unit.title for unit in findings.units if unit.dataset == dataset}
        title = dataset if len(units) > 1 else next(iter(units.values()))
        yield _score_sheet(findings, title, "metric", units, findings.study.metrics)


def by_metric(findings: Findings) -> Iterator[Sheet]:
    """Yield a table for each metric: units across, then the average rank over units."""
    units = {unit.name: unit.title for unit in findings.units}
    for metric, ranking in findings.rankings.items():
        sheet = _score_sheet(findings, heading(metric, _LOWER), "unit", units, (metric,))
        if ranking.ranks is not None:
            ranks = ranking.ranks.average.map("{:.2f}".format)
            ranks = ranks.reindex(sheet.table.index, fill_value="").map(Shown)
            table = sheet.table.assign(rank=ranks)
            sheet = replace(sheet, table=table, notes=[*sheet.notes, *ranking.notes])
        yield sheet


def _score_sheet(
    findings: Findings, title: str, across: str, units: Mapping[str, str], metrics: Sequence[str]
) -> Sheet:
    """Return the entries of units and metrics: one of the two across, the other in blocks."""
    rows = findings.summary
    rows = rows[rows["unit"].isin(list(units)) & rows["metric"].isin(metrics)]
    keys = pd.MultiIndex.from_frame(rows[["unit", "metric", "method"]])
    shown = pd.Series([_shown(entry) for entry in rows.itertuples()], keys)
    headings = {"unit": units, "metric": {metric: heading(metric, _LOWER) for metric in metrics}}
    down = "unit" if across == "metric" else "metric"
    order = pd.MultiIndex.from_product(
        [list(headings[down]), rows["method"].unique()], names=[down, "method"]
    )
    table = shown.unstack(across, fill_value=_EMPTY).reindex(columns=list(headings[across]))
    table = table.reindex(order[order.isin(table.index)]).rename(columns=headings[across])
    table = table.rename(index=headings[down], level=down)
    table = table if len(headings[down]) > 1 else table.droplevel(down)
    # What stands in place of a figure or beside it, and how often it does.
    counts = Counter(rows["state"])
    counts.update({kind: int(rows[kind].sum()) for kind in ("partial", "outdated")})
    notes = [
        text.format(counts[kind], versions=findings.outdated_by)
        for kind, text in _NOTES.items()
        if counts[kind]
    ]
    return Sheet(title, _score_caption(findings, rows, metrics), table, notes)


_WITHOUT_FIGURE = {"failed": "failed", "missing": _NO_FIGURE, "undefined": "n/a"}


def _shown(entry: Any) -> Any:
    """Return a row of the summary as text: mean and deviation, then mark and number of splits."""
    if entry.state in _WITHOUT_FIGURE:
        return Shown(_WITHOUT_FIGURE[entry.state])
    brackets = f"({entry.n_splits})" if entry.partial else ""
    after = filter(None, [entry.mark, brackets, _OUTDATED if entry.outdated else ""])
    return Shown(_mean_text(entry.mean, entry.sd), entry.best, " ".join(after))


def _mean_text(mean: float, deviation: float) -> str:
    return number(mean) + ("" if math.isnan(deviation) else f" ± {number(deviation)}")


_NOTES = {
    "failed": "failed ({}): no split of the method ended well.",
    "missing": f"{_NO_FIGURE} ({{}}): not computed yet.",
    "undefined": "n/a ({}): the metric is not defined on any split.",
    "partial": "A number in brackets is the number of splits behind a mean that has fewer than "
    "others ({}): the rest failed, is not computed yet or has no defined value. Such a mean is "
    "never bold.",
    "outdated": f"{_OUTDATED} ({{}}): another version of setconv computed at least one cell of it "
    "({versions}).",
    "published": "(published): reported by others, not measured here; never bold and not tested.",
}


def _score_caption(findings: Findings, rows: pd.DataFrame, metrics: Sequence[str]) -> str:
    """Say what the figures are, which test was made, and what it is no evidence of."""
    whole = rows.loc[(rows["state"] == "measured") & ~rows["partial"], "n_splits"]
    numbers = " to ".join(map(str, sorted({whole.min(), whole.max()}))) if len(whole) else "0"
    lower = f"{_LOWER} lower is better." * (not all(map(higher_is_better, metrics)))
    return (
        f"Mean ± standard deviation over the splits ({numbers}); the best mean is bold.{lower} "
        f"{WORSE} significantly worse, {BETTER} better than {findings.study.ours[0]}: corrected "
        "resampled t test (Nadeau and Bengio, 2003) over the splits of a unit that both have, at "
        f"least two; p ≤ {number(ALPHA, 2)} after Holm's correction for up to "
        f"{count_of(len(findings.methods) - 1, 'method')}. Units may share rows or a source: they "
        "are not independent evidence, and marks must not be counted over them."
    )


def rank_sheet(ranking: Ranking) -> Sheet:
    """Return the average ranks of a metric that has them, the best first."""
    assert ranking.ranks is not None
    average = ranking.ranks.average.sort_values(kind="stable").map("{:.2f}".format)
    rows = {method: [Shown(rank, rank == average.iloc[0])] for method, rank in average.items()}
    head = ["rank"]
    if (pairs := ranking.against_ours) is not None:
        head += ["difference", "won/tied/lost", "p (Holm)"]
        rows[pairs.control] += [Shown("")] * 3
        differs: dict[Any, bool] = pairs.significant.to_dict()
        for method, one in pairs.comparisons.iterrows():
            mark = WORSE if one["wins"] > one["losses"] else BETTER
            rows[method] += [
                Shown(number(one["difference"], sign=True)),
                Shown(f"{one['wins']:.0f}/{one['ties']:.0f}/{one['losses']:.0f}"),
                Shown(_p_text(one["p_holm"]), after=mark if differs[method] else ""),
            ]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=head).rename_axis("method")
    caption = _rank_caption(ranking, len(ranking.ranks.by_source))
    return Sheet(f"{heading(ranking.metric)}: average ranks", caption, table, ranking.notes)


def _rank_caption(ranking: Ranking, n_sources: int) -> str:
    level = number(ALPHA, 2)
    parts = [
        f"{count_of(ranking.n_units, 'unit')} of {count_of(n_sources, 'source')}. Rank 1 is best; "
        "ranks are averaged within a source, then over sources."
    ]
    if (test := ranking.omnibus) is not None:
        parts.append(
            "Friedman's test, as corrected by Iman and Davenport: "
            f"F = {test.f_statistic:.2f}, p {_p_text(test.f_p_value, equal='= ')}."
        )
    if (every := ranking.all_pairs) is not None:
        parts.append(f"Nemenyi's critical difference at {level}: {every.critical_difference:.2f}.")
    if (pairs := ranking.against_ours) is not None:
        parts.append(
            f"Difference: median over sources of {pairs.control} minus the method; won, tied and "
            f"lost by {pairs.control}; p-value of Wilcoxon's signed-rank test, corrected by Holm. "
            + f"{WORSE} significantly worse, {BETTER} better (p ≤ {level})."
            * pairs.claimed
        )
    return " ".join([*parts, ranking.reason]).strip()


def _p_text(value: float, equal: str = "") -> str:
    return "< .001" if value < 0.001 else equal + number(value)


def curve_sheets(findings: Findings) -> Iterator[Sheet]:
    """Yield a table for each curve, unit and metric: mean and deviation over the splits."""
    for curve, unit, metric, rows in findings.curves:
        groups = rows.groupby(["method", "setting"])["value"].agg(["mean", "std"])
        shown = pd.Series([Shown(_mean_text(*one)) for one in groups.to_numpy()], groups.index)
        table = shown.unstack(fill_value=_MISSING).rename(columns="{:,g}".format)
        table = table.loc[[one for one in findings.methods if one in table.index]]
        caption = "Mean ± standard deviation over the splits."
        yield Sheet(f"{heading(metric)} along {curve}: {unit}", caption, table)


def cost_sheet(findings: Findings) -> Sheet:
    """Return median seconds and peak memory of each method on each data set."""
    done = findings.cells[findings.cells["status"] == "ok"].groupby(["dataset", "method"])
    table = done.size().map(str).to_frame("cells")
    table["median seconds"] = done["seconds"].median().map("{:,.2f}".format)
    table["peak MB"] = done["peak_mb"].max().map("{:,.0f}".format)
    datasets = [data.name for data in findings.study.data]
    order = pd.MultiIndex.from_product([datasets, findings.methods], names=["data set", "method"])
    return Sheet(
        "Time and memory",
        "Median wall time of a cell, and the highest peak memory of a worker process, over the "
        "cells that ended well. A worker's memory includes the packages that it has loaded.",
        table.reindex(order[order.isin(table.index)]).map(Shown),
    )


def failure_sheet(findings: Findings) -> Sheet:
    """Return the cells that did not end well, by the last line of their error."""
    failed = findings.failed.assign(error=findings.failed["error"].map(last_line))
    groups = failed.sort_values("split").groupby(["dataset", "method", "status", "error"])["split"]
    splits = groups.agg(lambda numbers: ", ".join(map(str, numbers))).to_frame("splits")
    table = splits.reset_index("error")[["splits", "error"]].map(Shown)
    return Sheet(
        "Failed cells",
        f"{count_of(len(failed), 'cell')} of {len(findings.cells)} did not end well: the last line "
        "of the error. The store has the whole of it.",
        table.rename_axis(["data set", "method", "status"]),
    )


def last_line(error: str) -> str:
    """Return the last line of an error that says anything, of bounded length."""
    lines = [one for one in map(plain, error.splitlines()) if one]
    return readable(lines[-1] if lines else "no message", _LONGEST_ERROR)


def number(value: float, digits: int = DIGITS, *, sign: bool = False) -> str:
    """Return a number with fixed digits, below 1 without its zero: .972, 1.000, -.013.

    Examples
    --------
    >>> number(0.9716), number(0.9999), number(-0.013), number(0.013, sign=True)
    ('.972', '1.000', '-.013', '+.013')
    """
    if math.isnan(value):
        return "n/a"
    # What rounds to zero has no sign; adding 0 makes -0.0 a plain zero.
    text = f"{round(value, digits) + 0.0:{'+' if sign else ''}.{digits}f}"
    return re.sub(r"^([+-]?)0(?=\.)", r"\1", text)


def plain(text: str) -> str:
    """Return a text on one line, without characters that steer a terminal or the direction."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())
