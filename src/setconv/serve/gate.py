"""What every request comes through: token, limits, headers, figures and the access log."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from time import perf_counter
from typing import Any

import prometheus_client as prometheus
from fastapi import Response
from prometheus_client.multiprocess import MultiProcessCollector

from setconv.errors import DataError
from setconv.serve.forms import RefusedError
from setconv.serve.openapi import OPEN

logger = logging.getLogger("setconv.serve")

_TOLD = 200  # characters of an address that are logged
_GONE = 499  # the status of a request that nobody waits for any more
_CLOSED = (401, 408, 413)  # after these the connection may still be full of a body
_HEADERS = (
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]


class _GoneError(Exception):
    """The client has hung up."""


class Gate:
    """ASGI middleware around the whole application.

    Parameters
    ----------
    app : ASGI application
    service : Service
    """

    def __init__(self, app: Any, service: Any) -> None:
        self._app, self._service, self._settings = app, service, service.settings
        self._paths = set(service.endpoints())

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, body = perf_counter(), _GONE, b""
        path = scope["path"].removeprefix(self._settings.root_path)

        async def answer(message: _Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message["headers"])
                known = {name for name, _ in headers}
                headers += [one for one in _HEADERS if one[0] not in known]
                if not self._service.ready or status in _CLOSED:
                    headers.append((b"connection", b"close"))
                message = {**message, "headers": headers}
            await send(message)

        async def again() -> _Message:
            return {"type": "http.request", "body": body, "more_body": False}

        try:
            self._admit(path, dict(scope["headers"]))
            body = await self._read(receive)
            await self._app(scope, again, answer)
        except _GoneError:
            pass
        except Exception as error:
            await refusal(error)(scope, receive, answer)
        took = perf_counter() - started
        self._service.saw(path if path in self._paths else "other", status, took)
        if logger.isEnabledFor(logging.INFO):
            line = {"client": (scope.get("client") or [None])[0], "method": scope["method"]}
            line |= {"path": path[:_TOLD], "status": status, "ms": round(1000 * took, 2)}
            if self._settings.log_texts:
                line["body"] = body.decode(errors="replace")
            logger.info(line)

    def _admit(self, path: str, headers: dict[bytes, bytes]) -> None:
        token = self._settings.token
        if token is None or path in OPEN:
            return
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        right = hmac.compare_digest(given.strip(), token.encode())
        if kind.lower() != b"bearer" or not right:
            why = "a wrong token" if given else "no token"
            raise RefusedError(401, f"There is {why}: send Authorization: Bearer and the token.")

    async def _read(self, receive: _Receive) -> bytes:
        """Return the body. What is too large is read to its end, so that the answer is heard."""
        body, size, most = bytearray(), 0, self._settings.body_bytes
        try:
            async with asyncio.timeout(self._settings.seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _GoneError
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size <= most:
                        body += chunk
                    more = message.get("more_body", False)
        except TimeoutError:
            raise RefusedError(408, "The body did not come in time: send it at once.") from None
        if size > most:
            why = f"The body has {size:,} bytes, at most {most:,} are read: send fewer rows."
            raise RefusedError(413, why)
        return bytes(body)


def json_response(
    content: Any, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return an answer in JSON."""
    body = json.dumps(content, allow_nan=False).encode()
    return Response(body, status, headers, "application/json")


def refusal(error: Exception) -> Response:
    """Return the answer to a request that failed, with what its client is to know of it."""
    status, headers, said = 500, {}, {"error": "The service failed here. Ask whoever runs it."}
    if isinstance(error, RefusedError | DataError):
        status = error.status if isinstance(error, RefusedError) else 422
        places = {"row": error.row, "column": error.column}
        said = {"error": str(error)} | {k: one for k, one in places.items() if one is not None}
    else:
        # Where it failed; not its words, which may be those of a client.
        frames = [
            f"{one.filename}:{one.lineno}" for one in traceback.extract_tb(error.__traceback__)
        ]
        logger.error("%s at %s", type(error).__name__, " ".join(frames[-8:]))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status in (429, 503):
        headers["Retry-After"] = "1"
    return json_response(said, status, headers)


class Metrics:
    """Figures for Prometheus; of several processes their sums."""

    def __init__(self) -> None:
        self._registry = prometheus.CollectorRegistry()
        own: Any = {"registry": self._registry}
        counter, histogram = prometheus.Counter, prometheus.Histogram
        named = ["endpoint", "status"]
        self._requests = counter("setconv_requests", "Requests.", named, **own)
        said = "Seconds from the headers of a request to the end of its answer."
        self._seconds = histogram("setconv_request_seconds", said, ["endpoint"], **own)
        self._rows = counter("setconv_rows", "Rows predicted.", **own)
        sizes = [2**k for k in range(11)]
        said = "Rows predicted at once."
        self._batches = histogram("setconv_batch_rows", said, buckets=sizes, **own)
        said = "Rows that wait."
        self._queue = prometheus.Gauge(
            "setconv_queue_rows", said, multiprocess_mode="livesum", **own
        )
        self._decided = counter("setconv_decided", "Rows by decision.", ["label"], **own)
        said = "Score of the second of two classes, of more that of the one decided for."
        self._scores = histogram("setconv_score", said, buckets=range(-10, 11), **own)

    def request(self, endpoint: str, status: int, seconds: float, queued: int) -> None:
        """Count a request."""
        self._requests.labels(endpoint, str(status)).inc()
        self._seconds.labels(endpoint).observe(seconds)
        self._queue.set(queued)

    def saw(self, found: list[dict[str, Any]]) -> None:
        """Count rows that were predicted at once."""
        self._rows.inc(len(found))
        self._batches.observe(len(found))
        for one in found:
            label, score = str(one["label"]), one["score"]
            self._decided.labels(label).inc()
            self._scores.observe(score[label] if isinstance(score, dict) else score)

    def text(self) -> bytes:
        """Return the figures as Prometheus reads them."""
        registry = self._registry
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            registry = prometheus.CollectorRegistry()
            MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        return prometheus.generate_latest(registry)
