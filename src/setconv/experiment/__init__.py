"""Studies: every method on every split of every data set, computed once and reported.

`read_study` reads a `Study` from a file or by the name of a built-in one, `run_study` computes its
cells in worker processes and keeps them in a `Store`, `findings` collects what is finished and
`write_report` writes it as tables, figures and a page. `run` computes cells of any other work.
The tests behind the tables stand alone too: ranks, Friedman's, Nemenyi's and Wilcoxon's tests over
independent sources, and the corrected t test over the splits of one data set. All of it needs
``pip install 'setconv[experiment]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from setconv.errors import StudyError
from setconv.experiment.runner import Tally, run
from setconv.experiment.store import Cell, Outcome, Store
from setconv.experiment.study import (
    DataSpec,
    MethodSpec,
    Probe,
    SearchRule,
    SplitRule,
    Study,
    Suite,
    built_in_studies,
    read_study,
    read_suite,
)

if TYPE_CHECKING:
    from setconv.experiment.cells import method_names
    from setconv.experiment.page import write_report
    from setconv.experiment.results import Findings, Unit, findings, run_study
    from setconv.experiment.statistics import (
        MINIMUM_SOURCES,
        Friedman,
        Nemenyi,
        Ranks,
        TestResult,
        WilcoxonHolm,
        average_ranks,
        corrected_t_test,
        critical_difference,
        friedman,
        nemenyi,
        source_scores,
        wilcoxon_holm,
    )

# A worker starts in half the time without what only tables and tests need.
_LATER = {
    "cells": "method_names",
    "page": "write_report",
    "results": "Findings Unit findings run_study",
    "statistics": "MINIMUM_SOURCES Friedman Nemenyi Ranks TestResult WilcoxonHolm average_ranks "
    "corrected_t_test critical_difference friedman nemenyi source_scores wilcoxon_holm",
}


def __getattr__(name: str) -> Any:
    for module, names in _LATER.items():
        if name in names.split():
            return getattr(import_module(f"setconv.experiment.{module}"), name)
    raise AttributeError(f"module 'setconv.experiment' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "MINIMUM_SOURCES",
    "Cell",
    "DataSpec",
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
    "TestResult",
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
