"""What the page says, section by section, as plain data for the template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from setconv._version import __version__
from setconv.metrics.report import WHY_NOT_THE_LARGEST
from setconv.report import sentences
from setconv.report.bootstrap import FIGURES
from setconv.report.drawing import class_styles
from setconv.report.explorer import Explorer
from setconv.report.findings import Findings
from setconv.report.tables import (
    HEADINGS,
    baseline_rows,
    class_rows,
    confusion_rows,
    figure_rows,
)
from setconv.report.wording import (
    MISSING,
    count,
    figure,
    objective_in_words,
    of_100,
    per_cent,
    readable,
    signed,
)


def describe(findings: Findings) -> dict[str, Any]:
    """Return everything but the figures."""
    evaluation, model = findings.evaluation, findings.model
    name = evaluation.names[evaluation.main]
    sources = findings.sources
    # The parameter may have been changed after the fit.
    objective = getattr(model, "objective_", getattr(model, "objective", None))
    explorers, compared = findings.explorers, findings.compared
    of_judged = compared.places is not None
    n_comparable = evaluation.n_rows if of_judged else len(compared.source.codes)
    known = getattr(model, "report_", None)
    return {
        "version": __version__,
        "title": readable(findings.title, 120) if findings.title else f"How well “{name}” is found",
        "data_name": readable(findings.data_name, 120) if findings.data_name else None,
        "main": name,
        "binary": evaluation.binary,
        "out_of_fold": evaluation.out_of_fold,
        "weighted": evaluation.weighted,
        "n_rows": count(evaluation.n_rows),
        "n_given": count(len(evaluation.codes)),
        "objective": objective_in_words(objective),
        "threshold_basis": getattr(model, "threshold_basis_", None),
        "why_not_the_largest": WHY_NOT_THE_LARGEST,
        "paper_rule": objective is None,
        "repeats": count(findings.repeats),
        "summary": sentences.summary(evaluation, findings.measured[0]),
        "cautions": sentences.cautions(evaluation, [] if known is None else known.remarks()),
        "tiles": _tiles(findings),
        "data": _data(findings),
        "has_train_counts": evaluation.train_counts is not None,
        "has_prior": evaluation.prior is not None,
        "rows_are_numbered": sources.here.names is None,
        "training_is_numbered": sources.gave_training and sources.there.names is None,
        "headings": [HEADINGS[one] for one in FIGURES],
        "figures": figure_rows(evaluation, evaluation.main, findings.measured[0]),
        "classes": class_rows(evaluation, findings.measured[0]),
        "baselines": _baselines(findings),
        "confusion": confusion_rows(evaluation),
        "names": evaluation.names,
        "calibration": _calibration(findings),
        "explorers": explorers,
        "start": start_values(explorers[0]) if explorers else None,
        "meanings": _meanings(findings),
        "mistakes": _mistakes(findings),
        "command": findings.command,
        "n_wrong": count((evaluation.truth != evaluation.predicted).sum()),
        "texts_shown": sources.here.texts is not None,
        "reads_texts": sources.reads_texts,
        "gave_training": sources.gave_training,
        "n_compared": count(len(compared.rows)),
        "compared_all": len(compared.rows) == n_comparable,
    }


def start_values(explorer: Explorer) -> dict[str, str]:
    """Return what the explorer shows before it is moved: the model's own decision."""
    here = vars(explorer)
    rows = _cells(here, explorer.own)
    tp, fp, fn, tn = _cells(explorer.weighted or here, explorer.own)
    spec = tn / (tn + fp) if explorer.negatives else np.nan
    sens = tp / (tp + fn) if explorer.positives else np.nan
    empty = 0.0 if explorer.positives else np.nan
    precision = tp / (tp + fp) if explorer.own else empty
    f1 = 2 * tp / (2 * tp + fp + fn) if explorer.positives else np.nan
    return {
        **{name: count(n) for name, n in zip(("tp", "fp", "fn", "tn"), rows, strict=True)},
        "spec": figure(spec),
        "sens": figure(sens),
        "precision": figure(precision),
        "f1": figure(f1),
        "g_mean": figure(float(np.sqrt(spec * sens))),
        "alarms": f"{1000 * (tp + fp) / (tp + fp + fn + tn):.1f}",
        "probability": _probability_at(explorer),
    }


def _cells(of: Mapping[str, Any], place: int) -> tuple[float, float, float, float]:
    """Return right and wrong alarms, and rows without one: of the class, of the rest."""
    tp, fp = of["tp"][place], of["fp"][place]
    return tp, fp, of["positives"] - tp, of["negatives"] - fp


def _probability_at(explorer: Explorer) -> str:
    if explorer.probability is None or not explorer.own:
        return ""
    nearest = explorer.probability[explorer.own - 1]
    return f"; the alarm nearest to it has probability {100 * nearest:.1f} %"


def _tiles(findings: Findings) -> list[dict[str, str]]:
    """Return the three numbers at the top."""
    c = findings.evaluation.main
    measured = findings.measured[0]
    name = findings.evaluation.names[c]
    texts = {
        "sens": f"of 100 that are “{name}” are found",
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


def _data(findings: Findings) -> list[dict[str, Any]]:
    evaluation = findings.evaluation
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


def _baselines(findings: Findings) -> list[dict[str, Any]]:
    if len(findings.methods) == 1:
        return []
    return baseline_rows(findings.methods, findings.measured, findings.evaluation.main)


def _calibration(findings: Findings) -> dict[str, Any] | None:
    if not findings.bins:
        return None
    evaluation = findings.evaluation
    errors = evaluation.probabilities[:, evaluation.main] - (evaluation.truth == evaluation.main)
    brier = np.average(errors**2, weights=evaluation.weights)
    return {
        "words": sentences.calibration(evaluation, findings.bins),
        "brier": figure(float(brier)),
        "bins": [
            {
                "range": f"{100 * one.low:.0f} to {100 * one.high:.0f} %",
                "rows": count(one.n_rows),
                "said": per_cent(one.said),
                "seen": per_cent(one.seen),
                "interval": f"{per_cent(one.seen_low)[:-2]} to {per_cent(one.seen_high)}",
            }
            for one in findings.bins
        ],
    }


def _meanings(findings: Findings) -> list[dict[str, Any]]:
    names = findings.evaluation.names
    styles = class_styles(findings.evaluation)
    return [
        {
            "name": names[one.class_number],
            "colour": styles[one.class_number].colour,
            "nearest": one.nearest,
            "looked_at": count(one.n_looked_at),
            "of_class": count(one.n_of_class),
            "weights": [{**vars(w), "shown": signed(w.value)} for w in one.weights],
            "explained": one.n_explained,
        }
        for one in findings.meanings
    ]


def _mistakes(findings: Findings) -> list[dict[str, Any]]:
    return [
        {
            **vars(one),
            "probability": per_cent(one.probability),
            "margin": f"{one.margin:.2f}",
            "features": [{**vars(w), "shown": signed(w.value)} for w in one.features],
        }
        for one in findings.mistakes
    ]
