"""The service: its endpoints, and the page."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import logging
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from setconv.errors import ParameterError
from setconv.serve.batching import Batcher
from setconv.serve.forms import RefusedError, check, plain_frame, read_csv, read_json
from setconv.serve.gate import NOTHING, Gate, Metrics, as_json, refusal
from setconv.serve.openapi import SAID, document, request_schemas
from setconv.serve.served import Served, Settings

logger = logging.getLogger("setconv.serve")

_CALLS = 16  # explanations and decisions that may wait


def create_app(folder: str | Path, settings: Settings | None = None) -> FastAPI:
    """Return the service of a saved model as an application of FastAPI.

    Parameters
    ----------
    folder : path
        Of the model.
    settings : Settings, optional

    Returns
    -------
    FastAPI
        Its ``state.service`` is the `Service`.
    """
    service = Service(Path(folder), settings or Settings())

    @asynccontextmanager
    async def alive(_: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        openapi_url=None,
        redirect_slashes=False,
        lifespan=alive,
        middleware=[Middleware(Gate, service=service)],
        exception_handlers={HTTPException: _no_endpoint},
    )
    app.state.service = service
    for path in SAID:
        endpoint: Any = service.post if path in service.posts else service.get
        app.add_route(path, partial(endpoint, path), ["POST" if path in service.posts else "GET"])
    return app


async def _no_endpoint(_: Request, error: Any) -> Response:
    why = "There is no such address, or it needs another method: see /docs."
    answer = refusal(RefusedError(error.status_code, why))
    answer.headers.update(error.headers or {})
    return answer


class Service:
    """The endpoints, and what they share.

    Parameters
    ----------
    folder : Path
    settings : Settings

    Attributes
    ----------
    ready : bool
        Whether to send requests here: a model has predicted, and the process does not end.
    posts : dict of str to callable
        What answers a body, by address.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.settings, self._folder, self.ready = settings, folder, True
        self._install(Served(folder, settings))
        self.metrics = Metrics()
        self._rows = Batcher(Served.predict, settings.waiting, self.metrics)
        # What takes long has a thread of its own, so that predictions need not wait for it.
        self._calls = Batcher(lambda _, calls: [call() for call in calls], _CALLS)
        self.posts = {
            "/predict": self._predict,
            "/explain": self._explain,
            "/decision": self._decide,
            "/invocations": self._invoke,
        }

    def _install(self, served: Served) -> None:
        schemas = request_schemas(served, self.settings)
        openapi = document(served, self.settings, schemas)
        known = {
            "/": Response(_PAGE, headers=_POLICY, media_type="text/html"),
            "/docs": Response(_readable(openapi), media_type="text/html"),
            "/openapi.json": as_json(openapi),
            "/model": as_json(served.card()),
            "/health/live": as_json({"live": True}),
        }
        self._now = served, schemas, known

    def reload(self) -> None:
        """Serve the model that is in the folder now; where it fails, go on with the old one."""
        try:
            self._install(Served(self._folder, self.settings))
        except Exception as error:
            logger.error("The new model is refused, the old one stays: %s", error)  # noqa: TRY400
        else:
            logger.info("A model was read again: version %s", self._now[0].named["version"])

    def close(self) -> None:
        """End the threads."""
        self._rows.close()
        self._calls.close()

    async def get(self, path: str, _: Request) -> Response:
        """Answer a request without a body."""
        _served, _schemas, known = self._now
        if path in known:
            return known[path]
        if path == "/metrics":
            return Response(self.metrics.text(), media_type="text/plain")
        if not self.ready:
            raise RefusedError(503, "The service ends: ask another one.")
        return as_json({"ready": True})

    async def post(self, path: str, request: Request) -> Response:
        """Answer a body."""
        served, schemas, _known = self._now
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        named = served.columns is not None or served.text_column is not None
        body: Any = await request.body()
        if kind == "text/csv" and path == "/invocations":
            kinds = {one["name"]: one["kind"] for one in served.columns or ()}
            body = read_csv(body, kinds, "text" if named else "number")
        elif kind == "application/json" and "content-encoding" not in request.headers:
            body = read_json(body)
        else:
            why = "Send the body as JSON, not compressed, with Content-Type: application/json."
            raise RefusedError(415, why)
        if path == "/invocations":
            body = plain_frame(body, named=named)
        check(body, schemas[path])
        return as_json(await self.posts[path](served, body))

    async def _predict(self, served: Served, body: Any) -> Any:
        said = await self._rows.ask(served, body["rows"], self.settings.seconds)
        return {"model": served.named, "predictions": said}

    async def _invoke(self, served: Served, body: Any) -> Any:
        asked = body.pop("params", None) or {}
        (rows,) = body.values()
        said = await self._rows.ask(served, rows, self.settings.seconds)
        found = {"predictions": [one["label"] for one in said]}
        if asked.get("probabilities"):
            found["probabilities"] = [one["probabilities"] for one in said]
        return found

    async def _explain(self, served: Served, body: Any) -> Any:
        asked = body["rows"], body.get("class"), int(body.get("top", 8))
        said = await self._call(served.explain, *asked)
        return {"model": served.named, "explanations": said}

    async def _decide(self, served: Served, body: Any) -> Any:
        try:
            return await self._call(served.decide, body)
        except ParameterError as error:
            raise RefusedError(409, str(error)) from error

    async def _call(self, call: Callable[..., Any], *given: Any) -> Any:
        return (await self._calls.ask(None, [partial(call, *given)], self.settings.seconds))[0]


def _assembled() -> tuple[str, dict[str, str]]:
    """Return the page as one file, and the policy that lets just its own parts work."""
    names = ("serve/page.html", "report/page.css", "serve/page.css", "serve/page.js")
    parts = [files("setconv").joinpath(name).read_text("utf-8") for name in names]
    page, shared, own, program = parts
    page = page.replace("/*style*/", shared + own).replace("/*program*/", program)
    policy = f"{NOTHING}; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"
    for kind in ("script", "style"):
        (inline,) = re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
        told = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        policy += f"; {kind}-src 'sha256-{told}'"
    return page, {"Content-Security-Policy": policy}


def _readable(openapi: dict[str, Any]) -> str:
    """Return what can be asked as a page, without anything from elsewhere."""
    parts = ["<!DOCTYPE html><html lang=en><meta charset=utf-8><title>setconv</title>"]
    for path, operations in openapi["paths"].items():
        for method, one in operations.items():
            shown = html.escape(json.dumps(one.get("requestBody"), indent=1))
            parts.append(f"<h2>{method.upper()} {path}</h2><p>{one['summary']}</p>")
            parts.append(f"<pre>{shown}</pre>" if "requestBody" in one else "")
    return "\n".join(parts)


_PAGE, _POLICY = _assembled()
