"""The run of a study: the cells that are missing, computed in worker processes.

`run` hands cells to a `Pool` and records the outcomes. A pool keeps workers, each at one cell, and
replaces those that fail, die or take too long. A worker process runs `serve`: it answers every
cell with an outcome and ends when the study does.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import multiprocessing
import os
import pickle
import platform
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any, Literal

from tqdm.auto import tqdm

from setconv.errors import ParameterError, StudyError
from setconv.experiment.store import Cell, Outcome, Status, Store
from setconv.messages import is_shown

logger = logging.getLogger(__name__)

_Figures = Mapping[str, float]
Work = Callable[[Cell], _Figures | tuple[_Figures, Mapping[str, Any]]]

# Read by OpenMP, the BLAS libraries, numexpr and joblib when they are loaded, so they must be in
# the environment with which a worker starts.
_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)
_PATIENCE = 5.0  # seconds that a worker without cells has to end by itself
_LONGEST_ERROR = 20_000


@dataclass(frozen=True)
class Tally:
    """How many cells a run found done, computed, and could not compute.

    Attributes
    ----------
    skipped : int
        Cells that the store had already; failed ones too, unless they were to be repeated.
    ok : int
    failed : int
    """

    skipped: int
    ok: int
    failed: int


def run(
    cells: Iterable[Cell],
    work: Work,
    store: Store,
    *,
    jobs: int | None = None,
    timeout: float | None = None,
    retry_failed: bool = False,
    progress: Literal["auto"] | bool = "auto",
    threads: int | None = None,
) -> Tally:
    """Compute every cell that the store does not have yet, in worker processes.

    A cell that raises, takes too long or kills its process is recorded with its error, and the
    study goes on with a fresh worker. What is finished is in the store at once: after Ctrl-C or a
    crash, the same call goes on where the last one stopped.

    Parameters
    ----------
    cells : iterable of Cell
        Handed out one at a time in this order; put the longest first for the shortest run.
    work : callable
        ``work(cell)`` returns a mapping of metric to number; nan is allowed, infinity is not. It
        must be picklable: a function at the top level of a module, or a `functools.partial` of
        one. Workers are spawned, so a program must call ``run`` under
        ``if __name__ == "__main__":``.
    store : Store
        Written by this process alone.
    jobs : int, optional
        Number of worker processes; by default the number of cores that this process may use.
    timeout : float, optional
        Seconds that a cell may take; by default there is no limit. The start of a worker, with
        its imports, does not count.
    retry_failed : bool, default=False
        Compute cells again that failed in an earlier run.
    progress : {"auto", True, False}, default="auto"
        A bar on standard error with the time left; "auto" is on a terminal.
    threads : int, optional
        Threads of each worker; by default an equal share of the cores, and no more than
        OMP_NUM_THREADS if that is set. Numbers may depend on it in their last digits.

    Returns
    -------
    Tally
        How many cells were skipped, computed and failed.

    Raises
    ------
    StudyError
        If workers cannot load the work.
    """
    todo, skipped = _todo(cells, store, retry_failed)
    jobs = _at_least_one("jobs", available_cores() if jobs is None else jobs)
    threads = _at_least_one("threads", threads_for(jobs) if threads is None else threads)
    if timeout is not None and not 0 < timeout < math.inf:
        raise ParameterError(f"timeout={timeout!r}: give seconds above 0, or None.")
    shown = is_shown(progress)
    pool = Pool(todo, _pickled(work), jobs, threads, timeout)
    logger.info("%d cells to compute, %d there already", len(todo), skipped)
    failed = 0
    # smoothing=0: cells differ so much that only the mean over all says how long the rest takes.
    bar = tqdm(total=len(todo), unit="cell", smoothing=0, disable=not shown)
    with bar, contextlib.closing(pool):
        for outcome in pool:
            store.record(outcome)
            if outcome.status == "ok":
                logger.info("%s: ok in %.1f s", outcome.cell, outcome.seconds)
            else:
                failed += 1
                bar.set_postfix(failed=failed, refresh=False)
                last = outcome.error.strip().rpartition("\n")[2]
                logger.warning("%s: %s: %s", outcome.cell, outcome.status, last)
            bar.update()
    return Tally(skipped, len(todo) - failed, failed)


def _todo(cells: Iterable[Cell], store: Store, retry_failed: bool) -> tuple[list[Cell], int]:
    wanted = dict.fromkeys(cells)
    for cell in wanted:
        if not isinstance(cell, Cell):
            raise ParameterError(f"cells has {cell!r}: give setconv.experiment.Cell objects.")
    done = store.finished() if retry_failed else store.finished() | store.failed()
    todo = [cell for cell in wanted if cell not in done]
    return todo, len(wanted) - len(todo)


def _at_least_one(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ParameterError(f"{name}={value!r}: give an integer of at least 1, or None.")
    return value


def _pickled(work: Work) -> bytes:
    try:
        return pickle.dumps(work)
    except Exception as error:
        raise ParameterError(
            f"work={work!r} cannot be sent to worker processes ({error}): "
            "give a function at the top level of a module, or a functools.partial of one."
        ) from error


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if sys.version_info >= (3, 13):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_for(jobs: int) -> int:
    """Return the threads of each of ``jobs`` workers: an equal share of the cores, at least 1.

    A smaller number in OMP_NUM_THREADS is the user's wish, and is kept.
    """
    share = max(1, available_cores() // jobs)
    wish = os.environ.get("OMP_NUM_THREADS", "")
    return min(share, int(wish)) if wish.isdecimal() and int(wish) > 0 else share


class Pool:
    """Hands out cells to workers; iterate over it for the outcomes as they come.

    Parameters
    ----------
    cells : sequence of Cell
        Handed out one at a time, in this order.
    work : bytes
        The pickled work.
    jobs : int
        Most workers at a time.
    threads : int
        Threads of each worker.
    timeout : float or None
        Seconds that a cell may take.
    """

    def __init__(
        self, cells: Sequence[Cell], work: bytes, jobs: int, threads: int, timeout: float | None
    ) -> None:
        self._waiting = deque(cells)
        self._work, self._jobs, self._threads, self._timeout = work, jobs, threads, timeout
        self._workers: list[_Worker] = []
        self._retired: list[_Worker] = []

    def __iter__(self) -> Iterator[Outcome]:
        self._hire()
        while self._workers:
            objects = [end for one in self._workers for end in (one.pipe, one.process.sentinel)]
            ready = set(connection.wait(objects, self._time_left()))
            for worker in list(self._workers):
                outcome = self._look_at(worker, {worker.pipe, worker.process.sentinel} & ready)
                if outcome is not None:
                    # Whoever iterates keeps the outcome before the worker goes on, so that a
                    # study that dies in the next cell has this one.
                    yield outcome
                    self._go_on(worker, outcome)
            self._hire()

    def close(self) -> None:
        """End all workers; cells that they are at are abandoned."""
        for worker in self._workers:
            worker.kill()
        for worker in self._retired:
            worker.kill(_PATIENCE)
        self._workers, self._retired = [], []

    def _hire(self) -> None:
        starting = sum(worker.cell is None for worker in self._workers)
        while len(self._workers) < self._jobs and starting < len(self._waiting):
            self._workers.append(_Worker(self._work, self._threads))
            starting += 1

    def _time_left(self) -> float | None:
        if self._timeout is None:
            return None
        busy = [worker.seconds() for worker in self._workers if worker.cell is not None]
        return max(0.0, self._timeout - max(busy)) if busy else None

    def _look_at(self, worker: _Worker, stirred: set[Any]) -> Outcome | None:
        message, cell = worker.message(), worker.cell
        if isinstance(message, _Ready):
            if message.error:
                raise StudyError(f"a worker cannot load the work:\n{message.error}")
            self._next(worker)
            return None
        if isinstance(message, Outcome):
            return message
        if stirred:
            how = worker.death()
            if cell is not None:
                return worker.lost(cell, "error", f"{how} during this cell")
            raise StudyError(
                f"{how} before it could take a cell; standard error may say more. A program that "
                'calls run must do so under if __name__ == "__main__": since workers import it.'
            )
        if cell is not None and self._timeout is not None and worker.seconds() >= self._timeout:
            return worker.lost(cell, "timeout", f"stopped after the limit of {self._timeout:g} s")
        return None

    def _go_on(self, worker: _Worker, outcome: Outcome) -> None:
        if outcome.status == "ok" and worker.process.is_alive():
            self._next(worker)
        else:
            # A failed cell may leave anything behind, so only success keeps the worker.
            self._workers.remove(worker)
            worker.kill()

    def _next(self, worker: _Worker) -> None:
        if self._waiting:
            worker.give(self._waiting.popleft())
        else:
            self._workers.remove(worker)
            self._retired.append(worker)
            worker.pipe.close()  # it ends by itself


class _Worker:
    """A worker process, the pipe to it and the cell that it is at."""

    def __init__(self, work: bytes, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, work, threads))
        with environment(threads):
            self.process.start()
        theirs.close()  # so that the pipe ends when the worker does
        self.cell: Cell | None = None
        self._began = 0.0
        self._started = ""

    def give(self, cell: Cell) -> None:
        """Hand out a cell; the clock of its time limit starts."""
        self.cell, self._began, self._started = cell, time.monotonic(), _now()
        try:
            self.pipe.send(cell)
        except OSError:
            logger.debug("a worker died before it got %s", cell)  # seen again as its death

    def seconds(self) -> float:
        """Return the time since the cell was handed out."""
        return time.monotonic() - self._began

    def message(self) -> Any:
        """Return the next message if there is one, None if there is none or the worker died."""
        try:
            return self.pipe.recv() if self.pipe.poll() else None
        except (EOFError, OSError):
            return None

    def lost(self, cell: Cell, status: Status, error: str) -> Outcome:
        """Return the outcome of a cell that the worker could not report itself."""
        return Outcome(cell, status, self._started, self.seconds(), error=error)

    def death(self) -> str:
        """Say how the process ended."""
        self.process.join(_PATIENCE)
        code = self.process.exitcode
        if code is not None and code < 0:
            try:
                return f"the worker was killed by signal {signal.Signals(-code).name}"
            except ValueError:
                return f"the worker was killed by signal {-code}"
        return f"the worker ended with exit code {code}"

    def kill(self, patience: float = 0.0) -> None:
        """End the process and those that it started, after it had time to end by itself."""
        self.pipe.close()
        self.process.join(patience)
        if self.process.is_alive():
            _kill_group(self.process)
        self.process.join()


def _kill_group(process: Any) -> None:
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # it has not made its own group yet, or is gone
        else:
            return
    process.kill()


@contextlib.contextmanager
def environment(threads: int) -> Iterator[None]:
    """Start processes in this block: they have the limit from their first moment on."""
    before = {name: os.environ.get(name) for name in _VARIABLES}
    os.environ.update(dict.fromkeys(_VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@dataclass(frozen=True)
class _Ready:
    """The first message of a worker: it has loaded the work, or the reason why it could not."""

    error: str = ""


def serve(pipe: Any, work: bytes, threads: int) -> None:
    """Answer every cell that comes through the pipe with an outcome, until the pipe is closed."""
    _stand_alone()
    try:
        function: Work = pickle.loads(work)
    except BaseException:
        pipe.send(_Ready(traceback.format_exc()))
        return
    pipe.send(_Ready())
    # The study has gone when the pipe is closed at its other end: nobody is left to tell.
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            cell = pipe.recv()
            _limit_threads(threads)
            pipe.send(compute(function, cell))


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


def _limit_threads(threads: int) -> None:
    """Limit the libraries that this process has loaded already, in case one was told otherwise."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
    with contextlib.suppress(ImportError):
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads)


def compute(work: Work, cell: Cell) -> Outcome:
    """Run the work on one cell; whatever it raises becomes the outcome's error."""
    _forget_peak()
    started, clock = _now(), time.perf_counter()
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
        _versions(),
        notes,
    )


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


def _now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
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
