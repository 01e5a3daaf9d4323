"""What may watch, and stop, a training run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from tqdm.auto import tqdm

from setconv.errors import ParameterError
from setconv.messages import is_shown

Progress = Literal["auto"] | bool


@dataclass
class TrainingState:
    """Where a training run stands; what callbacks see.

    Attributes
    ----------
    max_steps : int
    step : int
        Steps done.
    loss : float
        Mean training loss since the last record in ``history``; nan before the first.
    history : list of dict
        One record every hundredth of the run and at every look at the validation rows: "step",
        "loss", "lr", and with validation rows "validation" (the monitored figure, higher is
        better).
    best_step : int or None
        Step of the best look at the validation rows so far.
    best_score : float
    looks_since_best : int
    stop : bool
        Set it to True to end the run after this step.
    """

    max_steps: int
    step: int = 0
    loss: float = float("nan")
    history: list[dict[str, float]] = field(default_factory=list)
    best_step: int | None = None
    best_score: float = float("-inf")
    looks_since_best: int = 0
    stop: bool = False


class Callback:
    """Base class of callbacks: override what you need.

    Examples
    --------
    >>> class StopAt(Callback):
    ...     def on_step_end(self, state):
    ...         state.stop = state.step >= 10
    """

    def on_fit_begin(self, state: TrainingState) -> None:
        """Run before the first step, or the first after resuming."""

    def on_step_end(self, state: TrainingState) -> None:
        """Run after each step."""

    def on_record(self, state: TrainingState) -> None:
        """Run after a record was added to ``state.history``."""

    def on_fit_end(self, state: TrainingState) -> None:
        """Run after the last step, also when training ends with an error."""


class ProgressBar(Callback):
    """A bar on standard error with the loss and the time left."""

    def __init__(self) -> None:
        self._bar: Any = None

    def on_fit_begin(self, state: TrainingState) -> None:
        """Open the bar."""
        self._bar = tqdm(total=state.max_steps, initial=state.step, unit="step", desc="SetConv")

    def on_step_end(self, state: TrainingState) -> None:  # noqa: ARG002 (the interface)
        """Move the bar."""
        self._bar.update(1)

    def on_record(self, state: TrainingState) -> None:
        """Show the loss."""
        last = state.history[-1]
        shown = {name: last[name] for name in ("loss", "validation") if name in last}
        self._bar.set_postfix(shown, refresh=False)

    def on_fit_end(self, state: TrainingState) -> None:  # noqa: ARG002 (the interface)
        """Close the bar."""
        self._bar.close()


def gather_callbacks(callbacks: Sequence[Callback], progress: Progress) -> list[Callback]:
    """Return the user's callbacks, and a progress bar if wanted; "auto" is on a terminal."""
    given: Any = callbacks
    if not isinstance(given, Sequence) or not all(hasattr(one, "on_step_end") for one in given):
        raise ParameterError(
            f"callbacks={callbacks!r}: give a list of objects like setconv.training.Callback."
        )
    return [*callbacks, ProgressBar()] if is_shown(progress) else list(callbacks)
