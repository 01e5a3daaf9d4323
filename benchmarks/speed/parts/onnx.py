"""An export to ONNX against the library: size, the first answer of a new process, and latency."""

from __future__ import annotations

import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.parts.encode import make_texts
from benchmarks.speed.processes import Alone
from benchmarks.speed.timing import medians, seconds_of
from setconv.classifier import SetConvClassifier
from setconv.export import export_model
from setconv.export.predict import Model
from setconv.pipelines import SetConvTableClassifier, SetConvTextClassifier
from setconv.text import TextEncoder

# The library's shortest way from a new process to an answer.
LIBRARY = (
    "import json, sys, setconv; model = setconv.load(sys.argv[1], device='cpu'); "
    "rows = json.load(open(sys.argv[2])); print(model.predict(rows))"
)


class Sizes(NamedTuple):
    rows: int = 5000
    texts: int = 1000
    many: int = 256
    turns: int = 7
    steps: int | str = "auto"


FULL = Sizes()
QUICK = Sizes(rows=200, texts=60, many=8, turns=1, steps=5)


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:
    """Return megabytes and seconds of a model of tables, and of texts in 32 and in 8 bits."""
    return {"many": sizes.many, **alone(measure, sizes)}


def measure(sizes: Sizes) -> dict[str, dict[str, Any]]:
    """Fit, export and time the models one after the other."""
    classifier = SetConvClassifier(max_steps=sizes.steps, random_state=0, progress=False)
    with tempfile.TemporaryDirectory() as place:
        os.environ["SETCONV_CACHE"] = f"{place}/cache"
        rng, folder = np.random.default_rng(0), Path(place)
        table = _make_table(rng, sizes.rows)
        rare = (np.array(table["n0"]) + rng.normal(size=sizes.rows) > 1.8).astype(int)
        model: Any = SetConvTableClassifier(classifier=classifier).fit(table, rare)
        rows = [dict(zip(table, one, strict=True)) for one in zip(*table.values(), strict=True)]
        found = {"table": _measure(model, table, rows, folder / "table", sizes)}
        texts = make_texts(np.random.default_rng(0).integers(4, 30, sizes.texts))
        rare = np.array([" kato" in text for text in texts], dtype=int)
        rare[:4] = 1
        encoder = TextEncoder(device="cpu", cache=False)
        model = SetConvTextClassifier(encoder, classifier).fit(texts, rare)
        found["texts"] = _measure(model, texts, texts, folder / "texts", sizes)
        found["int8"] = _measure(model, texts, texts, folder / "int8", sizes, int8=True)
    return found


def _make_table(rng: np.random.Generator, rows: int) -> dict[str, Any]:
    table: dict[str, Any] = {f"n{k}": rng.normal(size=rows).tolist() for k in range(18)}
    return table | {f"c{k}": rng.choice(list("abcde"), rows).tolist() for k in range(2)}


def _measure(
    model: Any, given: Any, rows: list[Any], folder: Path, sizes: Sizes, *, int8: bool = False
) -> dict[str, Any]:
    """Time a model and its export; ``given`` is what the model takes, ``rows`` what that takes."""
    texts = isinstance(given, list)
    model.save(folder / "model", **({"copy_encoder": True} if texts else {}))
    out = folder / "out"
    some = given[: sizes.many] if texts else _part(given, sizes.many)
    said = export_model(model, out, int8=int8, verify=some)
    exported = Model(out)

    def library(count: int) -> None:
        model.predict(given[:count] if texts else _part(given, count))

    ways = {
        "library_one": partial(library, 1),
        "export_one": lambda: exported.predict(rows[:1]),
        "library_many": partial(library, sizes.many),
        "export_many": lambda: exported.predict(rows[: sizes.many]),
    }
    found: dict[str, Any] = medians(ways, sizes.turns)
    first = [rows[0]] if texts else _part(given, 1)
    (folder / "row.json").write_text(json.dumps(first), encoding="utf-8")
    with (folder / "row.csv").open("w", newline="", encoding="utf-8") as file:
        row = {"text": rows[0]} if texts else rows[0]
        csv.writer(file).writerows([row, row.values()])
    commands = {
        "library_start": ("-c", LIBRARY, folder / "model", folder / "row.json"),
        "export_start": (out / "predict.py", folder / "row.csv"),
    }
    sizes_of = {name: _megabytes(folder / at) for name, at in (("model", "model"), ("out", "out"))}
    return found | _starts(commands, sizes.turns) | sizes_of | {"compared": said[-1]}


def _part(table: dict[str, Any], count: int) -> dict[str, Any]:
    return {name: column[:count] for name, column in table.items()}


def _starts(commands: dict[str, tuple[Any, ...]], turns: int) -> dict[str, float]:
    """Return the median seconds of new processes, in turns; bytecode is there after the first."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(turns + 1):
        for name, command in commands.items():
            line = [sys.executable, *map(str, command)]
            run_it = partial(subprocess.run, line, check=True, stdout=subprocess.DEVNULL)
            seconds[name].append(seconds_of(run_it))
    return {name: statistics.median(one[1:]) for name, one in seconds.items()}


def _megabytes(folder: Path) -> float:
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file()) / 1e6
