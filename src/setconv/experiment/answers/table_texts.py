"""What is said above and below a table of scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.significance import ALPHA, BETTER, WORSE
from setconv.experiment.answers.table_entries import Entry
from setconv.experiment.answers.table_sheet import NO_FIGURE, counted, number

__all__ = ["LOWER", "caption", "notes"]

LOWER = "↓"


def caption(findings: Findings, entries: Sequence[Entry], lower: bool) -> str:
    """Say what the figures are, which test was made, and what it is no evidence of."""
    parts = [f"Mean ± standard deviation over {_splits(entries)}; the best mean is bold."]
    if lower:
        parts.append(f"{LOWER} lower is better.")
    if any(not math.isnan(entry.p_value) for entry in entries):
        others = sum(method != findings.ours[0] for method in findings.methods)
        parts.append(
            f"{WORSE} significantly worse, {BETTER} better than {findings.ours[0]}: corrected "
            "resampled t test (Nadeau and Bengio, 2003) over the splits of a unit, "
            f"p ≤ {number(ALPHA, 2)} after Holm's correction for up to "
            f"{counted(others, 'method')}. Units may share rows or a source: they are not "
            "independent evidence, and marks must not be counted over them."
        )
    elif findings.ours:
        parts.append(
            f"Nothing is tested: {findings.ours[0]} shares fewer than two splits with any other "
            "method."
        )
    return " ".join(parts)


def notes(entries: Sequence[Entry]) -> tuple[str, ...]:
    """Explain what stands in place of a figure or beside it, with how often it does."""
    kinds = Counter(entry.kind for entry in entries)
    partial = sum(entry.partial for entry in entries)
    found = {
        f"failed ({kinds['failed']}): no split of the method ended well.": kinds["failed"],
        f"{NO_FIGURE} ({kinds['missing']}): not computed yet.": kinds["missing"],
        f"n/a ({kinds['undefined']}): the metric is not defined on any split.": kinds["undefined"],
        "A number in brackets is the number of splits behind a mean that has fewer than others "
        f"({partial}): the rest failed, is not computed yet or has no defined value. Such a mean "
        "is never bold.": partial,
        "(published): reported by others, not measured here; never bold and not tested.": kinds[
            "published"
        ],
    }
    return tuple(text for text, count in found.items() if count)


def _splits(entries: Sequence[Entry]) -> str:
    counts = {entry.n_splits for entry in entries if entry.kind == "measured" and not entry.partial}
    if not counts:
        return "splits"
    least, most = min(counts), max(counts)
    return counted(most, "split") if least == most else f"{least} to {most} splits"
