"""What a study answers: tables, figures and a page, from the cells that are finished."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from setconv.errors import StudyError
    from setconv.experiment.cells import method_names
    from setconv.experiment.page import write_report
    from setconv.experiment.results import Findings, Unit, findings, run_study
    from setconv.experiment.runner import Tally, run
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

# ---------- experiment.__init__

# A worker starts in half the time without what only tables and tests need.
_HOMES = {
    "Cell": "store",
    "DataSpec": "study",
    "TestResult": "statistics",
    "Findings": "results",
    "Friedman": "statistics",
    "MINIMUM_SOURCES": "statistics",
    "MethodSpec": "study",
    "Nemenyi": "statistics",
    "Outcome": "store",
    "Probe": "study",
    "Ranks": "statistics",
    "SearchRule": "study",
    "SplitRule": "study",
    "Store": "store",
    "Study": "study",
    "StudyError": "errors",
    "Suite": "study",
    "Tally": "runner",
    "Unit": "results",
    "WilcoxonHolm": "statistics",
    "average_ranks": "statistics",
    "built_in_studies": "study",
    "corrected_t_test": "statistics",
    "critical_difference": "statistics",
    "findings": "results",
    "friedman": "statistics",
    "method_names": "cells",
    "nemenyi": "statistics",
    "read_study": "study",
    "read_suite": "study",
    "run": "runner",
    "run_study": "results",
    "source_scores": "statistics",
    "wilcoxon_holm": "statistics",
    "write_report": "page",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(
            import_module(
                "setconv.errors" if name == "StudyError" else f"setconv.experiment.{_HOMES[name]}"
            ),
            name,
        )
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
