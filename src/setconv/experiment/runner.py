"""The run of a study: the cells that are missing, computed in worker processes.

`run` gives each worker one cell at a time and records the outcome before the worker gets the next.
A worker that fails, dies or takes too long is replaced; each has a thread that waits for it. The
worker process itself runs `serve`: it answers every cell with an outcome, and ends with the study.
Several runs may share a store: each claims the cells that it computes, by locks that die with it.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
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
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any, Literal

from joblib import cpu_count
from tqdm.auto import tqdm

from setconv._version import __version__
from setconv.errors import ParameterError, StudyError
from setconv.experiment.store import Cell, Outcome, Status, Store, writing
from setconv.io.files import Claim, claim
from setconv.messages import check_integer, count_of, is_shown

logger = logging.getLogger(__name__)

_Figures = Mapping[str, float]
Work = Callable[[Cell], _Figures | tuple[_Figures, Mapping[str, Any]]]

# Read by OpenMP, the BLAS libraries, numexpr and joblib when they are loaded, so they must be in
# the environment with which a worker starts.
_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"),
    *("VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "LOKY_MAX_CPU_COUNT"),
)
_POLL = 0.5  # seconds after which a run looks again what others have done
_PATIENCE = 5.0  # seconds that a worker without cells has to end by itself
_LONGEST_ERROR = 20_000
_PICKLED = "Give a function at the top level of a module, or a functools.partial of one."


@dataclass(frozen=True)
class Tally:
    """How many cells a run found done, computed, could not compute, and left to others.

    Attributes
    ----------
    skipped : int
        Cells that the store had already; failed ones too, unless they were to be repeated.
    ok : int
    failed : int
    elsewhere : int
        Cells that other processes computed in the meantime.
    """

    skipped: int
    ok: int
    failed: int
    elsewhere: int = 0


def run(
    cells: Iterable[Cell],
    work: Work,
    store: Store,
    *,
    jobs: int | None = None,
    timeout: float | None = None,
    retry_failed: bool = False,
    recompute_outdated: bool = False,
    progress: Literal["auto"] | bool = "auto",
    threads: int | None = None,
) -> Tally:
    """Compute every cell that the store does not have yet, in worker processes.

    A cell that raises, takes too long or kills its process is recorded with its error, and the
    study goes on with a fresh worker. What is finished is in the store at once: after Ctrl-C or a
    crash, the same call goes on where the last one stopped.

    Processes that run the same cells at the same time, with stores of one path, share them. Each
    ends when all are done; what one that was killed was at is taken over by the others. Where files
    cannot be locked, which is said, each computes all that it finds missing.

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
    jobs : int, optional
        Number of worker processes; by default the number of cores that this process may use.
    timeout : float, optional
        Seconds that a cell may take; by default there is no limit. The start of a worker, with
        its imports, does not count.
    retry_failed : bool, default=False
        Compute cells again that failed in an earlier run.
    recompute_outdated : bool, default=False
        Compute cells again that are not known to come from this version of setconv.
    progress : {"auto", True, False}, default="auto"
        A bar on standard error with the time left; "auto" is on a terminal.
    threads : int, optional
        Threads of each worker; by default an equal share of the cores, and no more than
        OMP_NUM_THREADS if that is set. Numbers may depend on it in their last digits.

    Returns
    -------
    Tally
        How many cells were skipped, computed here, failed, and computed elsewhere.

    Raises
    ------
    StudyError
        If workers cannot load the work.
    StudyFileError
        If the store cannot be written.
    """
    jobs = cpu_count() if jobs is None else jobs
    check_integer("jobs", jobs, least=1)
    threads = threads_for(jobs) if threads is None else threads
    check_integer("threads", threads, least=1)
    if timeout is not None and not 0 < timeout < math.inf:
        raise ParameterError(f"timeout={timeout!r}: give seconds above 0.", parameter="timeout")
    # Asked for first: what another process records from now on is seen by its stamp.
    stamps = {cell: store.stamp(cell) for cell in cells}
    done = store.finished(library_version() if recompute_outdated else None)
    done |= set() if retry_failed else store.failed()
    todo = [cell for cell in stamps if cell not in done]
    skipped, ok, failed = len(stamps) - len(todo), 0, 0
    logger.info("%d cells to compute, %d there already", len(todo), skipped)
    # smoothing=0: cells differ so much that only the mean over all says how long the rest takes.
    with (
        tqdm(total=len(todo), unit="cell", smoothing=0, disable=not is_shown(progress)) as bar,
        contextlib.closing(_Queue(todo, stamps, store)) as queue,
        contextlib.closing(_outcomes(queue, work, jobs, threads, timeout)) as outcomes,
    ):
        for outcome in outcomes:
            store.record(outcome)
            if outcome.status == "ok":
                ok += 1
                logger.info("%s: ok in %.1f s", outcome.cell, outcome.seconds)
            else:
                failed += 1
                bar.set_postfix(failed=failed, refresh=False)
                last = outcome.error.strip().rpartition("\n")[2]
                logger.warning("%s: %s: %s", outcome.cell, outcome.status, last)
            bar.update(ok + failed + queue.elsewhere - bar.n)
        bar.update(len(todo) - bar.n)
    return Tally(skipped, ok, failed, queue.elsewhere)


def threads_for(jobs: int) -> int:
    """Return the threads of each of ``jobs`` workers: an equal share of the cores, at least 1.

    A smaller number in OMP_NUM_THREADS is the user's wish, and is kept.
    """
    share = max(1, int(cpu_count()) // jobs)
    wish = os.environ.get("OMP_NUM_THREADS", "")
    return min(share, int(wish)) if wish.isdecimal() and int(wish) > 0 else share


class _Queue:
    """The cells that are still to do, which other processes may do too.

    Parameters
    ----------
    cells : sequence of Cell
    stamps : mapping of Cell to tuple
        What the store had of each when this process began.
    store : Store
    """

    def __init__(
        self, cells: Sequence[Cell], stamps: Mapping[Cell, tuple[Any, ...] | None], store: Store
    ) -> None:
        self._stamps, self._store = stamps, store
        self._claims: dict[Cell, Claim] = {}
        self.waiting = deque(cells)
        self.elsewhere = 0
        self._warned = False
        self._name = f".{store.path.name}.claim-"

    def take(self) -> Cell | None:
        """Return a cell that is now claimed for this process; None if others have all of them."""
        for _ in range(len(self.waiting)):
            cell = self.waiting.popleft()
            digest = hashlib.sha256(ascii(cell).encode()).hexdigest()[:20]
            path = self._store.path.with_name(f"{self._name}{digest}")
            with writing(path):
                found = claim(path)
            if found is None:
                self.waiting.append(cell)
                continue
            self._claims[cell] = found
            if found.handle is None and not self._warned:
                self._warned = True
                logger.warning(
                    "files in %s cannot be locked: other processes that run this study at the same "
                    "time compute the same cells",
                    path.parent,
                )
            if self._store.stamp(cell) == self._stamps[cell]:
                return cell
            self.elsewhere += 1
            self.release(cell)
        return None

    def release(self, cell: Cell) -> None:
        """Give a cell back that is recorded, or that is not computed after all."""
        self._claims.pop(cell).release()

    def close(self) -> None:
        """Give all cells back, and remove what processes left that were killed."""
        for cell in list(self._claims):
            self.release(cell)
        for leftover in self._store.path.parent.glob(f"{glob.escape(self._name)}*"):
            with contextlib.suppress(OSError):
                if (found := claim(leftover)) is not None:
                    found.release()


def _outcomes(
    queue: _Queue, work: Work, jobs: int, threads: int, timeout: float | None
) -> Generator[Outcome]:
    """Give the cells to workers and yield their outcomes as they come."""
    free: list[Worker | None] = [None] * jobs
    at_work: dict[Future[Outcome], Worker] = {}
    started: list[Worker] = []  # an interrupt may come when a worker is neither free nor at work
    told = False
    with ThreadPoolExecutor(jobs) as pool:
        try:
            while queue.waiting or at_work:
                while free and (cell := queue.take()) is not None:
                    worker = free.pop()
                    if worker is None:
                        started.append(worker := Worker(work, threads))
                    at_work[pool.submit(worker.compute, cell, timeout)] = worker
                if queue.waiting and not at_work:
                    if not told:
                        others = count_of(len(queue.waiting), "cell")
                        logger.warning("other processes are at %s: waiting for them", others)
                        told = True
                    time.sleep(_POLL)
                # It wakes now and then: Ctrl-C may have been told to another thread.
                for future in wait(at_work, _POLL, return_when=FIRST_COMPLETED).done:
                    # Whoever iterates keeps the outcome before the worker goes on, so that a
                    # study that dies in the next cell has this one.
                    yield (outcome := future.result())
                    queue.release(outcome.cell)
                    worker = at_work.pop(future)
                    # A failed cell may leave anything behind, so only success keeps a worker.
                    well = outcome.status == "ok" and worker.process.is_alive()
                    if not well or not queue.waiting:
                        worker.kill(_PATIENCE if well else 0.0)
                    free.append(worker if well and queue.waiting else None)
        finally:
            for worker in started:
                worker.kill()


class Worker:
    """A worker process, the pipe to it and the clock of the cell that it is at.

    Parameters
    ----------
    work : callable
    threads : int
    """

    def __init__(self, work: Work, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, work))
        with environment(threads):
            try:
                self.process.start()
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                told = f"work={work!r} cannot be sent to worker processes ({error})."
                raise ParameterError(told, parameter="work", hint=_PICKLED) from error
        theirs.close()  # so that the pipe ends when the worker does
        self._ready = False

    def compute(self, cell: Cell, timeout: float | None) -> Outcome:
        """Have a cell computed and return its outcome, also where the worker cannot."""
        try:
            self._ready = self._ready or self._pipe.recv()
        except (EOFError, OSError):
            raise StudyError(
                f"{self._death()} before it could take a cell; standard error may say more.",
                hint='Call run under if __name__ == "__main__": since workers import the program.',
            ) from None
        started, clock = _now(), time.monotonic()

        def lost(status: Status, error: str) -> Outcome:
            return Outcome(cell, status, started, time.monotonic() - clock, error=error)

        try:
            self._pipe.send(cell)
            if self._pipe.poll(timeout):
                outcome: Outcome = self._pipe.recv()
                return outcome
        except (EOFError, OSError):
            return lost("error", f"{self._death()} during this cell")
        return lost("timeout", f"stopped after the limit of {timeout:g} s")

    def _death(self) -> str:
        """Say how the process ended."""
        self.process.join(_PATIENCE)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"the worker was killed by signal {signal.Signals(-code).name}"
        return f"the worker ended with exit code {code}"

    def kill(self, patience: float = 0.0) -> None:
        """End the process and those that it started, after it had time to end by itself."""
        if patience:
            self._pipe.close()
            self.process.join(patience)
        if self.process.is_alive() and self.process.pid:
            # Before it has made its own group, it is alone.
            with contextlib.suppress(AttributeError, ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.kill()
        self.process.join()


@contextlib.contextmanager
def environment(threads: int) -> Iterator[None]:
    """Start processes in this block: they have the limit from their first moment on."""
    before = dict(os.environ)
    os.environ.update(dict.fromkeys(_VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name in _VARIABLES:
            del os.environ[name]
        os.environ.update(before)


def serve(pipe: Any, work: Work) -> None:
    """Answer every cell that comes through the pipe with an outcome, until the pipe is closed."""
    # A group of its own: Ctrl-C of the terminal goes to the study alone, and processes that the
    # work starts can be ended together with the worker.
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_study, daemon=True).start()
    # The study has gone when the pipe is closed at its other end: nobody is left to tell.
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        pipe.send(True)
        while True:
            pipe.send(compute(work, pipe.recv()))


def _end_with_the_study() -> None:
    study = parent_process()
    if study is None:
        return
    connection.wait([study.sentinel])
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def compute(work: Work, cell: Cell) -> Outcome:
    """Run the work on one cell; whatever it raises becomes the outcome's error."""
    _forget_peak()
    started, clock = _now(), time.perf_counter()
    found: dict[str, Any]
    try:
        told = work(cell)
        figures, more = told if isinstance(told, tuple) else (told, {})
        notes = json.loads(json.dumps(dict(more), allow_nan=False))
        found = {"status": "ok", "results": _checked(figures), "notes": notes}
    except BaseException:
        found = {"status": "error", "error": traceback.format_exc()[-_LONGEST_ERROR:]}
    found |= {"seconds": time.perf_counter() - clock, "started": started}
    return Outcome(cell=cell, peak_mb=_peak_mb(), versions=_versions(), **found)


def _checked(results: Any) -> dict[str, float]:
    figures = {str(metric): float(value) for metric, value in dict(results).items()}
    if not figures or any(map(math.isinf, figures.values())):
        raise ValueError(f"the work returned {results!r}: return metrics, finite or nan.")
    return figures


def _now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _versions() -> dict[str, str]:
    """Return the versions of Python and of every loaded package that states one."""
    found = {"python": platform.python_version()}
    for name, module in sorted(sys.modules.items()):
        inner = "." in name or name.startswith("_") or name in sys.stdlib_module_names
        version = getattr(module, "__dict__", {}).get("__version__")
        if isinstance(version, str) and not inner:
            found[name] = version
    return found | {"setconv": library_version()}


@cache
def library_version() -> str:
    """Return the version of setconv, with a digest of its code after the plus sign.

    The number alone is the same for all states of the code between two releases.
    """
    digest = hashlib.sha256()
    package = Path(__file__).parents[1]
    for path in sorted(package.rglob("*.py"), key=lambda one: one.relative_to(package).as_posix()):
        digest.update(path.read_bytes().replace(b"\r\n", b"\n"))
    return f"{__version__}+{digest.hexdigest()[:10]}"


def _peak_mb() -> float | None:
    """Return the peak memory of this process in MiB since the cell began; None but on Linux.

    It is approximate, and holds what earlier cells of the worker left behind.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None


def _forget_peak() -> None:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
