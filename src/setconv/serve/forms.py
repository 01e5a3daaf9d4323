"""What a request holds: JSON and CSV read strictly, and checked against the published schema.

`check` knows of JSON Schema what the service's own schemas use, so that what is published and what
is accepted cannot differ. What it says of a wrong value ends in the description of its schema.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from io import StringIO
from typing import Any, NoReturn

from setconv.errors import DataError, SetConvError
from setconv.io.columns import MISSING
from setconv.messages import did_you_mean, excerpt, listed

Schema = Mapping[str, Any]
Place = tuple[str | int, ...]

_LONG = 100  # characters of a name, or of a value, that are looked at for a message


class RefusedError(SetConvError):
    """A request that is not answered, with the status that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def text(longest: int, words: str, pattern: str = "") -> Schema:
    """Return the schema of a text; ``words`` say what to give."""
    return {"type": ["string"], "maxLength": longest, "pattern": pattern, "description": words}


def array_of(items: Schema, least: int, most: int, words: str) -> Schema:
    """Return the schema of a list."""
    bounds = {"minItems": least, "maxItems": most, "description": words}
    return {"type": ["array"], "items": items, **bounds}


def record(properties: Mapping[str, Schema], required: Sequence[str], words: str) -> Schema:
    """Return the schema of an object without other properties."""
    closed = {"required": [*required], "additionalProperties": False, "description": words}
    return {"type": ["object"], "properties": properties, **closed}


def _no_number(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is no number there; null stands for a missing value")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def read_json(body: bytes) -> Any:
    """Return the JSON of a body in UTF-8; NaN and Infinity are refused."""
    try:
        return _DECODER.decode(body.decode())
    except (ValueError, RecursionError) as error:
        raise DataError(f"The body is not JSON in UTF-8: {error}. Mend it there.") from error


_KINDS = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string"}
_KINDS |= {list: "array", dict: "object"}


def check(value: Any, schema: Schema, path: Place = ()) -> None:
    """Refuse a value that its schema does not allow; the error says where, and what to give.

    Parameters
    ----------
    value : object
        As JSON is read.
    schema : mapping
    path : tuple of str and int
        Where it stands in the body.
    """
    if "anyOf" in schema:
        schema = _meant(value, schema)
    if not (_is_a(value, schema) and _is_within(value, schema)):
        _refuse(path, f"is {_shown(value)}: give {schema['description']}")
    if isinstance(value, dict) and "properties" in schema:
        _check_record(value, schema, path)
    elif isinstance(value, list) and "items" in schema and not _are_numbers(value, schema["items"]):
        for place, one in enumerate(value):
            check(one, schema["items"], (*path, place))


def _meant(value: Any, schema: Schema) -> Schema:
    """Return which of its schemas a value is to follow: by its type, of objects by what it has."""
    fit = [one for one in schema["anyOf"] if _is_a(value, one)]
    if len(fit) > 1:
        fit = [one for one in fit if {*one["required"]} <= {*value}]
    return fit[-1] if fit else {"type": [], "description": schema["description"]}


def _is_a(value: Any, schema: Schema) -> bool:
    if "enum" in schema:
        return any(type(one) is type(value) and one == value for one in schema["enum"])
    kind = _KINDS[type(value)]
    kinds = schema.get("type", kind)
    # JSON has numbers of one kind: 1.0 is whole.
    return kind in kinds or ("integer" in kinds and kind == "number" and value % 1 == 0)


def _is_within(value: Any, schema: Schema) -> bool:
    """Whether a value of the right type is within the bounds of a schema."""
    if isinstance(value, str) and "maxLength" in schema:
        with suppress(ValueError):  # of half a character, or a day that there is not
            if schema.get("format") == "date":  # a time may follow
                date.fromisoformat(value[:10])
            right = re.search(schema["pattern"], value.encode().decode())
            return right is not None and len(value) <= schema["maxLength"]
        return False
    if isinstance(value, list) and "maxItems" in schema:
        return bool(schema["minItems"] <= len(value) <= schema["maxItems"])
    if isinstance(value, int | float) and "maximum" in schema:
        return bool(schema["minimum"] <= value <= schema["maximum"])
    return True


def _are_numbers(values: list[Any], schema: Schema) -> bool:
    """Whether all are numbers that are allowed, seen without looking at each; else look."""
    plain = schema.get("type") == ["number"] and {int, float}.issuperset(map(type, values))
    return plain and schema["minimum"] <= min(values) and max(values) <= schema["maximum"]


def _check_record(value: dict[str, Any], schema: Schema, path: Place) -> None:
    known = schema["properties"]
    for name in (one for one in value if one not in known):
        known_are = f"{did_you_mean(name[:_LONG], known)} Known are {listed([*known])}"
        _refuse(path, f"has {excerpt(name)}, which is not known.{known_are}")
    for name in schema["required"]:
        if name not in value:
            _refuse(path, f"has no {name!r}: give {known[name].get('description', 'it')}")
    for name, one in value.items():
        check(one, known[name], (*path, name))


def _shown(value: Any) -> str:
    if isinstance(value, list | dict):
        return "an object" if isinstance(value, dict) else f"a list of {len(value):,}"
    if isinstance(value, str):
        return excerpt(value) if len(value) < _LONG else f"a text of {len(value):,} characters"
    return json.dumps(value)[:_LONG]


def _refuse(path: Place, why: str) -> NoReturn:
    row = next((one for one in path if isinstance(one, int)), None)
    column = path[-1] if row is not None and isinstance(path[-1], str) else None
    where = "".join(f"[{one!r}]" for one in path[1:])
    raise DataError(f"{path[0] if path else 'The body'}{where} {why}.", row=row, column=column)


def plain_frame(body: Any, *, named: bool) -> Any:
    """Return a body of MLflow with its rows one by one, if it has ``dataframe_split`` or columns.

    Parameters
    ----------
    body : object
    named : bool
        Whether the model knows its columns by name; else rows are lists.
    """
    rest = {**body} if isinstance(body, dict) else {}
    try:
        if "dataframe_split" in rest:
            split = rest.pop("dataframe_split")
            names, lists = split["columns"], split["data"]
        elif isinstance(rest.get("inputs"), dict):
            columns = rest.pop("inputs")
            names, lists = [*columns], zip(*columns.values(), strict=True)
        else:
            return body
        records = [dict(zip(map(str, names), one, strict=True)) for one in lists]
    except (KeyError, TypeError, ValueError) as error:
        why = "The rows and columns do not fit together: give each row a value for each column."
        raise DataError(why) from error
    return rest | {"instances": records if named else [[*one.values()] for one in records]}


def read_csv(body: bytes, kinds: Mapping[str, str], other: str) -> Any:
    """Return a CSV file with a header as such a body, its cells as what their columns hold.

    Parameters
    ----------
    body : bytes
    kinds : mapping of str to str
        What the columns hold, by name.
    other : str
        What the others hold.
    """
    try:
        names, *lines = csv.reader(StringIO(body.decode(), newline=""), strict=True)
    except (csv.Error, ValueError) as error:
        why = "The body is no CSV in UTF-8, a line of names and a line a row"
        raise DataError(f"{why}: {error}.") from error
    held = [kinds.get(name, other) for name in names]
    data = [[*map(_cell, line, held), *line[len(held) :]] for line in lines if line]
    return {"dataframe_split": {"columns": names, "data": data}}


def _cell(field: str, kind: str) -> Any:
    """Return a field of a CSV file as what its column holds; what it cannot be stays as it is."""
    bare = field.strip().lower()
    if kind in ("category", "text"):
        return field
    if bare in MISSING:
        return None
    with suppress(ValueError):
        return float(bare) if kind == "number" else _DECODER.decode(bare)
    return field
