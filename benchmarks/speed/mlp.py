"""A plain PyTorch MLP of SetConv's size: what the same layers cost without its sets."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
import torch._dynamo  # else the optimiser's first step imports it, which is no cost of the network
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.nn import functional as F

_AT_ONCE = 8192


class PlainMLP:
    """Two ReLU layers with dropout, AdamW, a loss in which both classes weigh the same.

    Parameters
    ----------
    rows_seen : int
        Rows in all batches together.
    widths : (int, int), default=(256, 128)
    dropout : float, default=0.4
    batch : int, default=320
    lr : float, default=0.001
    """

    def __init__(
        self,
        rows_seen: int,
        widths: tuple[int, int] = (256, 128),
        dropout: float = 0.4,
        batch: int = 320,
        lr: float = 1e-3,
    ) -> None:
        self.rows_seen = rows_seen
        self.widths = widths
        self.dropout = dropout
        self.batch = batch
        self.lr = lr

    def fit(self, X: NDArray[np.float32], y: NDArray[np.int64]) -> Self:
        """Learn from balanced classes 0 and 1."""
        torch.manual_seed(0)
        self.scaler_ = StandardScaler().fit(X)
        rows, truth = self._scaled(X), torch.from_numpy(y.astype(np.float32))
        weight = torch.where(truth > 0, 0.5 / truth.mean(), 0.5 / (1 - truth.mean()))
        first, second = self.widths
        self.network_ = nn.Sequential(
            *(nn.Linear(X.shape[1], first), nn.ReLU(), nn.Dropout(self.dropout)),
            *(nn.Linear(first, second), nn.ReLU(), nn.Dropout(self.dropout)),
            nn.Linear(second, 1),
        )
        optimizer = torch.optim.AdamW(self.network_.parameters(), lr=self.lr, fused=True)
        for _ in range(max(1, self.rows_seen // self.batch)):
            drawn = torch.randint(len(rows), (self.batch,))
            optimizer.zero_grad()
            margin = self.network_(rows[drawn])[:, 0]
            F.binary_cross_entropy_with_logits(margin, truth[drawn], weight[drawn]).backward()
            optimizer.step()
        self.network_.eval()
        return self

    def decision_function(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the log-odds of class 1."""
        with torch.inference_mode():
            parts = [
                self.network_(self._scaled(X[start : start + _AT_ONCE]))[:, 0].numpy()
                for start in range(0, len(X), _AT_ONCE)
            ]
        return np.concatenate(parts)

    def predict(self, X: NDArray[np.float32]) -> NDArray[np.int64]:
        """Return class 0 or 1."""
        return (self.decision_function(X) > 0).astype(np.int64)

    def _scaled(self, X: NDArray[np.float32]) -> torch.Tensor:
        return torch.from_numpy(self.scaler_.transform(X).astype(np.float32, copy=False))
