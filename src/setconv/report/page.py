"""The front door: measure, explain, draw, write."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from setconv._version import __version__
from setconv.decisions.rule import Predictions
from setconv.errors import ParameterError
from setconv.io.files import write_atomically
from setconv.metrics.report import WHY_NOT_THE_LARGEST
from setconv.report import text as sentences
from setconv.report.figures import class_styles, illustrate
from setconv.report.measure import (
    FIGURES,
    Answers,
    Explorer,
    count_repeats,
    evaluate,
    explore,
    measure,
    reliability,
)
from setconv.report.rows import (
    Findings,
    compare_judged,
    compare_training,
    draw_map,
    explain_representatives,
    find_mistakes,
    gather,
)
from setconv.report.text import (
    HEADINGS,
    baseline_answers,
    baseline_rows,
    class_rows,
    confusion_rows,
    figure_rows,
)
from setconv.report.words import (
    MISSING,
    count,
    figure,
    objective_in_words,
    of_100,
    per_cent,
    readable,
    signed,
)

# ---------- report.sections


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


# ---------- report.rendering

# These could end a script element or, in old engines, a line of a program.
_UNSAFE = {ord(one): f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}


def render(context: Mapping[str, Any], explorers: Sequence[Explorer]) -> str:
    """Return the page."""
    program = _read("page.js").strip()
    environment = Environment(
        loader=DictLoader({"page.html": _read("page.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        **context,
        style=Markup(_read("page.css").strip()),
        program=Markup(program),
        policy=_policy(program),
        explorer_data=safe_json([vars(one) for one in explorers]),
    )


def safe_json(data: Any) -> Markup:
    """Return JSON that can stand in a script element whatever text it holds."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_UNSAFE))


def _policy(program: str) -> str:
    """Return a content security policy that lets this one program run and nothing be fetched."""
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _read(name: str) -> str:
    return files("setconv.report").joinpath(name).read_text(encoding="utf-8")


# ---------- report.page


@dataclass(frozen=True)
class ReportPage:
    """A report as one self-contained page.

    Attributes
    ----------
    html : str
        The page: no part of it is fetched from anywhere.
    """

    html: str

    def save(self, path: str | Path) -> Path:
        """Write the page to a file, which is there whole or not at all; returns its path."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, self.html.encode("utf-8"))
        return target

    def _repr_html_(self) -> str:
        return self.html


def make_report(
    model: Any,
    X: Any,
    y: Any,
    *,
    texts: Sequence[str] | None = None,
    feature_names: Sequence[str] | None = None,
    train: tuple[Any, Any] | None = None,
    baselines: Mapping[str, Any] | None = None,
    title: str | None = None,
    data_name: str | None = None,
    seed: int = 0,
    n_bootstrap: int = 1000,
    predictions: Predictions | None = None,
    out_of_fold: bool = False,
    row_names: Sequence[Any] | None = None,
    train_row_names: Sequence[Any] | None = None,
    explain: Callable[[Sequence[int]], str] | None = None,
) -> ReportPage:
    """Judge a model on labelled rows and write a page about it.

    The same model, rows and seed give the same page. All of it comes from one `Predictions`. If a
    prevalence was set with ``set_prior``, rows are weighted to it.

    Parameters
    ----------
    model : fitted classifier
        With the interface of `setconv.SetConvClassifier`.
    X : array-like or list of str
        Rows that the model has not seen in training, whatever it takes; or with ``out_of_fold``
        all rows that it was fitted to.
    y : array-like of shape (n_rows,)
        Their labels. A class may be missing; what then is undefined is shown as n/a.
    texts : sequence of str, optional
        What to show of the rows; by default ``X`` itself if it is texts.
    feature_names : sequence of str, optional
        By default the columns of ``X``.
    train : (X_train, y_train), optional
        Where similar rows are sought; by default among the rows that are judged, and the page says
        so. With ``out_of_fold`` they are sought in ``X``, and this is not used.
    baselines : mapping of str to (predictions, scores), optional
        Other methods on the rows of ``X``, measured with the same draws. Scores are those of the
        second of two classes, (n_rows,), or (n_rows, n_classes), or None.
    title : str, optional
    data_name : str, optional
        What the rows are called on the page.
    seed : int, default=0
        Of the bootstrap and of samples.
    n_bootstrap : int, default=1000
        Draws for the intervals; fewer, and the page says how many, where there are very many rows.
    predictions : Predictions, optional
        What the model says of ``X``, if it was asked already. With ``out_of_fold`` this is not
        used.
    out_of_fold : bool, default=False
        Whether ``X`` and ``y`` are the rows that the model was fitted to: then those that some
        member left out are judged, each by the members that did (``predict_out_of_fold``).
    row_names, train_row_names : sequence, optional
        What the page calls the rows of ``X`` and of ``train``; by default their numbers, from 0.
    explain : callable, optional
        From the positions in ``X`` of the mistakes that are shown to a command that explains
        them, which the page then shows.

    Returns
    -------
    ReportPage
    """
    if n_bootstrap < 1:
        raise ParameterError(f"n_bootstrap={n_bootstrap!r}: give at least 1.")
    evaluation = evaluate(model, X, y, predictions=predictions, out_of_fold=out_of_fold)
    others = baseline_answers(baselines or {}, evaluation)
    sources = gather(
        model,
        X,
        evaluation,
        texts=texts,
        feature_names=feature_names,
        train=train,
        row_names=row_names,
        train_row_names=train_row_names,
        seed=seed,
    )
    answers = [Answers(evaluation.predicted, evaluation.scores), *others.values()]
    # Of two classes the page speaks of the rarer one only.
    ranked = (evaluation.main,) if evaluation.binary else range(len(evaluation.labels))
    repeats = count_repeats(evaluation.n_rows * len(answers) * len(ranked), n_bootstrap)
    judged = compare_judged(model, evaluation, sources, seed)
    compared = compare_training(model, sources) if sources.gave_training else judged
    mistakes = find_mistakes(model, evaluation, sources)
    main = evaluation.main
    findings = Findings(
        model=model,
        evaluation=evaluation,
        methods=("This model", *others),
        answers=answers,
        measured=measure(
            evaluation.truth,
            len(evaluation.labels),
            answers,
            weights=evaluation.weights,
            repeats=repeats,
            seed=seed,
            ranked=ranked,
            unjudged=evaluation.unjudged,
        ),
        repeats=repeats,
        explorers=explore(evaluation),
        bins=reliability(
            evaluation.truth == main, evaluation.probabilities[:, main], evaluation.weights
        )
        if evaluation.comparable(main)
        else [],
        map=draw_map(model, evaluation, judged, seed),
        meanings=explain_representatives(model, evaluation, sources, compared),
        compared=compared,
        mistakes=mistakes,
        sources=sources,
        command=explain([one.row for one in mistakes]) if explain and mistakes else None,
        title=title,
        data_name=data_name,
    )
    return ReportPage(render({**describe(findings), **illustrate(findings)}, findings.explorers))
