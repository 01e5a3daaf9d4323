"""A model with rows to ask about, and services of it: in this process, or as a user starts them."""

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from starlette.testclient import TestClient

from setconv.serve import Settings, create_app


class Case(NamedTuple):
    """A model's folder, rows as JSON has them, and what the library says of these rows."""

    folder: Path
    rows: list
    said: Any

    def expected(self, places=None):
        """What the service is to say of some of the rows, but for the threshold."""
        said, found = self.said, []
        for place in range(len(self.rows)) if places is None else places:
            found.append(
                {
                    "label": said.labels.tolist()[place],
                    "probabilities": said.probabilities[place].tolist(),
                    "score": said.scores[place].tolist(),
                    "decision": said.decision_values[place].tolist(),
                }
            )
        return found


def plain(predictions):
    """Answers of the service without names of classes, and without the threshold."""
    return [
        {
            key: list(one.values()) if isinstance(one, dict) else one
            for key, one in answer.items()
            if key != "threshold"
        }
        for answer in predictions
    ]


@contextlib.contextmanager
def client(folder, **settings):
    with TestClient(create_app(folder, Settings(**settings)), raise_server_exceptions=False) as it:
        yield it


def post(port, path, body, headers=(), timeout=60):
    """Ask over a connection of its own; returns status, headers and what came as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    content = body if isinstance(body, bytes | type(None)) else json.dumps(body).encode()
    method = "GET" if body is None else "POST"
    connection.request(method, path, content, {"Content-Type": "application/json", **dict(headers)})
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    try:
        return answer.status, answer.headers, json.loads(said)
    except ValueError:
        return answer.status, answer.headers, said


def make_table(n=240):
    rng = np.random.default_rng(0)
    rare = rng.random(n) < 0.2
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), "D")
    frame = pd.DataFrame(
        {
            "amount": rng.normal(50 + 30 * rare, 20),
            "hour": rng.integers(0, 24, n),
            "country": rng.choice(["DE", "FR", "IT"], n),
            "channel": rng.choice(["web", "app", None], n),
            "new": rng.random(n) < 0.3 + 0.3 * rare,
            "day": days,
            "constant": 1,
            "place": list(rng.normal(size=(n, 3)).astype(np.float32)),
        }
    )
    frame.loc[::17, "amount"] = np.nan
    return pa.Table.from_pandas(frame, preserve_index=False), np.where(rare, "fraud", "fine")


class Process:
    """``setconv serve`` in a process of its own."""

    def __init__(self, folder, *options, port=0, environment=()):
        command = [sys.executable, "-m", "setconv", "serve", str(folder), "--port", str(port)]
        # A pipe that nobody reads would fill up.
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [*command, *map(str, options)],
            stdout=self._log,
            stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1", **dict(environment)},
        )
        first = b""
        while b" is served at " not in first:
            first = self.process.stderr.readline()
            assert first, "the service did not start"
        self.port = int(first.split(b"http://")[1].split(b";")[0].strip(b"/").rpartition(b":")[2])

    def ready(self):
        """Wait until it answers: it listens a moment after it has said where."""
        while True:
            with contextlib.suppress(OSError):
                if post(self.port, "/health/ready", None)[0] == 200:
                    return self

    def end(self):
        """End it as a supervisor does; returns its exit code and the lines of its log."""
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)
        self._log.seek(0)
        return self.process.returncode, [json.loads(line) for line in self._log]

    def __enter__(self):
        return self.ready()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        self._log.close()
