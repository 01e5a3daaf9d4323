"""One representative a class and head, from sums that can be streamed, merged and updated."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setconv.nn import SetConvNetwork


@dataclass
class SideSums:
    """Running sums of the rows' embeddings on the two sides of each head.

    A set's representation is the mean of its rows' embeddings, so sums and weights are all that
    has to be kept: parts can be merged and new rows added exactly, in any order. Sums are kept in
    float64 on the CPU.

    Attributes
    ----------
    total : float64 Tensor of shape (heads, 2, features)
    weight : float64 Tensor of shape (heads, 2)
    """

    total: Tensor
    weight: Tensor

    @classmethod
    def empty(cls, heads: int, features: int) -> SideSums:
        """Return sums over no rows."""
        return cls(
            torch.zeros(heads, 2, features, dtype=torch.float64),
            torch.zeros(heads, 2, dtype=torch.float64),
        )

    def add(self, embedded: Tensor, sides: Tensor, weights: Tensor) -> None:
        """Add rows: embedded (heads, n, features), sides (heads, n), weights (n,)."""
        member = torch.stack([sides == 0, sides == 1], dim=1).double() * weights
        self.total += member @ embedded.cpu().double()
        self.weight += member.sum(dim=-1)

    def merge(self, other: SideSums) -> SideSums:
        """Return the sums over the rows of both."""
        return SideSums(self.total + other.total, self.weight + other.weight)

    def representatives(self, network: SetConvNetwork) -> Tensor:
        """Return what queries are compared with: float32, shape (heads, 2, features)."""
        mean = (self.total / self.weight.unsqueeze(-1)).float()
        device = next(network.parameters()).device
        with torch.no_grad():
            return network.finish(mean.to(device))
