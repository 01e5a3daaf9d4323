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
    "start",
)

Results = dict[str, Any]


def run(names: Sequence[str], path: Path, *, quick: bool) -> list[str]:
    """Run parts one after the other, write each one's results at once; return those that failed.

    With all parts the file is made anew, else the parts in it are replaced.
    """
    limit_threads()
    results: Results = {"quick": quick, "machine": describe(), "parts": {}}
    if path.exists() and set(names) != set(PARTS):
        results["parts"] = _known_parts(path, results)
    path.parent.mkdir(parents=True, exist_ok=True)
    failed = []
    with Processes(fresh=not quick) as alone:
        for name in names:
            try:
                results["parts"][name] = _run_part(name, alone, quick=quick)
            except Exception:
                traceback.print_exc()
                failed.append(name)
            write(results, path)
    return failed


def _known_parts(path: Path, new: Results) -> dict[str, Any]:
    known = read(path)
    if any(known[key] != new[key] for key in ("quick", "machine")):
        raise SystemExit(
            f"{path} has results of another machine, of other versions, or of a quick run: "
            "give another folder with --out, or run all parts."
        )
    parts: dict[str, Any] = known["parts"]
    return parts


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
