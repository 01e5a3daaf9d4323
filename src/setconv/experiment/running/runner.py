"""The run of a study: the cells that are missing, computed in worker processes."""

from __future__ import annotations

import logging
import math
import pickle
import sys
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

from tqdm.auto import tqdm

from setconv.errors import ParameterError
from setconv.experiment.running.cells import Cell
from setconv.experiment.running.pool import Pool
from setconv.experiment.running.store import Store
from setconv.experiment.running.threads import available_cores, threads_for
from setconv.experiment.running.worker import Work

__all__ = ["Tally", "Work", "run"]

logger = logging.getLogger(__name__)


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
    if progress not in ("auto", True, False):
        raise ParameterError(f'progress={progress!r}: choose True, False or "auto".')
    pool = Pool(todo, _pickled(work), jobs, threads, timeout)
    shown = sys.stderr.isatty() if progress == "auto" else progress
    logger.info("%d cells to compute, %d there already", len(todo), skipped)
    failed = 0
    # smoothing=0: cells differ so much that only the mean over all says how long the rest takes.
    bar = tqdm(total=len(todo), unit="cell", smoothing=0, disable=not shown)
    with bar, closing(pool):
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
