"""The linear part of a member: class means compared under one metric, in closed form.

A network bends the space around the rows that it has seen. Where new rows come from elsewhere, an
event or a customer that the training rows do not have, a straight line often holds better, and
elsewhere it costs nothing; so each member leans on one a little. Like the set convolution it
compresses each class into one representative, here its mean, and both classes weigh the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setconv.heads import count_heads

# How far the covariance is drawn to a multiple of the identity. Half or more holds better on rows
# from elsewhere than what is best for rows like those seen.
_SHRINKAGE = 0.6


@dataclass(frozen=True)
class Discriminants:
    """A linear score for each head of each member: ``x @ weight + intercept``.

    Attributes
    ----------
    weights : float32 Tensor of shape (n_stacked, n_inputs)
        For rows as the member sees them; the heads of the first member come first.
    intercepts : float32 Tensor of shape (n_stacked,)
        Scores are 0 half-way between the means of a head's two sides.
    """

    weights: Tensor
    intercepts: Tensor

    def __call__(self, views: Tensor, n_members: int) -> Tensor:
        """Score rows, given as (n_views, n_rows, n_inputs); the result is (n_stacked, n_rows)."""
        heads = len(self.weights) // n_members
        if len(views) == 1:
            products = self.weights @ views[0].T
        else:
            member = torch.arange(len(self.weights), device=views.device) // heads
            products = (views[member % len(views)] @ self.weights.unsqueeze(-1)).squeeze(-1)
        return products + self.intercepts.unsqueeze(-1)

    def scaled(self, factors: NDArray[np.float64]) -> Discriminants:
        """Return them with the scores of each multiplied by a factor."""
        by = torch.from_numpy(factors).to(self.weights)
        return Discriminants(self.weights * by.unsqueeze(-1), self.intercepts * by)

    def to(self, device: str | torch.device) -> Discriminants:
        """Return them on another device."""
        return Discriminants(self.weights.to(device), self.intercepts.to(device))


def fit_discriminants(
    chunks: Iterator[tuple[slice, Tensor]],
    codes: NDArray[np.int64],
    row_weights: NDArray[Any],
    left_out: NDArray[np.bool_],
    n_classes: int,
) -> Discriminants:
    """Fit Fisher's discriminant of each head to each member's own rows.

    With the means ``m1``, ``m0`` of the head's sides and the covariance ``S`` within classes, drawn
    to the identity, the weights are ``S^-1 (m1 - m0)``.

    Parameters
    ----------
    chunks : iterator of slice and Tensor of shape (n_views, rows, n_inputs)
        All rows, some at a time; member ``m`` takes view ``m`` modulo their number.
    codes : array of shape (n_rows,)
    row_weights : array of shape (n_rows,)
    left_out : bool array of shape (n_members, n_rows)
        Rows that a member does not learn from.
    n_classes : int
    """
    everything: list[_Sums] = []
    missing: list[_Sums] = []
    device = torch.device("cpu")
    for part, views in chunks:
        device = views.device
        if not everything:
            empty = [_Sums.empty(n_classes, views.shape[-1], device) for _ in range(len(left_out))]
            everything, missing = [one.copy() for one in empty[: len(views)]], empty
        classes = torch.from_numpy(np.eye(n_classes)[codes[part]] * row_weights[part, None])
        for view, sums in zip(views, everything, strict=False):
            sums.add(view, classes)
        for number, out in enumerate(left_out[:, part]):
            chosen = torch.from_numpy(np.flatnonzero(out))
            missing[number].add(views[number % len(views)][chosen.to(device)], classes[chosen])
    weights, intercepts = [], []
    for number, theirs in enumerate(missing):
        directions, middles = everything[number % len(everything)].without(theirs).discriminate()
        weights.append(directions)
        intercepts.append(-(directions * middles).sum(dim=1))
    return Discriminants(
        torch.cat(weights).to(device, torch.float32),
        torch.cat(intercepts).to(device, torch.float32),
    )


@dataclass(frozen=True)
class _Sums:
    """What a discriminant is made from, in double precision; rows can be added."""

    mass: Tensor  # of each class
    totals: Tensor  # (n_classes, n_inputs)
    scatter: Tensor  # (n_inputs, n_inputs)

    @classmethod
    def empty(cls, n_classes: int, n_inputs: int, device: torch.device) -> _Sums:
        """Return the sums of no rows."""
        shapes = (n_classes,), (n_classes, n_inputs), (n_inputs, n_inputs)
        return cls(*(torch.zeros(*one, dtype=torch.float64, device=device) for one in shapes))

    def copy(self) -> _Sums:
        """Return sums that can be added to without these changing."""
        return _Sums(self.mass.clone(), self.totals.clone(), self.scatter.clone())

    def add(self, rows: Tensor, classes: Tensor) -> None:
        """Add rows (n, n_inputs) with their weight in each class, float64 (n, n_classes)."""
        if not len(rows):
            return
        theirs = classes.to(rows.device, torch.float32)
        self.mass.add_(classes.sum(dim=0).to(rows.device))
        self.totals.add_(theirs.T @ rows)
        self.scatter.add_((rows * theirs.sum(dim=1, keepdim=True)).T @ rows)

    def without(self, other: _Sums) -> _Sums:
        """Take away the sums of some rows."""
        return _Sums(
            self.mass - other.mass, self.totals - other.totals, self.scatter - other.scatter
        )

    def discriminate(self) -> tuple[Tensor, Tensor]:
        """Return the direction of each head, and the point half-way between its sides."""
        means = self.totals / self.mass[:, None]
        within = (self.scatter - (means * self.mass[:, None]).T @ means) / self.mass.sum()
        level = within.diagonal().mean()
        if not level > 0:  # every class is one point, or all columns are constant
            within, level = torch.zeros_like(within), torch.ones_like(level)
        metric = (1 - _SHRINKAGE) * within
        metric.diagonal().add_(_SHRINKAGE * level)
        if count_heads(len(means)) == 1:
            ones, rest = means[1:], means[:1]
        else:
            others = self.totals.sum(dim=0) - self.totals
            ones, rest = means, others / (self.mass.sum() - self.mass)[:, None]
        return torch.linalg.solve(metric, (ones - rest).T).T, (ones + rest) / 2
