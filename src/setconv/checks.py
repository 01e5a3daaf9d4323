"""Parameters, checked: each error names the parameter and what it may be."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from setconv.errors import ParameterError


def is_integer(value: Any) -> bool:
    """Whether a value is an integer of Python or numpy; a bool is not."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def check_integer(name: str, value: Any, *, least: int) -> None:
    """Refuse what is no integer of at least ``least``."""
    if not is_integer(value) or value < least:
        raise ParameterError(f"{name}={value!r}: give an integer of at least {least}.")


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Refuse what is not among ``allowed``."""
    if value not in allowed:
        listed = ", ".join(map(repr, allowed))
        raise ParameterError(f"{name}={value!r}: give one of {listed}.")
