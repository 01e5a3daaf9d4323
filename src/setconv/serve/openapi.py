"""What the service takes and gives, as schemas: for clients, and for the service itself."""

from __future__ import annotations

import json
from typing import Any

from setconv._version import __version__
from setconv.serve.forms import Schema, array_of, record, text
from setconv.serve.served import Served, Settings

EXPLAINED = 16  # rows that one request may have explained
_COSTS = 1e9
_SHARE = r"[0-9]*\.?[0-9]+ *%?"
_OBJECTIVE = (
    rf"^ *(balanced|f1|mcc|accuracy|(recall|precision) *(>=|≥) *{_SHARE}( *@ *{_SHARE})?) *$"
)
_YES: Schema = {"type": ["boolean"], "description": "true or false"}


def request_schemas(served: Served, settings: Settings) -> dict[str, Schema]:
    """Return the schema of the body of each endpoint that takes one."""
    rows = _rows(served, settings.rows)
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number"}
    label = {
        "type": [kinds[type(one)] for one in served.classes[:1]],
        "enum": served.classes,
        "description": f"one of the classes {json.dumps(served.classes)}",
    }
    if label["type"] == ["string"]:
        label["maxLength"] = max(map(len, served.keys))
    elif label["type"] != ["boolean"]:
        label |= {"minimum": min(served.classes), "maximum": max(served.classes)}
    top = {"type": ["integer"], "minimum": 1, "maximum": 1000, "description": "1 to 1,000"}
    given: dict[str, Schema] = {"prior": _prior(served), "rows": rows}
    words = "balanced, f1, mcc, accuracy, a minimum such as recall>=0.95, a matrix of costs or null"
    objectives = [text(100, words, _OBJECTIVE), _costs(len(served.classes))]
    stated = {"anyOf": [*objectives, {"type": ["null"], "description": words}]}
    decisions = [record({"objective": stated, **given}, [], "an object that may have an objective")]
    if len(served.classes) == 2:
        cut = {"type": ["number"], "minimum": -1e6, "maximum": 1e6, "description": "a number"}
        threshold = {"threshold": cut, **given}
        decisions.insert(0, record(threshold, ["threshold"], "an object with a threshold"))
    few = {"rows": _rows(served, min(EXPLAINED, settings.rows)), "class": label, "top": top}
    return {
        "/predict": record({"rows": rows}, ["rows"], 'an object with a list of rows, {"rows": []}'),
        "/explain": record(few, ["rows"], "an object with a list of rows"),
        "/decision": {"anyOf": decisions},
        "/invocations": {"anyOf": _frames(served, rows)},
    }


def _rows(served: Served, most: int) -> Schema:
    return array_of(served.row, 1, most, f"a list of 1 to {most:,} rows")


def _costs(size: int) -> Schema:
    """Return the schema of a matrix of costs, of which those of right decisions are 0."""
    words = f"{size} costs up to {_COSTS:g}, each over 0 but 0 for the right decision"
    cost = {"type": ["number"], "minimum": 0, "maximum": _COSTS, "description": "a cost"}
    exact = [
        [{**cost, "maximum": 0} if i == j else {**cost, "minimum": 1e-9} for j in range(size)]
        for i in range(size)
    ]
    lines = [{**array_of(cost, size, size, words), "prefixItems": one} for one in exact]
    matrix = array_of(array_of(cost, size, size, words), size, size, f"{size} lists of {words}")
    return {**matrix, "prefixItems": lines}


def _prior(served: Served) -> Schema:
    """Return the schema of a prevalence."""
    words = "a share over 0 and under 1"
    share = {"type": ["number"], "minimum": 1e-9, "maximum": 1 - 1e-9, "description": words}
    each = {name: share for name in served.keys}
    shares = record(each, [], "an object of shares by class")
    number = {**share, "description": f"{words} of the rarer class, or null"}
    two = [number] if len(served.keys) == 2 else []
    return {"anyOf": [*two, shares, {"type": ["null"], "description": words}]}


def _frames(served: Served, rows: Schema) -> list[Schema]:
    """Return the schemas of the forms in which clients of MLflow and SageMaker give rows."""
    asked = record({"probabilities": _YES}, [], 'an object, {"probabilities": true}')
    parameters = {**asked, "type": ["object", "null"]}
    named: Schema = served.row.get("anyOf", [served.row])[0]
    if served.text_column is not None:
        cells = {served.text_column: served.row}
        named = record(cells, [*cells], "an object of values by column")
    forms: dict[str, Schema] = {"instances": rows, "inputs": rows}
    lists, columns = rows, {"type": ["array"], "items": {}}
    if "properties" in named:
        forms["dataframe_records"] = {**rows, "items": named}
        names = named["required"]
        exact = {"prefixItems": [named["properties"][name] for name in names], "items": False}
        line = {"type": ["array"], **exact, "minItems": len(names), "maxItems": len(names)}
        lists, columns = {**rows, "items": line}, {"enum": [names]}
    columns["description"] = "the columns, in any order"
    split = {"columns": columns, "data": lists}
    forms["dataframe_split"] = record(split, [*split], "an object of columns and data")
    return [
        record({name: form, "params": parameters}, [name], f"an object with one of {[*forms]}")
        for name, form in forms.items()
    ]


_ERROR = record(
    {
        "error": {"type": ["string"], "description": "what was wrong, where, and what to do"},
        "row": {"type": ["integer"], "description": "the row at fault, counted from 0"},
        "column": {"type": ["string"], "description": "the column at fault"},
    },
    ["error"],
    "an error",
)
_STATUSES = {
    "401": "No token, or a wrong one.",
    "405": "Another method is meant.",
    "408": "The body did not come in time.",
    "409": "The model cannot decide so.",
    "413": "The body is too large.",
    "415": "The body is of a type that is not read.",
    "422": "The body is not as it has to be.",
    "429": "Too many rows wait: ask again later.",
    "500": "The service failed.",
    "503": "The service is busy or ends, or there was no answer in time: ask again later.",
}
OPEN = ("/", "/health/live", "/health/ready", "/ping", "/openapi.json", "/docs")
_GET = {
    "/": "The page.",
    "/docs": "What the service can be asked, to read.",
    "/openapi.json": "The same for programs.",
    "/health/live": "Whether the process runs.",
    "/health/ready": "Whether it answers.",
    "/ping": "The same, for SageMaker and MLflow.",
    "/model": "What there is to know of the model.",
    "/metrics": "Figures for Prometheus.",
}
_POST = {
    "/predict": "Labels, probabilities, scores and decisions of rows.",
    "/explain": "The same, what spoke for it, and the nearest training rows.",
    "/decision": "What another objective, threshold or prevalence would change. Nothing changes.",
    "/invocations": "Labels of rows as clients of MLflow and SageMaker give them.",
}
_KINDS = {"/": "text/html", "/docs": "text/html", "/metrics": "text/plain"}


def document(served: Served, settings: Settings, requests: dict[str, Schema]) -> dict[str, Any]:
    """Return the OpenAPI document of the service of a model."""
    answers = _answers(served)
    error = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    wrong = {code: {"description": why, "content": error} for code, why in _STATUSES.items()}
    plain = {"schema": {"type": "string"}}
    wrong["400"] = {"description": "This is not HTTP.", "content": {"text/plain": plain}}
    paths: dict[str, Any] = {}
    for path, said in (_GET | _POST).items():
        answer = {_KINDS[path]: plain} if path in _KINDS else {"application/json": {"schema": {}}}
        made: dict[str, Any] = {"summary": said, "operationId": path}
        if path in _POST:
            answer = {"application/json": {"schema": answers[path]}}
            body = {"application/json": {"schema": requests[path]}}
            csv = {"text/csv": plain} if path == "/invocations" else {}
            made["requestBody"] = {"required": True, "content": body | csv}
        if settings.token is not None and path not in OPEN:
            made["security"] = [{"token": []}]
        made["responses"] = {"200": {"description": said, "content": answer}} | wrong
        paths[path] = {"post" if path in _POST else "get": made}
    bearer = {"token": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"setconv: {served.named['name']}", "version": __version__},
        "servers": [{"url": settings.root_path or "/"}],
        "paths": paths,
        "components": {"schemas": {"Error": _ERROR}, "securitySchemes": bearer},
    }


def _answers(served: Served) -> dict[str, Schema]:
    """Return the schemas of answers."""

    def an_object(**properties: Any) -> Schema:
        return {"type": "object", "properties": properties, "required": [*properties]}

    def list_of(items: Schema) -> Schema:
        return {"type": "array", "items": items}

    number, label = {"type": "number"}, {"enum": served.classes}
    each = an_object(**dict.fromkeys(served.keys, number))
    value = number if len(served.keys) == 2 else each
    cut = {"anyOf": [value, {"type": "null"}]}
    scores = {"score": value, "threshold": cut, "decision": value}
    said = an_object(label=label, probabilities=each, **scores)
    model = an_object(**dict.fromkeys(("name", "version"), {"type": "string"}))
    part = an_object(name={"type": "string"}, contribution=number)
    parts = {"contributions": list_of(part), "nearest": list_of({"type": "object"})}
    why = an_object(prediction=said, method={"enum": ["occlusion"]}, **{"class": label}, **parts)
    told = ("objective", "threshold", "threshold_basis", "prior", "report", "source")
    return {
        "/predict": an_object(model=model, predictions=list_of(said)),
        "/explain": an_object(model=model, explanations=list_of(why)),
        "/decision": an_object(**dict.fromkeys(told, {})),
        "/invocations": an_object(predictions=list_of(label)),
    }
