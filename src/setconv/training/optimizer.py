"""How the weights move: the numbers of the training loop, the learning rate of a step, and Adam."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from setconv.errors import ParameterError
from setconv.nn.network import SetConvNetwork

Optimizer = Literal["adamw", "adam"]
Schedule = Literal["one_cycle", "cosine", "constant"]
SCHEDULES: tuple[Schedule, ...] = ("one_cycle", "cosine", "constant")
_GROUPS = ("encoder", "setconv", "output")  # of parameters: each may have its own learning rate


@dataclass(frozen=True)
class TrainingSettings:
    """The numbers of the training loop.

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

    def __post_init__(self) -> None:
        """Refuse numbers that cannot work."""
        if self.optimizer not in ("adamw", "adam"):
            raise ParameterError(f'optimizer={self.optimizer!r}: choose "adamw" or "adam".')
        if self.schedule not in SCHEDULES:
            names = ", ".join(map(repr, SCHEDULES))
            raise ParameterError(f"schedule={self.schedule!r}: choose one of {names}.")
        if self.max_steps < 0:
            raise ParameterError(f"max_steps={self.max_steps!r}: give 0 or more.")
        if self.patience is not None and self.patience < 1:
            raise ParameterError(f"patience={self.patience!r}: give at least 1, or None.")
        if not self.weight_decay >= 0:
            raise ParameterError(f"weight_decay={self.weight_decay!r}: give 0 or more.")
        for group in _GROUPS:
            if not self.lr_of(group) > 0:
                raise ParameterError(f"lr={self.lr!r}: learning rates must be positive.")

    def lr_of(self, group: str) -> float:
        """Return the peak learning rate of a parameter group."""
        if not isinstance(self.lr, Mapping):
            return self.lr
        missing = set(_GROUPS) ^ set(self.lr)
        if missing:
            raise ParameterError(
                f"lr={dict(self.lr)!r}: give one number, or exactly the keys {', '.join(_GROUPS)}."
            )
        return self.lr[group]


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
        parts: dict[str, list[Tensor]] = {name: [] for name in _GROUPS}
        for name, parameter in network.named_parameters():
            part = name.split(".")[0]
            parts[part if part in parts else "setconv"].append(parameter)
        self.groups = [
            _ParameterGroup(
                name,
                parameters,
                settings.lr_of(name),
                [torch.zeros_like(one) for one in parameters],
                [torch.zeros_like(one) for one in parameters],
                [torch.zeros((), device=one.device) for one in parameters],
            )
            for name, parameters in parts.items()
            if parameters
        ]

    def forget_gradients(self) -> None:
        """Let the next backward pass begin anew."""
        for group in self.groups:
            for parameter in group.parameters:
                parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Take a step along the gradients."""
        adamw = self.settings.optimizer == "adamw"
        take = torch._fused_adamw_ if adamw else torch._fused_adam_
        for group in self.groups:
            moved = [i for i, one in enumerate(group.parameters) if one.grad is not None]
            if not moved:
                continue
            steps = [group.steps[i] for i in moved]
            torch._foreach_add_(steps, 1)
            take(
                [group.parameters[i] for i in moved],
                [g for i in moved if (g := group.parameters[i].grad) is not None],
                [group.means[i] for i in moved],
                [group.squares[i] for i in moved],
                [],
                steps,
                lr=group.lr,
                beta1=_BETAS[0],
                beta2=_BETAS[1],
                weight_decay=self.settings.weight_decay,
                eps=_EPSILON,
                amsgrad=False,
                maximize=False,
            )

    def state(self) -> dict[str, Tensor]:
        """Return what has to be kept to go on, by name."""
        kept = {}
        for index, (group, place) in enumerate(self._places()):
            kept[f"{index}/exp_avg"] = group.means[place]
            kept[f"{index}/exp_avg_sq"] = group.squares[place]
            kept[f"{index}/step"] = group.steps[place]
        return kept

    def load_state(self, kept: dict[str, Tensor]) -> None:
        """Go on from what `state` returned; raises KeyError where a part is missing."""
        for index, (group, place) in enumerate(self._places()):
            group.means[place].copy_(kept[f"{index}/exp_avg"])
            group.squares[place].copy_(kept[f"{index}/exp_avg_sq"])
            group.steps[place].copy_(kept[f"{index}/step"])

    def _places(self) -> list[tuple[_ParameterGroup, int]]:
        return [(group, place) for group in self.groups for place in range(len(group.parameters))]


@dataclass
class _ParameterGroup:
    """Parameters of one part of the network, with what Adam remembers of them.

    Attributes
    ----------
    name : {"encoder", "setconv", "output"}
    parameters : list of Tensor
    lr : float
        Learning rate of the next step.
    means, squares, steps : list of Tensor
        Running means of the gradients and of their squares, and steps taken, one a parameter.
    """

    name: str
    parameters: list[Tensor]
    lr: float
    means: list[Tensor]
    squares: list[Tensor]
    steps: list[Tensor]
