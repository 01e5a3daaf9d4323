"""A study from beginning to end: rows prepared, cells computed, findings collected and ranked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from setconv.errors import DataError, StudyError
from setconv.experiment.cells import (
    StudyWork,
    check_methods,
    plan_cells,
    read_key,
    reported_classes,
)
from setconv.experiment.data import Prepared, known_data, prepare
from setconv.experiment.runner import Tally, run
from setconv.experiment.statistics import (
    Friedman,
    Nemenyi,
    Ranks,
    TestResult,
    WilcoxonHolm,
    average_ranks,
    friedman,
    nemenyi,
    wilcoxon_holm,
)
from setconv.experiment.store import Cell, Store
from setconv.experiment.study import DataSpec, Study, published_counts, published_figures
from setconv.messages import needed

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.05
_DIGITS = 12  # of means, to see ties

# What a study keeps in its folder.
_STORE = "results.sqlite"
_ROWS = "rows"

METRIC_NAMES = {
    "f1": "F1",
    "g_mean": "G-mean",
    "auc": "AUC",
    "specificity": "Spec",
    "sensitivity": "Sens",
    "average_precision": "Average precision",
    "balanced_accuracy": "Balanced accuracy",
    "precision": "Precision",
    "mcc": "MCC",
    "brier": "Brier score",
    "macro_f1": "Macro F1",
    "movement": "Movement of representatives",
    "flips": "Changed predictions",
}
# Asked of a fitted model, along a curve only.
PROBED = ("movement", "flips")
_LOWER_IS_BETTER = frozenset({"brier", *PROBED})


def metric_name(metric: str) -> str:
    """Return the display name of a metric; one that is not known is called what it is called."""
    return METRIC_NAMES.get(metric, metric)


def higher_is_better(metric: str) -> bool:
    """Whether more of a metric is better."""
    return metric not in _LOWER_IS_BETTER


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
class Findings:
    """The finished cells of a study.

    Attributes
    ----------
    name, title, about : str
    command : str
        The command that makes the cells.
    methods : tuple of str
        In the order of the study.
    ours : tuple of str
        The methods that the study is about; the first is compared with all others.
    metrics : tuple of str
        In the order of the study.
    units : tuple of Unit
        In the order of the study.
    scores : DataFrame
        Columns unit, method, split, metric and value; nan where a metric is not defined.
    curves : DataFrame
        Columns curve, unit, method, split, metric, setting (a number) and value: the metrics along
        a parameter, such as the size of the post-training subset or the imbalance ratio.
        ``curve`` names the parameter. Empty if the study has none.
    published : DataFrame
        Figures that others reported: columns unit, method, metric, mean and deviation (nan where
        none is given). Empty if there are none.
    cells : DataFrame
        As `Store.cells` gives them: dataset, method, split, status, error, seconds, peak_mb,
        started, versions and notes (both JSON).
    missing : int
        Cells of the study that are not computed yet.
    notes : tuple of str
        Where the rows come from, one text a data set.
    """

    name: str
    title: str
    about: str
    command: str
    methods: tuple[str, ...]
    ours: tuple[str, ...]
    metrics: tuple[str, ...]
    units: tuple[Unit, ...]
    scores: pd.DataFrame
    curves: pd.DataFrame
    published: pd.DataFrame
    cells: pd.DataFrame
    missing: int = 0
    notes: tuple[str, ...] = ()


def run_study(
    study: Study,
    folder: str | Path,
    *,
    data: str | Path = ".",
    jobs: int | None = None,
    threads: int | None = None,
    retry_failed: bool = False,
    progress: Literal["auto"] | bool = "auto",
) -> Tally:
    """Compute the cells of a study that are missing or whose definition has changed.

    Killed at any moment, the same call goes on where it was: a finished cell is never computed
    again, a half-finished one never counted. Call it under ``if __name__ == "__main__":``.

    Parameters
    ----------
    study : Study
    folder : str or Path
        Where results are kept: ``results.sqlite`` and the prepared rows.
    data : str or Path, default="."
        Where the paths of the study's data sets begin.
    jobs, threads, retry_failed, progress
        See `run`.

    Returns
    -------
    Tally
    """
    folder = Path(folder).resolve()
    check_methods(study)
    prepared = prepare(study, folder / _ROWS, Path(data))
    cells = plan_cells(study, prepared, folder / _ROWS)
    work = StudyWork(study, prepared, folder / _ROWS)
    with Store(folder / _STORE) as store:
        return run(
            cells,
            work,
            store,
            jobs=jobs,
            threads=threads,
            timeout=study.timeout,
            retry_failed=retry_failed,
            progress=progress,
        )


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
    if not (folder / _STORE).exists():
        raise StudyError(
            f"{folder} has no results of {study.name}: run it first (setconv experiment run)."
        )
    prepared = known_data(study, folder / _ROWS)
    if lacking := [one.name for one in study.data if one.name not in prepared]:
        raise StudyError(
            f"{folder} has no rows of {', '.join(lacking)}: the study was not run with them; run "
            "it, or choose the data sets that were."
        )
    cells = plan_cells(study, prepared, folder / _ROWS)
    with Store(folder / _STORE) as store:
        return _collect(study, prepared, cells, store, command)


_CELL = ["dataset", "method", "split", "version"]
_SCORES = ["unit", "method", "split", "metric", "value"]
_CURVES = ["curve", "unit", "method", "split", "metric", "setting", "value"]
_SWEEP = "imbalance ratio of the training rows"


def _collect(
    study: Study, prepared: dict[str, Prepared], cells: list[Cell], store: Store, command: str
) -> Findings:
    """Return the findings of these cells; cells of earlier versions of the study do not count."""
    with needed("The findings of a study", "pandas", "experiment"):
        import pandas as pd
    wanted = pd.DataFrame([asdict(cell) for cell in cells], columns=_CELL)
    frame = store.cells().merge(wanted, on=_CELL)
    rows = store.results().merge(frame[_CELL[:3]], on=_CELL[:3])
    specs = {one.name: one for one in study.data}
    ours = tuple(one.name for one in study.methods if one.ours)
    units = _units(study, prepared)
    names = {(one.dataset, one.label): one.name for one in units}
    scores, curves = [], []
    for dataset, method, split, metric, value in rows.itertuples(index=False):
        parts = read_key(metric)
        if parts is None or (dataset, parts[1]) not in names:
            continue
        name, label, curve, setting = parts
        spec = specs[dataset]
        if curve:
            curves.append((curve, names[dataset, label], method, split, name, setting, value))
            continue
        scores.append((names[dataset, label], method, split, name, value))
        if spec.base is not None and spec.train_ratio is not None:
            of = _unit_name(spec.base, label, spec, prepared[dataset])
            curves.append((_SWEEP, of, method, split, name, spec.train_ratio, value))
    return Findings(
        name=study.name,
        title=study.title or study.name,
        about=study.about,
        command=command,
        methods=tuple(one.name for one in study.methods),
        ours=ours or (study.methods[0].name,),
        metrics=study.metrics,
        units=tuple(units),
        scores=pd.DataFrame(scores, columns=_SCORES),
        curves=pd.DataFrame(curves, columns=_CURVES),
        published=published_figures(study.published),
        cells=frame,
        missing=len(cells) - len(frame),
        notes=_notes(study, prepared),
    )


def _units(study: Study, prepared: dict[str, Prepared]) -> list[Unit]:
    units = []
    for spec in study.data:
        known = prepared[spec.name]
        total = sum(known.counts.values())
        for label in reported_classes(spec, known.counts):
            mine = known.counts[label]
            parts = study.rule(spec).parts
            units.append(
                Unit(
                    name=_unit_name(spec.name, label, spec, known),
                    dataset=spec.name,
                    label=label,
                    imbalance_ratio=spec.train_ratio or (total - mine) / mine,
                    n_rows=total,
                    source=spec.source or spec.name,
                    test_share=parts[-1] / parts[0],
                )
            )
    return units


def _unit_name(name: str, label: str, spec: DataSpec, known: Prepared) -> str:
    several = len(reported_classes(spec, known.counts)) > 1
    return f"{name}: {label}" if several else name


def _notes(study: Study, prepared: dict[str, Prepared]) -> tuple[str, ...]:
    """Say where the rows come from, once a data set."""
    told: dict[str, str] = {}
    for spec in study.data:
        known = prepared[spec.name]
        parts = (known.provenance, known.licence, _beside_the_paper(spec, known))
        if text := " ".join(part for part in parts if part):
            told.setdefault(spec.base or spec.name, text)
    return tuple(f"{name}: {text}" for name, text in told.items())


def _beside_the_paper(spec: DataSpec, known: Prepared) -> str:
    """Say how many rows the paper had, for the benchmarks that it used."""
    if spec.load not in ("amazon", "irt", "semeval"):
        return ""
    theirs = published_counts(spec.name, len(known.counts))
    if not theirs:
        return ""
    shown = [
        ", ".join(f"{count:,}" for count in sorted(counts.values(), reverse=True))
        for counts in (theirs, known.counts)
    ]
    return f"Rows of the classes in the paper: {shown[0]}; here: {shown[1]}."


def scores_by_split(findings: Findings) -> dict[tuple[str, str], pd.DataFrame]:
    """Return the scores of each unit and metric: one row a split, one column a method."""
    scores = findings.scores[findings.scores["method"].isin(findings.methods)]
    scores = scores[np.isfinite(scores["value"].astype(float))]
    twice = scores.duplicated(["unit", "metric", "method", "split"])
    if twice.any():
        first = scores[twice].iloc[0]
        raise DataError(
            f"scores: {first['unit']} / {first['method']} / {first['metric']} has split "
            f"{first['split']} twice: give every score once."
        )
    return {
        (str(unit), str(metric)): group.pivot(index="split", columns="method", values="value")
        for (unit, metric), group in scores.groupby(["unit", "metric"], sort=False)
    }


@dataclass(frozen=True)
class NoRanking:
    """Why there are no ranks for a metric, and what was left out before that was clear."""

    reason: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Ranking:
    """Methods over units, for one metric; tests are made when they are asked for.

    Attributes
    ----------
    metric : str
    means : DataFrame
        One row a unit, one column a method: over the splits that all methods have.
    sources : mapping of str to str
        Unit to source.
    control : str or None
        The study's own method; None if it has no rank.
    notes : tuple of str
        What was left out.
    """

    metric: str
    means: pd.DataFrame
    sources: Mapping[str, str]
    control: str | None
    notes: tuple[str, ...] = ()

    @cached_property
    def ranks(self) -> Ranks:
        """Average ranks; 1 is best."""
        return average_ranks(self.means, self.sources, higher_is_better(self.metric))

    @property
    def n_units(self) -> int:
        """How many units the ranks rest on."""
        return len(self.means)

    @property
    def n_sources(self) -> int:
        """How many sources these units come from."""
        return len(self.ranks.by_source)

    @property
    def reason(self) -> str:
        """Why nothing is claimed; empty if there are sources enough."""
        if self.n_sources < 2:
            return "All units come from one source: there is nothing to test."
        return TestResult(self.n_sources, ALPHA).reason

    @cached_property
    def omnibus(self) -> Friedman | None:
        """Whether the methods differ at all; None for fewer than two sources or three methods."""
        if self.n_sources < 2 or self.means.shape[1] < 3:
            return None
        return friedman(self.ranks.by_source, ALPHA)

    @cached_property
    def all_pairs(self) -> Nemenyi | None:
        """All methods against each other; None for fewer than two sources."""
        return nemenyi(self.ranks.by_source, ALPHA) if self.n_sources > 1 else None

    @cached_property
    def against_ours(self) -> WilcoxonHolm | None:
        """The study's own method against each other; None without it or a second source."""
        if self.n_sources < 2 or self.control is None:
            return None
        higher = higher_is_better(self.metric)
        return wilcoxon_holm(self.means, self.control, self.sources, ALPHA, higher)


def ranking(
    findings: Findings, metric: str, by_split: Mapping[tuple[str, str], pd.DataFrame]
) -> Ranking | NoRanking:
    """Rank the methods on the splits that all of them have.

    A method with scores on half of the units or fewer has no rank, and a unit without a split that
    all other methods have does not count; the notes name both.

    Parameters
    ----------
    findings : Findings
    metric : str
    by_split : mapping of (unit, metric) to DataFrame
        As `scores_by_split` gives them.

    Returns
    -------
    Ranking or NoRanking
    """
    with needed("ranks", "pandas", "experiment"):
        import pandas as pd
    tables = {
        unit.name: by_split[unit.name, metric]
        for unit in findings.units
        if (unit.name, metric) in by_split
    }
    if len(tables) < 2:
        return NoRanking("Ranks need at least two units with scores.")
    covered = {
        method: sum(method in table.columns for table in tables.values())
        for method in findings.methods
    }
    methods = [method for method in findings.methods if 2 * covered[method] > len(tables)]
    notes: tuple[str, ...] = ()
    if absent := [method for method in findings.methods if method not in methods]:
        notes += (f"Without a rank, for scores on half of the units or fewer: {joined(absent)}.",)
    if len(methods) < 2:
        return NoRanking("Ranks need two methods with scores on most units.", notes)
    common = {unit: table.reindex(columns=methods).dropna() for unit, table in tables.items()}
    if empty := [unit for unit, table in common.items() if table.empty]:
        notes += (f"Left out, for no split has all methods: {joined(empty)}.",)
    if fewer := [unit for unit, table in common.items() if 0 < len(table) < len(tables[unit])]:
        notes += (f"Ranked on the splits that all methods have: {joined(fewer)}.",)
    means = {unit: table.mean() for unit, table in common.items() if not table.empty}
    if len(means) < 2:
        return NoRanking("Ranks need at least two units with a split that all methods have.", notes)
    # Equal means of decimal scores differ in the last bits, and would not be seen as ties.
    rounded = pd.DataFrame(means, index=methods).T.round(_DIGITS)
    sources = {unit.name: unit.source for unit in findings.units}
    control = next((name for name in findings.ours[:1] if name in methods), None)
    return Ranking(metric, rounded, sources, control, notes)


def joined(names: Iterable[str]) -> str:
    """Return "a, b and c"."""
    parts = list(names)
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
