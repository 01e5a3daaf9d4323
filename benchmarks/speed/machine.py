"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

THREADS = int(os.environ.get("OMP_NUM_THREADS", "2"))
_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_PACKAGES = ("torch", "numpy", "scikit-learn", "lightgbm", "pyarrow")
_CPU = Path("/proc/cpuinfo")


def limit_threads() -> None:
    """Give every library of the processes that are started from now on the same threads."""
    os.environ.update(dict.fromkeys(_VARIABLES, str(THREADS)))


def describe() -> dict[str, Any]:
    """Return processor, cores, threads, memory and versions."""
    fields = _cpu_fields()
    return {
        "processor": fields.get("model name", platform.machine()),
        "cores": os.cpu_count(),
        "threads": THREADS,
        "gigabytes": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "python": platform.python_version(),
        "packages": {name: version(name).partition("+")[0] for name in _PACKAGES},
    }


def _cpu_fields() -> dict[str, str]:
    """Return what the system says of its first core, if it says anything."""
    if not _CPU.exists():
        return {}
    first = _CPU.read_text(encoding="utf-8").split("\n\n", 1)[0]
    parts = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in parts}
