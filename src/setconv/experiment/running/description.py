"""The description of a study: plain JSON, and the differences between two of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from setconv.errors import ParameterError

_ABSENT = object()


def plain(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description as JSON gives it back: tuples are lists, keys are strings."""
    try:
        result: dict[str, Any] = json.loads(json.dumps(dict(description), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"description: {error}. Give what JSON can hold: text, numbers, lists, dictionaries."
        ) from None
    return result


def differences(old: Any, new: Any, name: str = "") -> Iterator[str]:
    """Say where two plain descriptions differ, one text a place: ``steps.max: 10, now 20``."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            inner = f"{name}.{key}" if name else key
            yield from differences(old.get(key, _ABSENT), new.get(key, _ABSENT), inner)
    elif old != new or type(old) is not type(new):
        yield f"{name or 'description'}: {_shown(old)}, now {_shown(new)}"


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "absent"
    text = json.dumps(value)
    return text if len(text) <= 200 else text[:200] + "..."
