"""The front door: measure, explain, draw, write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setconv.errors import ParameterError
from setconv.files import write_atomically
from setconv.predicted import Predictions
from setconv.report.bootstrap import Answers, count_repeats, measure
from setconv.report.curves import reliability
from setconv.report.evaluation import evaluate
from setconv.report.explorer import explore
from setconv.report.findings import Findings
from setconv.report.illustration import illustrate
from setconv.report.learned_map import draw_map
from setconv.report.meanings import explain_representatives
from setconv.report.mistakes import find_mistakes
from setconv.report.rendering import render
from setconv.report.sections import describe
from setconv.report.similarity import compare_judged, compare_training
from setconv.report.sources import gather
from setconv.report.tables import baseline_answers


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
