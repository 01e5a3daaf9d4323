"""The loss of a batch of episodes: cross-entropy in which both sides of a head weigh the same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from setconv.layout import Layout


@dataclass(frozen=True)
class EpisodeLoss:
    """Cross-entropy of equations 5-6 over the queries, all heads summed.

    Attributes
    ----------
    average : Tensor of shape (heads, 1, 2, support)
        Averages the support rows of each side of each head.
    target : Tensor of shape (heads, 1, queries)
        +1 or -1.
    sides : Tensor of shape (heads, 1, 2, queries)
        Averages the queries of each side.
    side_weight : Tensor of shape (heads, 2)
        Weight of the two sides, summing to one.
    offset : Tensor of shape (heads, 1, 1)
        Log-ratio of the side weights: what unequal class weights add to the margin, here and in
        predictions, so that a weight moves the decision by exactly its logarithm.
    """

    average: Tensor
    target: Tensor
    sides: Tensor
    side_weight: Tensor
    offset: Tensor

    @classmethod
    def build(
        cls, layout: Layout, side_weight: NDArray[np.float64], device: torch.device
    ) -> EpisodeLoss:
        """Put the layout of the episodes and the weights of the sides on a device."""
        weight = torch.as_tensor(side_weight, dtype=torch.float32, device=device)
        return cls(
            average=torch.from_numpy(layout.average).to(device).unsqueeze(1),
            target=torch.from_numpy(layout.target).to(device).unsqueeze(1),
            sides=torch.from_numpy(layout.query_sides).to(device).unsqueeze(1),
            side_weight=weight,
            offset=(weight[:, 1] / weight[:, 0]).log().view(-1, 1, 1),
        )

    def support_average(self, row_weights: Tensor | None) -> Tensor:
        """Return the support averages; row weights ([heads,] episodes, support) join in."""
        if row_weights is None:
            return self.average
        weighted = self.average * row_weights.unsqueeze(-2)
        return weighted / weighted.sum(dim=-1, keepdim=True)

    def __call__(self, margin: Tensor, row_weights: Tensor | None) -> Tensor:
        """Return the loss of margins (heads, episodes, queries), averaged over the episodes.

        Parameters
        ----------
        margin : Tensor of shape (heads, episodes, queries)
        row_weights : Tensor of shape ([heads,] episodes, queries), optional
            Weights of the queries; within a side only their ratio matters.
        """
        # Two-class cross-entropy is softplus of the negative margin of the true side.
        losses = functional.softplus(-self.target * (margin + self.offset))
        if row_weights is None:
            return (self._query_weights * losses).sum() / margin.shape[1]
        weighted = self.sides * row_weights.unsqueeze(-2)
        by_side = (weighted * losses.unsqueeze(-2)).sum(dim=(1, 3)) / weighted.sum(dim=(1, 3))
        return (self.side_weight * by_side).sum()

    @cached_property
    def _query_weights(self) -> Tensor:
        """What each query counts, (heads, 1, queries), where rows have no weights of their own."""
        return (self.side_weight.view(-1, 1, 2, 1) * self.sides).sum(dim=-2)
