"""How the weights move: the numbers of the training loop, the learning rate of a step, and Adam."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from setconv.nn.network import SetConvNetwork

Optimizer = Literal["adamw", "adam"]
Schedule = Literal["one_cycle", "cosine", "constant"]


@dataclass(frozen=True)
class TrainingSettings:
    """The numbers of the training loop; `setconv.classifier` checks them.

    Attributes
    ----------
    max_steps : int
        Optimiser steps; each sees one batch of episodes.
    optimizer : {"adamw", "adam"}
    lr : float or mapping
        Peak learning rate, or one for each of "encoder", "setconv" and "output".
    weight_decay : float
        Decoupled for AdamW, part of the gradient for Adam.
    schedule : {"one_cycle", "cosine", "constant"}
    patience : int or None
        Looks without improvement before training stops; None never stops early.
    """

    max_steps: int
    optimizer: Optimizer = "adamw"
    lr: float | Mapping[str, float] = 1e-3
    weight_decay: float = 0.01
    schedule: Schedule = "one_cycle"
    patience: int | None = None

    def lr_at(self, group: str, step: int) -> float:
        """Return the learning rate of a group of parameters at a step, from 0."""
        peak = self.lr[group] if isinstance(self.lr, Mapping) else self.lr
        return peak * lr_factor(self.schedule, step, self.max_steps)


# Smith's one cycle with the constants of torch.optim.lr_scheduler.OneCycleLR.
_WARM_UP = 0.3
_START = 1 / 25
_END = _START / 1e4


def lr_factor(schedule: Schedule, step: int, max_steps: int) -> float:
    """Return the share of the peak learning rate that step ``step`` (from 0) uses.

    Examples
    --------
    >>> [round(lr_factor("cosine", step, 4), 3) for step in range(4)]
    [1.0, 0.854, 0.5, 0.146]
    """
    if schedule == "constant":
        return 1.0
    if schedule == "cosine":
        return _cosine(1.0, 0.0, step / max_steps)
    peak = max(1.0, _WARM_UP * max_steps - 1)
    if step <= peak:
        return _cosine(_START, 1.0, step / peak)
    return _cosine(1.0, _END, (step - peak) / max(1.0, max_steps - 1 - peak))


def _cosine(start: float, end: float, progress: float) -> float:
    """Go from ``start`` to ``end`` along half a cosine."""
    return end + (start - end) * (1 + math.cos(math.pi * min(progress, 1.0))) / 2


_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


class Adam:
    """Adam, or AdamW, by torch's fused step.

    The computation is that of `torch.optim`, whose kernels are called directly: making one of its
    optimisers imports torch's compiler, which takes longer than the whole fit of a small table,
    and in a small step its checks take longer than the computation.

    Parameters
    ----------
    network : SetConvNetwork
    settings : TrainingSettings
    """

    def __init__(self, network: SetConvNetwork, settings: TrainingSettings) -> None:
        self.settings = settings
        parts: dict[str, list[Tensor]] = defaultdict(list)
        for name, parameter in network.named_parameters():
            part = name.split(".")[0]
            parts[part if part in ("encoder", "output") else "setconv"].append(parameter)
        self._groups = [_ParameterGroup(name, parameters) for name, parameters in parts.items()]

    def lr_at(self, step: int) -> float:
        """Return the largest learning rate of a step, from 0."""
        return max(self.settings.lr_at(group.name, step) for group in self._groups)

    @torch.no_grad()
    def step(self, step: int) -> None:
        """Take a step, whose number is counted from 0, along the gradients, and forget these."""
        take = torch._fused_adamw_ if self.settings.optimizer == "adamw" else torch._fused_adam_
        for group in self._groups:
            torch._foreach_add_(group.steps, 1)
            take(
                group.parameters,
                [g for one in group.parameters if (g := one.grad) is not None],
                group.means,
                group.squares,
                [],
                group.steps,
                lr=self.settings.lr_at(group.name, step),
                beta1=_BETAS[0],
                beta2=_BETAS[1],
                weight_decay=self.settings.weight_decay,
                eps=_EPSILON,
                amsgrad=False,
                maximize=False,
            )
            for parameter in group.parameters:
                parameter.grad = None

    def state(self) -> dict[str, Tensor]:
        """Return what has to be kept to go on, by name."""
        return {
            f"{group.name}/{kind}/{number}": tensor
            for group in self._groups
            for kind in ("means", "squares", "steps")
            for number, tensor in enumerate(getattr(group, kind))
        }

    def load_state(self, kept: Mapping[str, Tensor]) -> None:
        """Go on from what `state` returned."""
        for name, tensor in self.state().items():
            tensor.copy_(kept[name])


class _ParameterGroup:
    """Parameters of one part of the network, with what Adam remembers of them.

    Parameters
    ----------
    name : {"encoder", "setconv", "output"}
    parameters : list of Tensor

    Attributes
    ----------
    means, squares, steps : list of Tensor
        Running means of the gradients and of their squares, and steps taken, one a parameter.
    """

    def __init__(self, name: str, parameters: list[Tensor]) -> None:
        self.name, self.parameters = name, parameters
        self.means = [torch.zeros_like(one) for one in parameters]
        self.squares = [torch.zeros_like(one) for one in parameters]
        self.steps = [torch.zeros((), device=one.device) for one in parameters]
