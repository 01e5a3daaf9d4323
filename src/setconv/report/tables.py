"""The tables of the page: figures of each class, beside the baselines; who is taken for whom."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from setconv.errors import DataError
from setconv.report.bootstrap import FIGURES, Answers, Measured
from setconv.report.evaluation import Evaluation, encode
from setconv.report.wording import count, figure, of_100, per_cent, quoted, readable, signed

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
