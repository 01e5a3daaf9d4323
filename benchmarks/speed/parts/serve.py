"""The service under load: against an address that only parses, beyond what it can take, killed."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections import Counter
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed import service
from benchmarks.speed.processes import Alone

_CONNECTIONS = 32
_CROWD = 256  # connections of twice what the service can take
_FEW = 64  # rows that may wait there
_TURNS = 5


class Sizes(NamedTuple):
    """How much is asked.

    Attributes
    ----------
    rows, steps : int
        Of the model; 0 steps are as many as fit chooses.
    turn, crowd, many : int
        Requests of a turn, of twice what the service can take, and to see its memory.
    """

    rows: int
    steps: int
    turn: int
    crowd: int
    many: int


FULL = Sizes(rows=10_000, steps=0, turn=5_000, crowd=20_000, many=100_000)
QUICK = Sizes(rows=500, steps=5, turn=200, crowd=500, many=1_000)


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:
    """Return rates, latencies, memory and start-up times of a service of a table model."""
    with tempfile.TemporaryDirectory() as folder:
        rows = alone(service.save_model, folder, sizes.rows, sizes.steps)
        scores = alone(service.expected, folder, rows)
        bodies = [json.dumps({"rows": [row]}).encode() for row in rows]
        with service.running(folder) as found:
            told = _turns(found.port, bodies, sizes.turn, alone)
            told |= _memory(found, bodies, sizes.many, alone)
        with service.running(folder, _FEW) as found:
            twice = 2 * told["predict"]
            asked = found.port, "/predict", bodies, _CROWD, sizes.crowd, twice
            told["crowd"] = _judged(alone(service.ask, *asked), scores)
        return told | _killed(folder, bodies, sizes.turn, alone)


def _turns(port: int, bodies: list[bytes], count: int, alone: Alone) -> dict[str, Any]:
    """Return requests a second that are parsed, and that are predicted, in turns."""
    rates: dict[str, list[float]] = {"parse": [], "predict": []}
    seconds: list[Any] = []
    for turn in range(_TURNS + 1):
        for name, found in rates.items():
            load = alone(service.ask, port, f"/{name}", bodies, _CONNECTIONS, count)
            if turn:  # the first warms up
                found.append(count / load.seconds)
                seconds += [load.latencies()] * (name == "predict")
    half, last = np.percentile(np.concatenate(seconds), [50, 99]).tolist()
    rate = {name: statistics.median(found) for name, found in rates.items()}
    return {**rate, "connections": _CONNECTIONS, "median": half, "p99": last}


def _memory(
    found: service.Running, bodies: list[bytes], count: int, alone: Alone
) -> dict[str, Any]:
    """Return what the service holds after a tenth of the requests, and after all."""
    asked = found.port, "/predict", bodies, _CONNECTIONS
    alone(service.ask, *asked, count // 10)
    before = found.gigabytes()
    alone(service.ask, *asked, count - count // 10)
    return {"requests": count, "held": before, "held_at_end": found.gigabytes()}


def _judged(load: service.Load, scores: list[float]) -> dict[str, int]:
    """Count the answers: right, refused, and all others, which should not be."""

    def kind(one: service.Answer) -> str:
        if one.status in (429, 503):
            return "refused"
        right = one.status == 200
        return "right" if right and _score(one) == scores[one.body] else "wrong"

    return {"right": 0, "refused": 0, "wrong": 0} | Counter(map(kind, load.answers))


def _score(one: service.Answer) -> float:
    score: float = json.loads(one.content)["predictions"][0]["score"]
    return score


def _killed(folder: str, bodies: list[bytes], count: int, alone: Alone) -> dict[str, Any]:
    """Return the seconds of a start, and of the next after the process was killed under load."""
    with service.running(folder) as found:
        asked = found.port, "/predict", bodies, _CONNECTIONS, 1000 * count
        crowd = Thread(target=alone, args=(service.ask, *asked))
        crowd.start()
        while not _has_answered(found):
            pass
        found.process.kill()
        crowd.join()
    with service.running(folder, port=found.port) as again:
        return {"start": found.seconds, "start_after_kill": again.seconds}


def _has_answered(found: service.Running) -> bool:
    figures = service.get(found.port, "/metrics")
    return b'setconv_requests_total{endpoint="/predict",status="200"}' in figures
