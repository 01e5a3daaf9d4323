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
from setconv.serve.app import Service, create_app
from setconv.serve.forms import RefusedError
from setconv.serve.gate import refusal
from setconv.serve.served import Served, Settings

_LAST = 2.0  # seconds in which clients are told that the service ends
_UNHEARD = 60_000  # milliseconds that a client may leave an answer where it is
_AGAIN = 1.0  # seconds before a worker that ended is started anew
_ENDS = (signal.SIGTERM, signal.SIGINT)


def run(
    folder: Path,
    settings: Settings,
    listen: tuple[str, int],
    workers: int,
    *,
    to_all: bool,
    started: Callable[[str], None],
) -> None:
    """Serve a model until SIGTERM or Ctrl-C; SIGHUP has it read again.

    Parameters
    ----------
    folder : Path
        Of the model.
    settings : Settings
    listen : (str, int)
        Address and port; 0 is a free one.
    workers : int
        Processes that answer.
    to_all : bool
        Whether an address that others reach needs no token.
    started : callable
        Told where the service is, when all is there that can be missing.
    """
    _on_end(_leave)
    if settings.token is None and not to_all and not _is_local(listen[0]):
        raise ParameterError(
            f"--host {listen[0]}: others could ask this model. Set a token (the environment "
            "variable SETCONV_TOKEN, or --token-file), or say --open if they may."
        )
    bound = bind(*listen)
    app = create_app(folder, settings) if workers == 1 else Served(folder, settings)
    started("http://{}:{}/".format(*bound.getsockname()[:2]))
    if isinstance(app, FastAPI):
        serve(app, bound)
        return
    with tempfile.TemporaryDirectory(prefix="setconv-metrics-") as metrics:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics
        _Master(workers, partial(_work, folder, settings, bound)).run()


def _on_end(handler: Callable[..., Any]) -> None:
    for number in _ENDS:
        signal.signal(number, handler)


def _leave(*_: Any) -> NoReturn:
    raise SystemExit(0)


def _is_local(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def bind(host: str, port: int) -> socket.socket:
    """Return a socket at an address; it does not listen yet."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        bound = socket.socket(*found[:3])  # as TCP, or asyncio leaves Nagle's delays on
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # else a client that reads nothing is kept
            bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNHEARD)
        bound.bind(found[4])
    except OSError as error:
        why = f"The service cannot listen at {host}, port {port} ({why_not(error)})"
        raise ParameterError(f"{why}: choose another --port or --host.") from error
    return bound


def _work(folder: Path, settings: Settings, bound: socket.socket) -> None:
    """Serve in a process of its own, which ends when the one that started it does."""
    _on_end(_leave)
    threading.Thread(target=_outlive_nobody, daemon=True).start()
    serve(create_app(folder, settings), bound)


def _outlive_nobody() -> None:
    parent = parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGTERM)


def serve(app: FastAPI, bound: socket.socket) -> None:
    """Serve an application of `create_app` at a socket, until SIGTERM or Ctrl-C."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_JsonLines())
    for name, level in (("setconv.serve", logging.INFO), ("uvicorn", logging.ERROR)):
        log = logging.getLogger(name)
        log.handlers[:], log.propagate, log.level = [handler], False, level
    service: Service = app.state.service
    config = uvicorn.Config(
        app,
        http=partial(_Connection, service.settings),  # type: ignore[arg-type]
        ws="none",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(service.settings.seconds) + 1,
    )
    _Server(config, service).run([bound])


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        said = record.msg if isinstance(record.msg, dict) else {"said": record.getMessage()}
        return json.dumps({"time": time, "level": record.levelname.lower()} | said)


class _Connection(H11Protocol):
    """A connection that is closed if a request does not come in time, or if there are too many."""

    def __init__(self, settings: Settings, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._settings = settings
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait(begun=True)
        if len(self.connections) > self._settings.connections:
            self.app = _full

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait(begun=bool(self.conn.trailing_data[0]))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()

    def _wait(self, *, begun: bool) -> None:
        """Wait for the rest of a request: of its headers if it has begun, or of its body."""
        state = self.conn.their_state
        if (begun and state is h11.IDLE) or state is h11.SEND_BODY:
            seconds = self._settings.seconds
            self._late = self._late or self.loop.call_later(seconds, self._give_up)
        else:
            self._stop()

    def _stop(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(_LATE)
            self.transport.close()


_SAID = b'{"error": "The request did not come in time: send it at once."}'
_LATE = (
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\n\r\n%b" % (len(_SAID), _SAID)
)


async def _full(*channel: Any) -> None:
    answer = refusal(RefusedError(503, "Too many connections are open: ask again in a second."))
    answer.headers["Connection"] = "close"
    await answer(*channel)


class _Server(uvicorn.Server):
    """A server that reads its model again on SIGHUP, and tells clients when it ends."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        loop = asyncio.get_running_loop()
        if hasattr(signal, "SIGHUP"):  # not on Windows
            read = partial(loop.run_in_executor, None, self._service.reload)
            loop.add_signal_handler(signal.SIGHUP, read)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])

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
        self._work, self._ends = work, threading.Event()
        # Until a worker can read its model again, the signal waits.
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
        self._workers = [self._start() for _ in range(count)]

    def run(self) -> None:
        """Keep the workers alive until SIGTERM or Ctrl-C."""
        _on_end(self._end)
        signal.signal(signal.SIGHUP, self._pass_on)
        while not self._ends.is_set():
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])
            connection.wait([one.sentinel for one in self._workers])
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
            for place, one in enumerate(self._workers):
                if not (one.is_alive() or self._ends.is_set()):
                    mark_process_dead(one.pid)  # type: ignore[no-untyped-call]
                    sleep(_AGAIN)
                    self._workers[place] = self._start()
        self._end()  # also those that were just started
        for one in self._workers:
            one.join()

    def _start(self) -> Any:
        process = get_context("spawn").Process(target=self._work)
        process.start()
        return process

    def _end(self, *_: Any) -> None:
        self._ends.set()
        for one in self._workers:
            one.terminate()

    def _pass_on(self, number: int, _: Any) -> None:
        for one in self._workers:
            if one.is_alive():
                os.kill(one.pid, number)
