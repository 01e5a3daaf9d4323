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
from typing import Any

from setconv.messages import needed

# Imported at first use: a worker starts in half the time without what only tables and tests need.
_HOMES = {
    "cells": "method_names",
    "page": "write_report",
    "results": "Findings findings run_study",
    "runner": "Tally run",
    "statistics": "Friedman Nemenyi Ranks WilcoxonHolm average_ranks corrected_t_test friedman "
    "nemenyi wilcoxon_holm",
    "store": "Cell Outcome Store",
    "study": "DataSpec MethodSpec Probe SearchRule SplitRule Study Sweep built_in_studies "
    "read_studies read_study",
}
__all__ = sorted(" ".join(_HOMES.values()).split())


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names.split():
            with needed(f"setconv.experiment.{name}", "pandas, seaborn and others", "experiment"):
                return getattr(import_module(f"setconv.experiment.{module}"), name)
    raise AttributeError(f"module 'setconv.experiment' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
