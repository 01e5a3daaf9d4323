"""Run parts of the suite and keep what they found in one JSON file."""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.speed.machine import describe, limit_threads
from benchmarks.speed.processes import Processes
from benchmarks.speed.timing import seconds_of
from setconv.io.files import write_atomically

PARTS = (
    "limit",
    "authors",
    "peers",
    "growth",
    "classes",
    "thresholds",
    "sparse",
    "disk",
    "bounds",
    "encode",
    "onnx",
    "start",
    "serve",
)

Results = dict[str, Any]


def run(names: Sequence[str], path: Path, *, quick: bool) -> list[str]:
    """Run parts one after the other, write each one's results at once; return those that failed.

    With all parts the file is made anew, else the parts in it are replaced, and say if they were
    measured on another processor.
    """
    limit_threads()
    machine = describe()
    results: Results = {"quick": quick, "machine": machine, "parts": {}}
    if path.exists() and set(names) != set(PARTS):
        results = _known(path, results)
    path.parent.mkdir(parents=True, exist_ok=True)
    failed = []
    with Processes(fresh=not quick) as alone:
        for name in names:
            try:
                found = _run_part(name, alone, quick=quick)
                if machine["processor"] != results["machine"]["processor"]:
                    found["processor"] = machine["processor"]  # ratios stand beside others
                results["parts"][name] = found
            except Exception:
                traceback.print_exc()
                failed.append(name)
            write(results, path)
    return failed


def _known(path: Path, new: Results) -> Results:
    """Return the results that are there; of other versions, or of a quick run, they do not fit."""
    known = read(path)
    if known["quick"] != new["quick"] or known["machine"]["packages"] != new["machine"]["packages"]:
        raise SystemExit(
            f"{path} has results of other versions, or of a quick run: give another folder with "
            "--out, or run all parts."
        )
    return known


def _run_part(name: str, alone: Processes, *, quick: bool) -> dict[str, Any]:
    print(f"{name} ...", file=sys.stderr, flush=True)
    found: dict[str, Any] = {}

    def part() -> None:
        module = import_module(f"benchmarks.speed.parts.{name}")
        found.update(module.run(module.QUICK if quick else module.FULL, alone))

    print(f"{name}: {seconds_of(part):.0f} s", file=sys.stderr, flush=True)
    return found


def read(path: Path) -> Results:
    """Read what a run has written."""
    results: Results = json.loads(path.read_text(encoding="utf-8"))
    return results


def write(results: Results, path: Path) -> None:
    """Write results, the parts in their order, figures to four digits."""
    ordered = {name: results["parts"][name] for name in PARTS if name in results["parts"]}
    text = json.dumps(_rounded({**results, "parts": ordered}), indent=1)
    write_atomically(path, f"{text}\n".encode())


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value
