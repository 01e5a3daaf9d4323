"""What the service takes and gives, as schemas: for clients, and for the service itself."""

from __future__ import annotations

from typing import Any

from setconv._version import __version__
from setconv.serve.forms import Schema, array_of, record, text
from setconv.serve.served import NUMBER, Served, Settings

_EXPLAINED = 16  # rows that one request may have explained
_SHARE = r"[0-9]*\.?[0-9]+ *%?"
_MINIMUM = rf"(recall|precision) *(>=|≥) *{_SHARE}( *@ *{_SHARE})?"
_OBJECTIVE = rf"^ *(balanced|f1|mcc|accuracy|{_MINIMUM}) *$"
_STATED = "balanced, f1, mcc, accuracy, a minimum such as recall>=0.95, a matrix of costs or null"
_OBJECT = "an object with a list of rows"
_FORMS = ("instances", "inputs", "dataframe_records")


def request_schemas(served: Served, settings: Settings) -> dict[str, Schema]:
    """Return the schema of the body of each address that takes one."""
    size = len(served.keys)
    rows = array_of(served.row, 1, settings.rows, f"a list of 1 to {settings.rows:,} rows")
    few = array_of(served.row, 1, _EXPLAINED, f"a list of 1 to {_EXPLAINED} rows")
    label = {"enum": served.classes, "description": f"one of {served.classes}"}
    top = {"type": ["integer"], "minimum": 1, "maximum": 1000, "description": "1 to 1,000"}
    # Weights of rows follow it, and are not to leave the range of numbers.
    share = {**NUMBER, "minimum": 1e-9, "maximum": 1 - 1e-9, "description": "a share below 1"}
    shares = record(dict.fromkeys(served.keys, share), [], "shares by class")
    nothing = {"type": ["null"], "description": _STATED}
    costs = array_of(array_of(NUMBER, size, size, _STATED), size, size, _STATED)
    objective = {"anyOf": [text(100, _STATED, _OBJECTIVE), costs, nothing], "description": _STATED}
    prior = {"anyOf": [share, shares, nothing][size != 2 :], "description": "shares by class"}
    moved = {"prior": prior, "rows": rows}
    decisions = [record({"objective": objective, **moved}, [], "an object")]
    if size == 2:
        decisions.append(record({"threshold": NUMBER, **moved}, ["threshold"], "an object"))
    asked = record({"probabilities": {"type": ["boolean"], "description": "true"}}, [], "an object")
    forms = {"params": {**asked, "type": ["object", "null"]}}
    words = f"an object with one of {', '.join(_FORMS)} or dataframe_split"
    return {
        "/predict": record({"rows": rows}, ["rows"], _OBJECT),
        "/explain": record({"rows": few, "class": label, "top": top}, ["rows"], _OBJECT),
        "/decision": {"anyOf": decisions, "description": "an object"},
        "/invocations": {
            "anyOf": [record({name: rows, **forms}, [name], words) for name in _FORMS],
            "description": words,
        },
    }


OPEN = ("/", "/health/live", "/health/ready", "/ping", "/openapi.json", "/docs")
SAID = {
    "/": "The page.",
    "/docs": "What the service can be asked, to read.",
    "/openapi.json": "The same for programs.",
    "/health/live": "Whether the process runs.",
    "/health/ready": "Whether it answers.",
    "/ping": "The same, for SageMaker and MLflow.",
    "/model": "What there is to know of the model.",
    "/metrics": "Figures for Prometheus.",
    "/predict": "Labels, probabilities, scores and decisions of rows.",
    "/explain": "The same, what spoke for it, and the nearest training rows.",
    "/decision": "What another objective, threshold or prevalence would change. Nothing changes.",
    "/invocations": "Labels of rows as MLflow and SageMaker give them; text/csv, too.",
}
_KINDS = {"/": "text/html", "/docs": "text/html", "/metrics": "text/plain"}


def document(served: Served, settings: Settings, requests: dict[str, Schema]) -> dict[str, Any]:
    """Return the OpenAPI document of the service of a model."""
    answers, plain = _answers(served), {"schema": {"type": "string"}}
    error = {"schema": _an_object(error={"type": "string"})}
    wrong = {
        "description": "A sentence that says what was wrong, where, and what to do.",
        "content": {"application/json": error, "text/plain": plain},  # of no HTTP plain
    }
    paths: dict[str, Any] = {}
    for path, said in SAID.items():
        content = {_KINDS.get(path, "application/json"): {"schema": answers.get(path, {})}}
        answer = {"description": said, "content": content}
        made: dict[str, Any] = {"summary": said, "responses": {"200": answer, "default": wrong}}
        if settings.token is not None and path not in OPEN:
            made["security"] = [{"token": []}]
        if path in requests:
            content = {"application/json": {"schema": requests[path]}}
            made["requestBody"] = {"required": True, "content": content}
        paths[path] = {"post" if path in requests else "get": made}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"setconv: {served.named['name']}", "version": __version__},
        "servers": [{"url": settings.root_path or "/"}],
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }


def _answers(served: Served) -> dict[str, Any]:
    """Return the schemas of answers."""
    number, label = {"type": "number"}, {"enum": served.classes}
    each = _an_object(**dict.fromkeys(served.keys, number))
    value = number if len(served.keys) == 2 else each
    said = _an_object(label=label, probabilities=each, score=value, threshold={}, decision=value)
    part = _list_of(_an_object(name={"type": "string"}, contribution=number))
    why = _an_object(prediction=said, **{"class": label}, contributions=part, nearest={})
    return {
        "/predict": _an_object(model={}, predictions=_list_of(said)),
        "/explain": _an_object(model={}, explanations=_list_of(why)),
        "/decision": _an_object(threshold={}, threshold_basis={"type": "string"}),
        "/invocations": _an_object(predictions=_list_of(label)),
    }


def _an_object(**properties: Schema) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties]}


def _list_of(items: Schema) -> Schema:
    return {"type": "array", "items": items}
