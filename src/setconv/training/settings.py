"""How to train: the numbers of the loop, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from setconv.errors import ParameterError
from setconv.training.schedule import SCHEDULES, Schedule

Optimizer = Literal["adamw", "adam"]
PARAMETER_GROUPS = ("encoder", "setconv", "output")


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
    eval_every : int
        Steps between two looks at the validation rows.
    patience : int or None
        Looks without improvement before training stops; None never stops early.
    checkpoint_every : int
        Steps between two checkpoints.
    """

    max_steps: int
    optimizer: Optimizer = "adamw"
    lr: float | Mapping[str, float] = 1e-3
    weight_decay: float = 0.01
    schedule: Schedule = "one_cycle"
    eval_every: int = 100
    patience: int | None = None
    checkpoint_every: int = 100

    def __post_init__(self) -> None:
        """Refuse numbers that cannot work."""
        if self.optimizer not in ("adamw", "adam"):
            raise ParameterError(f'optimizer={self.optimizer!r}: choose "adamw" or "adam".')
        if self.schedule not in SCHEDULES:
            names = ", ".join(map(repr, SCHEDULES))
            raise ParameterError(f"schedule={self.schedule!r}: choose one of {names}.")
        if self.max_steps < 0:
            raise ParameterError(f"max_steps={self.max_steps!r}: give 0 or more.")
        for name in ("eval_every", "checkpoint_every"):
            if getattr(self, name) < 1:
                raise ParameterError(f"{name}={getattr(self, name)!r}: give at least 1.")
        if self.patience is not None and self.patience < 1:
            raise ParameterError(f"patience={self.patience!r}: give at least 1, or None.")
        self._check_rates()

    def _check_rates(self) -> None:
        if not self.weight_decay >= 0:
            raise ParameterError(f"weight_decay={self.weight_decay!r}: give 0 or more.")
        for group in PARAMETER_GROUPS:
            if not self.lr_of(group) > 0:
                raise ParameterError(f"lr={self.lr!r}: learning rates must be positive.")

    def lr_of(self, group: str) -> float:
        """Return the peak learning rate of a parameter group."""
        if not isinstance(self.lr, Mapping):
            return self.lr
        missing = set(PARAMETER_GROUPS) ^ set(self.lr)
        if missing:
            raise ParameterError(
                f"lr={dict(self.lr)!r}: give one number, or exactly the keys "
                f"{', '.join(PARAMETER_GROUPS)}."
            )
        return self.lr[group]
