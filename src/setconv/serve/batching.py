"""Rows of many requests predicted together, in a thread that waits for nothing else.

While a batch is predicted the next one gathers: it is one row where one client asks, and grows with
the load. It waits a moment to become as large as the one before, so a lone client never waits. A
row's answer does not depend on its batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

from setconv.serve.forms import RefusedError
from setconv.serve.gate import Metrics

_BATCH = 256  # rows: prediction works in blocks of so many
_MOMENT = 0.005  # seconds
_Answers = asyncio.Future[list[Any]]


class _Job(NamedTuple):
    """Rows of one request, the model that they were checked for, and who waits for the answers."""

    served: Any
    rows: Sequence[Any]
    answers: _Answers


class Batcher:
    """A thread that answers rows in batches; all of this but `_answer` is in the event loop.

    Parameters
    ----------
    run : callable
        From a model and rows to as many answers.
    longest : int
        Rows that may wait.
    metrics : Metrics, optional
        Counts the batches, and the rows that wait.
    """

    def __init__(
        self,
        run: Callable[[Any, Sequence[Any]], list[Any]],
        longest: int,
        metrics: Metrics | None = None,
    ) -> None:
        self._run, self._longest, self._metrics = run, longest, metrics
        self._thread = ThreadPoolExecutor(1)
        self._jobs: list[_Job] = []
        self._queued, self._expected, self._busy = 0, 1, False
        self._moment: asyncio.TimerHandle | None = None

    async def ask(self, served: Any, rows: Sequence[Any], seconds: float) -> list[Any]:
        """Return the answers to rows; refused if too many wait, or too long."""
        if self._jobs and self._queued + len(rows) > self._longest:
            raise RefusedError(429, "Too many rows are waiting: ask again in a second.")
        loop = asyncio.get_running_loop()
        job = _Job(served, rows, loop.create_future())
        why = f"There was no answer within {seconds:g} seconds: ask again, or for fewer rows."
        late = loop.call_later(seconds, _deliver, job.answers, RefusedError(503, why))
        self._jobs.append(job)
        self._queued += len(rows)
        self._begin()
        try:
            return await job.answers
        finally:
            late.cancel()

    def close(self) -> None:
        """End the thread, when it has answered what it has."""
        self._thread.shutdown()

    def _begin(self, *, waited: bool = False) -> None:
        """Hand a batch to the thread, if it is free and there is one."""
        loop = asyncio.get_running_loop()
        if waited:
            self._moment = None
        if self._busy or not self._jobs:
            return
        if len(self._jobs) < self._expected and self._queued < _BATCH and not waited:
            again = partial(self._begin, waited=True)
            self._moment = self._moment or loop.call_later(_MOMENT, again)
            return
        batch = self._take()
        if batch:
            self._busy = True
            found = loop.run_in_executor(self._thread, self._answer, batch)
            found.add_done_callback(partial(self._end, batch))

    def _take(self) -> list[_Job]:
        """Return as many requests for one model as a batch has room for; one may have more."""
        self._jobs = [job for job in self._jobs if not job.answers.done()]  # others gave up
        room, place = _BATCH, 0
        for job in self._jobs:
            room -= len(job.rows)
            if job.served is not self._jobs[0].served or (place and room < 0):
                break
            place += 1
        batch, self._jobs = self._jobs[:place], self._jobs[place:]
        self._queued = sum(len(job.rows) for job in self._jobs)
        return batch

    def _end(self, batch: list[_Job], found: asyncio.Future[list[Any]]) -> None:
        for job, answers in zip(batch, found.result(), strict=True):
            _deliver(job.answers, answers)
        # Those who have their answers will soon ask again, and these already wait.
        self._busy, self._expected = False, len(batch) + len(self._jobs)
        if self._metrics is not None:
            self._metrics.queue.set(self._queued)
        self._begin()

    def _answer(self, batch: list[_Job]) -> list[Any]:
        """Return for each request its answers, or the error that is its own fault."""
        try:
            found = self._run(batch[0].served, [row for job in batch for row in job.rows])
        except Exception as error:
            return [error] if len(batch) == 1 else [self._answer([job])[0] for job in batch]
        if self._metrics is not None:
            self._metrics.batch(found)
        rest = iter(found)
        return [[next(rest) for _ in job.rows] for job in batch]


def _deliver(waits: _Answers, answers: Any) -> None:
    if waits.done():
        return
    if isinstance(answers, Exception):
        waits.set_exception(answers)
    else:
        waits.set_result(answers)
