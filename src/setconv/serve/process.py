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
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from multiprocessing import get_context, parent_process
from pathlib import Path
from time import monotonic, sleep
from typing import Any, cast

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
_ENDS = {signal.SIGTERM, signal.SIGINT}


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
    _leave_on_end()
    bound = bind(*listen)
    address, port = bound.getsockname()[:2]
    if settings.token is None and not (to_all or ip_address(address).is_loopback):
        raise ParameterError(
            f"--host {listen[0]}: others could ask this model. Set a token (the environment "
            "variable SETCONV_TOKEN, or --token-file), or say --open if they may."
        )
    app = create_app(folder, settings) if workers == 1 else Served(folder, settings)
    started(f"http://{address}:{port}/")
    if isinstance(app, FastAPI):
        serve(app, bound)
        return
    with tempfile.TemporaryDirectory(prefix="setconv-metrics-") as metrics:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics
        _keep_alive(workers, bound, partial(_work, folder, settings, bound))


def _leave_on_end() -> None:
    for number in _ENDS:
        signal.signal(number, lambda *_: sys.exit(0))


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
    _leave_on_end()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    threading.Thread(target=_outlive_nobody, daemon=True).start()
    serve(create_app(folder, settings), bound)


def _outlive_nobody() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def serve(app: FastAPI, bound: socket.socket) -> None:
    """Serve an application of `create_app` at a socket, until SIGTERM or Ctrl-C."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(_JsonLines())
    for name, level in (("setconv.serve", logging.INFO), ("uvicorn", logging.ERROR)):
        log = logging.getLogger(name)
        log.handlers[:], log.propagate, log.level = [handler], False, level
    patience = int(app.state.service.settings.seconds) + 1
    options: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
    options |= {"ws": "none", "loop": "asyncio", "timeout_graceful_shutdown": patience}
    config = uvicorn.Config(app, http=_Connection, **options)
    _Server(config).run([bound])


def _service_of(config: uvicorn.Config) -> Service:
    app: Any = config.app
    return cast("Service", app.state.service)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        said = record.msg if isinstance(record.msg, dict) else {"said": record.getMessage()}
        return json.dumps({"time": time, "level": record.levelname.lower()} | said)


class _Connection(H11Protocol):
    """A connection that is closed if a request does not come in time, or if there are too many."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._settings = _service_of(self.config).settings
        if len(self.connections) > self._settings.connections:
            self.app = _full
        self._wait(begun=True)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait(begun=bool(self.conn.trailing_data[0]))

    def _wait(self, *, begun: bool) -> None:
        """Wait for the rest of a request: of its headers if it has begun, or of its body."""
        state = self.conn.their_state
        if state is h11.SEND_BODY or (begun and state is h11.IDLE):
            seconds = self._settings.seconds
            self._late = self._late or self.loop.call_later(seconds, self._give_up)
        elif self._late is not None:
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

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if hasattr(signal, "SIGHUP"):  # not on Windows
            loop, service = asyncio.get_running_loop(), _service_of(self.config)
            read = partial(loop.run_in_executor, None, service.reload)
            loop.add_signal_handler(signal.SIGHUP, read)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGHUP])

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        _service_of(self.config).ready = False
        until = monotonic() + _LAST
        # Who has been connected is taken in, up to the moment in which nobody is any more.
        given: Any = {"config": self.config, "server_state": self.server_state, "app_state": {}}
        made: Any = partial(self.config.http_protocol_class, **given)
        for one, server in zip(sockets or (), self.servers, strict=True):
            with suppress(BlockingIOError):
                while monotonic() < until:
                    taken, _ = one.accept()
                    taken.setblocking(False)
                    await asyncio.get_running_loop().connect_accepted_socket(made, taken)
            server.close()
        # A connection that is closed while a request is on its way to it would lose that: each is
        # answered once more, and told to go.
        while self.server_state.connections and monotonic() < until:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets=sockets)


def _keep_alive(count: int, bound: socket.socket, work: Callable[[], None]) -> None:
    """Have workers accept at one socket until a signal ends them; one that dies is started anew."""
    awaited = {*_ENDS, signal.SIGHUP, signal.SIGCHLD}
    workers = [_start(work, awaited) for _ in range(count)]
    while (told := signal.sigwait(awaited)) not in _ENDS:
        for place, one in enumerate(workers):
            if not one.is_alive():
                mark_process_dead(one.pid)  # type: ignore[no-untyped-call]
                sleep(_AGAIN)
                workers[place] = _start(work, awaited)
            elif told == signal.SIGHUP:
                os.kill(one.pid, told)
    bound.close()  # the workers have it, too
    for one in workers:
        one.terminate()
    for one in workers:
        one.join()


def _start(work: Callable[[], None], awaited: set[signal.Signals]) -> Any:
    """Start a worker. Signals wait until they are asked for, and in it until it can obey."""
    process = get_context("spawn").Process(target=work, daemon=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
    process.start()
    signal.pthread_sigmask(signal.SIG_BLOCK, awaited)  # the first start lets some in
    return process
