"""What a request holds: JSON and CSV read strictly, and checked against the published schema.

`check` knows of JSON Schema what the service's own schemas use, so that what is published and what
is accepted cannot differ. What it says of a wrong value ends in the description of its schema.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from io import StringIO
from typing import Any, NoReturn

from setconv.errors import DataError, SetConvError
from setconv.io.columns import MISSING
from setconv.messages import did_you_mean, excerpt, listed

Schema = Mapping[str, Any]

_LONG = 100  # characters of a value that are looked at for a message


def text(longest: int, words: str, pattern: str | None = None) -> Schema:
    """Return the schema of a text; ``words`` say what to give."""
    found = {"type": ["string"], "maxLength": longest, "description": words}
    return found if pattern is None else {**found, "pattern": pattern}


def array_of(items: Schema, least: int, most: int, words: str) -> Schema:
    """Return the schema of a list."""
    bounds = {"minItems": least, "maxItems": most}
    return {"type": ["array"], "items": items, **bounds, "description": words}


def record(properties: Mapping[str, Schema], required: list[str], words: str) -> Schema:
    """Return the schema of an object without other properties."""
    return {
        "type": ["object"],
        "properties": properties,
        "required": required,
        "additionalProperties": False,
        "description": words,
    }


class RefusedError(SetConvError):
    """A request that is not answered, with the status that says so."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _no_number(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is no number there, give null for a missing value")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def read_json(body: bytes) -> Any:
    """Return the JSON of a body in UTF-8; NaN and Infinity are refused."""
    try:
        return _DECODER.decode(read_text(body))
    except RecursionError as error:
        raise DataError("The body is nested too deeply: give a list of rows.") from error
    except json.JSONDecodeError as error:
        raise DataError(f"The body is not JSON: {error}. Mend it there.") from error
    except ValueError as error:
        why = error if isinstance(error, DataError) else f"The body is not JSON: {error}."
        raise DataError(str(why)) from error


def read_text(body: bytes) -> str:
    """Return a body as text, which has to be UTF-8."""
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        why = f"The body is not UTF-8, first at byte {error.start}: encode it so."
        raise DataError(why) from error


class _WrongError(Exception):
    """A value is not what its schema says; ``path`` grows on the way out."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.path: list[str | int] = []


def check(value: Any, schema: Schema, name: str = "") -> None:
    """Refuse a value that its schema does not allow; the error says where, and what to give.

    Parameters
    ----------
    value : object
        As JSON is read.
    schema : mapping
    name : str
        What the value is called; "" for the whole body.
    """
    try:
        _check(value, schema)
    except _WrongError as wrong:
        path = [name, *wrong.path] if name else wrong.path
        row = next((one for one in path if isinstance(one, int)), None)
        column = path[-1] if row is not None and isinstance(path[-1], str) else None
        where = "".join(f"[{excerpt(one) if isinstance(one, str) else one}]" for one in path[1:])
        named = f"{path[0]}{where}" if path else "The body"
        raise DataError(f"{named} {wrong}", row=row, column=column) from None


_KINDS: dict[type, frozenset[str]] = {
    type(None): frozenset({"null"}),
    bool: frozenset({"boolean"}),
    int: frozenset({"integer", "number"}),
    float: frozenset({"number"}),
    str: frozenset({"string"}),
    list: frozenset({"array"}),
    dict: frozenset({"object"}),
}


def _check(value: Any, schema: Schema) -> None:
    if "anyOf" in schema:
        schema = _meant(value, schema["anyOf"])
    if "type" not in schema:
        return  # it may be anything
    whole = type(value) is float and value.is_integer()  # JSON has one kind of number
    kinds = _KINDS[int if whole else type(value)]
    if kinds.isdisjoint(schema["type"]) or ("enum" in schema and value not in schema["enum"]):
        _refuse(value, schema)
    test = _TESTS.get(type(value))
    if test is not None:
        test(value, schema)


def _meant(value: Any, schemas: Sequence[Schema]) -> Schema:
    """Return which schema a value is to follow, by its type; of objects by what they have."""
    kinds = _KINDS[type(value)]
    fitting = [one for one in schemas if not kinds.isdisjoint(one["type"])] or schemas
    if isinstance(value, dict):
        fitting = [one for one in fitting if value.keys() & {*one["required"][:1]}] or fitting
    return fitting[-1]


def _refuse(value: Any, schema: Schema) -> NoReturn:
    if isinstance(value, str):
        many = f"a text of {len(value):,} characters"
        shown = excerpt(value) if len(value) < _LONG else many
    elif isinstance(value, list):
        shown = f"a list of {len(value):,}"
    else:
        shown = "an object" if isinstance(value, dict) else json.dumps(value)[:_LONG]
    raise _WrongError(f"is {shown}: give {schema['description']}.")


def _check_number(value: float, schema: Schema) -> None:
    if not schema["minimum"] <= value <= schema["maximum"]:
        _refuse(value, schema)


def _check_text(value: str, schema: Schema) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _WrongError("has half a character (a lone surrogate): mend the text.") from None
    right = schema.get("pattern")
    if len(value) > schema["maxLength"] or (right is not None and not re.search(right, value)):
        _refuse(value, schema)


def _check_list(value: list[Any], schema: Schema) -> None:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        _refuse(value, schema)
    items = schema["items"]
    if items.get("type") == ["number"] and {int, float}.issuperset(map(type, value)):
        low, high = items["minimum"], items["maximum"]
        if low <= min(value) and max(value) <= high:
            return  # a vector: no need to look at its numbers one by one
    for place, one in enumerate(value):
        _inside(place, one, items)


def _check_object(value: dict[str, Any], schema: Schema) -> None:
    known = schema["properties"]
    for name in value:
        if name not in known:
            near = did_you_mean(name[:_LONG], known)
            why = f"has {excerpt(name)}, which is not known.{near} Known are {listed([*known])}."
            raise _WrongError(why)
    for name in schema["required"]:
        if name not in value:
            raise _WrongError(f"has no {name!r}: give {known[name].get('description', 'it')}.")
    for name, one in value.items():
        _inside(name, one, known[name])


def _inside(place: str | int, value: Any, schema: Schema) -> None:
    try:
        _check(value, schema)
    except _WrongError as wrong:
        wrong.path.insert(0, place)
        raise


_TESTS: dict[type, Callable[[Any, Schema], None]] = {
    int: _check_number,
    float: _check_number,
    str: _check_text,
    list: _check_list,
    dict: _check_object,
}

_LISTS: Schema = {
    "type": ["array"],
    "description": "a list of lists",
    "items": {"type": ["array"], "items": {}, "description": "a list of values"},
}
_SPLIT = record(
    {"columns": _LISTS["items"], "data": _LISTS, "index": {}},
    ["columns", "data"],
    "an object with columns and data",
)


def plain_frame(body: Any, *, named: bool) -> Any:
    """Return a body of MLflow that has its rows one by one, whichever form it has them in.

    Parameters
    ----------
    body : object
        With ``dataframe_split``, or ``inputs`` by column; any other is returned as it is.
    named : bool
        Whether the model knows its columns by names; else rows are lists.
    """
    if not isinstance(body, dict):
        return body
    frame = body.get("dataframe_split")
    if frame is not None:
        check(frame, _SPLIT, "dataframe_split")
        form, names, lists = "dataframe_records", frame["columns"], frame["data"]
    elif isinstance(body.get("inputs"), dict):
        columns = body["inputs"]
        check([*columns.values()], _LISTS, "inputs")
        if len({*map(len, columns.values())}) > 1:
            raise DataError("inputs: the columns are of different lengths.")
        form, names, lists = "inputs", [*columns], [*map(list, zip(*columns.values(), strict=True))]
    else:
        return body
    rest = {name: one for name, one in body.items() if name not in ("dataframe_split", form)}
    return rest | _rows_by_name(form, names, lists, named=named)


def read_csv(body: bytes, kinds: Mapping[str, str] | None) -> Any:
    """Return a CSV file with a header as such a body, its cells as what their columns hold.

    Parameters
    ----------
    body : bytes
    kinds : mapping of str to str, or None
        What the columns hold, by name; None: numbers, whatever they are called.
    """
    try:
        header, *lines = csv.reader(StringIO(read_text(body), newline=""), strict=True)
    except (csv.Error, ValueError) as error:
        why = error if isinstance(error, DataError) else f"The body is not CSV ({error})"
        raise DataError(f"{why}. Give a line of names, and a line a row.") from error
    lines = [one for one in lines if one]
    if kinds is None:
        found = _rows_by_name("", header, lines, named=False)["instances"]
        return {"instances": [[_cell(one, "number") for one in row] for row in found]}
    found = _rows_by_name("dataframe_records", header, lines, named=True)["dataframe_records"]
    cells = [{name: _cell(row[name], kinds.get(name, "text")) for name in row} for row in found]
    return {"dataframe_records": cells}


def _rows_by_name(
    form: str, names: list[Any], lists: list[list[Any]], *, named: bool
) -> dict[str, Any]:
    for row, one in enumerate(lists):
        if len(one) != len(names):
            why = f"Row {row} has {len(one)} values, but there are {len(names)} columns."
            raise DataError(why, row=row)
    if not named:
        return {"instances": lists}
    return {form: [dict(zip(map(str, names), one, strict=True)) for one in lists]}


def _cell(text: str, kind: str) -> Any:
    """Return a field of a CSV file as what its column holds; what it cannot be is left as it is."""
    bare = text.strip().lower()
    if kind in ("category", "text"):
        return text
    if bare in MISSING:
        return None
    if kind == "boolean":
        return {"true": True, "1": True, "false": False, "0": False}.get(bare, text)
    if kind != "date":
        with suppress(ValueError):
            return _DECODER.decode(bare) if kind == "vector" else float(bare)
    return text
