"""The template filled: text is escaped, data cannot end its script, nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup

from setconv.report.explorer import Explorer

# These could end a script element or, in old engines, a line of a program.
_UNSAFE = {ord(one): f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}


def render(context: Mapping[str, Any], explorers: Sequence[Explorer]) -> str:
    """Return the page."""
    program = _read("page.js").strip()
    environment = Environment(
        loader=DictLoader({"page.html": _read("page.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        **context,
        style=Markup(_read("page.css").strip()),
        program=Markup(program),
        policy=_policy(program),
        explorer_data=safe_json([vars(one) for one in explorers]),
    )


def safe_json(data: Any) -> Markup:
    """Return JSON that can stand in a script element whatever text it holds."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_UNSAFE))


def _policy(program: str) -> str:
    """Return a content security policy that lets this one program run and nothing be fetched."""
    digest = base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _read(name: str) -> str:
    return files("setconv.report").joinpath(name).read_text(encoding="utf-8")
