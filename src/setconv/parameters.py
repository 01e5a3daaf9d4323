"""The parameters of a fit, checked: each of the right kind, plain numbers, named if wrong."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from setconv.episodes import QuerySource
from setconv.errors import ParameterError
from setconv.heads import HeadSharing
from setconv.nn.network import Similarity
from setconv.scaling import Scaling
from setconv.training.schedule import Schedule
from setconv.training.settings import Optimizer, TrainingSettings
from setconv.training.validation import MONITORS, Monitor


def _integer(name: str, value: Any, alternative: str = "") -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ParameterError(f"{name}={value!r}: give an integer{alternative}.") from None


def _number(name: str, value: Any) -> float:
    # nan passes: the room that knows the range refuses it by the same words as other numbers.
    if isinstance(value, (int, float, np.number)) and not math.isinf(value):
        return float(value)
    raise ParameterError(f"{name}={value!r}: give a finite number.")


def _widths(name: str, value: Any) -> tuple[int, ...]:
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)):
        raise ParameterError(f"{name}={value!r}: give a list of layer widths, () for none.")
    return tuple(_integer(name, width) for width in value)


def _steps(name: str, value: Any) -> Any:
    automatic = isinstance(value, str) and value == "auto"
    return value if automatic else _integer(name, value, ' or "auto"')


def _rates(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _number(name, rate) for key, rate in sorted(value.items())}
    return _number(name, value)


def _or_none(make_plain: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, value: None if value is None else make_plain(name, value)


_INTEGERS = (
    "out_features",
    "support_size",
    "n_queries",
    "n_episodes",
    "eval_every",
    "batch_size",
    "checkpoint_every",
)
_NUMBERS = ("temperature", "dropout", "input_dropout", "weight_decay", "validation_fraction")
_KINDS: dict[tuple[str, ...], Callable[[str, Any], Any]] = {
    _INTEGERS: _integer,
    ("output", "post_size", "patience"): _or_none(_integer),
    _NUMBERS: _number,
    ("clip",): _or_none(_number),
    ("encoder", "hidden"): _widths,
    ("max_steps",): _steps,
    ("lr",): _rates,
}


@dataclass(frozen=True)
class FitParameters:
    """The parameters of the classifier that a fit reads; see `setconv.SetConvClassifier`.

    Rooms below check what a number may be; here it is made a plain number, so that a list or a
    number of numpy's means the same as Python's own everywhere.
    """

    scaling: Scaling | None
    clip: float | None
    encoder: Sequence[int]
    out_features: int
    hidden: Sequence[int]
    output: int | None
    similarity: Similarity
    temperature: float
    dropout: float
    input_dropout: float
    heads: HeadSharing
    anchor: Any
    support_size: int
    n_queries: int
    n_episodes: int
    query_source: QuerySource
    max_steps: int | Literal["auto"]
    optimizer: Optimizer
    lr: float | Mapping[str, float]
    weight_decay: float
    schedule: Schedule
    post_size: int | None
    early_stopping: bool
    validation_fraction: float
    eval_every: int
    patience: int | None
    monitor: Monitor
    device: str
    batch_size: int
    checkpoint_dir: str | Path | None
    checkpoint_every: int

    def __post_init__(self) -> None:
        """Make values plain and refuse what no room below would name."""
        for group, make_plain in _KINDS.items():
            for name in group:
                object.__setattr__(self, name, make_plain(name, getattr(self, name)))
        if self.heads not in ("shared", "separate"):
            raise ParameterError(f'heads={self.heads!r}: choose "shared" or "separate".')
        if self.monitor not in MONITORS:
            names = ", ".join(map(repr, MONITORS))
            raise ParameterError(f"monitor={self.monitor!r}: choose one of {names}.")
        if self.batch_size < 1:
            raise ParameterError(f"batch_size={self.batch_size!r}: give at least 1.")
        if self.post_size is not None and self.post_size < 2:
            raise ParameterError(f"post_size={self.post_size!r}: give at least 2, or None.")

    def training_settings(self, n_rows: int) -> TrainingSettings:
        """Return the numbers of the loop; "auto" steps follow the number of rows."""
        steps = automatic_steps(n_rows) if self.max_steps == "auto" else self.max_steps
        return TrainingSettings(
            steps,
            optimizer=self.optimizer,
            lr=self.lr,
            weight_decay=self.weight_decay,
            schedule=self.schedule,
            eval_every=self.eval_every,
            patience=self.patience,
            checkpoint_every=self.checkpoint_every,
        )


def automatic_steps(n_rows: int) -> int:
    """Return the number of steps for ``max_steps="auto"``: 500 to 1500, one for 20 rows."""
    return min(max(500, n_rows // 20), 1500)


def seed_from(random_state: Any) -> int:
    """Return a seed: fresh entropy for None, a draw from a generator, or the number itself."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    seed = _integer("random_state", random_state, ", a numpy generator or None")
    if seed < 0:
        raise ParameterError(f"random_state={random_state!r}: give 0 or more.")
    return seed
