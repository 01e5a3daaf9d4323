"""A study from beginning to end: rows prepared, cells computed, findings collected and ranked.

`Findings` has every figure of the finished cells in one table; what tables and figures show of them
is made from it once: the means over splits with their tests (``summary``), and ranks over units.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from setconv.errors import StudyError
from setconv.experiment import statistics
from setconv.experiment.cells import StudyWork, build_method, plan_cells, reported_classes
from setconv.experiment.data import Prepared, known_data, prepare
from setconv.experiment.runner import Tally, library_version, run
from setconv.experiment.store import Store, computed_by
from setconv.experiment.study import PUBLISHED, DataSpec, Study
from setconv.metrics.report import HEADINGS

ALPHA = 0.05
BETTER, WORSE = "▲", "▼"
DIGITS = 3  # of figures that are shown

# What a study keeps in its folder.
_STORE, _ROWS = "results.sqlite", "rows"
_CELL = ["dataset", "method", "split", "version"]
# How the store names a figure of a class: see cells.figure_name.
_FIGURE = r"(?s)(?P<metric>[^@:]+)(?:@(?P<curve>[^=]*)=(?P<setting>[^:]*))?:(?P<label>.*)"
_SWEEP = "imbalance ratio of the training rows"

# Asked of a fitted model, along a curve only.
PROBED = {"movement": "Movement of representatives", "flips": "Changed predictions"}


def heading(metric: str, if_lower: str = "") -> str:
    """Return what tables and figures call a metric; what is added where lower is better."""
    return (HEADINGS | PROBED)[metric] + ("" if higher_is_better(metric) else if_lower)


def higher_is_better(metric: str) -> bool:
    """Whether more of a metric is better."""
    return metric not in ("brier", *PROBED)


@dataclass(frozen=True)
class Unit:
    """What a row of a table is about: a class of a data set against the rest.

    Attributes
    ----------
    name : str
        Unique in the study, such as "SemEval" or "Davidson: hate".
    dataset : str
    label : str
        The class that is counted as positive.
    imbalance_ratio : float
        Rows of the other classes over rows of this one.
    n_rows : int
    source : str
        Units of one source are no independent evidence.
    test_share : float
        Rows for testing over rows for training, in each split.
    """

    name: str
    dataset: str
    label: str
    imbalance_ratio: float
    n_rows: int
    source: str
    test_share: float

    @property
    def title(self) -> str:
        """The name with the imbalance ratio in brackets, as in the figures of the paper."""
        return f"{self.name} ({self.imbalance_ratio:.2f})"


@dataclass(frozen=True, eq=False)
class Ranking:
    """Methods over units, for one metric.

    Attributes
    ----------
    metric : str
    reason : str
        Why there are no ranks, or why nothing is claimed of them; empty if all is well.
    notes : tuple of str
        What was left out.
    n_units : int
        How many units the ranks rest on.
    ranks : Ranks or None
        1 is best.
    omnibus : Friedman or None
        Whether the methods differ at all; needs two sources and three methods.
    all_pairs : Nemenyi or None
        All methods against each other; needs two sources.
    against_ours : WilcoxonHolm or None
        The study's own method against each other; needs two sources and that method.
    """

    metric: str
    reason: str
    notes: tuple[str, ...]
    n_units: int = 0
    ranks: statistics.Ranks | None = None
    omnibus: statistics.Friedman | None = None
    all_pairs: statistics.Nemenyi | None = None
    against_ours: statistics.WilcoxonHolm | None = None


@dataclass(frozen=True, eq=False)
class Findings:
    """The finished cells of a study.

    Attributes
    ----------
    study : Study
    units : tuple of Unit
        In the order of the study.
    scores : DataFrame
        Every figure of a class: columns unit, method, split, metric, curve, setting and value; nan
        where a metric is not defined. Along a parameter, such as the size of the post-training
        subset or the imbalance ratio, ``curve`` is its name and ``setting`` its value.
    cells : DataFrame
        As `Store.cells` gives them: dataset, method, split, status, error, seconds, peak_mb,
        started, versions and notes (both JSON).
    missing : int
        Cells of the study that are not computed yet.
    command : str
        The command that makes the cells.
    place : str
        The folder in which to give the command, if it matters.
    notes : tuple of str
        Where the rows come from, one text a data set.
    data : str
        The folder in which the paths of the data sets began; empty if there are several.
    """

    study: Study
    units: tuple[Unit, ...]
    scores: pd.DataFrame
    cells: pd.DataFrame
    missing: int = 0
    command: str = ""
    place: str = ""
    notes: tuple[str, ...] = ()
    data: str = ""

    @property
    def methods(self) -> list[str]:
        """Names in the order of the study."""
        return [one.name for one in self.study.methods]

    @property
    def curves(self) -> list[tuple[str, str, str, pd.DataFrame]]:
        """Curve, unit, metric and figures: the metrics of the study, then the probed ones."""
        known = self.scores[self.scores["curve"] != ""].dropna(subset="value")
        groups: Any = known.groupby(["curve", "unit"], sort=False)
        return [
            (curve, unit, metric, here)
            for (curve, unit), rows in groups
            for metric in (*self.study.metrics, *PROBED)
            if len(here := rows[rows["metric"] == metric])
        ]

    @property
    def failed(self) -> pd.DataFrame:
        """The cells that did not end well."""
        return self.cells[self.cells["status"] != "ok"]

    @cached_property
    def outdated(self) -> pd.DataFrame:
        """The cells that ended well, but that another version of setconv computed."""
        cells = self.cells.assign(by=self.cells["versions"].map(computed_by))
        return cells[(cells["status"] == "ok") & (cells["by"] != library_version())]

    @property
    def outdated_by(self) -> str:
        """Which other versions of setconv computed cells."""
        return ", ".join(sorted({one or "an unknown one" for one in self.outdated["by"]}))

    def by_split(self, unit: str, metric: str) -> pd.DataFrame:
        """Return one row a split, one column a method; nan where there is no figure."""
        here = (self.scores["unit"] == unit) & (self.scores["metric"] == metric)
        rows = self.scores[here & (self.scores["curve"] == "")]
        table = rows.pivot(index="split", columns="method", values="value")
        return table.reindex(columns=self.methods).astype("float64").dropna(how="all")

    @cached_property
    def summary(self) -> pd.DataFrame:
        """What the splits say: a row for every unit, metric and method, then what is published.

        Columns are unit, method, metric; mean, sd (of a sample) and n_splits; best (no other mean
        over all splits is better, at the digits that are shown); p_value and mark (of the
        difference from the study's own method); state (measured, failed, missing, undefined or
        published), partial (whether others have more splits) and outdated (whether another version
        of setconv computed a cell of it).
        """
        parts = [_summarise(self, unit, one) for unit in self.units for one in self.study.metrics]
        return pd.concat([*parts, _published(self.study.published)], ignore_index=True)

    @cached_property
    def rankings(self) -> dict[str, Ranking]:
        """The ranks of each metric of the study, or why there are none."""
        return {metric: _ranking(self, metric) for metric in self.study.metrics}


def _summarise(findings: Findings, unit: Unit, metric: str) -> pd.DataFrame:
    """Return the rows of one unit and metric."""
    by_split = findings.by_split(unit.name, metric)
    counts, means = by_split.count(), by_split.mean()
    higher = higher_is_better(metric)
    # Means over other splits than the rest are no basis for who is best.
    whole = (counts > 0) & (counts == counts.max())
    shown = means.map(lambda mean: round(mean, DIGITS))[whole]
    best = shown[shown == (shown.max() if higher else shown.min())]
    tested = compare(by_split, findings.study.ours[0], unit.test_share, higher)
    states = [_state(findings, unit, one, metric, counts[one]) for one in findings.methods]
    outdated = findings.outdated.loc[findings.outdated["dataset"] == unit.dataset, "method"]
    columns = {
        **{"unit": unit.name, "method": findings.methods, "metric": metric},
        **{"mean": means, "sd": by_split.std(ddof=1), "n_splits": counts},
        **{"best": by_split.columns.isin(best.index), **tested},
        **{"state": states, "partial": (counts > 0) & ~whole},
        "outdated": (counts > 0) & counts.index.isin(outdated),
    }
    return pd.DataFrame(columns)


def _state(findings: Findings, unit: Unit, method: str, metric: str, n_splits: int) -> str:
    """Return whether a method is measured, or why it has no mean: undefined, failed or missing."""
    if n_splits:
        return "measured"
    scores, failed = findings.scores, findings.failed
    asked = (scores["unit"] == unit.name) & (scores["metric"] == metric)
    if (asked & (scores["method"] == method)).any():
        return "undefined"
    crashed = (failed["dataset"] == unit.dataset) & (failed["method"] == method)
    return "failed" if crashed.any() else "missing"


def compare(
    by_split: pd.DataFrame, control: str, test_share: float, higher_is_better: bool
) -> dict[str, list[Any]]:
    """Compare every method with one, on the splits that both have.

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
    dict of str to list
        For each column ``p_value``, two-sided and after Holm, nan for the control and where the two
        share fewer than two splits; and ``mark``, which is ``BETTER`` or ``WORSE`` where the method
        differs.
    """
    differences = by_split.sub(by_split[control], axis="index")
    tests = [
        math.nan if one == control else statistics.corrected_t_test(values.dropna(), test_share)
        for one, values in differences.items()
    ]
    p_values = statistics.holm(tests)
    marks = [
        (BETTER if (mean > 0) == higher_is_better else WORSE) if p_value <= ALPHA else ""
        for mean, p_value in zip(differences.mean(), p_values, strict=True)
    ]
    return {"p_value": p_values, "mark": marks}


def _published(name: str | None) -> pd.DataFrame | None:
    """Return the figures that others reported, as rows of a summary."""
    if name is None:
        return None
    table = pd.read_csv(PUBLISHED / f"{name}.csv", comment="#").rename(columns={"deviation": "sd"})
    table["method"] += " (published)"
    table[["best", "partial", "outdated"]] = False
    return table.assign(n_splits=0, mark="", state="published")


def _ranking(findings: Findings, metric: str) -> Ranking:
    """Rank the methods on the splits that all of them have.

    A method with scores on half of the units or fewer has no rank, and a unit without a split that
    all other methods have does not count; the notes name both.
    """
    tables = {unit.name: findings.by_split(unit.name, metric) for unit in findings.units}
    tables = {unit: table for unit, table in tables.items() if len(table)}
    covered = Counter(one for table in tables.values() for one in table.dropna(axis=1, how="all"))
    methods = [one for one in findings.methods if 2 * covered[one] > len(tables)]
    common = {unit: table[methods].dropna() for unit, table in tables.items()}
    means = {unit: table.mean() for unit, table in common.items() if len(table)}
    unranked = [one for one in findings.methods if tables and one not in methods]
    on_fewer = [unit for unit in means if len(common[unit]) < len(tables[unit])]
    left_out = {
        "Without a rank, for scores on half of the units or fewer": unranked,
        "Left out, for no split has all methods": [unit for unit in common if unit not in means],
        "Ranked on the splits that all methods have": on_fewer,
    }
    notes = tuple(f"{why}: {', '.join(names)}." for why, names in left_out.items() if names)
    if len(means) < 2 or len(methods) < 2:
        reason = "Ranks need two methods, and two units with a split that all of them have."
        return Ranking(metric, reason, notes)
    table = pd.DataFrame(means, index=methods).T
    sources = {unit.name: unit.source for unit in findings.units}
    higher = higher_is_better(metric)
    ranks = statistics.average_ranks(table, sources, higher)
    n_sources = len(ranks.by_source)
    if n_sources < 2:
        reason = "All units come from one source: there is nothing to test."
        return Ranking(metric, reason, notes, len(table), ranks)
    ours = findings.study.ours[0]
    return Ranking(
        metric,
        statistics.TestResult(n_sources, ALPHA).reason,
        notes,
        len(table),
        ranks,
        statistics.friedman(ranks.by_source, ALPHA) if len(methods) > 2 else None,
        statistics.nemenyi(ranks.by_source, ALPHA),
        statistics.wilcoxon_holm(table, ours, sources, ALPHA, higher) if ours in methods else None,
    )


def run_study(study: Study, folder: str | Path, *, data: str | Path = ".", **options: Any) -> Tally:
    """Compute the cells of a study that are missing or whose definition has changed.

    Killed at any moment, the same call goes on where it was: a finished cell is never computed
    again, a half-finished one never counted. Processes that are given the same folder share the
    cells and the preparation of the rows, as `run` says. Call it under
    ``if __name__ == "__main__":``.

    Parameters
    ----------
    study : Study
    folder : str or Path
        Where results are kept: ``results.sqlite`` and the prepared rows.
    data : str or Path, default="."
        Where the paths of the study's data sets begin.
    **options
        ``jobs``, ``threads``, ``retry_failed``, ``recompute_outdated`` and ``progress`` of `run`.

    Returns
    -------
    Tally
    """
    folder = Path(folder).resolve()
    for method in study.methods:
        build_method(method, seed=0)  # what does not exist is refused before anything is computed
    prepared = prepare(study, folder / _ROWS, Path(data))
    cells = plan_cells(study, prepared, folder / _ROWS)
    with Store(folder / _STORE) as store:
        work = StudyWork(study, prepared, folder / _ROWS)
        return run(cells, work, store, timeout=study.timeout, **options)


def findings(study: Study, folder: str | Path, command: str = "") -> Findings:
    """Return what the finished cells of a study say.

    Parameters
    ----------
    study : Study
    folder : str or Path
        The one that `run_study` was given.
    command : str, default=""
        Shown as what reproduces the study.
    """
    folder = Path(folder).resolve()
    prepared = known_data(study, folder / _ROWS)
    lacking = [one.name for one in study.data if one.name not in prepared]
    if lacking or not (folder / _STORE).exists():
        raise StudyError(
            f"{folder} has no results of {study.name} on {', '.join(lacking) or 'any data set'}.",
            hint="Run it first (setconv experiment run), or choose the data sets that were run.",
        )
    planned = plan_cells(study, prepared, folder / _ROWS)
    wanted = pd.DataFrame([asdict(cell) for cell in planned], columns=_CELL)
    with Store(folder / _STORE) as store:
        # Cells of earlier versions of the study do not count.
        cells = store.cells().merge(wanted, on=_CELL)
        results = store.results().merge(cells[_CELL[:3]], on=_CELL[:3])
    folders = {one.folder for one in prepared.values()}
    units = [unit for spec in study.data for unit in _units(study, spec, prepared[spec.name])]
    return Findings(
        study=study,
        units=tuple(units),
        scores=_scores(study, units, results),
        cells=cells,
        missing=len(planned) - len(cells),
        command=command,
        notes=_notes(study, prepared),
        data=folders.pop() if len(folders) == 1 else "",
    )


def _units(study: Study, spec: DataSpec, known: Prepared) -> list[Unit]:
    labels = reported_classes(spec, known)
    total = sum(known.counts.values())
    parts = study.rule(spec).parts
    return [
        Unit(
            name=f"{spec.name}: {label}" if len(labels) > 1 else spec.name,
            dataset=spec.name,
            label=label,
            imbalance_ratio=spec.train_ratio or (total - known.counts[label]) / known.counts[label],
            n_rows=total,
            source=spec.source or spec.name,
            test_share=parts[-1] / parts[0],
        )
        for label in labels
    ]


def _scores(study: Study, units: list[Unit], results: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of the units, those of a sweep along its ratios too."""
    parts = results["metric"].str.extract(_FIGURE)
    tidy = results.drop(columns="metric").join(parts.fillna({"curve": ""}))
    tidy["setting"] = tidy["setting"].astype("float64")
    names = pd.DataFrame(units)[["dataset", "label", "name"]].rename(columns={"name": "unit"})
    scores = tidy.merge(names, on=["dataset", "label"])
    along = [scores]
    for spec in study.data:
        if spec.base is not None:
            mine = scores[(scores["dataset"] == spec.name) & (scores["curve"] == "")]
            base = spec.base + mine["unit"].str.removeprefix(spec.name)
            along.append(mine.assign(unit=base, curve=_SWEEP, setting=spec.train_ratio))
    columns = ["unit", "method", "split", "metric", "curve", "setting", "value"]
    return pd.concat(along, ignore_index=True)[columns]


def _notes(study: Study, prepared: dict[str, Prepared]) -> tuple[str, ...]:
    """Say where the rows come from, once a data set."""
    told: dict[str, str] = {}
    for spec in study.data:
        known = prepared[spec.name]
        copies = f"{known.n_copies:,} rows are copies of others: none is on both sides of a split."
        parts = [known.provenance, copies if known.n_copies else "", known.licence]
        if text := " ".join(filter(None, [*parts, _beside_the_paper(spec, known)])):
            told.setdefault(spec.base or spec.name, text)
    return tuple(f"{name}: {text}" for name, text in told.items())


def _beside_the_paper(spec: DataSpec, known: Prepared) -> str:
    """Say how many rows the paper had, for the benchmarks that it used."""
    counts = pd.read_csv(PUBLISHED / "class_counts.csv", comment="#")
    name = spec.name if len(known.counts) == 2 else f"{spec.name} (four classes)"
    theirs = counts.loc[counts["dataset"] == name, "rows"].sort_values(ascending=False)
    if theirs.empty or spec.load not in ("amazon", "irt", "semeval"):
        return ""
    here = sorted(known.counts.values(), reverse=True)
    paper, ours = (", ".join(map("{:,}".format, rows)) for rows in (theirs, here))
    return f"Rows of the classes in the paper: {paper}; here: {ours}."
