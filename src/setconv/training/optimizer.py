"""Adam and AdamW over the parts of a network, each with a learning rate of its own."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from setconv.nn import SetConvNetwork
from setconv.training.settings import TrainingSettings

_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


@dataclass
class ParameterGroup:
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
        parts: dict[str, list[Tensor]] = {"encoder": [], "setconv": [], "output": []}
        for name, parameter in network.named_parameters():
            part = name.split(".")[0]
            parts[part if part in parts else "setconv"].append(parameter)
        self.groups = [
            ParameterGroup(
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

    def _places(self) -> list[tuple[ParameterGroup, int]]:
        return [(group, place) for group in self.groups for place in range(len(group.parameters))]
