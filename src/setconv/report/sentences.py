"""The sentences that stand next to the figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from setconv.report.bootstrap import FIGURES, Measured
from setconv.report.curves import Bin
from setconv.report.evaluation import Evaluation
from setconv.report.wording import count, figure, listed, of_100, per_cent, quoted

_FEW = 30  # rows of a class, below which the page warns


def summary(evaluation: Evaluation, measured: Measured) -> list[str]:
    """Say what to know first."""
    c = evaluation.main
    name = quoted(evaluation.names[c])
    of = dict(zip(FIGURES, measured.values[c].tolist(), strict=True))
    number = FIGURES.index("sens")
    if not math.isfinite(of["sens"]):
        return [
            f"None of the rows judged here is {name}, so how well the model finds that class "
            "cannot be said. Judge it on rows that have some."
        ]
    found = f"Of 100 rows that are {name}, the model finds {of_100(of['sens'])}"
    low, high = measured.low[c, number], measured.high[c, number]
    if low < high:
        found += f" (95 % interval: {of_100(low)} to {of_100(high)})"
    sentences = [found + "."]
    alarms = int((evaluation.predicted == c).sum())
    if not alarms:
        return [*sentences, "It raises no alarm at all on these rows."]
    share = alarms / evaluation.n_rows
    sentences.append(
        f"Of 100 alarms, {of_100(of['precision'])} are right; 1,000 rows give about "
        f"{1000 * share:.0f} alarms."
    )
    return sentences


def cautions(evaluation: Evaluation) -> list[str]:
    """Say what the rows cannot tell."""
    said = []
    if evaluation.out_of_fold:
        said.append(
            "These are the training rows: each was judged by the members that had left it out, so "
            "the figures are honest, though of networks that saw a little less than the model did."
        )
    missing = [quoted(n) for n, k in zip(evaluation.names, evaluation.counts, strict=True) if not k]
    if missing:
        said.append(
            f"No row is {listed(missing[:8])}: figures that need such rows are undefined and shown "
            "as n/a."
        )
    few = [
        f"{quoted(evaluation.names[c])} ({count(evaluation.counts[c])})"
        for c in range(len(evaluation.names))
        if 0 < evaluation.counts[c] < _FEW
    ]
    if few:
        said.append(
            f"Few rows of {listed(few[:8])}: its figures may be off by more than the intervals say."
        )
    return said


def calibration(evaluation: Evaluation, bins: Sequence[Bin]) -> str:
    """Say whether probabilities mean what they say."""
    c = evaluation.main
    expected = float(evaluation.probabilities[:, c].sum())
    seen = int(evaluation.counts[c])
    name = quoted(evaluation.names[c])
    sentence = (
        f"The probabilities add up to {expected:.1f} rows that are {name}; there are {count(seen)}."
    )
    usable = [one for one in bins if one.n_rows >= _FEW]
    if usable:
        worst = max(usable, key=lambda one: abs(one.said - one.seen))
        sentence += (
            f" Furthest off, among groups of at least {_FEW} rows: where the model said "
            f"{per_cent(worst.said)} on average, it was {per_cent(worst.seen)}."
        )
    return sentence


def roc(evaluation: Evaluation, measured: Measured) -> str:
    """Say what the ROC curve of the main class shows."""
    c = evaluation.main
    of = dict(zip(FIGURES, measured.values[c].tolist(), strict=True))
    return (
        f"At its own threshold, the dot, the model finds {of_100(of['sens'])} of 100 rows that are "
        f"{quoted(evaluation.names[c])} and raises a false alarm for {of_100(1 - of['spec'])} of "
        f"100 others. The area under the curve is {figure(of['auc'])}; guessing, the dotted line, "
        "has 0.5."
    )


def precision_recall(evaluation: Evaluation, measured: Measured) -> str:
    """Say what the precision-recall curve of the main class shows."""
    c = evaluation.main
    of = dict(zip(FIGURES, measured.values[c].tolist(), strict=True))
    share = evaluation.counts[c] / evaluation.n_rows
    return (
        f"To find more of the class one has to accept more false alarms. At the dot "
        f"{of_100(of['precision'])} of 100 alarms are right. Guessing would be right in "
        f"{of_100(share)} of 100, the dotted line, whatever it finds."
    )


def learned_map(explained: float, shown: int, evaluation: Evaluation) -> str:
    """Say how to read the map."""
    some = "" if shown == evaluation.n_rows else f" of a sample of {count(shown)}"
    said = (
        f"Each point is a row{some}, placed by its learned embedding: rows that the model takes "
        "for alike lie close. A star is the representative of a class, the one point that stands "
        "for all its training rows; the model compares every row with the stars."
    )
    if not evaluation.binary:
        said += (
            " Each class has a head of its own that tells it from the rest. In the heads of other "
            "classes a star counts as the rest, so it lies nearer to the middle than its rows."
        )
    return (
        f"{said} These two directions show {per_cent(explained)} of the variance; the rest is not "
        "visible here."
    )


def training(history: Sequence[dict[str, Any]]) -> str:
    """Say what the training curve shows."""
    first, last = history[0], history[-1]
    sentence = (
        f"The loss fell from {figure(first['loss'])} to {figure(last['loss'])} in "
        f"{count(last['step'])} steps."
        if last["loss"] < first["loss"]
        else f"The loss went from {figure(first['loss'])} to {figure(last['loss'])} in "
        f"{count(last['step'])} steps."
    )
    looks = [one["validation"] for one in history if "validation" in one]
    if looks:
        sentence += f" On validation rows (dashed, higher is better) the best was {max(looks):.3f}."
    return sentence + " A curve that is still falling at the end would ask for more steps."
