"""The five metrics of the paper and their friends.

Everything is counted one-vs-rest, as in Table 3 of the paper: class ``c`` against all else.

================  ===============  =================
..                predicted ``c``  predicted other
================  ===============  =================
truth is ``c``    TP               FN
truth is other    FP               TN
================  ===============  =================

:func:`report` gives everything at once; the small functions give one figure each. A small
function gives the figure that :class:`Report` has under the same name: ``g_mean``,
``balanced_accuracy``, ``mcc`` and ``brier`` are over all classes unless ``positive`` names one,
``specificity``, ``sensitivity``, ``f1``, ``auc`` and ``average_precision`` are of one class, by
default the rarest. ``f1`` is always the F1 of a class and ``macro_f1`` always the mean over
classes: the paper's Table 4 has the first, the authors' code the second.

Conventions, the same everywhere:

- 1-D scores and probabilities speak of ``classes[1]``, like ``decision_function``, whichever
  class is ``positive``; two-dimensional ones have a column a class, in the order of ``classes``.
- What the rows cannot say is ``nan``: figures that need rows of a class when ``y_true`` has none,
  and any mean over classes of which one is ``nan``.
- What a model does badly is 0: the precision and F1 of a class with rows that is never predicted
  (scikit-learn's ``zero_division=0``), and the MCC of a constant prediction.
"""

from __future__ import annotations

from setconv.metrics.report import HEADINGS, ClassMetrics, Report, minimum_of_five, report
from setconv.metrics.scores import (
    auc,
    average_precision,
    balanced_accuracy,
    brier,
    f1,
    g_mean,
    macro_f1,
    mcc,
    scorers,
    sensitivity,
    specificity,
)

__all__ = [
    "HEADINGS",
    "ClassMetrics",
    "Report",
    "auc",
    "average_precision",
    "balanced_accuracy",
    "brier",
    "f1",
    "g_mean",
    "macro_f1",
    "mcc",
    "minimum_of_five",
    "report",
    "scorers",
    "sensitivity",
    "specificity",
]
