"""How many threads a training run uses: one where steps are too small to be shared out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

# Multiplications and additions of one episode. Threads that share a step wait for each other after
# every operation: below this, one that the machine has put aside costs far more than it saves.
_WORTH_SHARING = 2e8


@contextmanager
def threads_for(operations: float) -> Iterator[None]:
    """Work with one thread while steps of so many operations are taken, then as before.

    The number of threads follows the shapes alone, so that results do not depend on how busy the
    machine is.
    """
    before = torch.get_num_threads()
    if operations < _WORTH_SHARING:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
