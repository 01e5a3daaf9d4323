"""The report: measure, explain, draw, and write it all as one page."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from setconv._version import __version__
from setconv.decisions.rule import Predictions
from setconv.io.files import write_atomically
from setconv.metrics import HEADINGS
from setconv.metrics.intervals import DRAWS
from setconv.metrics.report import WHY_NOT_THE_LARGEST
from setconv.report import figures, measure, rows
from setconv.report.space import draw_map
from setconv.report.words import FILTERS, quoted

_FEW = 30  # rows of a class, or of a group of them, below which a figure says little


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
        place, content = target.resolve(), self.html.encode("utf-8")
        if place.is_file() or not place.exists():
            write_atomically(place, content)
        else:
            place.write_bytes(content)  # a pipe or a device is never replaced
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
    predictions: Predictions | None = None,
    out_of_fold: bool = False,
    row_names: Sequence[Any] | None = None,
    train_row_names: Sequence[Any] | None = None,
    dates: Collection[str] = (),
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
        Of samples.
    predictions : Predictions, optional
        What the model says of ``X``, if it was asked already. With ``out_of_fold`` this is not
        used.
    out_of_fold : bool, default=False
        Whether ``X`` and ``y`` are the rows that the model was fitted to: then those that some
        member left out are judged, each by the members that did (``predict_out_of_fold``).
    row_names, train_row_names : sequence, optional
        What the page calls the rows of ``X`` and of ``train``; by default their numbers, from 0.
    dates : collection of str, default=()
        Features that are days since 1970-01-01, which the page shows as dates. Of a table the
        model knows them.
    explain : callable, optional
        From the positions in ``X`` of the mistakes that are shown to a command that explains
        them, which the page then shows.

    Returns
    -------
    ReportPage
    """
    if hasattr(model, "encoder_") and not rows.are_texts(X):
        # A table is judged as its classifier sees it: as columns of numbers.
        feature_names = model.encoder_.get_feature_names_out()
        dates = date_features(model)
        train = None if train is None else (model.encode(train[0]), train[1])
        X, model = model.encode(X), model.classifier_
    evaluation = measure.evaluate(model, X, y, predictions=predictions, out_of_fold=out_of_fold)
    methods = [
        measure.Method("This model", evaluation.predicted, evaluation.scores),
        *measure.baseline_answers(baselines or {}, evaluation),
    ]
    here = there = rows.read_source(X, evaluation.codes, texts, row_names, "row_names")
    if train is not None and not out_of_fold:
        there = rows.read_training(train, evaluation.labels, train_row_names)
    sources = rows.gather(model, evaluation, here, there, feature_names, dates, seed)
    measured = measure.measure_methods(evaluation, methods)
    judged = rows.compare_judged(sources, seed)
    compared = rows.compare_training(sources) if sources.gave_training else judged
    mistakes = rows.find_mistakes(sources)
    bins = measure.reliability(evaluation)
    laid_out = draw_map(model, evaluation, judged.similarities, judged.codes, seed)
    styles = figures.class_styles(evaluation)
    lines = figures.curve_lines(evaluation, methods, measured)
    known = getattr(model, "history_", None) or []
    history = [one for one in known if math.isfinite(one.get("loss", math.nan))]
    plots = {"map": figures.draw("map", (480, 350), figures.paint_map, laid_out, styles)}
    square = (400, 340)
    if lines:
        share = evaluation.mean(evaluation.truth == evaluation.main)
        plots["roc"] = figures.draw("roc", square, figures.paint_roc, lines)
        plots["pr"] = figures.draw("pr", square, figures.paint_precision_recall, lines, share)
    if bins:
        plots["reliability"] = figures.draw("reliability", square, figures.paint_reliability, bins)
    if len(history) > 1:
        plots["training"] = figures.draw("training", (400, 290), figures.paint_training, history)
    counts = list(zip(evaluation.names, evaluation.counts.tolist(), strict=True))
    explained = [int(evaluation.rows[one.place]) for one in mistakes]
    return ReportPage(
        _render(
            model=model,
            evaluation=evaluation,
            measured=measured,
            methods=methods,
            draws=DRAWS,
            missing=[name for name, n in counts if not n],
            rare=[f"{quoted(name)} ({n})" for name, n in counts if 0 < n < _FEW],
            few=_FEW,
            explorers=measure.explore(evaluation),
            bins=bins,
            laid_out=laid_out,
            styles=styles,
            lines=lines,
            plots=plots,
            history=history,
            sources=sources,
            compared=compared,
            portraits=rows.explain_representatives(sources, compared),
            mistakes=mistakes,
            command=explain(explained) if explain and mistakes else None,
            title=title,
            data_name=data_name,
        )
    )


def date_features(model: Any) -> list[str]:
    """Return the features of a model that are days since 1970-01-01."""
    describe = getattr(getattr(model, "encoder_", None), "describe", None)
    columns = () if describe is None else describe()[0].get("columns", ())
    return [one["name"] for one in columns if one.get("kind") == "date"]


def _render(**found: Any) -> str:
    """Return the page; its template reads what was found, and puts it into words."""
    program = _read("page.js").strip()
    lines_alone: Any = {"trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(autoescape=True, undefined=StrictUndefined, **lines_alone)
    environment.filters |= FILTERS | {"vars": vars}
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment.from_string(_read("page.html")).render(
        **found,
        headings=HEADINGS,
        why_not_the_largest=WHY_NOT_THE_LARGEST,
        version=__version__,
        style=Markup(_read("page.css").strip()),
        program=Markup(program),
        policy=_policy(program),
    )


def _policy(program: str) -> str:
    """Return a content security policy that lets this one program run and nothing be fetched."""
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _read(name: str) -> str:
    return files("setconv.report").joinpath(name).read_text(encoding="utf-8")
