"""The decision of a model: from the scores of its heads to classes and probabilities.

`DecisionRule` is chosen on out-of-fold scores, with the calibrator and the thresholds that its
objective asks for, and can be moved to another objective or prevalence. `cross_fit` decides on the
out-of-fold rows themselves by rules that have not seen them, and `FittedDecision` knows by that
how good the rule is. What either says of rows is one `Predictions`.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit, softmax

from setconv.decisions.calibration import Calibrator, fit_calibrator
from setconv.decisions.minimums import Minimum, choose_minimum, nothing_known
from setconv.decisions.objective import (
    MINIMUMS,
    Codes,
    Floats,
    Grounds,
    Objective,
    OutOfFoldScores,
    parse_objective,
    parse_prior,
)
from setconv.decisions.thresholds import Criterion, choose_threshold, class_offsets, steadied
from setconv.errors import ParameterError
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
    units : int64 array of shape (n_rows,), optional
        Rows of equal numbers belong together: groups and copies. None: each stands alone.
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
    units: Codes | None = None
    left_out: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionRule:
    """From scores (n_rows, heads) to classes and probabilities; made by `choose`.

    Attributes
    ----------
    grounds : Grounds
        What it was chosen from.
    objective : Objective
    thresholds : float array of shape (heads,)
        Subtracted from the scores before the sign, or the argmax, decides. For a cost matrix of
        more than two classes they are 0: the expected cost decides.
    calibrator : Calibrator or None
        None for the paper's rule.
    prior : float array of shape (n_classes,) or None
        The prevalence asked for; None: that of the training data.
    met : bool or None
        Whether the evidence says that the minimum of the objective is met; None without a minimum.
    may_miss : float or None
        The share of such fits that miss the minimum, where that is known.
    """

    grounds: Grounds
    objective: Objective
    thresholds: Floats
    calibrator: Calibrator | None = None
    prior: Floats | None = None
    met: bool | None = None
    may_miss: float | None = None

    @classmethod
    def choose(
        cls,
        grounds: Grounds,
        objective: Objective,
        prior: Floats | None = None,
        *,
        refuse: bool = False,
    ) -> DecisionRule:
        """Return the rule with the calibrator and the thresholds that an objective asks for.

        A minimum that is not met is warned of; with ``refuse`` one that has a confidence is an
        error.
        """
        if objective.kind == "paper":
            heads = grounds.evidence.scores.shape[1]
            return cls(grounds=grounds, objective=objective, thresholds=np.zeros(heads))
        calibrator = fit_calibrator(grounds.evidence, grounds.train_prior, seed=grounds.seed)
        thresholds, minimum = choose_thresholds(grounds, objective, calibrator, prior)
        if minimum is not None and minimum.problem is not None:
            if refuse and objective.confidence is not None:
                raise ParameterError(minimum.problem, parameter="objective")
            nearest = "The threshold that comes nearest is taken."
            warnings.warn(f"{minimum.problem} {nearest}", UserWarning, stacklevel=2)
        return cls(
            grounds=grounds,
            objective=objective,
            thresholds=thresholds,
            calibrator=calibrator,
            prior=prior,
            met=None if minimum is None else minimum.met,
            may_miss=None if minimum is None else minimum.may_miss,
        )

    @property
    def evidence(self) -> OutOfFoldScores:
        """The out-of-fold rows; without any the rule proves nothing, and cannot be moved."""
        return self.grounds.evidence

    @property
    def unjudged(self) -> tuple[int, ...]:
        """The classes of which the evidence has no row."""
        return tuple(np.flatnonzero(~self.evidence.seen).tolist())

    def decision_values(self, scores: Floats) -> Floats:
        """Return what decides: score minus threshold, (n_rows,) for two classes, else (n_rows, K).

        With a cost matrix of more than two classes it is minus the expected cost, less its mean
        over the classes.
        """
        if self.objective.cost is not None and scores.shape[1] > 1:
            worth = -self.probabilities(scores) @ self.objective.costs(self.grounds.class_weights)
            return np.asarray(worth - worth.mean(axis=1, keepdims=True))
        return _flat(scores - self.thresholds)

    def probabilities(self, scores: Floats) -> Floats:
        """Return the probabilities of all classes, for `prior`, shape (n_rows, n_classes)."""
        if self.calibrator is None:
            return paper_probabilities(scores)
        return self.calibrator.probabilities(scores, self.prior)

    def predictions(self, scores: Floats) -> Predictions:
        """Decide on rows: by the sign, or the argmax, of `decision_values`."""
        values = self.decision_values(scores)
        chosen = (values > 0).astype(np.int64) if values.ndim == 1 else np.argmax(values, axis=1)
        return Predictions(
            labels=self.grounds.classes[chosen],
            probabilities=self.probabilities(scores),
            scores=_flat(scores),
            decision_values=values,
            rows=np.arange(len(scores)),
        )

    def with_objective(self, objective: Any) -> DecisionRule:
        """Return the rule for another objective, chosen on the same out-of-fold scores.

        A minimum with a confidence that they do not show is an error.
        """
        parsed = parse_objective(objective, self.grounds.classes)
        # The paper's rule knows no prevalence.
        return self._moved(parsed, None if parsed.kind == "paper" else self.prior, refuse=True)

    def with_prior(self, prior: Any) -> DecisionRule:
        """Return the rule for another prevalence, None for that of the training data.

        Probabilities follow it, and so do thresholds for precision, F1, MCC, accuracy and cost;
        recall and G-mean do not depend on it.
        """
        parsed = parse_prior(prior, self.grounds.classes, self.grounds.positive)
        if self.objective.kind == "paper" and parsed is not None:
            raise ParameterError(
                f"prior={prior!r}: with objective=None probabilities are the paper's, which know "
                'no prevalence. Choose an objective first, for example "balanced".',
                parameter="prior",
            )
        return self._moved(self.objective, parsed)

    def _moved(
        self, objective: Objective, prior: Floats | None, *, refuse: bool = False
    ) -> DecisionRule:
        if not len(self.evidence) and objective.kind != "paper":
            raise ParameterError(
                "the decision rule cannot be moved: this model has no out-of-fold scores. Fit it "
                "with members, or with an objective."
            )
        return DecisionRule.choose(self.grounds, objective, prior, refuse=refuse)

    def to_dict(self) -> dict[str, Any]:
        """Return all but the classes and the out-of-fold rows as plain data for JSON."""
        return {
            "objective": self.objective.to_dict(),
            "thresholds": self.thresholds.tolist(),
            "calibrator": None if self.calibrator is None else asdict(self.calibrator),
            "prior": None if self.prior is None else self.prior.tolist(),
            "positive": self.grounds.positive,
            "class_weights": self.grounds.class_weights.tolist(),
            "train_prior": self.grounds.train_prior.tolist(),
            "met": self.met,
            "may_miss": self.may_miss,
            "seed": self.grounds.seed,
            "doubt": self.grounds.doubt,
            "stands_for": self.evidence.stands_for and list(self.evidence.stands_for),
            "arrays": sorted(self.arrays()),
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the out-of-fold rows: "scores", "codes" and, if they say more, "weights", "units".

        In few bytes a row, for there may be very many.
        """
        rows = self.evidence
        found = {"scores": rows.scores, "codes": smallest(rows.codes)}
        if not np.array_equal(rows.weights, _plain_weights(rows).weights):
            found["weights"] = rows.weights
        return found if rows.units is None else found | {"units": smallest(rows.units)}

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], classes: NDArray[Any]
    ) -> DecisionRule:
        """Return the rule that `to_dict` and `arrays` described."""
        calibrator, prior, objective = data["calibrator"], data["prior"], data["objective"]
        stands_for = data["stands_for"]
        known = [data["train_prior"], data["class_weights"], prior, (calibrator or {}).get("prior")]
        known.append(stands_for)
        for one in known:
            if one is not None and (np.shape(one) != classes.shape or min(one) <= 0):
                raise ValueError("wrong: classes of the rule")
        size, codes, units = len(classes), arrays["codes"], arrays.get("units")
        target, cost, level = (objective.get(name) for name in ("target", "cost", "level"))
        shares = (level, objective.get("confidence"), data["may_miss"])
        thresholds = np.asarray(data["thresholds"], dtype=np.float64)  # of None it makes NaN
        right = {
            "arrays": sorted(arrays) == data["arrays"],
            "codes": codes.dtype.kind in "iu" and not ((codes < 0) | (codes >= size)).any(),
            "weights": not (arrays.get("weights", np.ones(1)) < 0).any(),
            "units": units is None or (units.dtype.kind in "iu" and not (units < 0).any()),
            "stands_for": stands_for is None or all(1 <= one < np.inf for one in stands_for),
            "thresholds": bool(np.isfinite(thresholds).all()),
            "positive": data["positive"] in range(size),
            "target": target is None or target in range(size),
            "cost": cost is None or np.shape(cost) == (size, size),
            "level": (level is not None) == (objective["kind"] in MINIMUMS),
            "shares": all(one is None or 0 <= one <= 1 for one in shares),
            "calibrator": (calibrator is None) == (objective["kind"] == "paper"),
            "seed": data["seed"] >= 0,
            "met": data["met"] in (None, True, False),
        }
        if not all(right.values()):
            raise ValueError(f"wrong: {', '.join(name for name, ok in right.items() if not ok)}")
        rows = OutOfFoldScores(
            scores=arrays["scores"],
            codes=codes.astype(np.int64),
            weights=arrays.get("weights", np.ones(len(codes))),
            n_classes=size,
            units=None if units is None else units.astype(np.int64),
            stands_for=None if stands_for is None else tuple(map(float, stands_for)),
        )
        return cls(
            grounds=Grounds(
                classes=classes,
                positive=int(data["positive"]),
                train_prior=np.asarray(data["train_prior"], dtype=np.float64),
                class_weights=np.asarray(data["class_weights"], dtype=np.float64),
                evidence=rows if "weights" in arrays else _plain_weights(rows),
                seed=int(data["seed"]),
                doubt=str(data["doubt"]),
            ),
            objective=Objective.from_dict(objective),
            thresholds=thresholds,
            calibrator=None if calibrator is None else Calibrator.from_dict(calibrator),
            prior=None if prior is None else np.asarray(prior, dtype=np.float64),
            met=data["met"],
            may_miss=data["may_miss"],
        )


def _plain_weights(rows: OutOfFoldScores) -> OutOfFoldScores:
    """Return the rows as they are where no row of a class counts more than another."""
    return replace(rows, weights=np.ones(len(rows))).evened()


def smallest(numbers: Codes) -> NDArray[Any]:
    """Return whole numbers in the smallest type that has all of them."""
    kinds = (np.uint8, np.int16, np.int32, np.int64)  # of more bytes all libraries know these only
    return next(one for one in map(numbers.astype, kinds) if np.array_equal(one, numbers))


def choose_thresholds(
    grounds: Grounds, objective: Objective, calibrator: Calibrator, prior: Floats | None
) -> tuple[Floats, Minimum | None]:
    """Return the thresholds for an objective, (heads,), and what is known of its minimum, if any.

    Class weights say how much a class matters: they are the powers of the recalls in "balanced" and
    factors of the rows of a cost matrix, and change no other figure. A prior multiplies the weights
    of the rows by its ratio to the training data's, except where prevalence plays no part:
    "balanced" and a minimum recall.

    Of two classes of which one has no rows nothing can be chosen: scores are cut at 0, where
    balanced episodes put the middle, and no minimum is met.
    """
    kind, rows, class_weights = objective.kind, grounds.evidence, grounds.class_weights
    heads = rows.scores.shape[1]
    if kind == "accuracy":
        return calibrator.thresholds(prior), None
    if kind == "cost" and heads == 1:
        cost = objective.costs(class_weights)
        false_alarm, miss = cost[0, 1] - cost[0, 0], cost[1, 0] - cost[1, 1]
        odds = float(np.log(false_alarm) - np.log(miss))
        return np.array([calibrator.score_at(odds, prior)]), None
    # With more classes the expected cost decides, without thresholds.
    if kind == "paper" or kind == "cost" or (heads == 1 and not rows.seen.all()):
        return np.zeros(heads), None if objective.level is None else nothing_known(objective)
    if kind == "recall" or kind == "precision":
        return choose_minimum(grounds, objective, prior)
    if kind != "balanced" and prior is not None:
        rows = rows.weighed(prior / np.asarray(calibrator.prior))
    criterion = Criterion(kind, class_weights / class_weights.sum(), grounds.positive)
    if heads > 1:
        return class_offsets(rows, criterion, seed=grounds.seed), None
    cut = choose_threshold(rows, criterion, seed=grounds.seed)
    if kind == "balanced":
        cut = steadied(cut, rows, calibrator, criterion.powers)
    return np.array([cut]), None


def _flat(columns: Floats) -> Floats:
    """Return the one column of two classes as (n_rows,); those of more as they are."""
    return columns[:, 0] if columns.shape[1] == 1 else columns


def paper_probabilities(scores: Floats) -> Floats:
    """Turn the log-odds of the heads (n_rows, heads) into probabilities (n_rows, n_classes).

    One head gives the two-class softmax of equations 5-6. With several, P(y=c|x) of each head
    (equation 7) is divided by their sum, which leaves the argmax as it is.
    """
    if scores.shape[1] == 1:
        return np.concatenate([expit(-scores), expit(scores)], axis=1)
    return np.asarray(softmax(log_expit(scores), axis=1))


def _are_one(weights: Floats) -> bool:
    return np.allclose(weights, 1, rtol=0, atol=1e-9)


def cross_fit(rule: DecisionRule, folds: Codes) -> Predictions:
    """Decide on the rows of each fold of a rule's evidence by the rule that the other folds give.

    A report on these decisions does not judge a threshold, or a calibrator, by the rows that it
    was chosen on. Where the other folds have no rows, nothing is chosen on any. Folds that are
    parts of time have their rule from later parts too: it is thresholds and a calibrator only.

    Parameters
    ----------
    rule : DecisionRule
        With evidence; its objective, prior and class weights are those of the other rules too.
    folds : int array of shape (n_rows,)
        The fold of each row of the evidence.
    """
    evidence, classes = rule.evidence, rule.grounds.classes
    # What the rule itself says of its rows is replaced, fold by fold.
    found = replace(rule.predictions(evidence.scores), truth=classes[evidence.codes])
    for fold in np.unique(folds):
        here = folds == fold
        others = evidence.part(~here).evened()
        prior = others.prior if len(others) else rule.grounds.train_prior
        grounds = replace(rule.grounds, evidence=others, train_prior=prior)
        with warnings.catch_warnings():
            # The rule on all rows says the same once, with the figures that count.
            warnings.simplefilter("ignore", UserWarning)
            other = DecisionRule.choose(grounds, rule.objective, rule.prior)
        said = other.predictions(evidence.scores[here])
        found.labels[here] = said.labels
        found.probabilities[here] = said.probabilities
        found.decision_values[here] = said.decision_values
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedDecision:
    """How scores become decisions, and how good these are on which rows.

    Attributes
    ----------
    rule : DecisionRule
    report : Report
        Its ``unjudged`` are classes without figures, whatever the rule is.
    source : {"out_of_fold", "validation", "none"}
        Which rows the report is on. "none": every row was seen, so there are no figures.
    left_out : bool array of shape (n_folds, n_rows), or None
        Which members each row of the rule's evidence was kept from; of validation rows, which fold
        it is in.
    rows : int64 array of shape (n_rows,), or None
        Which rows of the training data the evidence is; None: all, in order, or other rows.
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
    notes: tuple[str, ...] = ()
    updates: Mapping[str, int] = field(default_factory=dict)

    @property
    def basis(self) -> str:
        """What the thresholds rest on, in words."""
        rule, n_rows = self.rule, len(self.rule.evidence)
        classes = rule.grounds.classes.tolist()
        names = ", ".join(repr(classes[c]) for c in rule.unjudged)
        if rule.objective.kind == "paper":
            return "the largest score decides: no threshold was chosen"
        if rule.unjudged and (len(classes) == 2 or not n_rows):
            said = (
                f"no row {f'of {names}' if n_rows else 'at all'} could be judged, so "
                "scores are cut in the middle of balanced episodes, unchecked"
            )
        else:
            said = self._counted
            if self.source == "none":
                said += ", which chose the weights too"
            if rule.unjudged:
                said += f", none of them of {names}, whose threshold is unchecked"
        return said if rule.met is None else f"{said}; {self._kept()}"

    @property
    def _counted(self) -> str:
        """How many rows there are, and what kind of rows."""
        kind = "out-of-fold" if self.source == "out_of_fold" else "validation"
        evidence = self.rule.evidence
        said = f"{len(evidence):,} {kind} rows"
        if evidence.stands_for is not None:
            said += f" that stand for {evidence.totals.sum():,.0f}"
        return said

    def _kept(self) -> str:
        """Say how sure the minimum is that was asked for."""
        rule, objective = self.rule, self.rule.objective
        asked = str(objective)
        if objective.target is not None:
            asked += f" of {rule.grounds.classes.tolist()[objective.target]!r}"
        if not rule.met or self.source == "none" or self.updates:
            return f"{asked} is not known to be met"
        if objective.confidence is not None:
            return f"{asked} is kept in at least {100 * objective.confidence:.4g} of 100 such fits"
        if rule.may_miss is None or rule.grounds.doubt:
            return f"{asked} is met on average, on rows like these"
        return (
            f"{asked} is met on average: up to about {100 * rule.may_miss:.0f} of 100 such fits "
            "miss it on new rows"
        )

    def moved(self, rule: DecisionRule) -> FittedDecision:
        """Return the decision after the rule was moved; the report follows it.

        A confidence is refused where the rows chose the weights, or were scored by another model.
        """
        if rule.objective.confidence is not None and (self.source == "none" or self.updates):
            why = "the model as it was before" if self.updates else "rows that chose the weights"
            raise ParameterError(
                f"{rule.objective} cannot be known: the scores are of {why}. Fit with members, and "
                "all rows at once.",
                parameter="objective",
            )
        return replace(self, rule=rule).reported()

    def updated(self, updates: Mapping[str, int]) -> FittedDecision:
        """Return the decision after new rows have changed the model; its report says so."""
        found = replace(self, updates=updates)
        return replace(found, report=replace(self.report, notes=found._all_notes()))

    def _all_notes(self) -> tuple[str, ...]:
        notes = self.notes
        if self.rule.evidence.stands_for is not None:
            notes += (f"The figures are on {self._counted}.",)
        if not self.updates:
            return notes
        named = " and ".join(f"{name} ({rows:,} rows)" for name, rows in self.updates.items())
        return (*notes, f"The figures are of the model before {named}.")

    def cross_fitted(self) -> Predictions:
        """Return what the rules of the other folds say of the rows of the evidence."""
        left_out, evidence, prior = self.left_out, self.rule.evidence, self.rule.prior
        assert left_out is not None
        weights = None if _are_one(evidence.weights) else evidence.weights
        if prior is not None:
            weights = evidence.weighed(prior / evidence.prior).weights
        # The fold of a row: the first member that it was kept from.
        found = cross_fit(self.rule, np.argmax(left_out, axis=0))
        rows = found.rows if self.rows is None else self.rows
        return replace(found, rows=rows, weights=weights, units=evidence.units, left_out=left_out)

    def reported(self) -> FittedDecision:
        """Return the decision with its report, which is cross-fitted: no rule judges itself."""
        if self.source == "none" or not len(self.rule.evidence):
            return self
        return self._judged(self.cross_fitted())

    def cut_at(self, threshold: float) -> FittedDecision:
        """Return the decision of two classes by a threshold that is stated, judged on all rows."""
        rule = replace(self.rule, thresholds=np.array([threshold]), met=None, may_miss=None)
        cut = replace(self, rule=rule)
        if self.source == "none":
            return cut
        said = rule.predictions(rule.evidence.scores)
        found, values = self.cross_fitted(), said.decision_values
        return cut._judged(replace(found, labels=said.labels, decision_values=values))

    def _judged(self, found: Predictions) -> FittedDecision:
        grounds = self.rule.grounds
        assert found.truth is not None
        classes, prior = grounds.classes.tolist(), self.rule.prior
        measured = report(
            found.truth,
            found.labels,
            found.scores,
            probabilities=found.probabilities,
            classes=classes,
            positive=classes[grounds.positive],
            sample_weight=found.weights,
            confidence_intervals=True,
            groups=found.units,
        )
        weighted = not _are_one(self.rule.evidence.own_weights)
        shares = None if prior is None else dict(zip(classes, prior.tolist(), strict=True))
        measured = replace(measured, weighted=weighted, prior=shares, notes=self._all_notes())
        return replace(self, report=without_figures(measured, self.report.unjudged))
