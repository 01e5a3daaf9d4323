"""The type of a column of JSON values, and the values as an array of that type.

Numbers stay numbers, lists of numbers stay lists. A column whose values are of several kinds, or
nested, becomes strings: strings as they are, everything else as its JSON text.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

_INT64 = 1 << 63
_SIMPLE = {bool: "bool", float: "float", str: "str"}
_TYPES = {
    frozenset({"bool"}): pa.bool_(),
    frozenset({"int"}): pa.int64(),
    frozenset({"float"}): pa.float64(),
    frozenset({"int", "float"}): pa.float64(),
    frozenset({"str"}): pa.string(),
    frozenset({"numbers"}): pa.list_(pa.float64()),
}


def kind_of(value: Any) -> str | None:
    """Return the kind of a JSON value; None for null."""
    if value is None:
        return None
    kind = type(value)
    if kind is int:
        return "int" if -_INT64 <= value < _INT64 else "large"
    if kind is list:
        return "numbers" if all(type(one) in (int, float) for one in value) else "nested"
    return _SIMPLE.get(kind, "nested")


def column_type(kinds: set[str]) -> pa.DataType:
    """Return the type of a column with values of these kinds."""
    return _TYPES.get(frozenset(kinds), pa.string())


def as_array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Return JSON values as an array of the type that `column_type` gave."""
    if not pa.types.is_string(kind):
        return pa.array(values, kind)
    texts = [one if one is None or type(one) is str else _json_text(one) for one in values]
    try:
        return pa.array(texts, kind)
    except UnicodeEncodeError:  # half of a surrogate pair, as where an emoji was cut in two
        return pa.array([None if one is None else _whole(one) for one in texts], kind)


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _whole(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
