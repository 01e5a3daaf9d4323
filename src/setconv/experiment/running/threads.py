"""Cores and threads: how many there are, and how many each worker may use."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

# Read by OpenMP, the BLAS libraries, numexpr and joblib when they are loaded, so they must be in
# the environment with which a worker starts.
VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)


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


@contextlib.contextmanager
def environment(threads: int) -> Iterator[None]:
    """Start processes in this block: they have the limit from their first moment on."""
    before = {name: os.environ.get(name) for name in VARIABLES}
    os.environ.update(dict.fromkeys(VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def limit_threads(threads: int) -> None:
    """Limit the libraries that this process has loaded already, in case one was told otherwise."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != threads:
        torch.set_num_threads(threads)
    with contextlib.suppress(ImportError):
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads)
