"""What the page says, section by section: its sentences, tables and figures.

`describe` returns what the template needs; the functions after it stand in the order of the page.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from setconv._version import __version__
from setconv.metrics.report import WHY_NOT_THE_LARGEST
from setconv.report import figures
from setconv.report.figures import SERIES, Line, Style, class_styles
from setconv.report.measure import (
    FIGURES,
    Answers,
    Bin,
    Curve,
    Evaluation,
    Explorer,
    Measured,
    precision_recall,
    roc,
)
from setconv.report.rows import ClassPortrait, Compared, LearnedMap, Mistake, Sources, Weight
from setconv.report.words import (
    MISSING,
    count,
    figure,
    listed,
    of_100,
    per_cent,
    quoted,
    readable,
    signed,
)

_HEADINGS = {
    "spec": "Spec",
    "sens": "Sens",
    "precision": "Precision",
    "f1": "F1",
    "g_mean": "G-mean",
    "auc": "AUC",
    "ap": "Average precision",
}
_FEW = 30  # rows of a class, below which the page warns
_SQUARE = (400, 340)


@dataclass(frozen=True)
class Findings:
    """All that was found out about a model, before it is put into words and pictures.

    In ``methods``, ``answers`` and ``measured`` the model comes first. ``bins`` is empty where
    probabilities cannot be judged, ``explorers`` where no class can. ``compared`` are the rows that
    ``portraits`` were found among.
    """

    model: Any
    evaluation: Evaluation
    methods: Sequence[str]
    answers: Sequence[Answers]
    measured: Sequence[Measured]
    repeats: int
    explorers: Sequence[Explorer]
    bins: Sequence[Bin]
    map: LearnedMap
    portraits: Sequence[ClassPortrait]
    compared: Compared
    mistakes: Sequence[Mistake]
    sources: Sources
    command: str | None
    title: str | None
    data_name: str | None


def describe(findings: Findings) -> dict[str, Any]:
    """Return what stands on the page; a part that the rows leave undefined is None."""
    evaluation, model, measured = findings.evaluation, findings.model, findings.measured[0]
    name = evaluation.names[evaluation.main]
    sources, explorers, compared = findings.sources, findings.explorers, findings.compared
    # The parameter may have been changed after the fit.
    objective = getattr(model, "objective_", getattr(model, "objective", None))
    of_judged = compared.places is not None
    n_comparable = evaluation.n_rows if of_judged else len(compared.source.codes)
    known = getattr(model, "report_", None)
    return {
        "version": __version__,
        "title": readable(findings.title, 120) if findings.title else f"How well “{name}” is found",
        "data_name": readable(findings.data_name, 120) if findings.data_name else None,
        "main": name,
        "names": evaluation.names,
        "binary": evaluation.binary,
        "out_of_fold": evaluation.out_of_fold,
        "weighted": evaluation.weighted,
        "n_rows": count(evaluation.n_rows),
        "n_given": count(len(evaluation.codes)),
        "objective": _objective_in_words(objective),
        "threshold_basis": getattr(model, "threshold_basis_", None),
        "why_not_the_largest": WHY_NOT_THE_LARGEST,
        "paper_rule": objective is None,
        "repeats": count(findings.repeats),
        "summary": _summary(evaluation, measured),
        "tiles": _tiles(evaluation, measured),
        "cautions": _cautions(evaluation, [] if known is None else known.remarks()),
        "data": _data(evaluation),
        "has_train_counts": evaluation.train_counts is not None,
        "has_prior": evaluation.prior is not None,
        "rows_are_numbered": sources.here.names is None,
        "training_is_numbered": sources.gave_training and sources.there.names is None,
        "headings": [_HEADINGS[one] for one in FIGURES],
        "figures": _figure_rows(evaluation, measured),
        "classes": _class_rows(evaluation, measured),
        "baselines": _baseline_rows(findings),
        "confusion": _confusion_rows(evaluation),
        "explorers": explorers,
        "start": _start_values(explorers[0]) if explorers else None,
        "curves": _curves(findings),
        "calibration": _calibration(evaluation, findings.bins) if findings.bins else None,
        "map": _map(evaluation, findings.map),
        "portraits": _portraits(evaluation, findings.portraits),
        "mistakes": _mistakes(findings.mistakes),
        "command": findings.command,
        "n_wrong": count((evaluation.truth != evaluation.predicted).sum()),
        "texts_shown": sources.here.texts is not None,
        "reads_texts": sources.reads_texts,
        "gave_training": sources.gave_training,
        "n_compared": count(len(compared.rows)),
        "compared_all": len(compared.rows) == n_comparable,
        "training": _training(getattr(model, "history_", None) or []),
    }


def _objective_in_words(objective: Any) -> str:
    """Return what the decision was set for."""
    if objective is None:
        return "the paper's rule, the largest score"
    if isinstance(objective, str):
        known = {
            "balanced": "“balanced”: errors in every class weigh the same, however rare it is",
            "f1": "“f1”: finding the class and not crying wolf, in balance",
            "mcc": "“mcc”: the correlation of truth and decision",
            "accuracy": "“accuracy”: as few errors as possible, whatever the class",
        }
        return known.get(objective.strip().lower(), quoted(readable(objective, 60)))
    if isinstance(objective, dict):
        pairs = [f"{name} {readable(value, 40)}" for name, value in objective.items()]
        return "a minimum: " + ", ".join(pairs)
    return "a matrix of costs, one for each kind of error"


def _summary(evaluation: Evaluation, measured: Measured) -> list[str]:
    """Say what to know first."""
    c = evaluation.main
    name = quoted(evaluation.names[c])
    of = measured.of_class(c)
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


def _tiles(evaluation: Evaluation, measured: Measured) -> list[dict[str, str]]:
    """Return the three numbers at the top."""
    c = evaluation.main
    texts = {
        "sens": f"of 100 that are “{evaluation.names[c]}” are found",
        "precision": "of 100 alarms are right",
        "spec": "of 100 others are left alone",
    }
    tiles = []
    for which, text in texts.items():
        number = FIGURES.index(which)
        low, high = measured.low[c, number], measured.high[c, number]
        value = of_100(measured.values[c, number])
        interval = "" if value == MISSING else f"95 %: {of_100(low)} to {of_100(high)}"
        tiles.append({"value": value, "text": text, "interval": interval})
    return tiles


def _cautions(evaluation: Evaluation, remarks: Sequence[str]) -> list[str]:
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


def _data(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the classes with their rows here and in training, the most frequent first."""
    styles = class_styles(evaluation)
    order = sorted(range(len(evaluation.labels)), key=lambda c: (-evaluation.counts[c], c))
    known = evaluation.train_counts
    return [
        {
            "name": evaluation.names[c],
            "colour": styles[c].colour,
            "count": count(evaluation.counts[c]),
            "share": per_cent(evaluation.counts[c] / evaluation.n_rows),
            "width": round(100 * float(evaluation.counts[c]) / evaluation.n_rows, 2),
            "train": None if known is None else count(known[c]),
            "train_share": None if known is None else per_cent(known[c] / max(known.sum(), 1)),
            "prior": None if evaluation.prior is None else per_cent(float(evaluation.prior[c])),
            "minority": c in evaluation.minority,
        }
        for c in order
    ]


def _figure_rows(evaluation: Evaluation, measured: Measured) -> list[dict[str, Any]]:
    """Return the figures of the main class with what they mean."""
    c = evaluation.main
    meanings = _meanings(evaluation, measured.of_class(c))
    return [
        {"heading": _HEADINGS[name], "meaning": meanings[name], **_cell(measured, c, number)}
        for number, name in enumerate(FIGURES)
    ]


def _meanings(evaluation: Evaluation, of: Mapping[str, float]) -> dict[str, str]:
    """Say what each figure of the main class means."""
    c = evaluation.main
    name = quoted(evaluation.names[c])
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


def _class_rows(evaluation: Evaluation, measured: Measured) -> list[dict[str, Any]]:
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


def _baseline_rows(findings: Findings) -> list[dict[str, Any]]:
    """Return the figures of the main class for all methods, and the gaps to the model."""
    if len(findings.methods) == 1:
        return []
    c = findings.evaluation.main
    return [
        {
            "name": readable(name, 40),
            "number": place,
            "cells": [
                {**_cell(measured, c, number), **_gap(measured, c, number)}
                for number in range(len(FIGURES))
            ],
        }
        for place, (name, measured) in enumerate(
            zip(findings.methods, findings.measured, strict=True)
        )
    ]


def _cell(measured: Measured, c: int, number: int) -> dict[str, Any]:
    """Return a figure with its interval, in words and as a bar."""
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


def _confusion_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
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


def _start_values(explorer: Explorer) -> dict[str, str]:
    """Return what the explorer shows before it is moved: the model's own decision."""
    here = vars(explorer)
    rows = _cells(here, explorer.own)
    tp, fp, fn, tn = _cells(explorer.weighted or here, explorer.own)
    spec = tn / (tn + fp) if explorer.negatives else np.nan
    sens = tp / (tp + fn) if explorer.positives else np.nan
    empty = 0.0 if explorer.positives else np.nan
    precision = tp / (tp + fp) if explorer.own else empty
    f1 = 2 * tp / (2 * tp + fp + fn) if explorer.positives else np.nan
    probability = ""
    if explorer.probability is not None and explorer.own:
        nearest = explorer.probability[explorer.own - 1]
        probability = f"; the alarm nearest to it has probability {100 * nearest:.1f} %"
    return {
        **{name: count(n) for name, n in zip(("tp", "fp", "fn", "tn"), rows, strict=True)},
        "spec": figure(spec),
        "sens": figure(sens),
        "precision": figure(precision),
        "f1": figure(f1),
        "g_mean": figure(float(np.sqrt(spec * sens))),
        "alarms": f"{1000 * (tp + fp) / (tp + fp + fn + tn):.1f}",
        "probability": probability,
    }


def _cells(of: Mapping[str, Any], place: int) -> tuple[float, float, float, float]:
    """Return right and wrong alarms, and rows without one: of the class, of the rest."""
    tp, fp = of["tp"][place], of["fp"][place]
    return tp, fp, of["positives"] - tp, of["negatives"] - fp


def _curves(findings: Findings) -> dict[str, Any] | None:
    """Return the ROC and precision-recall curves, with the model's own decision as a dot."""
    evaluation, main = findings.evaluation, findings.evaluation.main
    if evaluation.counts[main] in (0, evaluation.n_rows):
        return None
    by_roc, by_precision, legend = [], [], []
    for method, c, style, name in _curve_styles(findings):
        scores = findings.answers[method].scores
        if scores is None:
            continue
        ranked = evaluation.truth == c, scores[:, c], evaluation.weights
        of = findings.measured[method].of_class(c)
        by_roc.append(Line(roc(*ranked), style, (1 - of["spec"], of["sens"])))
        at = of["sens"], of["precision"]
        by_precision.append(Line(precision_recall(*ranked), style, at))
        legend.append({"name": name, "style": style})
    ends, share = np.array([0.0, 1.0]), evaluation.share(evaluation.truth == main)
    axes = ("False alarms among the others", "Found, of the class")
    first = figures.shares(by_roc, axes, Curve(ends, ends))
    axes = ("Found, of the class (recall)", "Alarms that are right")
    second = figures.shares(by_precision, axes, Curve(ends, np.array([share, share])))
    of = findings.measured[0].of_class(main)
    words = _roc_words(evaluation, of), _precision_recall_words(of, share)
    return {
        "roc": figures.draw("roc", f"ROC curve. {words[0]}", first, _SQUARE),
        "precision_recall": figures.draw(
            "pr", f"Precision-recall curve. {words[1]}", second, _SQUARE
        ),
        "roc_words": words[0],
        "precision_recall_words": words[1],
        "legend": legend,
    }


def _curve_styles(findings: Findings) -> list[tuple[int, int, Style, str]]:
    """Return what gets a curve: all methods of two classes, else the rare classes of the model.

    That is the number of a method, a class, how the curve is drawn, and what it is called.
    """
    evaluation = findings.evaluation
    if evaluation.binary:
        return [
            (number, evaluation.main, Style(SERIES[number], number), readable(name, 40))
            for number, name in enumerate(findings.methods[: len(SERIES)])
        ]
    styles = class_styles(evaluation)
    return [
        (0, c, styles[c], evaluation.names[c])
        for c in evaluation.minority[: len(SERIES)]
        if 0 < evaluation.counts[c] < evaluation.n_rows
    ]


def _roc_words(evaluation: Evaluation, of: Mapping[str, float]) -> str:
    """Say what the ROC curve of the main class shows."""
    beside = _beside(evaluation)
    return (
        f"{'With its decisions' if beside else 'At its own threshold'}, the dot, the model finds "
        f"{of_100(of['sens'])} of 100 rows that are {quoted(evaluation.names[evaluation.main])} "
        f"and raises a false alarm for {of_100(1 - of['spec'])} of 100 others. The area under the "
        f"curve is {figure(of['auc'])}; guessing, the dotted line, has 0.5.{beside}"
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


def _precision_recall_words(of: Mapping[str, float], share: float) -> str:
    """Say what the precision-recall curve of the main class shows."""
    return (
        f"To find more of the class one has to accept more false alarms. At the dot "
        f"{of_100(of['precision'])} of 100 alarms are right. Guessing would be right in "
        f"{of_100(share)} of 100, the dotted line, whatever it finds."
    )


def _calibration(evaluation: Evaluation, bins: Sequence[Bin]) -> dict[str, Any]:
    errors = evaluation.probabilities[:, evaluation.main] - (evaluation.truth == evaluation.main)
    brier = np.average(errors**2, weights=evaluation.weights)
    words = _calibration_words(evaluation, bins)
    alt = f"Reliability diagram. {words}"
    return {
        "figure": figures.draw("reliability", alt, figures.reliability(bins), _SQUARE),
        "words": words,
        "brier": figure(float(brier)),
        "bins": [
            {
                "range": f"{100 * one.low:.0f} to {100 * one.high:.0f} %",
                "rows": count(one.n_rows),
                "said": per_cent(one.said),
                "seen": per_cent(one.seen),
                "interval": f"{per_cent(one.seen_low)[:-2]} to {per_cent(one.seen_high)}",
            }
            for one in bins
        ],
    }


def _calibration_words(evaluation: Evaluation, bins: Sequence[Bin]) -> str:
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


def _map(evaluation: Evaluation, laid_out: LearnedMap) -> dict[str, Any]:
    styles = class_styles(evaluation)
    legend = [
        {"name": evaluation.names[c], "style": styles[c]}
        for c in evaluation.minority[: len(SERIES)]
    ]
    rest = [c for c, style in enumerate(styles) if style.colour == "rest"]
    if rest:
        name = evaluation.names[rest[0]] if len(rest) == 1 else f"{len(rest)} other classes"
        legend.append({"name": name, "style": styles[rest[0]]})
    words = _map_words(evaluation, laid_out)
    drawing = figures.learned_map(laid_out, styles)
    drawn = figures.draw("map", f"Map of the learned space. {words}", drawing, (480, 350))
    return {"figure": drawn, "words": words, "legend": legend}


def _map_words(evaluation: Evaluation, laid_out: LearnedMap) -> str:
    """Say how to read the map."""
    shown = len(laid_out.points)
    some = "" if shown == evaluation.n_rows else f" of a sample of {count(shown)}"
    whose = "the members that had left it out" if evaluation.out_of_fold else "the members"
    said = (
        f"Each point is a row{some}, placed by how similar it is to the representative of each "
        f"class: the cosine, averaged over {whose}. A star is a representative, the one point that "
        "stands for all training rows of its class."
    )
    if laid_out.explained is None:
        main = evaluation.main
        x, y = quoted(evaluation.names[main]), quoted(evaluation.names[1 - main])
        return (
            f"{said} To the right: more like {x}; upwards: more like {y}. A row of {x} should lie "
            "low and to the right."
        )
    return (
        f"{said} With {len(evaluation.names)} classes there are as many similarities; the two "
        f"directions drawn show {per_cent(laid_out.explained)} of their variance, and rows of one "
        "class should lie by its star."
    )


def _portraits(evaluation: Evaluation, portraits: Sequence[ClassPortrait]) -> list[dict[str, Any]]:
    styles = class_styles(evaluation)
    return [
        {
            "name": evaluation.names[one.class_number],
            "colour": styles[one.class_number].colour,
            "nearest": one.nearest,
            "looked_at": count(one.n_looked_at),
            "of_class": count(one.n_of_class),
            "weights": _signed_weights(one.weights),
            "explained": one.n_explained,
        }
        for one in portraits
    ]


def _mistakes(mistakes: Sequence[Mistake]) -> list[dict[str, Any]]:
    return [
        {
            **vars(one),
            "probability": per_cent(one.probability),
            "margin": f"{one.margin:.2f}",
            "features": _signed_weights(one.features),
        }
        for one in mistakes
    ]


def _signed_weights(weights: Sequence[Weight]) -> list[dict[str, Any]]:
    return [{**vars(one), "shown": signed(one.value)} for one in weights]


def _training(history: Sequence[dict[str, float]]) -> dict[str, Any] | None:
    usable = [one for one in history if math.isfinite(one.get("loss", math.nan))]
    if len(usable) < 2:
        return None
    words = _training_words(usable)
    drawing = figures.training(usable)
    return {"figure": figures.draw("training", f"Training curve. {words}", drawing), "words": words}


def _training_words(history: Sequence[dict[str, Any]]) -> str:
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
