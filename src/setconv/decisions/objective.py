"""What a decision rests on: what the user states, and rows that the model had not seen.

`Objective` is what a decision is to be good at, and a prior how frequent the classes are where it
is made. `OutOfFoldScores` are the rows that thresholds and calibrator are chosen on, and `Grounds`
all that is known before anything is chosen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from setconv.data import as_floats, from_plain
from setconv.errors import DataError, ParameterError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Kind = Literal["paper", "balanced", "f1", "mcc", "accuracy", "recall", "precision", "cost"]

_NAMED = ("balanced", "f1", "mcc", "accuracy")
MINIMUMS = ("recall", "precision")
_SHARE_TEXT = r"\s*(\d*\.?\d+(?:e-?\d+)?)\s*(%?)"
_MINIMUM_TEXT = re.compile(rf"(recall|precision)\s*(?:>=|≥){_SHARE_TEXT}(?:\s*@{_SHARE_TEXT})?")
_ALLOWED = (
    'Give None (largest score), "balanced", "f1", "mcc", "accuracy", a minimum such as '
    '"recall>=0.95" or "precision>=90%", with a confidence "recall>=0.95 @ 90%", a dictionary '
    '{"recall": 0.95, "confidence": 0.9, "class": label} of which the last two may be left out, or '
    "a cost matrix cost[true, predicted] of shape (n_classes, n_classes)."
)


@dataclass(frozen=True)
class Objective:
    """What the decision is to be good at.

    Attributes
    ----------
    kind : {"paper", "balanced", "f1", "mcc", "accuracy", "recall", "precision", "cost"}
        "paper" takes the largest score, without calibration.
    level : float, optional
        The least recall or precision.
    confidence : float, optional
        The share of fits in which it is to be kept; None: it is kept on average.
    target : int, optional
        The class number that recall or precision speaks of; None: the positive class.
    cost : tuple of tuples of float, optional
        cost[true][predicted].
    """

    kind: Kind
    level: float | None = None
    confidence: float | None = None
    target: int | None = None
    cost: tuple[tuple[float, ...], ...] | None = None

    def __str__(self) -> str:
        # A minimum as it is written in one line; shares with all digits that they have.
        if self.level is None:
            return self.kind
        sure = "" if self.confidence is None else f" @ {100 * self.confidence:.10g}%"
        return f"{self.kind}>={self.level:.10g}{sure}"

    def costs(self, class_weights: Floats) -> Floats:
        """Return cost[true, predicted], each row multiplied by the weight of its class."""
        return np.asarray(np.asarray(self.cost) * class_weights[:, None])

    def to_dict(self) -> dict[str, Any]:
        """Return the objective as plain data for JSON."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Objective:
        """Return the objective that `to_dict` described."""
        return from_plain(cls, data)


def parse_objective(objective: Any, classes: Any) -> Objective:
    """Read an objective as the user states it.

    Parameters
    ----------
    objective : None, str, dict or array-like
        None: the paper's rule, the largest score. "balanced": the geometric mean of the recalls
        of all classes. "f1": of the positive class, with more than two classes the mean over
        classes. "mcc". "accuracy": the most probable class. "recall>=0.95", "precision>=90%" or
        ``{"recall": 0.95, "class": label}``: a minimum, of the positive class unless ``class``
        names another. "recall>=0.95 @ 90%" or ``{"recall": 0.95, "confidence": 0.9}``: a minimum
        that is kept in 90 of 100 fits. A matrix of shape (n_classes, n_classes): cost[true,
        predicted].
    classes : array-like
        The labels, in the order of the class numbers.

    Returns
    -------
    Objective

    Examples
    --------
    >>> parse_objective("recall >= 95%", ["no", "fire"])
    Objective(kind='recall', level=0.95, confidence=None, target=None, cost=None)
    """
    if objective is None:
        return Objective("paper")
    if isinstance(objective, str):
        return _from_text(objective)
    labels = np.asarray(classes).tolist()
    if isinstance(objective, Mapping):
        return _from_mapping(dict(objective), labels)
    return Objective("cost", cost=_cost_matrix(objective, labels))


def _refused(objective: Any, why: str) -> ParameterError:
    return ParameterError(f"objective={objective!r}: {why}", parameter="objective", hint=_ALLOWED)


def _from_text(text: str) -> Objective:
    name = text.strip().lower()
    if name in _NAMED:
        return Objective(cast("Kind", name))
    match = _MINIMUM_TEXT.fullmatch(name)
    if match is None:
        raise _refused(text, "this is not known.")
    kind, *shares = match.groups()
    level, confidence = (
        None if number is None else float(number) / (100 if per_cent else 1)
        for number, per_cent in (shares[:2], shares[2:])
    )
    return _minimum(kind, level, confidence, text)


def _minimum(
    kind: str, level: Any, confidence: Any, objective: Any, target: int | None = None
) -> Objective:
    """Return a minimum whose shares were checked."""
    if not _is_number(level) or not 0 < level <= 1:
        raise _refused(objective, "the minimum is a share over 0 and up to 1 (95% is 0.95).")
    if confidence is None:
        return Objective(cast("Kind", kind), float(level), target=target)
    if not _is_number(confidence) or not 0.5 <= confidence < 1 or level == 1:
        why = "a confidence is a share from 0.5 to under 1 (90% is 0.9), of a minimum under 1."
        raise _refused(objective, why)
    return Objective(cast("Kind", kind), float(level), float(confidence), target)


def _is_number(value: Any) -> bool:
    real = isinstance(value, int | float | np.integer | np.floating)
    return real and not isinstance(value, bool | np.timedelta64)


def _from_mapping(objective: dict[Any, Any], labels: list[Any]) -> Objective:
    kinds = [name for name in MINIMUMS if name in objective]
    if len(kinds) != 1 or set(objective) - {*kinds, "class", "confidence"}:
        why = "it has 'recall' or 'precision', and may have 'class' and 'confidence'."
        raise _refused(objective, why)
    target = objective.get("class")
    if target is not None:
        try:
            target = {label: number for number, label in enumerate(labels)}[target]
        except (KeyError, TypeError) as error:  # TypeError: what has no hash is no label
            why = (
                f"{target!r} is not one of the classes {labels!r} (the type counts: '1' is not 1)."
            )
            raise _refused(objective, why) from error
    level, confidence = objective[kinds[0]], objective.get("confidence")
    return _minimum(kinds[0], level, confidence, objective, target)


def _cost_matrix(objective: Any, labels: list[Any]) -> tuple[tuple[float, ...], ...]:
    size = len(labels)
    try:
        cost = as_floats(objective)
    except ValueError as error:
        raise _refused(objective, f"it is no matrix of numbers ({error}).") from error
    if cost.shape != (size, size) or not np.isfinite(cost).all():
        why = f"the costs of {labels!r} are finite and of shape ({size}, {size}), in that order."
        raise _refused(objective, why)
    right = np.diag(cost)
    for row in np.flatnonzero((cost.min(axis=1) < right) | (cost.max(axis=1) == right)):
        raise _refused(
            objective,
            f"row {row} has the costs of {labels[row]!r}, by decision: none may be cheaper than "
            f"cell {row}, the right one, and some must be dearer (transposed?).",
        )
    return tuple(map(tuple, cost.tolist()))


def parse_prior(prior: Any, classes: Any, positive: int) -> Floats | None:
    """Read a prevalence: None, a dictionary of label to share, or shares in class order.

    Parameters
    ----------
    prior : None, float, mapping or array-like of shape (n_classes,)
        Shares over 0 that sum to 1. A dictionary may leave out one class, which gets the rest. One
        number is the share of the class of interest of two.
    classes : array-like
        The labels, in the order of the class numbers.
    positive : int
        The class number of the class of interest.

    Returns
    -------
    float array of shape (n_classes,), or None
    """
    if prior is None:
        return None
    labels = np.asarray(classes).tolist()
    try:
        given = prior
        if isinstance(given, int | float | np.number) and len(labels) == 2:
            given = {labels[positive]: given}
        if isinstance(given, Mapping):
            rest = 1 - sum(map(float, given.values()))
            known = set(given) <= set(labels) and len(given) >= len(labels) - 1
            given = [given.get(label, rest) for label in labels] if known else ()
        shares = as_floats(given)
    except (TypeError, ValueError, OverflowError):
        shares = np.empty(0)
    if shares.shape != (len(labels),) or not (shares > 0).all() or abs(shares.sum() - 1) > 1e-6:
        raise ParameterError(
            f"prior={prior!r}: give a share over 0 for each of the classes {labels!r}, in that "
            "order or by label, that sum to 1; by label one may be left out and gets the rest.",
            parameter="prior",
        )
    return np.asarray(shares / shares.sum())


def weights_to_prior(codes: Codes, prior: Floats) -> Floats:
    """Return weights of rows that give the classes these shares, and 1 on average."""
    counts = np.bincount(codes, minlength=len(prior))
    return np.asarray((prior * len(codes) / np.maximum(counts, 1))[codes])


def weight_scales(weights: Floats, codes: Codes, n_classes: int) -> Floats:
    """Return a factor a class that makes the mean weight of its rows 1, and prevalence counts."""
    largest = weights.max()  # sums of huge weights would overflow
    sums = np.bincount(codes, weights=weights / largest, minlength=n_classes)
    counts = np.bincount(codes, minlength=n_classes)
    return np.asarray(np.divide(counts, sums, out=np.ones(n_classes), where=sums > 0) / largest)


@dataclass(frozen=True, eq=False, kw_only=True)
class OutOfFoldScores:
    """Rows with a score that their model had not seen them for; there may be none.

    Attributes
    ----------
    scores : float array of shape (n_rows, heads)
        One head for two classes (the log-odds of class 1), else one a class.
    codes : int array of shape (n_rows,)
        Class of each row, from 0.
    weights : float array of shape (n_rows,)
        Positive weight of each row: as `evened` makes them, on average in each class what its rows
        stand for. Within a class they say how much a row matters.
    n_classes : int
    units : int array of shape (n_rows,), optional
        Rows of equal numbers belong together, as groups and copies do; None: each stands alone.
    stands_for : tuple of floats, one a class, optional
        For how many rows of its class each row is here, where the others were left out at random;
        None: for itself alone.
    """

    scores: Floats
    codes: Codes
    weights: Floats
    n_classes: int
    units: Codes | None = None
    stands_for: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        shape = (len(self.codes), 1 if self.n_classes == 2 else self.n_classes)
        alike = {a.shape for a in (self.codes, self.weights, self.units) if a is not None}
        if self.scores.shape != shape or len(alike) > 1:
            found = (self.scores.shape, self.codes.shape, self.weights.shape)
            raise DataError(f"Out-of-fold scores are {shape}, with codes and weights; not {found}.")
        finite = np.isfinite(self.scores).all(axis=1)
        if not finite.all():
            row = int(np.argmin(finite))
            why = f"out-of-fold scores are not finite, first in row {row}: look for overflow there."
            raise DataError(why, row=row)

    @classmethod
    def none(cls, n_classes: int) -> OutOfFoldScores:
        """Return no rows at all."""
        scores = np.empty((0, 1 if n_classes == 2 else n_classes))
        codes = np.empty(0, dtype=np.int64)
        return cls(scores=scores, codes=codes, weights=np.empty(0), n_classes=n_classes)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def seen(self) -> NDArray[np.bool_]:
        """Whether a class has rows."""
        return np.bincount(self.codes, minlength=self.n_classes) > 0

    @property
    def totals(self) -> Floats:
        """Weight of the rows of each class."""
        return np.bincount(self.codes, self.weights, minlength=self.n_classes).astype(np.float64)

    @property
    def own_weights(self) -> Floats:
        """Weight of each row as one row, whatever number of rows it stands for."""
        return self.weights if self.stands_for is None else self.weights / self._stand[self.codes]

    @property
    def _stand(self) -> Floats:
        return np.ones(self.n_classes) if self.stands_for is None else np.array(self.stands_for)

    @property
    def prior(self) -> Floats:
        """The share of each class; one without rows is taken as half a row, so none is 0."""
        totals = np.where(self.seen, self.totals, 0.5 * self.own_weights.mean() * self._stand)
        return np.asarray(totals / totals.sum())

    def part(self, rows: NDArray[Any]) -> OutOfFoldScores:
        """Return some of the rows."""
        scores, codes, weights = (one[rows] for one in (self.scores, self.codes, self.weights))
        units = None if self.units is None else self.units[rows]
        return replace(self, scores=scores, codes=codes, weights=weights, units=units)

    def one_a_unit(self, seed: int) -> OutOfFoldScores:
        """Return one row of each class of every unit, drawn at random: rows that stand alone."""
        if self.units is None:
            return self
        drawn = np.random.default_rng(seed).permutation(len(self))
        own = self.units[drawn] * self.n_classes + self.codes[drawn]
        rows = drawn[np.unique(own, return_index=True)[1]]
        return replace(self.part(np.sort(rows)), units=None).evened()

    def weighed(self, factors: Floats) -> OutOfFoldScores:
        """Return the rows with the weights of each class multiplied by its factor."""
        return replace(self, weights=self.weights * factors[self.codes])

    def evened(self) -> OutOfFoldScores:
        """Return the rows with weights of a mean of 1, or what they stand for, in each class."""
        if (self.own_weights == 1).all():
            return self
        return self.weighed(self._stand * weight_scales(self.weights, self.codes, self.n_classes))

    def thinned(self, most: int, least: int, seed: int) -> OutOfFoldScores:
        """Return about ``most`` of the rows, drawn class by class, with the same weight a class.

        A class keeps at least ``least`` rows, or all that it has.
        """
        n_rows = len(self)
        if n_rows <= most:
            return self
        generator = np.random.default_rng(seed)
        counts = np.bincount(self.codes, minlength=self.n_classes)
        shares = np.maximum(counts * most // n_rows, np.minimum(counts, least))
        # Not by `sampling.draw_by_class`, which draws others: thresholds are to stay what they are.
        rows = [
            generator.choice(np.flatnonzero(self.codes == c), size=shares[c], replace=False)
            for c in np.flatnonzero(counts)
        ]
        part = self.part(np.sort(np.concatenate(rows)))
        stands_for = tuple((self._stand * np.maximum(counts, 1) / np.maximum(shares, 1)).tolist())
        # A class that kept a larger share of its rows is not to weigh more for it.
        factors = self.totals / np.where(self.seen, part.totals, 1.0)
        return replace(part.weighed(factors), stands_for=stands_for)


@dataclass(frozen=True, eq=False, kw_only=True)
class Grounds:
    """What is known before anything is chosen, and stays when the decision is moved.

    Attributes
    ----------
    classes : array of shape (n_classes,)
        The labels, in the order of the class numbers.
    positive : int
        The class of interest: F1 of two classes, recall and precision speak of it by default.
    train_prior : float array of shape (n_classes,)
        The share of each class in the training data, in rows.
    class_weights : float array of shape (n_classes,)
        How much a class matters: powers of the recalls in "balanced", factors of the rows of a cost
        matrix.
    evidence : OutOfFoldScores
        Without any rows nothing can be chosen.
    seed : int
    doubt : str
        Why no confidence can be stated on the evidence; empty where one can.
    """

    classes: NDArray[Any]
    positive: int
    train_prior: Floats
    class_weights: Floats
    evidence: OutOfFoldScores
    seed: int = 0
    doubt: str = ""
