"""The figures of the page, with their legends and what is said about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from setconv.report import curves, drawing, sentences
from setconv.report.bootstrap import FIGURES
from setconv.report.curves import Curve
from setconv.report.drawing import Line, Style, class_styles, method_style
from setconv.report.evaluation import Floats
from setconv.report.findings import Findings
from setconv.report.svg import SERIES, draw
from setconv.report.wording import readable

_SQUARE = (400, 340)


def illustrate(findings: Findings) -> dict[str, Any]:
    """Return the figures; one that the rows leave undefined is None."""
    return {
        "curves": _curves(findings),
        "reliability": _reliability(findings),
        "map": _map(findings),
        "training": _training(findings),
    }


def _curves(findings: Findings) -> dict[str, Any] | None:
    evaluation, main = findings.evaluation, findings.evaluation.main
    if evaluation.counts[main] in (0, evaluation.n_rows):
        return None
    shown, measured = _ranked(findings), findings.measured[0]
    truth, weights = evaluation.truth, evaluation.weights
    roc, precision = [], []
    for c, scores, style, (spec, sens, right), _ in shown:
        of_class = truth == c, scores, weights
        roc.append(Line(curves.roc(*of_class), style, (1 - spec, sens)))
        precision.append(Line(curves.precision_recall(*of_class), style, (sens, right)))
    words = sentences.roc(evaluation, measured), sentences.precision_recall(evaluation, measured)
    ends, share = np.array([0.0, 1.0]), evaluation.share(truth == main)
    axes = ("False alarms among the others", "Found, of the class")
    first = drawing.shares(roc, axes, Curve(ends, ends))
    axes = ("Found, of the class (recall)", "Alarms that are right")
    second = drawing.shares(precision, axes, Curve(ends, np.array([share, share])))
    return {
        "roc": draw("roc", f"ROC curve. {words[0]}", first, _SQUARE),
        "precision_recall": draw("pr", f"Precision-recall curve. {words[1]}", second, _SQUARE),
        "roc_words": words[0],
        "precision_recall_words": words[1],
        "legend": [{"name": name, "style": style} for _, _, style, _, name in shown],
    }


_Ranked = tuple[int, Floats, Style, tuple[float, float, float], str]


def _ranked(findings: Findings) -> list[_Ranked]:
    """Return what gets a curve: all methods of two classes, else the rare classes of the model."""
    evaluation, main = findings.evaluation, findings.evaluation.main
    found: list[_Ranked] = []
    if evaluation.binary:
        for number, name in enumerate(findings.methods[: len(SERIES)]):
            scores = findings.answers[number].scores
            if scores is not None:
                point = _point(findings, number, main)
                found.append(
                    (main, scores[:, main], method_style(number), point, readable(name, 40))
                )
        return found
    styles = class_styles(evaluation)
    for c in evaluation.minority[: len(SERIES)]:
        if 0 < evaluation.counts[c] < evaluation.n_rows:
            point = _point(findings, 0, c)
            found.append((c, evaluation.scores[:, c], styles[c], point, evaluation.names[c]))
    return found


def _point(findings: Findings, method: int, c: int) -> tuple[float, float, float]:
    """Return specificity, sensitivity and precision of a method's own decision."""
    of = dict(zip(FIGURES, findings.measured[method].values[c].tolist(), strict=True))
    return of["spec"], of["sens"], of["precision"]


def _reliability(findings: Findings) -> Any:
    if not findings.bins:
        return None
    alt = f"Reliability diagram. {sentences.calibration(findings.evaluation, findings.bins)}"
    return draw("reliability", alt, drawing.reliability(findings.bins), _SQUARE)


def _map(findings: Findings) -> dict[str, Any]:
    evaluation, laid_out = findings.evaluation, findings.map
    styles = class_styles(evaluation)
    words = sentences.learned_map(laid_out.explained, len(laid_out.points), evaluation)
    coloured = [
        {"name": evaluation.names[c], "style": styles[c]}
        for c in evaluation.minority[: len(SERIES)]
    ]
    rest = [c for c, style in enumerate(styles) if style.colour == "rest"]
    if rest:
        name = evaluation.names[rest[0]] if len(rest) == 1 else f"{len(rest)} other classes"
        coloured.append({"name": name, "style": styles[rest[0]]})
    figure = draw(
        "map",
        f"Map of the learned space. {words}",
        drawing.learned_map(laid_out, styles),
        (480, 350),
    )
    return {"figure": figure, "words": words, "legend": coloured}


def _training(findings: Findings) -> dict[str, Any] | None:
    history: Sequence[dict[str, float]] = getattr(findings.model, "history_", None) or []
    usable = [one for one in history if math.isfinite(one.get("loss", math.nan))]
    if len(usable) < 2:
        return None
    words = sentences.training(usable)
    return {
        "figure": draw("training", f"Training curve. {words}", drawing.training(usable)),
        "words": words,
    }
