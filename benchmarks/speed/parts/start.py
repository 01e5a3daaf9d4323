"""Imports and the start of the command line, each time in a fresh interpreter."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from typing import Any, NamedTuple

from benchmarks.speed.processes import Alone
from benchmarks.speed.timing import seconds_of

COMMANDS = {
    "python": ("-c", "pass"),
    "libraries": ("-c", "import torch, sklearn"),
    "help": ("-m", "setconv", "--help"),
}
IMPORTS = {
    "package": "import setconv",
    "classifier": "from setconv import SetConvClassifier",
}
# An import on top of others is timed within the process: from one process to the next the libraries
# alone differ by more.
_TIMED = "import time, torch, sklearn; t = time.perf_counter(); {}; print(time.perf_counter() - t)"


class Sizes(NamedTuple):
    turns: int = 7


FULL = Sizes()
QUICK = Sizes(turns=1)


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:  # noqa: ARG001
    """Return the median seconds of each command, and how much the imports of setconv add."""
    seconds: dict[str, list[float]] = {name: [] for name in (*COMMANDS, *IMPORTS)}
    with tempfile.TemporaryDirectory() as folder:
        # Bytecode is there after the first run, as it is after an installation.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for turn in range(sizes.turns + 1):
            found = {
                name: seconds_of(partial(_start, command, environment))
                for name, command in COMMANDS.items()
            }
            for name, added in IMPORTS.items():
                found[name] = float(_start(("-c", _TIMED.format(added)), environment))
            for name, elapsed in found.items():
                if turn:
                    seconds[name].append(elapsed)
    return {name: statistics.median(values) for name, values in seconds.items()}


def _start(command: tuple[str, ...], environment: dict[str, str]) -> str:
    """Run Python with the arguments; return what it printed."""
    return subprocess.run(
        [sys.executable, *command], env=environment, check=True, capture_output=True, text=True
    ).stdout
