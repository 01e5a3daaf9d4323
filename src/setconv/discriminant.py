"""The linear part of a member: class means compared under one metric, in closed form.

A network bends the space around the rows that it has seen. Where new rows come from elsewhere, an
event or a customer that the training rows do not have, a straight line often holds better, and
elsewhere it costs nothing; so each member leans on one a little. Like the set convolution it
compresses each class into one representative, here its mean, and both classes weigh the same.
"""

from __future__ import annotations

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
_CHUNK = 8192  # rows at a time; sums are kept in double precision


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
    views: Tensor,
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
    views : Tensor of shape (n_views, n_rows, n_inputs)
        Member ``m`` takes view ``m`` modulo their number.
    codes : array of shape (n_rows,)
    row_weights : array of shape (n_rows,)
    left_out : bool array of shape (n_members, n_rows)
        Rows that a member does not learn from.
    n_classes : int
    """
    members = torch.from_numpy(np.eye(n_classes)[codes] * row_weights[:, None])
    everything = [_sums(view, members, np.arange(len(codes))) for view in views]
    weights, intercepts = [], []
    for number, out in enumerate(left_out):
        view = number % len(views)
        own = everything[view]
        if out.any():
            own = own.without(_sums(views[view], members, np.flatnonzero(out)))
        directions, middles = own.discriminate()
        weights.append(directions)
        intercepts.append(-(directions * middles).sum(dim=1))
    return Discriminants(
        torch.cat(weights).to(views.device, torch.float32),
        torch.cat(intercepts).to(views.device, torch.float32),
    )


@dataclass(frozen=True)
class _Sums:
    """What a discriminant is made from, in double precision."""

    mass: Tensor  # of each class
    totals: Tensor  # (n_classes, n_inputs)
    scatter: Tensor  # (n_inputs, n_inputs)

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


def _sums(rows: Tensor, members: Tensor, chosen: NDArray[np.int64]) -> _Sums:
    n_inputs, device = rows.shape[1], rows.device
    totals = torch.zeros(members.shape[1], n_inputs, dtype=torch.float64, device=device)
    scatter = torch.zeros(n_inputs, n_inputs, dtype=torch.float64, device=device)
    for start in range(0, len(chosen), _CHUNK):
        part = torch.from_numpy(chosen[start : start + _CHUNK])
        some, theirs = rows[part.to(device)], members[part].to(device, torch.float32)
        totals += theirs.T @ some
        scatter += (some * theirs.sum(dim=1, keepdim=True)).T @ some
    return _Sums(members[torch.from_numpy(chosen)].sum(dim=0).to(device), totals, scatter)
