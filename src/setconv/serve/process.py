"""Processes that serve: the socket, the server of each worker, signals, and who starts anew."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from multiprocessing import connection, get_context, parent_process
from multiprocessing.process import BaseProcess
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NoReturn

import h11
import uvicorn
from fastapi import FastAPI
from prometheus_client.multiprocess import mark_process_dead
from uvicorn.protocols.http.h11_impl import H11Protocol

from setconv.errors import ParameterError
from setconv.io.files import why_not
from setconv.serve.app import create_app
from setconv.serve.forms import RefusedError
from setconv.serve.gate import refusal
from setconv.serve.served import Served, Settings

logger = logging.getLogger("setconv.serve")

_HEADERS = 10.0  # seconds in which the headers of a request have to come
_LAST = 2.0  # seconds in which clients are told that the service ends
_UNHEARD = 60_000  # milliseconds that a client may leave an answer where it is
_AGAIN = 1.0  # seconds before a worker that ended is started anew


def run(
    folder: Path,
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    workers: int = 1,
    to_all: bool = False,
    started: Callable[[str], None],
) -> None:
    """Serve a model until SIGTERM or Ctrl-C; SIGHUP has it read again.

    Parameters
    ----------
    folder : Path
        Of the model.
    settings : Settings
    host : str
        The address to listen at.
    port : int
        0 for a free one.
    workers : int
        Processes that answer.
    to_all : bool
        Whether an address that others reach needs no token.
    started : callable
        Told the address, when all is there that can be missing.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    if settings.token is None and not to_all and not _is_local(host):
        raise ParameterError(
            f"--host {host}: others could ask this model. Set a token (the environment variable "
            "SETCONV_TOKEN, or --token-file), or say --open if they may."
        )
    bound = _bind(host, port)
    app = create_app(folder, settings) if workers == 1 else Served(folder, settings)
    started("http://{}:{}/".format(*bound.getsockname()[:2]))
    if isinstance(app, FastAPI):
        _serve(app, bound)
    else:
        with tempfile.TemporaryDirectory(prefix="setconv-metrics-") as metrics:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics
            _Master(workers, partial(_work, folder, settings, bound)).run()


def _leave(*_: Any) -> NoReturn:
    raise SystemExit(0)


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _bind(host: str, port: int) -> socket.socket:
    """Return a socket at an address; it does not listen yet."""
    try:
        kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(kind)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # else a client that reads nothing is kept
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNHEARD)
        bound.bind(address)
    except OSError as error:
        why = f"The service cannot listen at {host}, port {port} ({why_not(error)})"
        raise ParameterError(f"{why}: choose another --port or --host.") from error
    return bound


def _work(folder: Path, settings: Settings, bound: socket.socket) -> None:
    """Serve in a process of its own, which ends when the one that started it does."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    threading.Thread(target=_outlive_nobody, daemon=True).start()
    _serve(create_app(folder, settings), bound)


def _outlive_nobody() -> None:
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


def _serve(app: FastAPI, bound: socket.socket) -> None:
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_JsonLines())
    for name in ("setconv.serve", "uvicorn"):
        log = logging.getLogger(name)
        log.handlers[:], log.propagate = [handler], False
        log.setLevel(logging.INFO if name == "setconv.serve" else logging.ERROR)
    seconds = app.state.service.settings.seconds
    config = uvicorn.Config(
        app,
        http=_Connection,
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(seconds) + 1,
    )
    _Server(config).run([bound])


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        said = record.msg if isinstance(record.msg, dict) else {"said": record.getMessage()}
        return json.dumps({"time": time, "level": record.levelname.lower()} | said)


class _Connection(H11Protocol):
    """A connection that is closed if the headers of a request do not come in time."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self.config.app.state.service.settings.connections:
            self.app = _full

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._late is None and self.conn.trailing_data[0]:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._late = self.loop.call_later(_HEADERS, self.transport.close)

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


async def _full(scope: Any, receive: Any, send: Any) -> None:
    error = RefusedError(503, "Too many connections are open: ask again in a second.")
    answer = refusal(error)
    answer.headers["Connection"] = "close"
    await answer(scope, receive, send)


class _Server(uvicorn.Server):
    """A server that reads its model again on SIGHUP, and tells clients when it ends."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self._service = self.config.app.state.service
        loop = asyncio.get_running_loop()
        if hasattr(signal, "SIGHUP"):
            read = partial(loop.run_in_executor, None, self._service.reload)
            loop.add_signal_handler(signal.SIGHUP, read)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A connection that is closed while a request is on its way to it would lose that. So each
        # is answered once more, and told to go; those that come meanwhile are taken in.
        self._service.ready = False
        for one in sockets or ():
            one.listen(0)
        until = monotonic() + _LAST
        await asyncio.sleep(0.05)
        while self.server_state.connections and monotonic() < until:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets=sockets)


class _Master:
    """Workers that accept at one socket; one that dies is started anew.

    Parameters
    ----------
    count : int
    work : callable
        What a worker does; it can be sent to another process.
    """

    def __init__(self, count: int, work: Callable[[], None]) -> None:
        self._work, self._count, self._ends = work, count, False
        self._workers: list[BaseProcess] = []

    def run(self) -> None:
        """Keep the workers alive until SIGTERM or Ctrl-C."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        signal.signal(signal.SIGHUP, self._pass_on)
        self._workers = [self._start() for _ in range(self._count)]
        while not self._ends:
            connection.wait([one.sentinel for one in self._workers])
            for place, one in enumerate(self._workers):
                if not self._ends and not one.is_alive():
                    mark_process_dead(one.pid)  # type: ignore[no-untyped-call]
                    sleep(_AGAIN)
                    self._workers[place] = self._start()
        self._end()  # also those that were just started
        for one in self._workers:
            one.join()

    def _start(self) -> BaseProcess:
        process = get_context("spawn").Process(target=self._work)
        process.start()
        return process

    def _end(self, *_: Any) -> None:
        self._ends = True
        for one in self._workers:
            one.terminate()

    def _pass_on(self, number: int, _: Any) -> None:
        for one in self._workers:
            if one.pid is not None and one.is_alive():
                os.kill(one.pid, number)
