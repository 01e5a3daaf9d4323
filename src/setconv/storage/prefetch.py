"""The next batches, prepared while the caller works on this one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, Self, TypeVar

Drawn = TypeVar("Drawn")
Prepared = TypeVar("Prepared")
_AHEAD = 2  # items that are prepared or waiting while the caller works


class Prefetcher(Generic[Drawn, Prepared]):
    """Iterate over ``prepare(one) for one in drawn``, a little ahead, in one background thread.

    The order is that of ``drawn``, which is advanced only in the caller's thread, so that draws
    stay deterministic. An error in ``prepare`` or in ``drawn`` reaches the caller when it gets to
    that item. Use it as a context manager: leaving it early stops the thread.

    Parameters
    ----------
    drawn : iterable
        What to prepare, such as arrays of row numbers.
    prepare : callable
        Runs in the background thread.
    """

    def __init__(self, drawn: Iterable[Drawn], prepare: Callable[[Drawn], Prepared]) -> None:
        self._drawn = iter(drawn)
        self._prepare = prepare
        self._waiting: deque[Future[Prepared]] = deque()
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="setconv-prefetch")
        self._exhausted = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Prepared:
        self._draw()
        if not self._waiting:
            self.close()
            raise StopIteration
        result = self._waiting.popleft().result()
        self._draw()
        return result

    def close(self) -> None:
        """Drop what is waiting, and end the thread after the item that it works on."""
        self._exhausted = True
        self._waiting.clear()
        self._worker.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _draw(self) -> None:
        while not self._exhausted and len(self._waiting) < _AHEAD:
            try:
                one = next(self._drawn)
            except StopIteration:
                self._exhausted = True
            except Exception as error:  # it is told when its turn comes
                self._exhausted = True
                failed: Future[Prepared] = Future()
                failed.set_exception(error)
                self._waiting.append(failed)
            else:
                self._waiting.append(self._worker.submit(self._prepare, one))
