"""A function in a process of its own, and the memory that a process holds."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Alone = Callable[..., Any]

_STATUS = Path("/proc/self/status")
_FORGET_PEAK = "5"  # what the kernel calls it, see proc(5)


class Processes:
    """Run functions in other processes: ``processes(function, *arguments)`` returns the result.

    Parameters
    ----------
    fresh : bool
        Whether each function has a process of its own. Else they share one, which spares the
        imports; peaks of memory then mean little.
    """

    def __init__(self, *, fresh: bool) -> None:
        self._shared = None if fresh else _one_process()

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> Any:
        if self._shared is not None:
            return self._shared.submit(function, *arguments).result()
        with _one_process() as process:
            return process.submit(function, *arguments).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._shared is not None:
            self._shared.shutdown()


def _one_process() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def peak_gigabytes() -> float:
    """Return the most that this process ever held, or held since `forget_peak`."""
    # Where there is one, the kernel's own figure: getrusage starts with what the parent held.
    if _STATUS.exists():
        return _status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024  # bytes there, kilobytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def held_gigabytes() -> float:
    """Return what this process holds now; its peak where the system does not say."""
    return _status("VmRSS") if _STATUS.exists() else peak_gigabytes()


def forget_peak() -> None:
    """Let the peak be what is held now, where the system can do so."""
    if _STATUS.exists():
        Path("/proc/self/clear_refs").write_text(_FORGET_PEAK, encoding="ascii")


def _status(field: str) -> float:
    lines = _STATUS.read_text(encoding="ascii").splitlines()
    (line,) = (line for line in lines if line.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024 / 1e9
