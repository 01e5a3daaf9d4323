"""The parameters of a fit: checked one by one, then resolved for the shape of the data.

`FitParameters` makes each a plain number of the right kind, and names it if it is wrong; `resolve`
settles what is "auto". What the parameters mean is told by `setconv.SetConvClassifier`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from setconv.episodes import HeadSharing, QuerySource
from setconv.errors import ParameterError
from setconv.nn.network import Similarity
from setconv.preprocessing import FEW_COLUMNS, Scaling
from setconv.training.early_stopping import MONITORS, Monitor
from setconv.training.optimizer import Optimizer, Schedule, TrainingSettings

_SMALL_TABLE = 500  # rows up to which more steps, or longer ones, bring nothing


@dataclass(frozen=True)
class FitParameters:
    """The parameters of the classifier that a fit reads; see `setconv.SetConvClassifier`.

    Rooms below check what a number may be; here it is made a plain number, so that a list or a
    number of numpy's means the same as Python's own everywhere.
    """

    n_members: int | Literal["auto"]
    objective: Any
    scaling: Scaling | Sequence[Scaling] | None
    encoder: Sequence[int] | Literal["auto"]
    out_features: int | Literal["auto"]
    output: int | None
    similarity: Similarity
    dropout: float | Literal["auto"]
    input_dropout: float | Literal["auto"]
    linear_share: float | Literal["auto"]
    heads: HeadSharing
    anchor: Any
    support_size: int
    n_queries: int
    n_episodes: int | Literal["auto"]
    query_source: QuerySource
    max_steps: int | Literal["auto"]
    optimizer: Optimizer
    lr: float | Mapping[str, float] | Literal["auto"]
    weight_decay: float
    schedule: Schedule
    post_size: int | None
    early_stopping: bool
    validation_fraction: float
    patience: int | None
    monitor: Monitor
    device: str
    checkpoint_dir: str | Path | None

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
        if self.n_members != "auto" and self.n_members < 1:
            raise ParameterError(f'n_members={self.n_members!r}: give at least 1, or "auto".')
        if self.linear_share != "auto" and not 0 <= self.linear_share < 1:
            raise ParameterError(
                f'linear_share={self.linear_share!r}: give a share from 0 to below 1, or "auto".'
            )
        if self.post_size is not None and self.post_size < 2:
            raise ParameterError(f"post_size={self.post_size!r}: give at least 2, or None.")

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Take the parameters of an estimator."""
        given = estimator.get_params(deep=False)
        return cls(**{field.name: given[field.name] for field in fields(cls)})

    def resolve(
        self,
        n_rows: int,
        n_features: int,
        n_groups: int | None = None,
        *,
        n_classes: int = 2,
        has_lines: bool = False,
    ) -> Resolved:
        """Return the numbers of the fit; what is "auto" follows the shape of the data.

        Parameters
        ----------
        n_rows, n_features : int
            As the network sees them, after a projection.
        n_groups : int, optional
        n_classes : int, default=2
        has_lines : bool, default=False
            Whether the linear part sees all columns of sparse rows, of which the network sees less.
        """

        def settled(given: Any, automatic: Any) -> Any:
            return automatic if isinstance(given, str) else given

        few = n_features <= FEW_COLUMNS
        linear_share = automatic_linear_share(n_rows, n_features, n_groups)
        if has_lines:
            linear_share = _SPARSE_LINEAR_SHARE
        settings = TrainingSettings(
            settled(self.max_steps, automatic_steps(n_rows, few)),
            optimizer=self.optimizer,
            lr=settled(self.lr, 0.003 if few else 0.001),
            weight_decay=self.weight_decay,
            schedule=self.schedule,
            patience=self.patience,
        )
        return Resolved(
            settings,
            encoder=settled(self.encoder, (128,) if few else (256,)),
            out_features=settled(self.out_features, 64 if few else 128),
            n_members=settled(self.n_members, 10 if n_rows <= 5000 else 5),
            n_episodes=settled(self.n_episodes, self._automatic_episodes(n_rows, n_classes, few)),
            dropout=settled(self.dropout, 0.2 if few else 0.4),
            input_dropout=settled(self.input_dropout, 0.0 if few else 0.5),
            linear_share=settled(self.linear_share, linear_share),
        )

    def _automatic_episodes(self, n_rows: int, n_classes: int, few_columns: bool) -> int:
        """Return 1 to 4, or fewer: with many classes an episode has more rows, a step not more."""
        small = few_columns and n_rows <= _SMALL_TABLE
        episodes = 1 if small else 2 if n_rows <= 2000 else 4
        if self.heads == "separate":
            return episodes
        binary = self.support_size + 2 * self.n_queries
        return max(1, round(episodes * binary / (self.support_size + n_classes * self.n_queries)))


@dataclass(frozen=True)
class Resolved:
    """The numbers of a fit in which nothing is "auto" any more."""

    settings: TrainingSettings
    encoder: Sequence[int]
    out_features: int
    n_members: int
    n_episodes: int
    dropout: float
    input_dropout: float
    linear_share: float


def automatic_steps(n_rows: int, few_columns: bool) -> int:
    """Return the steps for ``max_steps="auto"``: one for 20 rows, but 200 to 600, and to 1500."""
    least = 600 if not few_columns else 200 if n_rows <= _SMALL_TABLE else 300
    return min(max(least, n_rows // 20), 1500)


_SPARSE_LINEAR_SHARE = 0.8
_MOST_LINEAR_COLUMNS = 4096
_FEW_GROUPS = 50


def automatic_linear_share(n_rows: int, n_features: int, n_groups: int | None = None) -> float:
    """Return the share for ``linear_share="auto"``.

    A half where the rows come in a few groups, for new rows will then be of other groups, unlike
    all that were seen. Else a quarter up to 5,000 rows, then less: with many rows the network
    knows better. With few columns, or so many that the metric costs too much, none.
    """
    if not FEW_COLUMNS < n_features <= _MOST_LINEAR_COLUMNS:
        return 0.0
    if n_groups is not None and n_groups <= _FEW_GROUPS:
        return 0.5
    return 0.25 * min(1.0, 5000 / n_rows)


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


def _integer(name: str, value: Any, alternative: str = "") -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise ParameterError(f"{name}={value!r}: give an integer{alternative}.") from None


def _number(name: str, value: Any, alternative: str = "") -> float:
    # nan passes: the room that knows the range refuses it by the same words as other numbers.
    if isinstance(value, (int, float, np.number)) and not math.isinf(value):
        return float(value)
    raise ParameterError(f"{name}={value!r}: give a finite number{alternative}.")


def _widths(name: str, value: Any, alternative: str = "") -> tuple[int, ...]:
    if isinstance(value, str) or not isinstance(value, (Sequence, np.ndarray)):
        raise ParameterError(
            f"{name}={value!r}: give a list of layer widths, () for none{alternative}."
        )
    return tuple(_integer(name, width) for width in value)


def _rates(name: str, value: Any, alternative: str = "") -> Any:
    if isinstance(value, Mapping):
        return {key: _number(name, rate) for key, rate in sorted(value.items())}
    return _number(name, value, alternative)


def _or_none(make_plain: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, value: None if value is None else make_plain(name, value)


def _or_auto(make_plain: Callable[..., Any]) -> Callable[[str, Any], Any]:
    def check(name: str, value: Any) -> Any:
        automatic = isinstance(value, str) and value == "auto"
        return value if automatic else make_plain(name, value, ' or "auto"')

    return check


_KINDS: dict[tuple[str, ...], Callable[[str, Any], Any]] = {
    ("support_size", "n_queries"): _integer,
    ("output", "post_size", "patience"): _or_none(_integer),
    ("weight_decay", "validation_fraction"): _number,
    ("encoder",): _or_auto(_widths),
    ("max_steps", "n_members", "n_episodes", "out_features"): _or_auto(_integer),
    ("dropout", "input_dropout", "linear_share"): _or_auto(_number),
    ("lr",): _or_auto(_rates),
}
