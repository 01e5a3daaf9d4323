"""Studies: many data sets, methods and splits, and what may be concluded from them.

A `Study` says what to compare. `run_study` computes its cells, one method on one split of one data
set each, in worker processes, and goes on after a kill; `findings` collects what is finished::

    study = read_study("stand-ins-comparison")  # or a YAML file, or Study(...)
    run_study(study, "results/", data="data/")
    found = findings(study, "results/")
    write_report(found, "results/report")  # tables, figures and a page

The layer below can be used alone. `run` computes any cells and keeps them in a `Store`::

    cells = [Cell(d, m, s) for d in datasets for m in methods for s in range(5)]
    with Store("study.sqlite") as store:
        run(cells, work, store)  # work(cell) returns {"f1": ..., "auc": ...}
        results = store.results().query("metric == 'auc'")

    table = results.pivot_table(index="dataset", columns="method", values="value")
    average, by_source = average_ranks(table, sources)
    friedman(by_source).significant
    nemenyi(by_source).critical_difference
    wilcoxon_holm(table, "setconv", sources).comparisons

Data sets that come from the same source are no independent evidence, so everything is counted over
sources. With fewer than 10 of them p-values are given but nothing is ever significant
(`Evidence`). Splits of one data set share rows, so they are compared by `corrected_t_test`. Needs
``pip install 'setconv[experiment]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setconv.experiment.answers.findings import Findings, Unit
    from setconv.experiment.answers.reporting import write_report
    from setconv.experiment.errors import StudyError
    from setconv.experiment.protocol.methods import method_names
    from setconv.experiment.protocol.reading import Suite, built_in_studies, read_study, read_suite
    from setconv.experiment.protocol.study import (
        DataSpec,
        MethodSpec,
        Probe,
        SearchRule,
        SplitRule,
        Study,
    )
    from setconv.experiment.running.cells import Cell, Outcome
    from setconv.experiment.running.runner import Tally, run
    from setconv.experiment.running.store import Store
    from setconv.experiment.statistics.evidence import MINIMUM_SOURCES, Evidence
    from setconv.experiment.statistics.omnibus import Friedman, friedman
    from setconv.experiment.statistics.pairwise import WilcoxonHolm, wilcoxon_holm
    from setconv.experiment.statistics.posthoc import Nemenyi, critical_difference, nemenyi
    from setconv.experiment.statistics.ranks import Ranks, average_ranks
    from setconv.experiment.statistics.resampled import corrected_t_test
    from setconv.experiment.statistics.scores import source_scores
    from setconv.experiment.studying import findings, run_study

__all__ = [
    "MINIMUM_SOURCES",
    "Cell",
    "DataSpec",
    "Evidence",
    "Findings",
    "Friedman",
    "MethodSpec",
    "Nemenyi",
    "Outcome",
    "Probe",
    "Ranks",
    "SearchRule",
    "SplitRule",
    "Store",
    "Study",
    "StudyError",
    "Suite",
    "Tally",
    "Unit",
    "WilcoxonHolm",
    "average_ranks",
    "built_in_studies",
    "corrected_t_test",
    "critical_difference",
    "findings",
    "friedman",
    "method_names",
    "nemenyi",
    "read_study",
    "read_suite",
    "run",
    "run_study",
    "source_scores",
    "wilcoxon_holm",
    "write_report",
]

# A worker starts in half the time without what only tables and tests need.
_HOMES = {
    "Cell": "running.cells",
    "DataSpec": "protocol.study",
    "Evidence": "statistics.evidence",
    "Findings": "answers.findings",
    "Friedman": "statistics.omnibus",
    "MINIMUM_SOURCES": "statistics.evidence",
    "MethodSpec": "protocol.study",
    "Nemenyi": "statistics.posthoc",
    "Outcome": "running.cells",
    "Probe": "protocol.study",
    "Ranks": "statistics.ranks",
    "SearchRule": "protocol.study",
    "SplitRule": "protocol.study",
    "Store": "running.store",
    "Study": "protocol.study",
    "StudyError": "errors",
    "Suite": "protocol.reading",
    "Tally": "running.runner",
    "Unit": "answers.findings",
    "WilcoxonHolm": "statistics.pairwise",
    "average_ranks": "statistics.ranks",
    "built_in_studies": "protocol.reading",
    "corrected_t_test": "statistics.resampled",
    "critical_difference": "statistics.posthoc",
    "findings": "studying",
    "friedman": "statistics.omnibus",
    "method_names": "protocol.methods",
    "nemenyi": "statistics.posthoc",
    "read_study": "protocol.reading",
    "read_suite": "protocol.reading",
    "run": "running.runner",
    "run_study": "studying",
    "source_scores": "statistics.scores",
    "wilcoxon_holm": "statistics.pairwise",
    "write_report": "answers.reporting",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"setconv.experiment.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'setconv.experiment' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
