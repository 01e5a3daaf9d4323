"""Forks after torch has worked with several threads, as `multiprocessing` and servers do.

libgomp, the OpenMP of torch and scikit-learn on Linux, keeps its threads for the next product. A
forked child has none of them and would wait for them for ever. So they are let go before a fork:
parent and child start new ones when they need some, and results stay the same to the bit.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

import torch
from threadpoolctl import threadpool_info

_HARD = 2  # omp_pause_hard: threads end
_kept = False  # whether a libgomp before OpenMP 5 keeps its threads


def survive_forks() -> None:
    """Let the threads of OpenMP go before each fork of this process."""
    if hasattr(os, "register_at_fork"):  # not on Windows
        os.register_at_fork(before=_let_threads_go, after_in_child=_work_alone)


def _let_threads_go() -> None:
    global _kept
    pauses = _pauses()
    _kept = None in pauses
    for pause in pauses:
        if pause is not None:
            # Those of the thread that forks, the only one that the child has.
            pause(_HARD)


def _pauses() -> list[Callable[[int], int] | None]:
    """Return what ends the threads of each libgomp of the process; None where nothing does."""
    libraries = [one["filepath"] for one in threadpool_info() if one["prefix"] == "libgomp"]
    return [getattr(ctypes.CDLL(one), "omp_pause_resource_all", None) for one in libraries]


def _work_alone() -> None:
    # With one thread no other is waited for; sums may then differ in their last bits.
    if _kept:
        torch.set_num_threads(1)
