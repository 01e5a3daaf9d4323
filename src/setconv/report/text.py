"""The tables of the page: figures of each class, beside the baselines; who is taken for whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from setconv.errors import DataError
from setconv.report.measure import FIGURES, Answers, Bin, Evaluation, Measured, encode
from setconv.report.words import count, figure, listed, of_100, per_cent, quoted, readable, signed

# ---------- report.sentences

_FEW = 30  # rows of a class, below which the page warns


def summary(evaluation: Evaluation, measured: Measured) -> list[str]:
    """Say what to know first."""
    c = evaluation.main
    name = quoted(evaluation.names[c])
    of = dict(zip(FIGURES, measured.values[c].tolist(), strict=True))
    if not math.isfinite(of["sens"]):
        return [
            f"None of the rows judged here is {name}, so how well the model finds that class "
            "cannot be said. Judge it on rows that have some."
        ]
    number = FIGURES.index("sens")
    low, high = (of_100(bound[c, number]) for bound in (measured.low, measured.high))
    sentences = [
        f"Of 100 rows that are {name}, the model finds {of_100(of['sens'])} (95 % interval: {low} "
        f"to {high})."
    ]
    alarms = evaluation.predicted == c
    if not alarms.any():
        return [*sentences, "It raises no alarm at all on these rows."]
    if math.isfinite(of["precision"]):
        sentences.append(
            f"Of 100 alarms, {of_100(of['precision'])} are right; 1,000 rows give about "
            f"{1000 * evaluation.share(alarms):.0f} alarms."
        )
    return sentences


def cautions(evaluation: Evaluation, remarks: Sequence[str]) -> list[str]:
    """Say what the rows cannot tell, after what the model's own report remarks on them."""
    said = []
    if evaluation.out_of_fold:
        said.append(
            "These are training rows: each was judged by the members that had left it out, which "
            "saw fewer rows than the model."
        )
        said += remarks
    elif evaluation.prior is not None:
        shares = [
            f"{quoted(name)} {share:.4g}"
            for name, share in zip(evaluation.names, evaluation.prior, strict=True)
        ]
        said.append(
            f"The rows are weighted to the prevalence that was set ({', '.join(shares)}); counts "
            "of rows are not."
        )
    elif evaluation.weighted:
        said.append("Rows count by the weights that were given; counts of rows do not.")
    missing = [c for c in range(len(evaluation.names)) if not evaluation.counts[c]]
    if missing:
        names = listed([quoted(evaluation.names[c]) for c in missing[:8]])
        said.append(
            f"No row is {names}: figures that need such rows are undefined and shown as n/a."
        )
        if evaluation.own_prevalence:
            said.append(
                "So the figures are for the prevalence of these rows, not for the one that was set."
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
    name = quoted(evaluation.names[c])
    if evaluation.weighted:
        said = float(np.average(evaluation.probabilities[:, c], weights=evaluation.weights))
        sentence = (
            f"On average, by weight, the model states {per_cent(said)} for {name}; it is "
            f"{per_cent(evaluation.share(evaluation.truth == c))}."
        )
    else:
        sentence = (
            f"The probabilities add up to {evaluation.probabilities[:, c].sum():.1f} rows that "
            f"are {name}; there are {count(evaluation.counts[c])}."
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
    beside = _beside(evaluation)
    return (
        f"{'With its decisions' if beside else 'At its own threshold'}, the dot, the model finds "
        f"{of_100(of['sens'])} of 100 rows that are {quoted(evaluation.names[c])} and raises a "
        f"false alarm for {of_100(1 - of['spec'])} of 100 others. The area under the curve is "
        f"{figure(of['auc'])}; guessing, the dotted line, has 0.5.{beside}"
    )


def precision_recall(evaluation: Evaluation, measured: Measured) -> str:
    """Say what the precision-recall curve of the main class shows."""
    c = evaluation.main
    of = dict(zip(FIGURES, measured.values[c].tolist(), strict=True))
    share = evaluation.share(evaluation.truth == c)
    return (
        f"To find more of the class one has to accept more false alarms. At the dot "
        f"{of_100(of['precision'])} of 100 alarms are right. Guessing would be right in "
        f"{of_100(share)} of 100, the dotted line, whatever it finds."
    )


def _beside(evaluation: Evaluation) -> str:
    """Say why decisions need not be a point of the curve of a score, where that is so."""
    reasons = []
    if not evaluation.binary:
        reasons.append("the model compares the scores of the classes with one another")
    if evaluation.out_of_fold:
        reasons.append("the rows of each fold were decided by the threshold that the others gave")
    if not reasons:
        return ""
    said = " and ".join(reasons)
    return f" {said[0].upper()}{said[1:]}, so the dot may lie beside the curve."


def learned_map(explained: float | None, shown: int, evaluation: Evaluation) -> str:
    """Say how to read the map; ``explained`` is of more than two classes."""
    some = "" if shown == evaluation.n_rows else f" of a sample of {count(shown)}"
    whose = "the members that had left it out" if evaluation.out_of_fold else "the members"
    said = (
        f"Each point is a row{some}, placed by how similar it is to the representative of each "
        f"class: the cosine, averaged over {whose}. A star is a representative, the one point that "
        "stands for all training rows of its class."
    )
    if explained is None:
        main = evaluation.main
        x, y = quoted(evaluation.names[main]), quoted(evaluation.names[1 - main])
        return (
            f"{said} To the right: more like {x}; upwards: more like {y}. A row of {x} should lie "
            "low and to the right."
        )
    return (
        f"{said} With {len(evaluation.names)} classes there are as many similarities; the two "
        f"directions drawn show {per_cent(explained)} of their variance, and rows of one class "
        "should lie by its star."
    )


def training(history: Sequence[dict[str, Any]]) -> str:
    """Say what the training curve shows."""
    first, last = history[0], history[-1]
    sentence = (
        f"The loss {'fell' if last['loss'] < first['loss'] else 'went'} from "
        f"{figure(first['loss'])} to {figure(last['loss'])} in {count(last['step'])} steps."
    )
    looks = [one["validation"] for one in history if "validation" in one]
    if looks:
        sentence += f" On validation rows (dashed, higher is better) the best was {max(looks):.3f}."
    return sentence + " A curve that is still falling at the end would ask for more steps."


# ---------- report.tables

HEADINGS = {
    "spec": "Spec",
    "sens": "Sens",
    "precision": "Precision",
    "f1": "F1",
    "g_mean": "G-mean",
    "auc": "AUC",
    "ap": "Average precision",
}


def baseline_answers(baselines: Mapping[str, Any], evaluation: Evaluation) -> dict[str, Answers]:
    """Check the baselines: predictions and scores on the same rows."""
    found = {}
    for name, given in baselines.items():
        try:
            predictions, scores = given
        except (TypeError, ValueError) as error:
            raise DataError(
                f"baselines[{name!r}]: pass a pair, (predictions, scores); scores may be None."
            ) from error
        predicted = encode(predictions, evaluation.labels, f"baselines[{name!r}]")
        n_rows = len(evaluation.codes)
        if len(predicted) != n_rows:
            raise DataError(
                f"baselines[{name!r}] has {len(predicted)} predictions but X has {n_rows} rows: "
                "predict the same rows."
            )
        columns = _columns(scores, name, evaluation)
        judged = evaluation.rows
        found[name] = Answers(predicted[judged], None if columns is None else columns[judged])
    return found


def _columns(scores: Any, name: str, evaluation: Evaluation) -> Any:
    if scores is None:
        return None
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim == 1 and evaluation.binary:
        values = np.column_stack([-values, values])
    shape = (len(evaluation.codes), len(evaluation.labels))
    if values.shape != shape or not np.isfinite(values).all():
        raise DataError(
            f"baselines[{name!r}]: the scores have shape {np.shape(scores)}; pass finite numbers "
            f"of shape {shape}{' or (n,), of the second class' if evaluation.binary else ''}."
        )
    return values


def figure_rows(evaluation: Evaluation, c: int, measured: Measured) -> list[dict[str, Any]]:
    """Return the figures of one class with what they mean."""
    meanings = _meanings(evaluation, c, measured.values[c])
    return [
        {"heading": HEADINGS[name], "meaning": meanings[name], **_cell(measured, c, number)}
        for number, name in enumerate(FIGURES)
    ]


def class_rows(evaluation: Evaluation, measured: Measured) -> list[dict[str, Any]]:
    """Return the figures of all classes, the rarest first."""
    others = [c for c in range(len(evaluation.labels)) if c not in evaluation.minority]
    return [
        {
            "name": evaluation.names[c],
            "rows": count(evaluation.counts[c]),
            "cells": [_cell(measured, c, number) for number in range(len(FIGURES))],
        }
        for c in (*evaluation.minority, *others)
    ]


def baseline_rows(
    names: Sequence[str], methods: Sequence[Measured], c: int
) -> list[dict[str, Any]]:
    """Return the figures of one class for all methods, and the gaps to the first."""
    return [
        {
            "name": readable(name, 40),
            "number": place,
            "cells": [
                {**_cell(measured, c, number), **_gap(measured, c, number)}
                for number in range(len(FIGURES))
            ],
        }
        for place, (name, measured) in enumerate(zip(names, methods, strict=True))
    ]


def confusion_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return one line a true class: its rows by what they are taken for, and shares by weight."""
    size = len(evaluation.labels)
    cell = evaluation.truth * size + evaluation.predicted
    counts, matrix = (
        np.bincount(cell, weights=weights, minlength=size * size).reshape(size, size)
        for weights in (None, evaluation.weights)
    )
    lines = []
    for c in range(size):
        total = float(matrix[c].sum())
        lines.append(
            {
                "name": evaluation.names[c],
                "cells": [
                    {
                        "count": count(counts[c, p]),
                        "share": per_cent(matrix[c, p] / total) if total else "",
                        "strength": round(float(matrix[c, p]) / total, 3) if total else 0,
                        "right": c == p,
                    }
                    for p in range(size)
                ],
            }
        )
    return lines


def _cell(measured: Measured, c: int, number: int) -> dict[str, Any]:
    value, low, high = (part[c, number] for part in (measured.values, measured.low, measured.high))
    defined = math.isfinite(value)
    return {
        "value": figure(value),
        "low": figure(low),
        "high": figure(high),
        "defined": defined,
        "at": round(100 * float(value), 2) if defined else 0,
        "from": round(100 * float(low), 2) if defined else 0,
        "wide": round(100 * float(high - low), 2) if defined else 0,
    }


def _gap(measured: Measured, c: int, number: int) -> dict[str, Any]:
    """Say whether the model is better: only where the interval of the gap excludes 0."""
    low, high = measured.gap_low[c, number], measured.gap_high[c, number]
    verdict = "better" if low > 0 else "worse" if high < 0 else "even"
    return {
        "gap": signed(measured.gap[c, number]),
        "gap_low": signed(low),
        "gap_high": signed(high),
        "verdict": verdict if math.isfinite(low) else "",
    }


def _meanings(evaluation: Evaluation, c: int, values: Any) -> dict[str, str]:
    name = quoted(evaluation.names[c])
    of = dict(zip(FIGURES, values.tolist(), strict=True))
    share = evaluation.share(evaluation.truth == c)
    return {
        "spec": f"Specificity: of 100 rows that are not {name}, {of_100(of['spec'])} are left "
        "alone.",
        "sens": f"Sensitivity, or recall: of 100 rows that are {name}, {of_100(of['sens'])} are "
        "found.",
        "precision": f"Of 100 alarms, {of_100(of['precision'])} are right."
        if (evaluation.predicted == c).any()
        else "There is no alarm; that counts as 0.",
        "f1": "Precision and sensitivity in one number (harmonic mean); 1 is perfect.",
        "g_mean": "Specificity and sensitivity in one number (geometric mean): low if either is.",
        "auc": f"Of 100 pairs of a {name} row and another one, the {name} row scores higher in "
        f"{of_100(of['auc'])}. Guessing gives 50.",
        "ap": f"Precision, averaged over all thresholds. Guessing gives {figure(share)}.",
    }
