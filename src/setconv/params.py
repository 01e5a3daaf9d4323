"""The parameters of a fit: checked by one table, then settled for the shape of the data.

What they mean is told by `setconv.SetConvClassifier`. `check_parameters` makes each a plain value
and names it if it is wrong; `settle` puts numbers in the place of "auto".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from setconv.errors import ParameterError
from setconv.preprocessing import FEW_COLUMNS

Monitor = Literal["loss", "auc", "average_precision", "g_mean", "macro_f1", "minimum_of_five"]
# All parameters of the classifier by name, as plain values.
Parameters: TypeAlias = SimpleNamespace

_AUTO = StrOptions({"auto"})
_SHARE = Interval(Real, 0, 1, closed="left")
_POSITIVE = Interval(Real, 0, None, closed="neither")


def _at_least(number: int) -> Interval:
    return Interval(Integral, number, None, closed="left")


# What objective, class_weight, scaling, anchor and device may be, the rooms say that read them.
CONSTRAINTS: Mapping[str, list[Any]] = {
    "n_members": [_at_least(1), _AUTO],
    "linear_share": [_SHARE, _AUTO],
    "encoder": [tuple, _AUTO],
    "out_features": [_at_least(1), _AUTO],
    "output": [_at_least(1), None],
    "similarity": [StrOptions({"cosine", "dot"})],
    "dropout": [_SHARE, _AUTO],
    "input_dropout": [_SHARE, _AUTO],
    "heads": [StrOptions({"shared", "separate"})],
    "support_size": [_at_least(2)],
    "n_queries": [_at_least(1)],
    "n_episodes": [_at_least(1), _AUTO],
    "query_source": [StrOptions({"leave_one_out", "disjoint", "support"})],
    "post_size": [_at_least(2), None],
    "max_steps": [_at_least(0), _AUTO],
    "lr": [_POSITIVE, dict, _AUTO],
    "optimizer": [StrOptions({"adamw", "adam"})],
    "weight_decay": [Interval(Real, 0, None, closed="left")],
    "schedule": [StrOptions({"one_cycle", "cosine", "constant"})],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "patience": [_at_least(1), None],
    "monitor": [StrOptions(set(Monitor.__args__))],  # type: ignore[attr-defined]
    "progress": ["boolean", _AUTO],
    "callbacks": [list, tuple],
    "checkpoint_dir": [str, Path, None],
    "random_state": [_at_least(0), np.random.RandomState, np.random.Generator, None],
}
# Of the values inside a sequence or mapping.
_PARTS = {"encoder": _at_least(1), "lr": _POSITIVE, "callbacks": HasMethods("on_step_end")}
LR_GROUPS = ("encoder", "setconv", "output")  # of weights: each may have its own learning rate


def check_parameters(estimator: Any) -> Parameters:
    """Return the parameters of a classifier as plain values; refuse what cannot work.

    A list or a number of numpy's means the same as Python's own everywhere.
    """
    given: dict[str, Any] = estimator.get_params(deep=False)
    plain = {name: _plain(v) if name in CONSTRAINTS else v for name, v in given.items()}
    for name, constraints in CONSTRAINTS.items():
        value = plain[name]
        _check(name, value, constraints)
        if name in _PARTS and not isinstance(value, str | float | int):
            parts = value.values() if isinstance(value, dict) else value
            for part in parts:
                _check(name, part, [_PARTS[name]])
    if isinstance(plain["lr"], dict) and set(plain["lr"]) != set(LR_GROUPS):
        raise ParameterError(
            f"lr={plain['lr']!r}: give one number, or exactly the keys {', '.join(LR_GROUPS)}.",
            parameter="lr",
        )
    return SimpleNamespace(**plain)


def _check(name: str, value: Any, constraints: list[Any]) -> None:
    try:
        validate_parameter_constraints({name: constraints}, {name: value}, "SetConvClassifier")
    except InvalidParameterError as error:
        raise ParameterError(str(error), parameter=name) from None


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in sorted(value.items())}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(map(_plain, value))
    return value


def settle(
    parameters: Parameters,
    n_rows: int,
    n_features: int,
    n_groups: int | None = None,
    *,
    n_classes: int = 2,
    has_lines: bool = False,
) -> Parameters:
    """Return the parameters of the fit; what is "auto" follows the shape of the data.

    Parameters
    ----------
    parameters : Parameters
    n_rows, n_features : int
        As the network sees them, after a projection.
    n_groups : int, optional
    n_classes : int, default=2
    has_lines : bool, default=False
        Whether the linear part sees all columns of sparse rows, of which the network sees less.
    """
    few = n_features <= FEW_COLUMNS
    linear_share = automatic_linear_share(n_rows, n_features, n_groups)
    automatic = {
        "max_steps": automatic_steps(n_rows, few),
        "lr": 0.003 if few else 0.001,
        "encoder": (128,) if few else (256,),
        "out_features": 64 if few else 128,
        "n_members": 10 if n_rows <= 5000 else 5,
        "n_episodes": _automatic_episodes(parameters, n_rows, n_classes, few),
        "dropout": 0.2 if few else 0.4,
        "input_dropout": 0.0 if few else 0.5,
        "linear_share": _SPARSE_LINEAR_SHARE if has_lines else linear_share,
    }
    given = vars(parameters)
    open_ones = {name: v for name, v in automatic.items() if isinstance(given[name], str)}
    return SimpleNamespace(**given | open_ones)


_SMALL_TABLE = 500  # rows up to which more steps, or longer ones, bring nothing


def _automatic_episodes(
    parameters: Parameters, n_rows: int, n_classes: int, few_columns: bool
) -> int:
    """Return 1 to 4, or fewer: with many classes an episode has more rows, a step not more."""
    small = few_columns and n_rows <= _SMALL_TABLE
    episodes = 1 if small else 2 if n_rows <= 2000 else 4
    if parameters.heads == "separate":
        return episodes
    support, queries = parameters.support_size, parameters.n_queries
    shorter = episodes * (support + 2 * queries) / (support + n_classes * queries)
    return max(1, round(float(shorter)))


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
    return int(random_state)
