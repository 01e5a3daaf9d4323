"""A fitted model: scaling, anchors, network and representatives, and what they compute."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from setconv.errors import DataError
from setconv.heads import count_heads, head_sides
from setconv.nn import SetConvNetwork
from setconv.representatives import SideSums
from setconv.scaling import Scaler

# Rows go through the network in blocks of exactly this many (the last one padded): the products
# then have one shape, and a row's result does not depend on the batch that it came in.
BLOCK = 256


class SetConvModel:
    """Everything that a prediction needs, with no ties to scikit-learn.

    Parameters
    ----------
    network : SetConvNetwork
    scaler : Scaler
    anchors : float64 array of shape (heads, n_anchors, n_features)
        In the units of the input.
    n_classes : int
    offset : sequence of float, one a head
        Added to the scores (unequal class weights).

    Attributes
    ----------
    sums : SideSums
        What the representatives are made from.
    """

    def __init__(
        self,
        network: SetConvNetwork,
        scaler: Scaler,
        anchors: NDArray[np.float64],
        n_classes: int,
        offset: Sequence[float],
    ) -> None:
        self.network = network
        self.scaler = scaler
        self.anchors = anchors
        self.n_classes = n_classes
        self.offset = list(offset)
        self.sums = SideSums.empty(count_heads(n_classes), self.embedding_size)

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        return next(self.network.parameters()).device

    @property
    def embedding_size(self) -> int:
        """Number of features of a row's embedding before the output layer, all anchors."""
        return self.network.setconv.out_features * len(self.anchors[0])

    def to(self, device: str | torch.device) -> SetConvModel:
        """Return a copy on another device."""
        moved = copy.copy(self)
        moved.network = copy.deepcopy(self.network).to(device)
        return moved

    def scaled_anchors(self) -> Tensor:
        """Return the anchors as the network sees them."""
        flat = self.anchors.reshape(-1, self.anchors.shape[-1])
        scaled = torch.from_numpy(self.scaler(flat)).to(self.device)
        return scaled.view(self.anchors.shape)

    @property
    def representatives(self) -> Tensor:
        """What queries are compared with, shape (heads, 2, features)."""
        return self.sums.representatives(self.network)

    def reset_representatives(self) -> None:
        """Forget the rows seen, for instance after the weights have changed."""
        self.sums = SideSums.empty(self.network.n_heads, self.embedding_size)

    def add_rows(
        self, rows: NDArray[Any], codes: NDArray[np.integer], weights: NDArray[Any], batch: int
    ) -> None:
        """Let rows take part in the representatives: an exact update of their means.

        All of them or, if this is interrupted, none.
        """
        added = SideSums.empty(*self.sums.total.shape[::2])
        sides = torch.from_numpy(head_sides(codes, self.n_classes))
        row_weights = torch.as_tensor(weights, dtype=torch.float64)
        for part, embedded in self._embed(rows, batch):
            here = row_weights[part]
            added.add(embedded[:, : len(here)], sides[:, part], here)
        self.sums = self.sums.merge(added)

    def embed(self, rows: NDArray[Any], batch: int) -> NDArray[np.float32]:
        """Return the embedding of each row as it is compared, shape (n_rows, heads, features)."""
        parts = [
            self.network.finish(embedded).transpose(0, 1).cpu().numpy()
            for _, embedded in self._embed(rows, batch)
        ]
        return np.concatenate(parts)[: len(rows)]

    def scores(self, rows: NDArray[Any], batch: int) -> NDArray[np.float64]:
        """Return the log-odds of side 1 of each head, shape (n_rows, heads)."""
        sides = self.representatives
        difference = ((sides[:, 1] - sides[:, 0]) * self.network.scale()).detach().unsqueeze(1)
        parts = [
            (self.network.finish(embedded) * difference).sum(dim=-1).T.cpu().numpy()
            for _, embedded in self._embed(rows, batch)
        ]
        scores = np.concatenate(parts)[: len(rows)]
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
            raise DataError(
                f"Row {row} of X has values so large that its score is not finite: rescale the "
                'columns, or fit with scaling="standard".'
            )
        return np.asarray(scores + np.asarray(self.offset, dtype=np.float64))

    def _embed(self, rows: NDArray[Any], batch: int) -> Iterator[tuple[slice, Tensor]]:
        """Yield blocks of rows and their embeddings ``h(x)``, (heads, BLOCK, features).

        Only the last block is padded, so what is made of the padding is cut off at the very end:
        every product, the output layer's too, then has one shape.
        """
        batch = -(-batch // BLOCK) * BLOCK
        with torch.inference_mode():
            embed = self.network.prepare(self.scaled_anchors())
            for start in range(0, len(rows), batch):
                scaled = torch.from_numpy(self.scaler(rows[start : start + batch]))
                for inner in range(0, len(scaled), BLOCK):
                    block = scaled[inner : inner + BLOCK].to(self.device)
                    size = len(block)
                    if size < BLOCK:
                        block = torch.cat([block, block.new_zeros(BLOCK - size, block.shape[1])])
                    first = start + inner
                    yield slice(first, first + size), embed(self.network.encode(block))
