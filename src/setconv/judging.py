"""After training: the decision rule, and a report on rows that neither model nor rule has seen."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setconv.bench import Bench
from setconv.decisions import DecisionRule, Objective, cross_fit, fit_rule, unproven_rule
from setconv.decisions.evidence import rarest
from setconv.decisions.objective import parse_objective
from setconv.errors import ParameterError
from setconv.folds import assign_folds
from setconv.metrics import Report, report
from setconv.metrics.report import report_of_nothing, without_figures
from setconv.rows import Rows

ReportSource = Literal["out_of_fold", "validation", "none"]
_FOLDS = 5  # of validation rows


@dataclass(frozen=True, eq=False)
class Judgement:
    """How scores become decisions, and how good these are on which rows.

    Attributes
    ----------
    rule : DecisionRule
    report : Report
    source : {"out_of_fold", "validation", "none"}
        Which rows the report is on. "none": every row was seen, so there are no figures.
    left_out : bool array of shape (n_folds, n_rows), or None
        Which members each row of the rule's evidence was kept from; of validation rows, which fold
        it is in.
    rows : int64 array of shape (n_rows,), or None
        Which rows of the training data the evidence is; None: all, in order, or other rows.
    unjudged : mapping of class to str
        Classes without figures, and why.
    notes : tuple of str
        What to know about the rows of the report.
    updates : mapping of str to int
        Methods that have changed the model since, and with how many rows.
    """

    rule: DecisionRule
    report: Report
    source: ReportSource
    left_out: NDArray[np.bool_] | None = None
    rows: NDArray[np.int64] | None = None
    unjudged: Mapping[Any, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    updates: Mapping[str, int] = field(default_factory=dict)

    @property
    def folds(self) -> NDArray[np.int64]:
        """The fold of each row of the evidence: the first member that it was kept from."""
        assert self.left_out is not None
        return np.asarray(np.argmax(self.left_out, axis=0))

    @property
    def row_weights(self) -> NDArray[np.float64] | None:
        """The weight of each row of the evidence in the report; None if all weigh the same."""
        evidence = self.rule.evidence
        assert evidence is not None
        if self.rule.prior is not None:
            return evidence.weighed(self.rule.prior / evidence.prior).weights
        return evidence.weights if self.is_weighted else None

    @property
    def is_weighted(self) -> bool:
        """Whether rows of one class have different weights."""
        evidence = self.rule.evidence
        return evidence is not None and not np.allclose(evidence.weights, 1, rtol=0, atol=1e-9)

    @property
    def basis(self) -> str:
        """What the thresholds rest on, in words."""
        rule, evidence = self.rule, self.rule.evidence
        names = ", ".join(repr(rule.classes[c]) for c in rule.unjudged)
        if rule.objective.kind == "paper":
            return "the largest score decides: no threshold was chosen"
        if evidence is None or (rule.unjudged and len(rule.classes) == 2):
            missing = "at all" if evidence is None else f"of {names}"
            said = (
                f"no row {missing} was kept from the model, so scores are cut in the middle of "
                "balanced episodes, unchecked"
            )
        else:
            kind = "out-of-fold" if self.source == "out_of_fold" else "validation"
            said = f"{len(evidence.codes):,} {kind} rows"
            if self.source == "none":
                said += ", which chose the weights too"
            if rule.unjudged:
                said += f", none of them of {names}, whose threshold is unchecked"
        if rule.met is False:
            said += "; the minimum that was asked for is not known to be met"
        return said

    def moved(self, rule: DecisionRule) -> Judgement:
        """Return the judgement after the rule was moved; the report follows it."""
        return replace(self, rule=rule).reported()

    def updated(self, updates: Mapping[str, int]) -> Judgement:
        """Return the judgement after new rows have changed the model; its report says so."""
        found = replace(self, updates=updates)
        return replace(found, report=replace(self.report, notes=found._all_notes()))

    def _all_notes(self) -> tuple[str, ...]:
        if not self.updates:
            return self.notes
        named = " and ".join(f"{name} ({rows:,} rows)" for name, rows in self.updates.items())
        return (*self.notes, f"The figures are of the model before {named}.")

    def reported(self) -> Judgement:
        """Return the judgement with its report, which is cross-fitted: no rule judges itself."""
        rule, evidence = self.rule, self.rule.evidence
        if self.source == "none" or evidence is None:
            return self
        classes = np.asarray(rule.classes)
        found = cross_fit(rule, self.folds)
        scores = evidence.scores
        measured = report(
            classes[evidence.codes],
            classes[found.codes],
            scores[:, 0] if scores.shape[1] == 1 else scores,
            probabilities=found.probabilities,
            classes=classes,
            positive=rule.classes[rule.positive],
            sample_weight=self.row_weights,
        )
        prior = None
        if rule.prior is not None:
            prior = dict(zip(rule.classes, rule.prior.tolist(), strict=True))
        measured = replace(
            measured, weighted=self.is_weighted, prior=prior, notes=self._all_notes()
        )
        return replace(self, report=without_figures(measured, self.unjudged))


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
    notes: tuple[str, ...] = (),
) -> Judgement:
    """Choose the decision rule on rows that the members had not seen, and report on them.

    Out-of-fold rows where there are members, else validation rows. Where both are missing, or the
    validation rows chose the weights, every row was seen and there are no figures.
    """
    labels = tuple(classes.tolist())
    codes = bench.train.codes
    train_prior = np.bincount(codes, minlength=len(labels)) / len(codes)
    positive = rarest(codes, len(labels))
    rule = unproven_rule(labels, train_prior, class_weights, objective)
    kept = _rows_kept(bench, labels, seed)
    if len(kept.scores):
        rule = fit_rule(
            kept.scores,
            kept.codes,
            kept.weights,
            class_weights,
            objective,
            classes=labels,
            positive=positive,
            train_prior=train_prior,
            seed=seed,
        )
    nothing = report_of_nothing(labels, labels[positive], kept.unjudged)
    found = Judgement(rule, nothing, kept.source, kept.left_out, kept.rows, kept.unjudged, notes)
    if kept.source != "none" and kept.unjudged:
        named = ", ".join(f"{label!r} ({why})" for label, why in kept.unjudged.items())
        warnings.warn(
            f"Classes that cannot be judged, and have no figures: {named}. What thresholds rest "
            f"on: {found.basis}. Give rows that differ, or more groups.",
            UserWarning,
            stacklevel=2,
        )
    return found.reported()


class _Kept(NamedTuple):
    """Rows that were kept from the model, with its scores of them."""

    scores: NDArray[np.float64]
    codes: NDArray[np.int64]
    weights: NDArray[np.float64]
    source: ReportSource
    unjudged: dict[Any, str]
    left_out: NDArray[np.bool_] | None = None
    rows: NDArray[np.int64] | None = None


def _rows_kept(bench: Bench, labels: tuple[Any, ...], seed: int) -> _Kept:
    train, validation = bench.train, bench.validation
    if len(bench.left_out) > 1:
        found = bench.score_out_of_fold()
        seen = train.take(found.rows)
        unjudged = _never_left_out(train, np.bincount(seen.codes, minlength=len(labels)), labels)
        rows = seen.numbers
        return _Kept(
            found.scores, seen.codes, seen.weights, "out_of_fold", unjudged, found.left_out, rows
        )
    if validation is None or not validation.weights.any():
        why = "n_members=1 leaves no row out of training, and there are no validation rows beside"
        none = np.empty(0)
        return _Kept(none, none.astype(np.int64), none, "none", dict.fromkeys(labels, why))
    fresh = validation.take(np.flatnonzero(validation.weights))  # no copies of training rows
    codes = fresh.codes
    folds = assign_folds(codes, _FOLDS, fresh.units, np.random.default_rng(seed))
    scores, left_out = bench.scores(fresh), folds == np.arange(_FOLDS)[:, None]
    if bench.validation_chose:
        why = "the validation rows chose the weights, and n_members=1 leaves no other row out"
        unjudged = dict.fromkeys(labels, why)
        return _Kept(scores, codes, fresh.weights, "none", unjudged, left_out)
    absent = [label for code, label in enumerate(labels) if code not in codes]
    unjudged = dict.fromkeys(
        absent, "the validation rows have none of it that is not a training row too"
    )
    return _Kept(scores, codes, fresh.weights, "validation", unjudged, left_out)


def _never_left_out(
    train: Rows, judged: NDArray[np.int64], labels: tuple[Any, ...]
) -> dict[Any, str]:
    """Say of each class without an out-of-fold row why it has none."""
    found = {}
    for code in np.flatnonzero(judged == 0).tolist():
        own = train.codes == code
        groups, units = (None if a is None else a[own] for a in (train.groups, train.units))
        if own.sum() == 1:
            why = "it has a single row"
        elif groups is not None and len(np.unique(groups)) == 1:
            why = "all its rows are in one group"
        elif units is not None and len(np.unique(units)) == 1:
            why = "all its rows are copies of one, or in groups that share copies"
        elif train.crossing is not None:
            why = "its rows have copies in other groups"
        else:
            why = "its rows are in groups that no member could leave out"
        found[labels[code]] = why
    return found
