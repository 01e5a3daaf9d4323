"""What every request comes through: token, limits, headers, figures and the access log."""

from __future__ import annotations

import collections
import hmac
import json
import logging
import os
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any

from fastapi import Request, Response
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.requests import ClientDisconnect

from setconv.errors import DataError
from setconv.serve.forms import RefusedError
from setconv.serve.openapi import OPEN, SAID

logger = logging.getLogger("setconv.serve")

_TOLD = 200  # characters of an address that are logged
_GONE = 499  # what is logged where nobody waits for an answer any more
_CLOSED = (401, 413)  # after these the rest of a body may still be on its way
NOTHING = "default-src 'none'; frame-ancestors 'none'"
_HEADERS = {
    b"content-security-policy": NOTHING.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
}
_AGAIN = {"Retry-After": "1"}
_SAYING = {401: {"WWW-Authenticate": "Bearer"}, 429: _AGAIN, 503: _AGAIN}
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


class Gate:
    """ASGI middleware around the whole application.

    Parameters
    ----------
    app : ASGI application
    service : Service
    """

    def __init__(self, app: Any, service: Any) -> None:
        self._app, self._service, self._settings = app, service, service.settings

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, body = perf_counter(), _GONE, b""
        # A proxy may have taken the prefix away, or not.
        path = scope["path"] = scope["path"].removeprefix(self._settings.root_path)

        async def answer(message: _Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, headers = message["status"], _HEADERS | dict(message["headers"])
                if not self._service.ready or status in _CLOSED:
                    headers[b"connection"] = b"close"
                message = {**message, "headers": [*headers.items()]}
            await send(message)

        async def again() -> _Message:
            return {"type": "http.request", "body": body, "more_body": False}

        try:
            self._admit(path, dict(scope["headers"]))
            body = await self._read(Request(scope, receive))
            await self._app(scope, again, answer)
        except ClientDisconnect:
            pass
        except Exception as error:
            await refusal(error)(scope, receive, answer)
        took = perf_counter() - started
        self._service.metrics.request(path if path in SAID else "other", status, took)
        line = {"client": (scope["client"] or [None])[0], "method": scope["method"]}
        line |= {"path": path[:_TOLD], "status": status, "ms": round(1000 * took, 2)}
        given = {"body": body.decode(errors="replace")} if self._settings.log_texts else {}
        logger.info(line | given)

    def _admit(self, path: str, headers: dict[bytes, bytes]) -> None:
        token = self._settings.token
        if token is None or path in OPEN:
            return
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        right = hmac.compare_digest(given.strip(), token.encode())
        if kind.lower() != b"bearer" or not right:
            why = "The token is wrong" if given else "There is no token"
            raise RefusedError(401, f"{why}: send the header Authorization: Bearer and the token.")

    async def _read(self, request: Request) -> bytes:
        """Return the body. What is too large is read to its end, so that the answer is heard."""
        body, size, most = bytearray(), 0, self._settings.body_bytes
        async for chunk in request.stream():
            size += len(chunk)
            body += chunk if size <= most else b""
        if size > most:
            why = f"The body has {size:,} bytes, at most {most:,} are read: send fewer rows."
            raise RefusedError(413, why)
        return bytes(body)


def as_json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer in JSON."""
    body = json.dumps(content, allow_nan=False).encode()
    return Response(body, status, headers, "application/json")


def refusal(error: Exception) -> Response:
    """Return the answer to a request that failed, with what its client is to know of it."""
    status, why = getattr(error, "status", 422), str(error)
    if not isinstance(error, RefusedError | DataError):
        # Where it failed; not in its words, which may be those of a client.
        frames = traceback.extract_tb(error.__traceback__)[-8:]
        places = [f"{one.filename}:{one.lineno}" for one in frames]
        logger.error("%s at %s", type(error).__name__, ", ".join(places))
        status, why = 500, "The service failed here: tell whoever runs it."
    where = {name: getattr(error, name, None) for name in ("row", "column")}
    told = {name: one for name, one in where.items() if one is not None}
    return as_json({"error": why, **told}, status, _SAYING.get(status))


class Metrics:
    """Figures for Prometheus; of several processes their sums."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        of, sizes = ["endpoint", "status"], [2**k for k in range(11)]
        self._requests = Counter("setconv_requests", "Requests.", of, registry=own)
        seconds = Histogram("setconv_request_seconds", "Their time.", of[:1], registry=own)
        self._rows = Counter("setconv_rows", "Rows predicted.", registry=own)
        batches = Histogram("setconv_batch_rows", "Rows at once.", buckets=sizes, registry=own)
        self._decided = Counter("setconv_decided", "Rows by decision.", ["label"], registry=own)
        said = "Score of the second of two classes; of more, of the one decided for."
        scores = Histogram("setconv_score", said, buckets=range(-10, 11), registry=own)
        self._seconds, self._batches, self._scores = seconds, batches, scores
        live: Any = {"multiprocess_mode": "livesum", "registry": own}
        self.queue = Gauge("setconv_queue_rows", "Rows that wait.", **live)

    def request(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(endpoint, str(status)).inc()
        self._seconds.labels(endpoint).observe(seconds)

    def batch(self, found: list[dict[str, Any]]) -> None:
        """Count rows that were predicted at once."""
        self._rows.inc(len(found))
        self._batches.observe(len(found))
        for label, count in collections.Counter(str(one["label"]) for one in found).items():
            self._decided.labels(label).inc(count)
        for one in found:
            score = one["score"]
            self._scores.observe(score[str(one["label"])] if isinstance(score, dict) else score)

    def text(self) -> bytes:
        """Return the figures as Prometheus reads them."""
        registry = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return generate_latest(registry)
