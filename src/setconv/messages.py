"""What the errors of all rooms have in common: how they name things, and checks that many need.

First the words of a message: what may have been meant, lists and values that are cut where they are
long, and counts. Then checks of column names and of parameters, and of packages that are optional.
"""

from __future__ import annotations

import difflib
import operator
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any

from setconv.errors import DataError, MissingDependencyError, ParameterError

_LISTED = 20  # names in a message


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean ...?", or nothing where no known name is near, case aside."""
    by_lower = {one.lower(): one for one in reversed([*known])}  # of equal ones the first
    found = difflib.get_close_matches(name.lower(), by_lower, n=3, cutoff=0.6)
    return f" Did you mean {' or '.join(repr(by_lower[one]) for one in found)}?" if found else ""


def listed(names: Sequence[object]) -> str:
    """Return the names for a message, quoted; of many only the first."""
    shown = ", ".join(map(repr, names[:_LISTED]))
    return shown if len(names) <= _LISTED else f"{shown} and {len(names) - _LISTED} more"


def excerpt(value: object, width: int = 60) -> str:
    """Return a value on one line, quoted, cut where it is long."""
    text = value if isinstance(value, str) else str(value)
    return repr(text if len(text) <= width else f"{text[:width]}...")


def count_of(number: int, one: str, many: str | None = None) -> str:
    """Return "1 row" or "3 rows"."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def shown_day(days: float) -> str:
    """Return days since 1970-01-01 as a date, such as 2024-01-31."""
    try:
        return (date(1970, 1, 1) + timedelta(days=days)).isoformat()
    except (OverflowError, ValueError):
        return f"{days:g} days after 1970-01-01"


def require_column(name: str, known: Sequence[str], parameter: str) -> str:
    """Return the name if there is such a column; else say which ones there are.

    Parameters
    ----------
    name : str
        Of a column.
    known : sequence of str
        The columns that there are.
    parameter : str
        The parameter that names it.
    """
    if name in known:
        return name
    near = did_you_mean(str(name), known)
    why = f"There is no column {name!r}.{near} The columns are {listed(known)}."
    raise DataError(why, parameter=parameter, column=name)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, NaT, or NA of pandas, which has no truth value."""
    if value is None or type(value).__name__ == "NAType":
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError, RuntimeError, ArithmeticError):  # not one value, but many
        return False


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
        why = f"{name}={value!r}: give an integer of at least {least}."
        raise ParameterError(why, parameter=name)


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Refuse what is not among ``allowed``."""
    if value not in allowed:
        raise ParameterError(f"{name}={value!r}: give one of {listed(allowed)}.", parameter=name)


def is_shown(progress: Any) -> bool:
    """Whether progress is to be seen; "auto" is where standard error is a terminal."""
    if progress not in ("auto", True, False):
        why = f'progress={progress!r}: choose True, False or "auto".'
        raise ParameterError(why, parameter="progress")
    return sys.stderr.isatty() if progress == "auto" else bool(progress)


@contextmanager
def needed(what: str, package: str, extra: str) -> Iterator[None]:
    """Import inside this block; a failure says what needs the package and how to get it."""
    try:
        yield
    except ImportError as error:
        why = f"{what} needs {package}: pip install 'setconv[{extra}]'"
        raise MissingDependencyError(why) from error
