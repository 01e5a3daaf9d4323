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
    "package": ("-c", "import torch, sklearn, setconv"),
    "classifier": ("-c", "import torch, sklearn; from setconv import SetConvClassifier"),
    "help": ("-m", "setconv", "--help"),
}


class Sizes(NamedTuple):
    turns: int = 7


FULL = Sizes()
QUICK = Sizes(turns=1)


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:  # noqa: ARG001
    """Return the median seconds of each command, and how much the imports of setconv add."""
    seconds: dict[str, list[float]] = {name: [] for name in COMMANDS}
    with tempfile.TemporaryDirectory() as folder:
        # Bytecode is there after the first run, as it is after an installation.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for turn in range(sizes.turns + 1):
            for name, command in COMMANDS.items():
                elapsed = seconds_of(partial(_start, command, environment))
                if turn:
                    seconds[name].append(elapsed)
    return {
        **{name: statistics.median(values) for name, values in seconds.items()},
        **{f"{name}_adds": _added(seconds, name) for name in ("package", "classifier")},
    }


def _start(command: tuple[str, ...], environment: dict[str, str]) -> None:
    subprocess.run(
        [sys.executable, *command], env=environment, check=True, stdout=subprocess.DEVNULL
    )


def _added(seconds: dict[str, list[float]], name: str) -> float:
    """Return the median of the differences within a turn, for the machine's pace changes."""
    pairs = zip(seconds[name], seconds["libraries"], strict=True)
    return statistics.median(mine - theirs for mine, theirs in pairs)
