"""The service: its endpoints, and the page."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
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
from setconv.serve.gate import Gate, Metrics, json_response
from setconv.serve.openapi import document, request_schemas
from setconv.serve.served import Served, Settings

logger = logging.getLogger("setconv.serve")

_BATCH = 256  # rows: prediction works in blocks of so many
_CALLS = 16  # explanations and decisions that may wait
_Endpoint = Callable[[Request], Awaitable[Response]]


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
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=alive,
        root_path=service.settings.root_path,
        middleware=[Middleware(Gate, service=service)],
        exception_handlers={HTTPException: _no_route},
    )
    app.state.service = service
    for path, (method, endpoint) in service.endpoints().items():
        app.add_route(path, endpoint, methods=[method])
    return app


async def _no_route(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    why = {404: "There is no such address: see /docs.", 405: "This address needs another method."}
    said = {"error": why.get(error.status_code, error.detail)}
    return json_response(said, error.status_code, dict(error.headers or {}))


class Service:
    """The endpoints, and what they share.

    Parameters
    ----------
    folder : Path
    settings : Settings

    Attributes
    ----------
    served : Served
        The model that answers now.
    ready : bool
        Whether to send requests here: the model has predicted, and the process does not end.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.settings, self._folder = settings, folder
        self.metrics = Metrics()
        self.ready = True
        self._install(Served(folder, settings))
        self._rows = Batcher(Served.predict, _BATCH, settings.waiting, self.metrics.saw)
        # What takes long has a thread of its own, so that predictions need not wait for it.
        self._calls = Batcher(lambda _, calls: [call() for call in calls], 1, _CALLS, len)

    def _install(self, served: Served) -> None:
        requests = request_schemas(served, self.settings)
        self.openapi = document(served, self.settings, requests)
        self._now = served, requests

    def reload(self) -> None:
        """Serve the model that is in the folder now; where it fails, go on with the old one."""
        try:
            served = Served(self._folder, self.settings)
        except Exception as error:
            logger.error("The new model is refused, the old one stays: %s", error)  # noqa: TRY400
        else:
            self._install(served)
            logger.info("A new model is served, version %s", served.named["version"])

    def saw(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.metrics.request(endpoint, status, seconds, self._rows.queued)

    def close(self) -> None:
        """End the threads."""
        self._rows.close()
        self._calls.close()

    def endpoints(self) -> dict[str, tuple[str, Any]]:
        """Return what is at each address, and by which method."""
        get: dict[str, _Endpoint] = {
            "/": self._page,
            "/docs": self._docs,
            "/openapi.json": self._openapi,
            "/health/live": self._live,
            "/health/ready": self._ready,
            "/ping": self._ready,
            "/model": self._model,
            "/metrics": self._figures,
        }
        post = {
            "/predict": self._predict,
            "/explain": self._explain,
            "/decision": self._decide,
            "/invocations": self._invoke,
        }
        found = {path: ("GET", one) for path, one in get.items()}
        return found | {path: ("POST", one) for path, one in post.items()}

    async def _predict(self, request: Request) -> Response:
        served, schemas = self._now
        body = await _body_of(request)
        check(body, schemas["/predict"])
        said = await self._rows.ask(served, body["rows"], self.settings.seconds)
        return json_response({"model": served.named, "predictions": said})

    async def _invoke(self, request: Request) -> Response:
        served, schemas = self._now
        named = served.columns is not None or served.text_column is not None
        if _kind(request) == "text/csv":
            kinds = {one["name"]: one["kind"] for one in served.columns or ()}
            body = read_csv(await request.body(), kinds if named else None)
        else:
            body = plain_frame(await _body_of(request), named=named)
        check(body, schemas["/invocations"])
        rows = next(one for name, one in body.items() if name != "params")
        if served.text_column is not None:
            rows = [one[served.text_column] if isinstance(one, dict) else one for one in rows]
        said = await self._rows.ask(served, rows, self.settings.seconds)
        found = {"predictions": [one["label"] for one in said]}
        if (body.get("params") or {}).get("probabilities"):
            found["probabilities"] = [one["probabilities"] for one in said]
        return json_response(found)

    async def _explain(self, request: Request) -> Response:
        served, schemas = self._now
        body = await _body_of(request)
        check(body, schemas["/explain"])
        asked = body["rows"], body.get("class"), int(body.get("top", 8))
        said = await self._call(partial(served.explain, *asked))
        return json_response({"model": served.named, "explanations": said})

    async def _decide(self, request: Request) -> Response:
        served, schemas = self._now
        body = await _body_of(request)
        check(body, schemas["/decision"])
        try:
            return json_response(await self._call(partial(served.decide, body)))
        except ParameterError as error:
            raise RefusedError(409, str(error)) from error

    async def _call(self, call: Callable[[], Any]) -> Any:
        return (await self._calls.ask(None, [call], self.settings.seconds))[0]

    async def _model(self, _: Request) -> Response:
        return json_response(self._now[0].card())

    async def _openapi(self, _: Request) -> Response:
        return json_response(self.openapi)

    async def _live(self, _: Request) -> Response:
        return json_response({"live": True})

    async def _ready(self, _: Request) -> Response:
        if not self.ready:
            raise RefusedError(503, "The service ends: ask another one.")
        return json_response({"ready": True})

    async def _figures(self, _: Request) -> Response:
        return Response(self.metrics.text(), media_type="text/plain")

    async def _page(self, _: Request) -> Response:
        return Response(_PAGE, media_type="text/html", headers={"Content-Security-Policy": _POLICY})

    async def _docs(self, _: Request) -> Response:
        return Response(_readable(self.openapi), media_type="text/html")


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _body_of(request: Request) -> Any:
    if _kind(request) != "application/json" or "content-encoding" in request.headers:
        why = "Send the body as JSON, not compressed, with Content-Type: application/json."
        raise RefusedError(415, why)
    return read_json(await request.body())


def _assembled() -> tuple[str, str]:
    """Return the page as one file, and the policy that lets just its own parts work."""
    here = files("setconv")
    names = ("serve/page.html", "report/page.css", "serve/page.css", "serve/page.js")
    page, shared, style, program = (here.joinpath(name).read_text("utf-8") for name in names)
    page = page.replace("/*style*/", shared + style).replace("/*program*/", program)
    parts = [f"{_NOTHING}; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'"]
    for kind in ("script", "style"):
        inline = re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(one.encode()).digest()) for one in inline]
        parts.append(f"{kind}-src " + " ".join(f"'sha256-{one.decode()}'" for one in hashes))
    return page, "; ".join(parts)


def _readable(openapi: dict[str, Any]) -> str:
    """Return what can be asked as a page, without anything from elsewhere."""
    parts = [f"<!DOCTYPE html><html lang=en><meta charset=utf-8><title>setconv</title>"]
    for path, operations in openapi["paths"].items():
        for method, one in operations.items():
            said = html.escape(one["summary"])
            body = json.dumps(one.get("requestBody", {}).get("content", {}), indent=1)
            shown = f"<pre>{html.escape(body)}</pre>" if "requestBody" in one else ""
            parts.append(f"<h2>{method.upper()} {path}</h2><p>{said}</p>{shown}")
    return "\n".join(parts)


_NOTHING = "default-src 'none'; frame-ancestors 'none'"
_PAGE, _POLICY = _assembled()
