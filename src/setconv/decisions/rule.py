"""The decision rule of a model: from the scores of its heads to classes and probabilities.

`fit_rule` makes one from out-of-fold scores, with the calibrator and the thresholds that its
objective asks for; `unproven_rule` does where there are none. `cross_fit` decides on the
out-of-fold rows themselves by rules that have not seen them, and `FittedDecision` knows by that
how good the rule is.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from setconv.decisions.calibration import Calibrator, fit_calibrator, natural_calibrator
from setconv.decisions.objective import Objective, parse_objective, parse_prior
from setconv.decisions.scores import Codes, Floats, OutOfFoldScores, check_scores, rarest
from setconv.decisions.thresholds import choose_operating_point, scaled_cost
from setconv.errors import DataError, ParameterError
from setconv.metrics.report import Report, report, without_figures

ReportSource = Literal["out_of_fold", "validation", "none"]


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of rows, from one pass over them.

    Attributes
    ----------
    labels : array of shape (n_rows,)
        The decisions.
    probabilities : float64 array of shape (n_rows, n_classes)
    scores : float64 array of shape (n_rows,) or (n_rows, n_classes)
        Of the second of two classes, or of each: the log-odds of the heads for equally frequent
        classes, averaged over the members. No objective, threshold or prior changes them.
    decision_values : float64 array of the same shape
        What decides: the score minus the threshold. Its sign, or the argmax, gives the label.
    rows : int64 array of shape (n_rows,)
        Which of the rows that were given these are, counted from 0.
    truth : array of shape (n_rows,), optional
        The true labels, where they are known.
    weights : float64 array of shape (n_rows,), optional
        What a row counts in a report on these predictions: its sample weight within its class, and
        the prevalence that was set. None: all the same.
    left_out : bool array of shape (n_members, n_rows), optional
        Of training rows: the members that a row was kept from, which say all of this.
    """

    labels: NDArray[Any]
    probabilities: Floats
    scores: Floats
    decision_values: Floats
    rows: NDArray[np.int64]
    truth: NDArray[Any] | None = None
    weights: Floats | None = None
    left_out: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class DecisionRule:
    """From scores (n_rows, heads) to classes and probabilities; made by `fit_rule`.

    Attributes
    ----------
    objective : Objective
    thresholds : float array of shape (heads,)
        Subtracted from the scores before the sign, or the argmax, decides. For a cost matrix of
        more than two classes they are 0: the expected cost decides.
    calibrator : Calibrator or None
        None for the paper's rule.
    prior : float array of shape (n_classes,) or None
        The prevalence asked for; None: that of the training data.
    classes : tuple
        The labels, in the order of the class numbers.
    positive : int
        The class of interest.
    class_weights : float array of shape (n_classes,)
    evidence : OutOfFoldScores or None
        The out-of-fold rows; without them the rule cannot be moved.
    train_prior : float array of shape (n_classes,)
        The share of each class in the training data, in rows.
    met : bool or None
        Whether the evidence says that the minimum of the objective is met; None without a minimum.
    seed : int
    """

    objective: Objective
    thresholds: Floats
    calibrator: Calibrator | None
    prior: Floats | None
    classes: tuple[Any, ...]
    positive: int
    class_weights: Floats
    evidence: OutOfFoldScores | None
    train_prior: Floats
    met: bool | None = None
    seed: int = 0

    @property
    def unjudged(self) -> tuple[int, ...]:
        """The classes of which the evidence has no row."""
        if self.evidence is None:
            return tuple(range(len(self.classes)))
        return tuple(np.flatnonzero(~self.evidence.seen).tolist())

    def decision_values(self, scores: Floats) -> Floats:
        """Return what decides: score minus threshold, (n_rows,) for two classes, else (n_rows, K).

        With a cost matrix of more than two classes it is minus the expected cost, less its mean
        over the classes.
        """
        if self.objective.kind == "cost" and len(self.classes) > 2:
            cost = scaled_cost(self.objective, self.class_weights)
            worth = -self.probabilities(scores) @ cost
            return np.asarray(worth - worth.mean(axis=1, keepdims=True))
        values = scores - self.thresholds
        return np.asarray(values[:, 0] if len(self.classes) == 2 else values)

    def decide(self, scores: Floats) -> Codes:
        """Return the class number of each row: the sign, or the argmax, of `decision_values`."""
        values = self.decision_values(scores)
        chosen = values > 0 if values.ndim == 1 else np.argmax(values, axis=1)
        return np.asarray(chosen, dtype=np.int64)

    def probabilities(self, scores: Floats) -> Floats:
        """Return the probabilities of all classes, for `prior`, shape (n_rows, n_classes)."""
        if self.calibrator is None:
            return paper_probabilities(scores)
        return self.calibrator.probabilities(scores, self.prior)

    def with_objective(self, objective: Any) -> DecisionRule:
        """Return the rule for another objective, chosen on the same out-of-fold scores."""
        parsed = parse_objective(objective, self.classes)
        # The paper's rule knows no prevalence.
        prior = None if parsed.kind == "paper" else self.prior
        return self._moved(objective=parsed, prior=prior)

    def with_prior(self, prior: Any) -> DecisionRule:
        """Return the rule for another prevalence, None for that of the training data.

        Probabilities follow it, and so do thresholds for precision, F1, MCC, accuracy and cost;
        recall and G-mean do not depend on it.
        """
        parsed = parse_prior(prior, self.classes, self.positive)
        if self.objective.kind == "paper" and parsed is not None:
            raise ParameterError(
                f"prior={prior!r}: with objective=None probabilities are the paper's, which know "
                'no prevalence. Choose an objective first, for example "balanced".'
            )
        return self._moved(prior=parsed)

    def _moved(self, **changes: Any) -> DecisionRule:
        rule = replace(self, **changes)
        if rule.evidence is None and rule.objective.kind != "paper":
            raise ParameterError(
                "the decision rule cannot be moved: this model has no out-of-fold scores. Fit it "
                "with members, or with an objective."
            )
        return _at_operating_point(rule)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the classes and the out-of-fold rows as plain data for JSON."""
        return {
            "objective": self.objective.to_dict(),
            "thresholds": self.thresholds.tolist(),
            "calibrator": None if self.calibrator is None else self.calibrator.to_dict(),
            "prior": None if self.prior is None else self.prior.tolist(),
            "positive": self.positive,
            "class_weights": self.class_weights.tolist(),
            "train_prior": self.train_prior.tolist(),
            "met": self.met,
            "seed": self.seed,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the out-of-fold rows: "scores", "codes" and "weights", or nothing."""
        if self.evidence is None:
            return {}
        return {name: getattr(self.evidence, name) for name in ("scores", "codes", "weights")}

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], classes: Any
    ) -> DecisionRule:
        """Return the rule that `to_dict` and `arrays` described; ``arrays`` may be empty."""
        labels = tuple(classes)
        evidence = None
        if arrays:
            evidence = check_scores(
                arrays["scores"], arrays["codes"], arrays["weights"], len(labels)
            )
        calibrator, prior = data["calibrator"], data["prior"]
        return cls(
            objective=Objective.from_dict(data["objective"]),
            thresholds=np.asarray(data["thresholds"], dtype=np.float64),
            calibrator=None if calibrator is None else Calibrator.from_dict(calibrator),
            prior=None if prior is None else np.asarray(prior, dtype=np.float64),
            classes=labels,
            positive=int(data["positive"]),
            class_weights=np.asarray(data["class_weights"], dtype=np.float64),
            evidence=evidence,
            train_prior=np.asarray(data["train_prior"], dtype=np.float64),
            met=data["met"],
            seed=int(data["seed"]),
        )


def paper_probabilities(scores: Floats) -> Floats:
    """Turn the log-odds of the heads (n_rows, heads) into probabilities (n_rows, n_classes).

    One head gives the two-class softmax of equations 5-6. With several, P(y=c|x) of each head
    (equation 7) is divided by their sum, which leaves the argmax as it is.
    """
    if scores.shape[1] == 1:
        return np.concatenate([expit(-scores), expit(scores)], axis=1)
    logs = log_expit(scores)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def fit_rule(
    scores: Any,
    codes: Codes,
    weights: Any = None,
    class_weights: Any = None,
    objective: Any = "balanced",
    *,
    classes: Any,
    positive: int | None = None,
    prior: Any = None,
    train_prior: Floats | None = None,
    seed: int = 0,
) -> DecisionRule:
    """Choose calibrator and operating point on out-of-fold scores.

    Parameters
    ----------
    scores : array-like of shape (n_rows, heads)
        One head for two classes (the log-odds of class 1), else one a class.
    codes : int array of shape (n_rows,)
        Class of each row, from 0.
    weights : array-like of shape (n_rows,), optional
        How much a row matters within its class; prevalence is counted in rows.
    class_weights : array-like of shape (n_classes,), optional
        How much a class matters: powers of the recalls in "balanced", factors of the rows of a cost
        matrix.
    objective : see `parse_objective`
    classes : array-like of shape (n_classes,)
        The labels, in the order of the class numbers.
    positive : int, optional
        The class number that F1 of two classes, recall and precision speak of by default; by
        default the class with the fewest rows, of equals the last, as in `setconv.metrics`.
    prior : see `parse_prior`
    train_prior : float array of shape (n_classes,), optional
        The share of each class in the training data; by default that of these rows.
    seed : int

    Returns
    -------
    DecisionRule
    """
    labels = tuple(classes)
    evidence = check_scores(scores, codes, weights, len(labels))
    rule = DecisionRule(
        objective=parse_objective(objective, labels),
        thresholds=np.zeros(evidence.scores.shape[1]),
        calibrator=None,
        prior=None,
        classes=labels,
        positive=rarest(evidence.codes, len(labels)) if positive is None else int(positive),
        class_weights=_weights_or_ones(class_weights, len(labels)),
        evidence=evidence,
        train_prior=evidence.prior if train_prior is None else train_prior,
        seed=seed,
    )
    return _at_operating_point(rule) if prior is None else rule.with_prior(prior)


def unproven_rule(
    classes: Any, train_prior: Floats, class_weights: Any = None, objective: Any = "balanced"
) -> DecisionRule:
    """Return the rule for a model without any out-of-fold scores, which proves nothing.

    Scores are taken as log-odds of equally frequent classes, which balanced episodes make them: the
    middle is 0, and probabilities are shifted to the prevalence. No minimum is met by it.
    """
    labels = tuple(classes)
    rule = DecisionRule(
        objective=parse_objective(objective, labels),
        thresholds=np.zeros(1 if len(labels) == 2 else len(labels)),
        calibrator=natural_calibrator(train_prior),
        prior=None,
        classes=labels,
        positive=int(len(train_prior) - 1 - np.argmin(train_prior[::-1])),
        class_weights=_weights_or_ones(class_weights, len(labels)),
        evidence=None,
        train_prior=train_prior,
    )
    return _at_operating_point(rule)


def _weights_or_ones(class_weights: Any, n_classes: int) -> Floats:
    return np.ones(n_classes) if class_weights is None else np.asarray(class_weights, np.float64)


def _at_operating_point(rule: DecisionRule) -> DecisionRule:
    """Return the rule with the thresholds and the calibrator that its objective asks for."""
    if rule.objective.kind == "paper":
        thresholds = np.zeros_like(rule.thresholds)
        return replace(rule, thresholds=thresholds, calibrator=None, met=None)
    calibrator = rule.calibrator
    if calibrator is None:
        assert rule.evidence is not None
        calibrator = fit_calibrator(rule.evidence, rule.train_prior, seed=rule.seed)
    point = choose_operating_point(
        rule.evidence,
        rule.objective,
        calibrator=calibrator,
        prior=rule.prior,
        positive=rule.positive,
        class_weights=rule.class_weights,
        seed=rule.seed,
    )
    return replace(rule, calibrator=calibrator, thresholds=point.thresholds, met=point.met)


class CrossFitted(NamedTuple):
    """What the rules of the other folds say of each row.

    Attributes
    ----------
    codes : int array of shape (n_rows,)
    probabilities : float array of shape (n_rows, n_classes)
    values : float array of shape (n_rows,) or (n_rows, n_classes)
        What decided, as `DecisionRule.decision_values`.
    """

    codes: Codes
    probabilities: Floats
    values: Floats


def cross_fit(rule: DecisionRule, folds: Codes) -> CrossFitted:
    """Decide on the rows of each fold of a rule's evidence by the rule that the other folds give.

    A report on these decisions does not judge a threshold, or a calibrator, by the rows that it
    was chosen on. Where the other folds have no rows, nothing is chosen on any.

    Parameters
    ----------
    rule : DecisionRule
        With evidence; its objective, prior and class weights are those of the other rules too.
    folds : int array of shape (n_rows,)
        The fold of each row of the evidence.
    """
    evidence = rule.evidence
    if evidence is None or folds.shape != evidence.codes.shape:
        raise DataError(
            f"folds have shape {folds.shape}: pass the fold of each row of the rule's evidence."
        )
    scores = evidence.scores
    probabilities = np.empty((len(folds), len(rule.classes)))
    values = np.empty(len(folds) if scores.shape[1] == 1 else probabilities.shape)
    codes = np.empty(len(folds), dtype=np.int64)
    for fold in np.unique(folds):
        here = folds == fold
        other = _rule_on(rule, evidence.part(~here))
        codes[here] = other.decide(scores[here])
        values[here] = other.decision_values(scores[here])
        probabilities[here] = other.probabilities(scores[here])
    return CrossFitted(codes, probabilities, values)


def _rule_on(rule: DecisionRule, rows: OutOfFoldScores) -> DecisionRule:
    """Return the rule that some rows of the evidence give."""
    if not len(rows.codes):
        return unproven_rule(rule.classes, rule.train_prior, rule.class_weights, rule.objective)
    with warnings.catch_warnings():
        # The rule on all rows says the same once, with the figures that count.
        warnings.simplefilter("ignore", UserWarning)
        return fit_rule(
            rows.scores,
            rows.codes,
            rows.weights,
            rule.class_weights,
            rule.objective,
            classes=rule.classes,
            positive=rule.positive,
            prior=rule.prior,
            seed=rule.seed,
        )


@dataclass(frozen=True, eq=False)
class FittedDecision:
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

    def moved(self, rule: DecisionRule) -> FittedDecision:
        """Return the decision after the rule was moved; the report follows it."""
        return replace(self, rule=rule).reported()

    def updated(self, updates: Mapping[str, int]) -> FittedDecision:
        """Return the decision after new rows have changed the model; its report says so."""
        found = replace(self, updates=updates)
        return replace(found, report=replace(self.report, notes=found._all_notes()))

    def _all_notes(self) -> tuple[str, ...]:
        if not self.updates:
            return self.notes
        named = " and ".join(f"{name} ({rows:,} rows)" for name, rows in self.updates.items())
        return (*self.notes, f"The figures are of the model before {named}.")

    def reported(self) -> FittedDecision:
        """Return the decision with its report, which is cross-fitted: no rule judges itself."""
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
