"""Comparison studies: many data sets, methods and splits, and what may be concluded from them.

A study is made of cells, one method on one split of one data set each. `run` computes them in
worker processes and keeps them in a `Store`, one file, from which an interrupted study goes on::

    cells = [Cell(d, m, s) for d in datasets for m in methods for s in range(5)]
    with Store("study.sqlite", {"splits": 5}) as store:
        run(cells, work, store)  # work(cell) returns {"f1": ..., "auc": ...}
        table = score_table(store.results(), "auc")

    average, by_source = average_ranks(table, sources)
    bootstrap_intervals(by_source)
    friedman(by_source).significant
    comparison = nemenyi(by_source)
    diagram(comparison, "auc.svg", highlight="setconv")
    wilcoxon_holm(table, "setconv", sources).comparisons

Data sets that come from the same source are no independent evidence, so everything is counted over
sources. With fewer than 10 of them p-values are given but nothing is ever significant
(`Evidence`). The statistics need ``pip install 'setconv[experiment]'``.
"""

from __future__ import annotations

from setconv.experiment.cells import Cell, Outcome
from setconv.experiment.drawing import diagram
from setconv.experiment.errors import StudyError
from setconv.experiment.evidence import MINIMUM_SOURCES, Evidence
from setconv.experiment.omnibus import Friedman, friedman
from setconv.experiment.pairwise import WilcoxonHolm, wilcoxon_holm
from setconv.experiment.posthoc import Nemenyi, critical_difference, nemenyi
from setconv.experiment.ranks import Ranks, average_ranks, bootstrap_intervals
from setconv.experiment.runner import Tally, run
from setconv.experiment.scores import score_table, source_scores
from setconv.experiment.store import Store

__all__ = [
    "MINIMUM_SOURCES",
    "Cell",
    "Evidence",
    "Friedman",
    "Nemenyi",
    "Outcome",
    "Ranks",
    "Store",
    "StudyError",
    "Tally",
    "WilcoxonHolm",
    "average_ranks",
    "bootstrap_intervals",
    "critical_difference",
    "diagram",
    "friedman",
    "nemenyi",
    "run",
    "score_table",
    "source_scores",
    "wilcoxon_holm",
]
