"""A service for the benchmark, with an address that only parses a body, and clients of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter, sleep
from typing import Any, NamedTuple

import numpy as np

from setconv import SetConvTableClassifier, load

_STATUS = "VmRSS:"


def main() -> None:
    """Serve the model in a folder: ``python -m benchmarks.speed.service FOLDER PORT WAITING``."""
    from fastapi import Request, Response

    from setconv.serve import Settings, create_app
    from setconv.serve.process import bind, serve

    folder, port, waiting = sys.argv[1:]
    app = create_app(folder, Settings(waiting=int(waiting)))

    async def parse(request: Request) -> Response:
        return Response(json.dumps(len(json.loads(await request.body())["rows"])).encode())

    app.add_route("/parse", parse, ["POST"])
    serve(app, bind("127.0.0.1", int(port)))


def save_model(folder: str, rows: int, steps: int) -> list[dict[str, Any]]:
    """Save a model of a made table of ten columns; return rows to ask it about."""
    import pyarrow as pa

    from setconv import SetConvClassifier

    rng = np.random.default_rng(0)
    rare = rng.random(rows) < 0.1
    numbers = {f"n{k}": rng.normal(rare * (k % 3), 1, rows) for k in range(7)}
    names = {f"c{k}": rng.choice(["red", "green", "blue", "grey"], rows) for k in range(3)}
    table = pa.table(numbers | names)
    classifier = SetConvClassifier(max_steps=steps or "auto", random_state=0, progress=False)
    SetConvTableClassifier(classifier=classifier).fit(table, np.where(rare, "yes", "no")).save(
        folder
    )
    found: list[dict[str, Any]] = table.slice(0, 100).to_pylist()
    return found


def expected(folder: str, rows: list[dict[str, Any]]) -> list[float]:
    """Return the scores that the library gives."""
    import pyarrow as pa

    scores: list[float] = load(folder).predictions(pa.Table.from_pylist(rows)).scores.tolist()
    return scores


class Running(NamedTuple):
    """A service that runs, and the seconds until it answered."""

    process: subprocess.Popen[bytes]
    port: int
    seconds: float

    def gigabytes(self) -> float:
        """Return what it holds."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii").splitlines()
        (line,) = (line for line in lines if line.startswith(_STATUS))
        return int(line.split()[1]) * 1024 / 1e9


@contextmanager
def running(folder: str, waiting: int = 4096, port: int = 0) -> Iterator[Running]:
    """Start a service, at a free port if none is given, and wait until it is ready."""
    if not port:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
    command = [sys.executable, "-m", "benchmarks.speed.service", folder, str(port), str(waiting)]
    started = perf_counter()
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, env={**os.environ, "OMP_NUM_THREADS": "1"})
        try:
            while b" 200 " not in get(port, "/health/ready")[:20]:
                if process.poll() is not None:
                    raise SystemExit("The service did not start.")
            yield Running(process, port, perf_counter() - started)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def get(port: int, path: str) -> bytes:
    """Return an answer with its headers; nothing where nobody listens."""
    try:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            request = f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
            connection.sendall(request.encode())
            return connection.makefile("rb").read()
    except OSError:
        sleep(0.01)
        return b""


class Answer(NamedTuple):
    """What came back: which body it is of, its status (0: the connection was lost), and when."""

    body: int
    status: int
    content: bytes
    seconds: float


class Load(NamedTuple):
    """Answers, and the seconds in which all came."""

    answers: list[Answer]
    seconds: float

    def latencies(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the seconds of each answer."""
        return np.array([one.seconds for one in self.answers])


def ask(
    port: int, path: str, bodies: Sequence[bytes], connections: int, count: int, rate: float = 0.0
) -> Load:
    """Send requests over connections that stay open, each after the answer to the one before.

    Parameters
    ----------
    port : int
    path : str
    bodies : sequence of bytes
        Sent in turn.
    connections : int
    count : int
        Requests in all.
    rate : float
        Requests a second; 0 for as many as are answered.
    """
    return asyncio.run(_ask(port, path, bodies, connections, count, rate))


async def _ask(
    port: int, path: str, bodies: Sequence[bytes], connections: int, count: int, rate: float
) -> Load:
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: "
    requests = [f"{head}{len(one)}\r\n\r\n".encode() + one for one in bodies]
    numbers, found = iter(range(count)), []
    started = perf_counter()

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in numbers:
            wait = started + number / rate - perf_counter() if rate else 0
            if wait > 0:
                await asyncio.sleep(wait)
            sent = perf_counter()
            try:
                writer.write(requests[number % len(requests)])
                top = await reader.readuntil(b"\r\n\r\n")
                length = int(top.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
                content = await reader.readexactly(length)
            except (OSError, asyncio.IncompleteReadError):
                found.append(Answer(number % len(requests), 0, b"", 0.0))
                return
            took = perf_counter() - sent
            found.append(Answer(number % len(requests), int(top[9:12]), content, took))
        writer.close()

    await asyncio.gather(*(client() for _ in range(connections)))
    return Load(found, perf_counter() - started)


if __name__ == "__main__":
    main()
