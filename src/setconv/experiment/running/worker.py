"""A worker process: it loads the work once, then takes one cell after the other."""

from __future__ import annotations

import contextlib
import json
import math
import os
import pickle
import platform
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

from setconv.experiment.running.cells import Cell, Outcome
from setconv.experiment.running.threads import limit_threads

Figures = Mapping[str, float]
Work = Callable[[Cell], Figures | tuple[Figures, Mapping[str, Any]]]

_LONGEST_ERROR = 20_000


@dataclass(frozen=True)
class Ready:
    """The first message of a worker: it has loaded the work, or the reason why it could not."""

    error: str = ""


def serve(pipe: Any, work: bytes, threads: int) -> None:
    """Answer every cell that comes through the pipe with an outcome, until the pipe is closed."""
    _stand_alone()
    try:
        function: Work = pickle.loads(work)
    except BaseException:
        pipe.send(Ready(traceback.format_exc()))
        return
    pipe.send(Ready())
    # The study has gone when the pipe is closed at its other end: nobody is left to tell.
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            cell = pipe.recv()
            limit_threads(threads)
            pipe.send(compute(function, cell))


def compute(work: Work, cell: Cell) -> Outcome:
    """Run the work on one cell; whatever it raises becomes the outcome's error."""
    _forget_peak()
    started, clock = now(), time.perf_counter()
    results: dict[str, float] = {}
    notes: dict[str, Any] = {}
    error = ""
    try:
        told = work(cell)
        figures, more = told if isinstance(told, tuple) else (told, {})
        results, notes = _figures(figures), json.loads(json.dumps(dict(more), allow_nan=False))
    except BaseException:
        error = traceback.format_exc()[-_LONGEST_ERROR:]
    return Outcome(
        cell,
        "error" if error else "ok",
        started,
        time.perf_counter() - clock,
        results,
        error,
        peak_mb(),
        versions(),
        notes,
    )


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Return the versions of Python and of every loaded package that states one."""
    found = {"python": platform.python_version()}
    for name, module in sorted(sys.modules.items()):
        if "." in name or name.startswith("_") or name in sys.stdlib_module_names:
            continue
        version = getattr(module, "__dict__", {}).get("__version__")
        if isinstance(version, str):
            found[name] = version
    return found


def peak_mb() -> float | None:
    """Return the peak memory of this process in MiB, or None where the system does not say.

    On Linux it is the peak since the cell began, elsewhere since the process began; both are
    approximate, and hold what earlier cells of the worker left behind.
    """
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)


def _forget_peak() -> None:
    # On Linux, ru_maxrss starts at the memory of the process that started this one and never
    # falls; the kernel's own high-water mark can be set back.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _figures(results: Any) -> dict[str, float]:
    if not isinstance(results, Mapping) or not results:
        raise TypeError(f"the work returned {results!r}: return a mapping of metric to number.")
    figures = {}
    for metric, value in results.items():
        if not isinstance(metric, str):
            raise TypeError(f"the work returned the metric {metric!r}: its name must be text.")
        figures[str(metric)] = float(value)
        if math.isinf(figures[metric]):
            raise ValueError(f"the work returned {metric}={value!r}: give a finite number or nan.")
    return figures


def _stand_alone() -> None:
    """Leave Ctrl-C to the study, and end when the study's process does."""
    # A group of its own: the signal of the terminal goes to the study alone, and processes that
    # the work starts can be ended together with the worker.
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_study, daemon=True).start()


def _end_with_the_study() -> None:
    study = parent_process()
    if study is None:
        return
    connection.wait([study.sentinel])
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
