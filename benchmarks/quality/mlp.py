"""A plain MLP with balanced batches and early stopping: SetConv without its sets."""

from __future__ import annotations

from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.nn import functional as F

from benchmarks.quality.splits import folds


class BalancedMLP(ClassifierMixin, BaseEstimator):
    """One hidden layer; a batch has as many rows of either class; a fifth of the rows stops it."""

    def __init__(
        self,
        width: int = 256,
        dropout: float = 0.2,
        batch: int = 256,
        lr: float = 3e-3,
        max_epochs: int = 60,
        patience: int = 8,
        seed: int = 0,
    ) -> None:
        self.width = width
        self.dropout = dropout
        self.batch = batch
        self.lr = lr
        self.max_epochs = max_epochs
        self.patience = patience
        self.seed = seed

    def fit(self, X: NDArray, y: NDArray, groups: NDArray | None = None) -> Self:
        self.classes_ = np.unique(y)
        inside, outside = folds(y, groups, self.seed)[0]
        self.scaler_ = StandardScaler().fit(X[inside])
        rows, held = self._rows(X[inside]), self._rows(X[outside])
        sides = [torch.from_numpy(np.flatnonzero(y[inside] == c)) for c in (0, 1)]
        truth = torch.from_numpy(y[outside].astype(np.float32))
        weight = torch.where(truth > 0, 0.5 / truth.mean(), 0.5 / (1 - truth.mean()))
        # The global generator, for initial weights and dropout: torch's layers take no other.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = nn.Sequential(
                nn.Linear(X.shape[1], self.width),
                nn.ReLU(),
                nn.Dropout(self.dropout),
                nn.Linear(self.width, 1),
            )
            best, waited = np.inf, 0
            optimizer = torch.optim.AdamW(network.parameters(), lr=self.lr)
            for _ in range(self.max_epochs):
                self._epoch(network, optimizer, rows, sides)
                network.eval()
                with torch.no_grad():
                    loss = F.binary_cross_entropy_with_logits(network(held)[:, 0], truth, weight)
                waited += 1
                # Separable sets improve for ever, by less and less.
                if loss < best - 1e-3:
                    best, waited = float(loss), 0
                    kept = {name: value.clone() for name, value in network.state_dict().items()}
                if waited == self.patience:
                    break
        network.load_state_dict(kept)
        self.network_ = network
        return self

    def decision_function(self, X: NDArray) -> NDArray[np.float64]:
        with torch.no_grad():
            return self.network_(self._rows(X))[:, 0].numpy().astype(np.float64)

    def predict_proba(self, X: NDArray) -> NDArray[np.float64]:
        p = 1 / (1 + np.exp(-self.decision_function(X)))
        return np.column_stack([1 - p, p])

    def predict(self, X: NDArray) -> NDArray:
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def _epoch(
        self,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        rows: torch.Tensor,
        sides: list[torch.Tensor],
    ) -> None:
        network.train()
        half = self.batch // 2
        truth = torch.cat([torch.zeros(half), torch.ones(half)])
        for _ in range(max(10, len(rows) // self.batch)):
            drawn = torch.cat([side[torch.randint(len(side), (half,))] for side in sides])
            optimizer.zero_grad()
            F.binary_cross_entropy_with_logits(network(rows[drawn])[:, 0], truth).backward()
            optimizer.step()

    def _rows(self, X: NDArray) -> torch.Tensor:
        return torch.from_numpy(self.scaler_.transform(X).astype(np.float32))
