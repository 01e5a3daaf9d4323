"""After training: the decision rule, and a report on rows that the rule has not seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from setconv.bench import Bench
from setconv.decisions import Calibrator, DecisionRule, Objective, cross_fit, fit_rule, paper_rule
from setconv.decisions.objective import parse_objective
from setconv.errors import ParameterError
from setconv.folds import assign_folds
from setconv.metrics import Report, report
from setconv.rows import Rows

ReportSource = Literal["out_of_fold", "validation", "training"]
_REPORT_ROWS = 20_000  # training rows that the report is made from when there are no others


@dataclass(frozen=True)
class Judgement:
    """How scores become decisions, and how good these are on which rows."""

    rule: DecisionRule
    report: Report
    source: ReportSource
    folds: NDArray[np.int64] | None = None  # of the rule's evidence, where the report is on it


def check_objective(objective: Any, classes: NDArray[Any], *, has_evidence: bool) -> Objective:
    """Return the objective, or say before training that it cannot be served."""
    parsed = parse_objective(objective, tuple(classes.tolist()))
    if not has_evidence and parsed.kind not in ("paper", "balanced"):
        raise ParameterError(
            f"objective={objective!r} chooses a threshold on out-of-fold scores, and n_members=1 "
            "has none: give n_members of at least 2, or X_val and y_val."
        )
    return parsed


def judge(
    bench: Bench,
    classes: NDArray[Any],
    class_weights: NDArray[np.float64],
    objective: Any,
    seed: int,
) -> Judgement:
    """Choose the decision rule on rows that the members had not seen, and report.

    Out-of-fold rows where there are members, else validation rows. The report on the rows that the
    rule was chosen on is cross-fitted, so that it does not judge itself.
    """
    train, validation = bench.train, bench.validation
    labels = tuple(classes.tolist())
    shared = {"class_weights": class_weights, "objective": objective, "classes": labels}
    if len(bench.left_out) > 1:
        found = bench.score_out_of_fold()
        seen = train.take(found.rows)
        rule = fit_rule(found.scores, seen.codes, seen.weights, **shared, seed=seed)
        if validation is None:
            report = _cross_report(rule, found.folds)
            return Judgement(rule, report, "out_of_fold", found.folds)
        return Judgement(rule, _report(rule, bench, validation), "validation")
    if validation is not None and objective is not None:
        scores = bench.scores(validation)
        rule = fit_rule(scores, validation.codes, validation.weights, **shared, seed=seed)
        folds = assign_folds(validation.codes, 5, validation.groups, np.random.default_rng(seed))
        return Judgement(rule, _cross_report(rule, folds), "validation", folds)
    rule = paper_rule(labels) if objective is None else _natural_rule(train, labels)
    if validation is not None:
        return Judgement(rule, _report(rule, bench, validation), "validation")
    stride = -(-len(train.codes) // _REPORT_ROWS)
    some = train.take(np.arange(0, len(train.codes), stride))
    return Judgement(rule, _report(rule, bench, some), "training")


def report_again(judgement: Judgement, rule: DecisionRule) -> Judgement:
    """Return the judgement after the rule was moved.

    A report on rows that are gone stays as it was.
    """
    if judgement.folds is None:
        return replace(judgement, rule=rule)
    return replace(judgement, rule=rule, report=_cross_report(rule, judgement.folds))


def _report_decisions(
    rule: DecisionRule,
    codes: NDArray[np.int64],
    scores: NDArray[np.float64],
    decided: NDArray[np.int64],
    probabilities: NDArray[np.float64],
) -> Report:
    classes = np.asarray(rule.classes)
    return report(
        classes[codes],
        classes[decided],
        scores[:, 0] if scores.shape[1] == 1 else scores,
        probabilities=probabilities,
        classes=classes,
    )


def _report(rule: DecisionRule, bench: Bench, rows: Rows) -> Report:
    scores = bench.scores(rows)
    return _report_decisions(
        rule, rows.codes, scores, rule.decide(scores), rule.probabilities(scores)
    )


def cross_decide(
    rule: DecisionRule, folds: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Decide on the rule's own evidence, each fold by what the others give.

    Returns class numbers, and probabilities (n_rows, n_classes).
    """
    evidence = rule.evidence
    if evidence is None:
        raise RuntimeError("a rule without evidence has nothing to report on")
    scores = evidence.scores
    if rule.objective.kind == "paper" or len(np.unique(folds)) < 2:
        return rule.decide(scores), rule.probabilities(scores)
    return cross_fit(
        scores,
        evidence.codes,
        evidence.weights,
        folds,
        class_weights=rule.class_weights,
        objective=rule.objective,
        classes=rule.classes,
        positive=rule.positive,
        prior=rule.prior,
        seed=rule.seed,
    )


def _cross_report(rule: DecisionRule, folds: NDArray[np.int64]) -> Report:
    decided, probabilities = cross_decide(rule, folds)
    evidence = rule.evidence
    assert evidence is not None
    return _report_decisions(rule, evidence.codes, evidence.scores, decided, probabilities)


def _natural_rule(train: Rows, labels: tuple[Any, ...]) -> DecisionRule:
    """Return the rule at the threshold that balanced episodes give, without any evidence.

    Scores are taken as log-odds for equally frequent classes and shifted to the prevalence.
    """
    totals = np.bincount(train.codes, weights=train.weights, minlength=len(labels))
    prior = totals / totals.sum()
    logs = np.log(prior)
    intercepts = (logs[1] - logs[0],) if len(labels) == 2 else tuple(logs.tolist())
    rule = paper_rule(labels)
    calibrator = Calibrator((1.0, 1.0), tuple(map(float, intercepts)), 0.0, 1.0, tuple(prior))
    return DecisionRule(
        Objective("balanced"),
        rule.thresholds,
        calibrator,
        None,
        labels,
        int(len(prior) - 1 - np.argmin(prior[::-1])),
        rule.class_weights,
        None,
    )
