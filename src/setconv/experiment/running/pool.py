"""Worker processes as the study sees them: started, given cells one at a time, ended."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from multiprocessing import connection
from typing import Any

from setconv.experiment.errors import StudyError
from setconv.experiment.running.cells import Cell, Outcome, Status
from setconv.experiment.running.threads import environment
from setconv.experiment.running.worker import Ready, now, serve

logger = logging.getLogger(__name__)

_PATIENCE = 5.0  # seconds that a worker without cells has to end by itself


class Worker:
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
        self.cell, self._began, self._started = cell, time.monotonic(), now()
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

    def retire(self) -> None:
        """Let a worker without a cell end by itself."""
        self.pipe.close()

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
        self._workers: list[Worker] = []
        self._retired: list[Worker] = []

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
            self._workers.append(Worker(self._work, self._threads))
            starting += 1

    def _time_left(self) -> float | None:
        if self._timeout is None:
            return None
        busy = [worker.seconds() for worker in self._workers if worker.cell is not None]
        return max(0.0, self._timeout - max(busy)) if busy else None

    def _look_at(self, worker: Worker, stirred: set[Any]) -> Outcome | None:
        message, cell = worker.message(), worker.cell
        if isinstance(message, Ready):
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

    def _go_on(self, worker: Worker, outcome: Outcome) -> None:
        if outcome.status == "ok" and worker.process.is_alive():
            self._next(worker)
        else:
            # A failed cell may leave anything behind, so only success keeps the worker.
            self._workers.remove(worker)
            worker.kill()

    def _next(self, worker: Worker) -> None:
        if self._waiting:
            worker.give(self._waiting.popleft())
        else:
            self._workers.remove(worker)
            self._retired.append(worker)
            worker.retire()
