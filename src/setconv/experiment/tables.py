"""The tables of a study: scores, ranks, curves, costs and failures.

Findings become entries, each the figure of a method for a metric on a unit; entries and rankings
become sheets, which are tables ready to be written, under the headings of sections; and sheets are
written to a terminal, to Markdown, LaTeX and CSV.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from setconv.experiment.results import (
    ALPHA,
    PROBED,
    Findings,
    Ranking,
    Unit,
    higher_is_better,
    metric_name,
    ranking,
    scores_by_split,
)
from setconv.experiment.statistics import WilcoxonHolm, corrected_t_test, holm
from setconv.io.files import write_atomically
from setconv.messages import count_of, needed

with needed("The findings of a study", "pandas", "experiment"):
    import pandas as pd

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

BETTER = "▲"
WORSE = "▼"
_LOWER = "↓"
_NO_FIGURE = "\u2013"
_LONGEST_ERROR = 200


@dataclass(frozen=True)
class Shown:
    """What a cell shows.

    Attributes
    ----------
    text : str
        Not escaped.
    bold : bool
    after : str
        What follows the text and is never bold.
    """

    text: str
    bold: bool = False
    after: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.after}" if self.after else self.text


@dataclass(frozen=True)
class SheetRow:
    """A row of cells, as many as the head has.

    Attributes
    ----------
    cells : tuple of Shown
    rule : bool
        Whether a line stands above the row: here a new block begins.
    """

    cells: tuple[Shown, ...]
    rule: bool = False


def line(*texts: str, rule: bool = False) -> SheetRow:
    """Return a row of plain texts."""
    return SheetRow(tuple(map(Shown, texts)), rule)


@dataclass(frozen=True)
class Sheet:
    """A table that is ready to be written.

    Attributes
    ----------
    title, caption : str
    head : tuple of str
    columns : str
        A letter for each column, as in LaTeX: l for names, r for figures, p for sentences.
    rows : tuple of SheetRow
    notes : tuple of str
        What stands below the table.
    """

    title: str
    caption: str
    head: tuple[str, ...]
    columns: str
    rows: tuple[SheetRow, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Section:
    """Tables under one heading.

    Attributes
    ----------
    title : str
    sheets : tuple of Sheet
    text : str
        What is to be said before the tables, or why there are none.
    """

    title: str
    sheets: tuple[Sheet, ...] = ()
    text: str = ""


class Key(NamedTuple):
    """What an entry is about."""

    unit: str
    method: str
    metric: str


_Kind = Literal["measured", "published", "failed", "missing", "undefined", "none"]
_WITHOUT_FIGURE: Mapping[_Kind, str] = {
    "failed": "failed",
    "missing": _NO_FIGURE,
    "undefined": "n/a",
    "none": "",
}


@dataclass(frozen=True)
class Entry:
    """A method's figure for a metric on a unit.

    Attributes
    ----------
    mean, deviation : float
        Over splits; nan where there is none. The deviation is that of a sample.
    n_splits : int
        Splits behind the mean; 0 for a published figure.
    best : bool
        No other method has a better mean, at the digits that are shown.
    mark : str
        Set where the method differs from the study's own.
    p_value : float
        Of that difference, after Holm; nan where nothing was tested.
    kind : {"measured", "published", "failed", "missing", "undefined", "none"}
        Why there is a mean, or why there is none.
    partial : bool
        Other methods have more splits.
    """

    mean: float = math.nan
    deviation: float = math.nan
    n_splits: int = 0
    best: bool = False
    mark: str = ""
    p_value: float = math.nan
    kind: _Kind = "measured"
    partial: bool = False

    @property
    def shown(self) -> Shown:
        """The entry as text: mean and deviation, then the mark and the number of splits."""
        if self.kind in _WITHOUT_FIGURE:
            return Shown(_WITHOUT_FIGURE[self.kind])
        text = number(self.mean)
        if not math.isnan(self.deviation):
            text += f" ± {number(self.deviation)}"
        after = [self.mark, f"({self.n_splits})" if self.partial else ""]
        return Shown(text, self.best, " ".join(filter(None, after)))


def measured_entries(findings: Findings) -> dict[Key, Entry]:
    """Return an entry for every unit, method and metric of the study."""
    by_split = scores_by_split(findings)
    asked = findings.scores.groupby(["unit", "method", "metric"]).groups
    cells = _failed_cells(findings)
    failed = set(zip(cells["dataset"], cells["method"], strict=True))
    found = {}
    for unit in findings.units:
        for metric in findings.metrics:
            table = by_split.get((unit.name, metric))
            by_method = {} if table is None else _unit_entries(findings, unit, metric, table)
            for method in findings.methods:
                key = Key(unit.name, method, metric)
                why: _Kind = "failed" if (unit.dataset, method) in failed else "missing"
                lacking = Entry(kind="undefined" if tuple(key) in asked else why)
                found[key] = by_method.get(method, lacking)
    return found


def published_entries(findings: Findings) -> dict[Key, Entry]:
    """Return an entry for every figure that others reported."""
    if findings.published.empty:
        return {}
    columns = findings.published[["unit", "method", "metric", "mean", "deviation"]]
    return {
        Key(str(unit), str(method), str(metric)): Entry(
            float(mean), float(deviation), kind="published"
        )
        for unit, method, metric, mean, deviation in columns.itertuples(index=False)
    }


def _unit_entries(
    findings: Findings, unit: Unit, metric: str, by_split: pd.DataFrame
) -> dict[str, Entry]:
    """Return the entries of the methods that have scores."""
    higher = higher_is_better(metric)
    ours = findings.ours[0] if findings.ours else ""
    compared = compare(by_split, ours, unit.test_share, higher)
    counts = by_split.count()
    means, deviations, most = by_split.mean(), by_split.std(ddof=1), int(counts.max())
    # Means over other splits than the rest are no basis for who is best.
    whole = [number(means[method]) for method in by_split.columns if counts[method] == most]
    best = (max if higher else min)(whole, key=float)
    found = {}
    for method in map(str, by_split.columns):
        complete = bool(counts[method] == most)
        p_value, mark = compared.get(method, (math.nan, ""))
        found[method] = Entry(
            float(means[method]),
            float(deviations[method]),
            int(counts[method]),
            best=complete and number(means[method]) == best,
            mark=mark,
            p_value=p_value,
            partial=not complete,
        )
    return found


def compare(
    by_split: pd.DataFrame, control: str, test_share: float, higher_is_better: bool
) -> dict[str, tuple[float, str]]:
    """Compare every other method with one, on the splits that both have.

    Parameters
    ----------
    by_split : DataFrame
        Scores of one unit and metric: one row a split, one column a method; nan where there is
        none.
    control : str
        The method that the others are compared with.
    test_share : float
        Rows for testing over rows for training.
    higher_is_better : bool

    Returns
    -------
    dict of str to (float, str)
        The two-sided p-value after Holm, nan if the two share fewer than two splits, and
        ``BETTER`` or ``WORSE`` where the method differs. Empty if the control has no scores.
    """
    if control not in by_split.columns:
        return {}
    differences = {
        str(method): (by_split[method] - by_split[control]).dropna().to_numpy()
        for method in by_split.columns
        if method != control
    }
    p_values = holm([corrected_t_test(one, test_share) for one in differences.values()])
    found = {}
    for (method, values), p_value in zip(differences.items(), p_values, strict=True):
        mark = ""
        if p_value <= ALPHA:
            mark = BETTER if (values.mean() > 0) == higher_is_better else WORSE
        found[method] = (p_value, mark)
    return found


def _failed_cells(findings: Findings) -> pd.DataFrame:
    return findings.cells[findings.cells["status"] != "ok"]


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
        found.append(Section("Scores by unit", by_unit(findings)))
        if len(findings.units) > 1:
            found.append(Section("Scores by metric", by_metric(findings)))
        found.append(_rank_section(findings))
    if curves := curve_sheets(findings):
        found.append(Section("Along a parameter", curves))
    if (elsewhere := published_elsewhere(findings)) is not None:
        found.append(Section("Published figures", (elsewhere,)))
    if (costs := cost_sheet(findings)) is not None:
        found.append(Section("Cost", (costs,)))
        failures = failure_sheet(findings)
        text = "" if failures else "No cell failed."
        found.append(Section("Failed cells", (failures,) if failures else (), text))
    return found


# A method in a table of scores: its name, whether others published it, and its figures.
_Row = tuple[str, bool, list[Entry]]
_Block = tuple[str, list[_Row]]


def by_unit(findings: Findings) -> tuple[Sheet, ...]:
    """Return a table for each data set, as Table 4 of the paper: a block a unit, metrics across."""
    measured, sheets = measured_entries(findings), []
    head = list(map(_heading, findings.metrics))
    for dataset in dict.fromkeys(unit.dataset for unit in findings.units):
        blocks = [
            (unit.title, _rows(findings, measured, [(unit.name, one) for one in findings.metrics]))
            for unit in findings.units
            if unit.dataset == dataset
        ]
        title = blocks[0][0] if len(blocks) == 1 else dataset
        sheets.append(_score_sheet(findings, title, head, blocks))
    return tuple(sheets)


def by_metric(findings: Findings) -> tuple[Sheet, ...]:
    """Return a table for each metric: units across, then the average rank over units."""
    measured, by_split, sheets = measured_entries(findings), scores_by_split(findings), []
    head = [unit.title for unit in findings.units]
    for metric in findings.metrics:
        rows = _rows(findings, measured, [(unit.name, metric) for unit in findings.units])
        found = ranking(findings, metric, by_split)
        ranked = found if isinstance(found, Ranking) else None
        sheets.append(_score_sheet(findings, _heading(metric), head, [("", rows)], ranked))
    return tuple(sheets)


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
    return _block_sheet(title, caption, list(map(_heading, findings.metrics)), blocks)


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
    entries, nothing = published_entries(findings), Entry(kind="none")
    methods = dict.fromkeys(key.method for key in entries if (key.unit, key.metric) in columns)
    return [
        (
            f"{method} (published)",
            True,
            [entries.get(Key(unit, method, metric), nothing) for unit, metric in columns],
        )
        for method in methods
    ]


def _heading(metric: str) -> str:
    return metric_name(metric) + ("" if higher_is_better(metric) else f" {_LOWER}")


def _score_sheet(
    findings: Findings,
    title: str,
    head: Sequence[str],
    blocks: Sequence[_Block],
    ranked: Ranking | None = None,
) -> Sheet:
    entries = [entry for _, rows in blocks for _, _, row in rows for entry in row]
    lower = any(_LOWER in text for text in (title, *head))
    caption = _score_caption(findings, entries, lower)
    return _block_sheet(title, caption, head, blocks, ranked, _score_notes(entries))


def _block_sheet(
    title: str,
    caption: str,
    head: Sequence[str],
    blocks: Sequence[_Block],
    ranked: Ranking | None = None,
    notes: tuple[str, ...] = (),
) -> Sheet:
    """Lay out blocks of methods below each other, their ranks to the right."""
    rows: list[SheetRow] = []
    several = len(blocks) > 1
    names, figures = ("unit", "method") if several else ("method",), tuple(head)
    ranks: dict[str, str] = {}
    if ranked is not None:
        ranks = {str(name): f"{rank:.2f}" for name, rank in ranked.ranks.average.items()}
        figures, notes = (*figures, "rank"), (*notes, *ranked.notes)
    for name, methods in blocks:
        for place, (method, published, entries) in enumerate(methods):
            cells = [Shown(name if place == 0 else "")] * several + [Shown(method)]
            cells += [entry.shown for entry in entries]
            if ranked is not None:
                cells.append(Shown(ranks.get(method, "")))
            # A line stands where a block begins, and above what others published.
            rule = published and not methods[place - 1][1] if place else bool(rows)
            rows.append(SheetRow(tuple(cells), rule))
    columns = "l" * len(names) + "r" * len(figures)
    return Sheet(title, caption, (*names, *figures), columns, tuple(rows), notes)


def _score_caption(findings: Findings, entries: Sequence[Entry], lower: bool) -> str:
    """Say what the figures are, which test was made, and what it is no evidence of."""
    counts = {entry.n_splits for entry in entries if entry.kind == "measured" and not entry.partial}
    splits = "splits"
    if counts:
        least, most = min(counts), max(counts)
        splits = count_of(most, "split") if least == most else f"{least} to {most} splits"
    parts = [f"Mean ± standard deviation over {splits}; the best mean is bold."]
    if lower:
        parts.append(f"{_LOWER} lower is better.")
    if any(not math.isnan(entry.p_value) for entry in entries):
        others = sum(method != findings.ours[0] for method in findings.methods)
        parts.append(
            f"{WORSE} significantly worse, {BETTER} better than {findings.ours[0]}: corrected "
            "resampled t test (Nadeau and Bengio, 2003) over the splits of a unit, "
            f"p ≤ {number(ALPHA, 2)} after Holm's correction for up to "
            f"{count_of(others, 'method')}. Units may share rows or a source: they are not "
            "independent evidence, and marks must not be counted over them."
        )
    elif findings.ours:
        parts.append(
            f"Nothing is tested: {findings.ours[0]} shares fewer than two splits with any other "
            "method."
        )
    return " ".join(parts)


_NOTES = {
    "failed": "failed ({}): no split of the method ended well.",
    "missing": f"{_NO_FIGURE} ({{}}): not computed yet.",
    "undefined": "n/a ({}): the metric is not defined on any split.",
    "partial": "A number in brackets is the number of splits behind a mean that has fewer than "
    "others ({}): the rest failed, is not computed yet or has no defined value. Such a mean is "
    "never bold.",
    "published": "(published): reported by others, not measured here; never bold and not tested.",
}


def _score_notes(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Explain what stands in place of a figure or beside it, with how often it does."""
    counts: Counter[str] = Counter(entry.kind for entry in entries)
    counts["partial"] = sum(entry.partial for entry in entries)
    return tuple(text.format(counts[kind]) for kind, text in _NOTES.items() if counts[kind])


def _rank_section(findings: Findings) -> Section:
    by_split = scores_by_split(findings)
    sheets, reasons = [], []
    for metric in findings.metrics:
        found = ranking(findings, metric, by_split)
        if isinstance(found, Ranking):
            sheets.append(rank_sheet(found))
        else:
            reasons.append(" ".join([f"{metric_name(metric)}: {found.reason}", *found.notes]))
    return Section("Average ranks", tuple(sheets), " ".join(reasons))


def rank_sheet(ranked: Ranking) -> Sheet:
    """Return the average ranks of a metric, the best first."""
    pairs = ranked.against_ours
    average = ranked.ranks.average.sort_values(kind="stable")
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
    title = f"{metric_name(ranked.metric)}: average ranks"
    columns = "l" + "r" * (len(head) - 1)
    return Sheet(title, _rank_caption(ranked), head, columns, tuple(rows), ranked.notes)


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
        Shown(_p_text(one["p_holm"]), after=mark),
    ]


def _rank_caption(ranked: Ranking) -> str:
    level = number(ALPHA, 2)
    parts = [
        f"{count_of(ranked.n_units, 'unit')} of {count_of(ranked.n_sources, 'source')}. "
        "Rank 1 is best; ranks are averaged within a source, then over sources."
    ]
    if (test := ranked.omnibus) is not None:
        p = _p_text(test.f_p_value)
        parts.append(
            f"Friedman's test, as corrected by Iman and Davenport: F = {test.f_statistic:.2f}, "
            f"p {p if p.startswith('<') else f'= {p}'}."
        )
    if (every := ranked.all_pairs) is not None:
        parts.append(f"Nemenyi's critical difference at {level}: {every.critical_difference:.2f}.")
    if (pairs := ranked.against_ours) is not None:
        parts.append(
            f"Difference: median over sources of {pairs.control} minus the method; won, tied and "
            f"lost by {pairs.control}; p-value of Wilcoxon's signed-rank test, corrected by Holm."
        )
        if pairs.claimed:
            parts.append(
                f"{WORSE} significantly worse than {pairs.control}, {BETTER} better (p ≤ {level})."
            )
    return " ".join(filter(None, [*parts, ranked.reason]))


def _p_text(value: float) -> str:
    return "< .001" if value < 0.001 else number(value)


def curve_sheets(findings: Findings) -> tuple[Sheet, ...]:
    """Return a table for each curve, unit and metric: mean and deviation over the splits."""
    if findings.curves.empty:
        return ()
    return tuple(
        _curve_sheet(
            f"{metric_name(metric)} along {curve}: {unit}",
            rows[rows["metric"] == metric],
            findings.methods,
        )
        for (curve, unit), rows in findings.curves.groupby(["curve", "unit"], sort=False)
        for metric in curve_metrics(rows, findings)
    )


def curve_metrics(rows: pd.DataFrame, findings: Findings) -> list[str]:
    """Return the metrics of a curve that have numbers: those of the study, then the probed."""
    present = set(rows.dropna(subset=["value"])["metric"])
    return [metric for metric in (*findings.metrics, *PROBED) if metric in present]


def _curve_sheet(title: str, rows: pd.DataFrame, methods: tuple[str, ...]) -> Sheet:
    settings = sorted(rows["setting"].unique())
    groups = rows.groupby(["method", "setting"])["value"]
    entries = {key: Entry(one.mean(), one.std(), len(one)) for key, one in groups}
    missing = Entry(kind="missing")
    lines = [
        SheetRow((Shown(name), *(entries.get((name, one), missing).shown for one in settings)))
        for name in methods
        if name in set(rows["method"])
    ]
    head = ("method", *(f"{setting:,g}" for setting in settings))
    caption = "Mean ± standard deviation over the splits."
    return Sheet(title, caption, head, "l" + "r" * len(settings), tuple(lines))


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
            told = (_NO_FIGURE if one == "nan" else one for one in (seconds, f"{peak:,.0f}"))
            name = "" if place else dataset
            rows.append(line(name, method, str(len(done)), *told, rule=not place and bool(rows)))
    return Sheet(
        "Time and memory",
        "Median wall time of a cell, and the highest peak memory of a worker process, over the "
        "cells that ended well. A worker's memory includes the packages that it has loaded.",
        ("data set", "method", "cells", "median seconds", "peak MB"),
        "llrrr",
        tuple(rows),
    )


def _ordered(first: Sequence[str], present: Iterable[str]) -> list[str]:
    """Return the names that are present: in the order of the study, then the others."""
    here = set(map(str, present))
    return [*dict.fromkeys(name for name in first if name in here), *sorted(here - set(first))]


def failure_sheet(findings: Findings) -> Sheet | None:
    """Return the cells that did not end well, by the last line of their error; None without."""
    failed = _failed_cells(findings)
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
        f"{count_of(len(failed), 'cell')} of {len(findings.cells)} did not end well: the last line "
        "of the error. The store has the whole of it.",
        ("data set", "method", "splits", "status", "error"),
        "llplp",
        tuple(rows),
    )


def last_line(error: str) -> str:
    """Return the last line of an error that says anything, of bounded length."""
    lines = [one for one in map(plain, error.splitlines()) if one]
    return cut(lines[-1] if lines else "no message", _LONGEST_ERROR)


def terminal(sheet: Sheet) -> Table:
    """Return a table for a console of rich."""
    with needed("a table in the terminal", "rich", "cli"):
        from rich import box
        from rich.table import Table
        from rich.text import Text

    def text(shown: Shown) -> Text:
        made = Text(plain(shown.text), style="bold" if shown.bold else "")
        return made.append(f" {shown.after}", style="not bold") if shown.after else made

    table = Table(
        title=Text(plain(sheet.title)),
        caption=Text(plain(" ".join([sheet.caption, *sheet.notes]))),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        caption_justify="left",
        pad_edge=False,
    )
    for name, column in zip(sheet.head, sheet.columns, strict=True):
        table.add_column(Text(plain(name)), justify="right" if column == "r" else "left")
    for row in sheet.rows:
        if row.rule:
            table.add_section()
        table.add_row(*map(text, row.cells))
    return table


def write_tables(findings: Findings, folder: str | Path) -> list[Path]:
    """Write tables.md, tables.tex, tables.csv and, where there are curves, curves.csv.

    Each is there whole or not at all.

    Parameters
    ----------
    findings : Findings
    folder : str or Path
        It is made if it is not there.

    Returns
    -------
    list of Path
        The files.
    """
    folder = Path(folder)
    found = sections(findings)
    contents = {
        "tables.md": markdown_text(findings, found),
        "tables.tex": latex_text(findings, found),
        "tables.csv": csv_text(findings),
    }
    if not findings.curves.empty:
        contents["curves.csv"] = findings.curves.to_csv(index=False, lineterminator="\n")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_atomically(folder / name, content.encode())
    return [folder / name for name in contents]


_MARKDOWN = str.maketrans({one: f"\\{one}" for one in r"\`*_{}[]<>|~$&#"})


def markdown_text(findings: Findings, found: Iterable[Section]) -> str:
    """Return the tables of a study, as `sections` gives them, as one document."""
    parts = [f"# {_escape(findings.title)}", _escape(findings.about)]
    if command := plain(findings.command):
        fence = "```"
        while fence in command:  # the command cannot end its block
            fence += "`"
        parts.append(f"{fence}bash\n{command}\n{fence}")
    if findings.missing:
        parts.append(f"Not computed yet: {count_of(findings.missing, 'cell')}.")
    parts += map(_escape, findings.notes)
    for section in found:
        parts += [f"## {_escape(section.title)}", _escape(section.text)]
        parts += map(markdown, section.sheets)
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown(sheet: Sheet) -> str:
    """Return a heading, the caption, the table and its notes."""
    lines = [
        map(_escape, sheet.head),
        ("---:" if one == "r" else "---" for one in sheet.columns),
        *(map(_markdown_cell, row.cells) for row in sheet.rows),
    ]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    parts = [f"### {_escape(sheet.title)}", _escape(sheet.caption), table]
    return "\n\n".join(filter(None, [*parts, *map(_escape, sheet.notes)]))


def _markdown_cell(shown: Shown) -> str:
    text = f"**{_escape(shown.text)}**" if shown.bold else _escape(shown.text)
    return f"{text} {_escape(shown.after)}" if shown.after else text


def _escape(text: str) -> str:
    return plain(text).translate(_MARKDOWN)


_LATEX = str.maketrans(
    {one: f"\\{one}" for one in "{}$&#_%"}
    # After the end of a row a bracket or a star would be taken for its argument.
    | {one: f"{{{one}}}" for one in "[]*"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"}
    | {"±": r"$\pm$", "≤": r"$\leq$", "\u2013": "--", "…": r"\ldots{}"}
    | {"▲": r"$\blacktriangle$", "▼": r"$\blacktriangledown$", "↓": r"$\downarrow$"}
)


def latex_text(findings: Findings, found: Iterable[Section]) -> str:
    r"""Return the tables of a study, as `sections` gives them, to ``\input`` into a document."""
    parts = [
        f"% {plain(findings.title)}\n"
        r"% In the preamble: \usepackage[T1]{fontenc} \usepackage{amssymb,booktabs}" + "\n"
    ]
    for section in found:
        parts.append(f"% {plain(section.title)}. {plain(section.text)}".rstrip() + "\n")
        parts += map(latex, section.sheets)
    return "\n".join(parts)


def latex(sheet: Sheet) -> str:
    """Return a table environment for the package booktabs; caption above, notes below."""
    rows = [
        [r"\midrule" * row.rule + "\n" * row.rule + first, *cells]
        for row in sheet.rows
        for first, *cells in [[_latex_cell(one) for one in row.cells]]
    ]
    title = latex_escape(sheet.title)
    # pandas formats the heads, so braces in them are doubled.
    table = pd.DataFrame(rows, columns=range(len(sheet.head))).to_latex(
        index=False,
        header=[re.sub("[{}]", r"\g<0>\g<0>", latex_escape(name)) for name in sheet.head],
        escape=False,
        column_format=sheet.columns.replace("p", r"p{0.3\linewidth}"),
        caption=(rf"\textbf{{{title}.}} {latex_escape(sheet.caption)}", title),
        position="htbp",
    )
    notes = [
        rf"\par\smallskip{{\footnotesize {latex_escape(note)}\par}}" + "\n" for note in sheet.notes
    ]
    return table.replace(r"\end{table}", "".join(notes) + r"\end{table}")


def _latex_cell(shown: Shown) -> str:
    text = re.sub(r"^-(?=[.\d])", "$-$", latex_escape(shown.text))
    text = rf"\textbf{{{text}}}" if shown.bold else text
    return f"{text} {latex_escape(shown.after)}" if shown.after else text


def latex_escape(text: str) -> str:
    """Return a text on one line in which nothing is a command."""
    return plain(text).translate(_LATEX)


def csv_text(findings: Findings) -> str:
    """Return every figure in a row: tidy, with all digits, names as they are."""
    others = [
        (key._replace(method=f"{key.method} (published)"), one)
        for key, one in published_entries(findings).items()
    ]
    rows = [
        {
            **key._asdict(),
            "mean": entry.mean,
            "sd": entry.deviation,
            "n_splits": "" if entry.kind == "published" else entry.n_splits,
            "best": entry.best,
            "p_value": entry.p_value,
            "mark": entry.mark,
        }
        for key, entry in [*measured_entries(findings).items(), *others]
    ]
    return pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")


def number(value: float, digits: int = 3, *, sign: bool = False) -> str:
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
    mark = text[0] if text[0] in "+-" else ""
    return mark + text[len(mark) :].removeprefix("0")


def plain(text: str) -> str:
    """Return a text on one line, without characters that steer a terminal or the direction."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def cut(text: str, longest: int) -> str:
    """Return a text that ends in dots where it is too long."""
    return text if len(text) <= longest else text[:longest].rstrip() + " …"
