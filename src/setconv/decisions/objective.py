"""What the user states: what a decision is to be good at, and how frequent the classes are."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np

from setconv.decisions.scores import Codes, Floats
from setconv.errors import ParameterError

Kind = Literal["paper", "balanced", "f1", "mcc", "accuracy", "recall", "precision", "cost"]
Criterion = Literal["balanced", "f1", "mcc"]

_NAMED: tuple[Literal["accuracy"] | Criterion, ...] = (*get_args(Criterion), "accuracy")
_MINIMUMS: tuple[Literal["recall"], Literal["precision"]] = ("recall", "precision")
_MINIMUM_TEXT = re.compile(r"(recall|precision)\s*(?:>=|≥)\s*(\d*\.?\d+(?:e-?\d+)?)\s*(%?)", re.I)
_ALLOWED = (
    'None (largest score), "balanced", "f1", "mcc", "accuracy", a minimum such as '
    '"recall>=0.95" or "precision>=90%", a dictionary {"recall": 0.95, "class": label}, or a '
    "cost matrix cost[true, predicted] of shape (n_classes, n_classes)"
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
    target : int, optional
        The class number that recall or precision speaks of; None: the positive class.
    cost : tuple of tuples of float, optional
        cost[true][predicted].
    """

    kind: Kind
    level: float | None = None
    target: int | None = None
    cost: tuple[tuple[float, ...], ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the objective as plain data for JSON."""
        plain = {name: value for name, value in asdict(self).items() if value is not None}
        if self.cost is not None:
            plain["cost"] = [list(row) for row in self.cost]
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Objective:
        """Return the objective that `to_dict` described."""
        if data.get("kind") not in get_args(Kind):
            raise ParameterError(
                f"an objective of kind {data.get('kind')!r} is not known: pass what "
                "Objective.to_dict returned."
            )
        cost = data.get("cost")
        return cls(
            data["kind"],
            data.get("level"),
            data.get("target"),
            None if cost is None else tuple(tuple(map(float, row)) for row in cost),
        )


def parse_objective(objective: Any, classes: Any) -> Objective:
    """Read an objective as the user states it.

    Parameters
    ----------
    objective : None, str, dict, array-like or Objective
        None: the paper's rule, the largest score. "balanced": the geometric mean of the recalls
        of all classes. "f1": of the positive class, with more than two classes the mean over
        classes. "mcc". "accuracy": the most probable class. "recall>=0.95", "precision>=90%" or
        ``{"recall": 0.95, "class": label}``: a minimum, of the positive class unless ``class``
        names another. A matrix of shape (n_classes, n_classes): cost[true, predicted].
    classes : array-like
        The labels, in the order of the class numbers.

    Returns
    -------
    Objective

    Examples
    --------
    >>> parse_objective("recall >= 95%", ["no", "fire"])
    Objective(kind='recall', level=0.95, target=None, cost=None)
    """
    if isinstance(objective, Objective):
        return objective
    if objective is None:
        return Objective("paper")
    labels = [_plain(label) for label in classes]
    if isinstance(objective, str):
        return _from_text(objective)
    if isinstance(objective, Mapping):
        return _from_mapping(objective, labels)
    if isinstance(objective, (Sequence, np.ndarray)) or hasattr(objective, "__array__"):
        return Objective("cost", cost=_cost_matrix(objective, labels))
    raise ParameterError(f"objective={objective!r} is not known: give {_ALLOWED}.")


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, np.generic) else label


def _from_text(text: str) -> Objective:
    name = text.strip().lower()
    for named in _NAMED:
        if name == named:
            return Objective(named)
    match = _MINIMUM_TEXT.fullmatch(name)
    if match is None:
        raise ParameterError(f"objective={text!r} is not known: give {_ALLOWED}.")
    which, number, per_cent = match.groups()
    level = float(number) / 100 if per_cent else float(number)
    return Objective("recall" if which == "recall" else "precision", _level(level, text))


def _level(level: Any, objective: Any) -> float:
    number = isinstance(level, (int, float, np.number)) and not isinstance(level, bool)
    if not number or not 0 < level <= 1:
        raise ParameterError(
            f"objective={objective!r}: the minimum is a share over 0 and up to 1 "
            '(95 per cent is 0.95, in text also "95%").'
        )
    return float(level)


def _from_mapping(objective: Mapping[Any, Any], labels: list[Any]) -> Objective:
    minimums = [name for name in _MINIMUMS if name in objective]
    unknown = set(objective) - {*_MINIMUMS, "class"}
    if len(minimums) != 1 or unknown:
        raise ParameterError(
            f"objective={dict(objective)!r}: a dictionary has one of the keys 'recall' and "
            f"'precision', and may have 'class'; in all objective takes {_ALLOWED}."
        )
    target = None
    if objective.get("class") is not None:
        label = _plain(objective["class"])
        if label not in labels:
            raise ParameterError(
                f"objective={dict(objective)!r}: {label!r} is not one of the classes {labels!r}: "
                "name one of them (the type counts: '1' is not 1), or leave 'class' out for the "
                "rarest."
            )
        target = labels.index(label)
    return Objective(minimums[0], _level(objective[minimums[0]], dict(objective)), target)


def _cost_matrix(objective: Any, labels: list[Any]) -> tuple[tuple[float, ...], ...]:
    size = len(labels)
    try:
        cost = np.asarray(objective, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"objective={objective!r} is not a matrix of numbers ({error}): give {_ALLOWED}."
        ) from error
    if cost.shape != (size, size):
        raise ParameterError(
            f"objective: the cost matrix has shape {cost.shape} but there are {size} classes: "
            f"give cost[true, predicted] of shape ({size}, {size}), in the order of {labels!r}."
        )
    if not np.isfinite(cost).all():
        raise ParameterError("objective: the cost matrix has cells that are not finite numbers.")
    for row, label in enumerate(labels):
        right, wrong = cost[row, row], np.delete(cost[row], row)
        if wrong.min() < right:
            raise ParameterError(
                f"objective: for class {label!r} the right decision costs {right:g} but an error "
                f"only {wrong.min():g}: row {row} is cost[true={label!r}, predicted], so its cell "
                f"{row} may not be dearer than the others (transposed?)."
            )
        if wrong.max() == right:
            raise ParameterError(
                f"objective: for class {label!r} all decisions cost {right:g}, so it would never "
                f"be decided on: make an error in row {row} dearer than the right decision."
            )
    return tuple(tuple(map(float, row)) for row in cost)


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
    labels = [_plain(label) for label in classes]
    given = _in_order(prior, labels) if isinstance(prior, Mapping) else prior
    if len(labels) == 2 and isinstance(given, (int, float, np.number)):
        both = [1 - float(given), float(given)]
        given = both if positive == 1 else both[::-1]
    try:
        shares = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"prior={prior!r} is not made of numbers ({error}): give the share of each class."
        ) from error
    if shares.shape != (len(labels),):
        raise ParameterError(
            f"prior={prior!r}: give one share for each of the {len(labels)} classes, in the order "
            f"{labels!r}, or a dictionary of label to share."
        )
    if not np.isfinite(shares).all() or (shares <= 0).any() or abs(shares.sum() - 1) > 1e-6:
        raise ParameterError(
            f"prior={prior!r}: the shares of the classes {labels!r} must be over 0 and sum to 1 "
            f"(they are {shares.tolist()})."
        )
    return np.asarray(shares / shares.sum())


def _in_order(prior: Mapping[Any, Any], labels: list[Any]) -> list[Any]:
    unknown = [label for label in prior if label not in labels]
    missing = [label for label in labels if label not in prior]
    if unknown or len(missing) > 1:
        raise ParameterError(
            f"prior={dict(prior)!r}: give the shares of the classes {labels!r}; one of them may "
            "be left out and gets the rest."
        )
    rest = 1 - sum(map(float, prior.values())) if missing else 0.0
    return [prior.get(label, rest) for label in labels]


def weights_to_prior(codes: Codes, prior: Floats) -> Floats:
    """Return weights of rows that give the classes these shares, and 1 on average."""
    counts = np.bincount(codes, minlength=len(prior))
    return np.asarray((prior * len(codes) / np.maximum(counts, 1))[codes])
