"""Entries of a study file, taken one by one: each error says where, what and what instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar, cast

from setconv.errors import ParameterError
from setconv.names import did_you_mean, listed

__all__ = ["Fields", "known_name"]

T = TypeVar("T")
_KINDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a mapping of names to values",
}


class Fields:
    """A mapping whose entries are taken by name and kind; `finish` refuses what nobody took.

    Parameters
    ----------
    values : mapping
    where : str
        How messages call the place, such as ``data.SemEval``.
    """

    def __init__(self, values: Any, where: str) -> None:
        if values is None:
            values = {}
        if not isinstance(values, Mapping):
            raise ParameterError(f"{where}: {values!r} is no mapping of names to values.")
        self._left = {str(name): value for name, value in values.items()}
        self._known: list[str] = []
        self.where = where

    def take(self, name: str, kind: type[T], default: Any = None) -> T:
        """Return an entry; ``default`` if there is none, or an error if that is ``...``."""
        self._known.append(name)
        if name not in self._left:
            if default is ...:
                raise ParameterError(f"{self.where} has no {name!r}: give {_KINDS[kind]}.")
            return cast(T, default)
        value = self._left.pop(name)
        if value is None and default is None:
            return cast(T, None)
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        wrong_bool = isinstance(value, bool) and kind is not bool
        if not isinstance(value, kind) or wrong_bool:
            raise ParameterError(f"{self.where}.{name} is {value!r}: give {_KINDS[kind]}.")
        return value

    def raw(self, name: str, default: Any = None) -> Any:
        """Return an entry of any kind."""
        self._known.append(name)
        return self._left.pop(name, default)

    def rest(self) -> dict[str, Any]:
        """Return all entries that nobody took."""
        left, self._left = self._left, {}
        return left

    def finish(self) -> None:
        """Refuse entries that nobody took."""
        for name in self._left:
            raise ParameterError(
                f"{self.where} has an entry {name!r} that means nothing."
                f"{did_you_mean(name, self._known)} The entries are {listed(self._known)}."
            )


def known_name(kind: str, name: str, known: Iterable[str], where: str = "") -> str:
    """Return the name if it is known; else say which is near and which there are."""
    names = list(known)
    if name in names:
        return name
    place = f"{where}: " if where else ""
    raise ParameterError(
        f"{place}there is no {kind} {name!r}.{did_you_mean(name, names)} "
        f"Choose one of {listed(names)}."
    )
