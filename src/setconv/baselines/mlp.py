"""A multilayer perceptron as plain tensors: its first weights, its output, its loss and its AUC."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata
from torch import Tensor

Layers = list[tuple[Tensor, Tensor]]


@dataclass
class Data:
    """Rows, their codes, and the weight of each in the loss."""

    rows: Tensor
    codes: Tensor
    weights: Tensor

    def part(self, which: Any) -> Data:
        """Return some of the rows, by numbers or by a mask."""
        which = torch.as_tensor(which)
        return Data(self.rows[which], self.codes[which], self.weights[which])


@dataclass
class Best:
    """The best epoch so far."""

    value: tuple[float, float] = (-np.inf, -np.inf)
    epoch: int = -1
    layers: Layers | None = None

    def see(self, value: tuple[float, float], epoch: int, layers: Layers) -> None:
        """Keep a copy of the layers if the epoch is better than all before."""
        if value > self.value:
            self.value, self.epoch = value, epoch
            self.layers = [
                (weights.detach().clone(), bias.detach().clone()) for weights, bias in layers
            ]


def weighted_cross_entropy(logits: Tensor, codes: Tensor, weights: Tensor) -> Tensor:
    """Return the mean over rows of ``-w_i log p_{y_i}(x_i)``."""
    losses = torch.nn.functional.cross_entropy(logits, codes, reduction="none")
    return (weights * losses).mean()


def first_layers(widths: tuple[int, ...], generator: torch.Generator) -> Layers:
    """Draw weights that keep the variance through ReLU (He), with biases of 0."""
    layers = []
    for before, after in pairwise(widths):
        bound = np.sqrt(6 / before)
        weights = (torch.rand(before, after, generator=generator) * 2 - 1) * bound
        layers.append((weights.requires_grad_(), torch.zeros(after, requires_grad=True)))
    return layers


def forward(
    rows: Tensor, layers: Layers, dropout: float, generator: torch.Generator | None
) -> Tensor:
    """Return the logits; units are dropped where there is a share to drop."""
    for weights, bias in layers[:-1]:
        rows = torch.relu(torch.addmm(bias, rows, weights))
        if dropout > 0:
            kept = torch.rand(rows.shape, generator=generator) >= dropout
            rows = rows * kept / (1 - dropout)
    weights, bias = layers[-1]
    return torch.addmm(bias, rows, weights)


@torch.no_grad()
def judge(data: Data, layers: Layers) -> tuple[float, float]:
    """Return the mean AUC of one class against the rest, and the weighted loss."""
    logits = forward(data.rows, layers, 0.0, None)
    loss = weighted_cross_entropy(logits, data.codes, data.weights).item()
    codes = data.codes.numpy()
    scores = logits.double().softmax(dim=1).numpy()
    aucs = [_auc(codes == code, scores[:, code]) for code in np.unique(codes)]
    return float(np.mean(aucs)), loss


def _auc(positive: np.ndarray, scores: np.ndarray) -> float:
    """Return the AUC by ranks, which is faster than by the curve."""
    n_positive = int(positive.sum())
    above = rankdata(scores)[positive].sum() - n_positive * (n_positive + 1) / 2
    return float(above / (n_positive * (len(positive) - n_positive)))
