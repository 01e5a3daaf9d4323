"""The report: measure, explain, describe, and write it all as one page."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from setconv.decisions.rule import Predictions
from setconv.errors import ParameterError
from setconv.io.files import write_atomically
from setconv.report.measure import (
    Answers,
    baseline_answers,
    count_repeats,
    evaluate,
    explore,
    measure,
    reliability,
)
from setconv.report.rows import (
    compare_judged,
    compare_training,
    draw_map,
    explain_representatives,
    find_mistakes,
    gather,
)
from setconv.report.sections import Findings, describe


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
        portraits=explain_representatives(model, evaluation, sources, compared),
        compared=compared,
        mistakes=mistakes,
        sources=sources,
        command=explain([one.row for one in mistakes]) if explain and mistakes else None,
        title=title,
        data_name=data_name,
    )
    return ReportPage(_render(describe(findings)))


def _render(context: Mapping[str, Any]) -> str:
    """Return the page of what `describe` says."""
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
        explorer_data=safe_json([vars(one) for one in context["explorers"]]),
    )


def _policy(program: str) -> str:
    """Return a content security policy that lets this one program run and nothing be fetched."""
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


# These could end a script element or, in old engines, a line of a program.
_UNSAFE = {ord(one): f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}


def safe_json(data: Any) -> Markup:
    """Return JSON that can stand in a script element whatever text it holds."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_UNSAFE))


def _read(name: str) -> str:
    return files("setconv.report").joinpath(name).read_text(encoding="utf-8")
