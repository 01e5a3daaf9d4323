"""Rows of many requests predicted together, in a thread that waits for nothing else.

While a batch is predicted the next one gathers, so nobody waits for a batch to fill: it is one row
where one client asks, and grows with the load. A row's answer does not depend on its batch.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from setconv.serve.forms import RefusedError
from setconv.serve.gate import Metrics

_BATCH = 256  # rows: prediction works in blocks of so many
_Run = Callable[[Any, Sequence[Any]], list[Any]]


class _Job(NamedTuple):
    """Rows of one request, the model that they were checked for, and who waits for the answers."""

    served: Any
    rows: Sequence[Any]
    answers: asyncio.Future[list[Any]]


class Batcher:
    """A thread that answers rows in batches.

    Parameters
    ----------
    run : callable
        From a model and rows to as many answers.
    longest : int
        Rows that may wait.
    metrics : Metrics, optional
        Counts the batches, and the rows that wait.
    """

    def __init__(self, run: _Run, longest: int, metrics: Metrics | None = None) -> None:
        self._run, self._longest, self._metrics = run, longest, metrics
        self._jobs: deque[_Job | None] = deque()
        self._changed = threading.Condition()
        self._queued = 0
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    async def ask(self, served: Any, rows: Sequence[Any], seconds: float) -> list[Any]:
        """Return the answers to rows; refused if too many wait, or too long."""
        if self._queued and self._queued + len(rows) > self._longest:
            raise RefusedError(429, "Too many rows are waiting: ask again in a second.")
        loop = asyncio.get_running_loop()
        answers: asyncio.Future[list[Any]] = loop.create_future()
        why = f"There was no answer within {seconds:g} seconds: ask again, or for fewer rows."
        late = loop.call_later(seconds, _deliver, [answers], [RefusedError(503, why)])
        with self._changed:
            self._jobs.append(_Job(served, rows, answers))
            self._queued += len(rows)
            self._changed.notify()
        try:
            return await answers
        finally:
            late.cancel()

    def close(self) -> None:
        """End the thread, when it has answered what waits."""
        with self._changed:
            self._jobs.append(None)
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while batch := self._next():
            wanted = [job for job in batch if not job.answers.done()]  # the others were given up
            if wanted:
                found = self._answer(wanted)
                loop = wanted[0].answers.get_loop()
                loop.call_soon_threadsafe(_deliver, [job.answers for job in wanted], found)

    def _next(self) -> list[_Job]:
        """Wait for requests; return as many of one model as a batch has room for."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs)
            batch: list[_Job] = []
            n_rows = 0
            while self._jobs and (job := self._jobs[0]) is not None:
                n_rows += len(job.rows)
                if batch and (n_rows > _BATCH or job.served is not batch[0].served):
                    break
                batch.append(job)
                self._jobs.popleft()
            self._queued -= sum(len(job.rows) for job in batch)
            return batch

    def _answer(self, jobs: list[_Job]) -> list[Any]:
        """Return for each request its answers, or the error that is its own fault."""
        try:
            found = self._run(jobs[0].served, [row for job in jobs for row in job.rows])
        except Exception as error:
            return [error] if len(jobs) == 1 else [self._answer([job])[0] for job in jobs]
        if self._metrics is not None:
            self._metrics.batch(found)
            self._metrics.queue.set(self._queued)
        rest = iter(found)
        return [[next(rest) for _ in job.rows] for job in jobs]


def _deliver(waiting: list[asyncio.Future[list[Any]]], found: list[Any]) -> None:
    for answers, one in zip(waiting, found, strict=True):
        if answers.done():
            continue
        if isinstance(one, Exception):
            answers.set_exception(one)
        else:
            answers.set_result(one)
