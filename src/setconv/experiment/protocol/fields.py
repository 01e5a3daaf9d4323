"""Dataclasses from the entries of a study file: each error says where, what and what instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from setconv.errors import ParameterError
from setconv.names import did_you_mean, listed

__all__ = ["from_mapping", "known_name", "mapping"]

T = TypeVar("T")
_KINDS = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    tuple: "a list",
    Mapping: "a mapping of names to values",
}


def from_mapping(kind: type[T], values: Any, where: str, **given: Any) -> T:
    """Return a dataclass whose fields are the entries of a mapping.

    Parameters
    ----------
    kind : type
        A dataclass; entries must be of the types of its fields.
    values : mapping, str or None
        A text is the value of the first field; None has no entries.
    where : str
        How messages call the place, such as ``data.SemEval``.
    **given
        Fields that the mapping cannot have.
    """
    own = [one for one in fields(kind) if one.name not in given]  # type: ignore[arg-type]
    values = mapping({own[0].name: values} if isinstance(values, str) else values, where)
    hints = get_type_hints(kind)
    names = [one.name for one in own]
    for name in values:
        if name not in names:
            raise ParameterError(
                f"{where} has an entry {name!r} that means nothing."
                f"{did_you_mean(name, names)} The entries are {listed(names)}."
            )
    for one in own:
        if one.name not in values and one.default is one.default_factory is MISSING:
            raise ParameterError(f"{where} has no {one.name!r}: give it.")
    read = {name: _read(value, hints[name], f"{where}.{name}") for name, value in values.items()}
    return kind(**given, **read)


def mapping(values: Any, where: str) -> dict[str, Any]:
    """Return a mapping with names of text, empty for None; refuse anything else."""
    if not isinstance(values, Mapping | None):
        raise ParameterError(f"{where}: {values!r} is no mapping of names to values.")
    return {str(name): value for name, value in (values or {}).items()}


def _read(value: Any, hint: Any, where: str) -> Any:
    """Return a value as its field has it; lists become tuples, whole numbers numbers."""
    # A union such as str | None has its members as arguments, and so has a tuple its items.
    members = get_args(hint) if get_origin(hint) not in (tuple, Mapping) else ()
    if value is None and NoneType in members:
        return None
    for one in members or (hint,):
        kind = get_origin(one) or one
        if is_dataclass(kind) and isinstance(kind, type):
            return from_mapping(kind, value, where)
        if kind is tuple and isinstance(value, list):
            item = get_args(one)[0]
            return tuple(
                str(part) if item is str else _read(part, item, f"{where}[{place}]")
                for place, part in enumerate(value)
            )
        if one == tuple[int, ...] and isinstance(value, str):
            if not all(part.isdecimal() for part in value.split("/")):
                raise ParameterError(f"{where} is {value!r}: give per cent, such as 70/30.")
            return tuple(map(int, value.split("/")))
        if kind is float and type(value) is int:
            return float(value)
        if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
            return value
    kinds = [get_origin(one) or one for one in members or (hint,)]
    wanted = " or ".join(_KINDS[kind] for kind in kinds if kind is not NoneType)
    raise ParameterError(f"{where} is {value!r}: give {wanted}.")


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
