"""Rows on disk, more than memory should hold, against the same kind of rows in memory."""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.made import CHUNK, dense_chunks, dense_rows
from benchmarks.speed.processes import Alone, forget_peak, peak_gigabytes
from benchmarks.speed.timing import seconds_of
from setconv import SetConvClassifier
from setconv.training import Callback, TrainingState

LABEL = "label"
_CHUNKS_A_FILE = 12
_SPARE = 1.2  # Parquet and the predictions take a little more than the numbers alone


class Sizes(NamedTuple):
    rows: int = 1_500_000
    features: int = 1024
    in_memory: int = 200_000
    steps: int = 300
    turns: int = 1
    equal_rows: int = 12_000
    equal_features: int = 128
    equal_steps: int = 100


FULL = Sizes()
QUICK = Sizes(
    rows=9_000,
    features=120,
    in_memory=6_000,
    steps=10,
    turns=1,
    equal_rows=5_000,
    equal_features=110,
    equal_steps=5,
)


class StepClock(Callback):
    """Time the whole training loop: steps that wait for the disk count as all others."""

    def __init__(self) -> None:
        self.started = self.seconds = 0.0

    def on_fit_begin(self, state: TrainingState) -> None:  # noqa: ARG002
        self.started = time.perf_counter()

    def on_fit_end(self, state: TrainingState) -> None:
        self.seconds = (time.perf_counter() - self.started) / max(1, state.step)


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:
    """Return time and peak memory from disk, time in memory, and how far the scores differ."""
    with tempfile.TemporaryDirectory(prefix="setconv-speed-") as name:
        folder = Path(name)
        need = 4 * sizes.rows * sizes.features * _SPARE
        free = shutil.disk_usage(folder).free
        if free < need:
            raise OSError(
                f"{folder} has {free / 1e9:.1f} GB free and the rows need {need / 1e9:.1f} GB: "
                "set TMPDIR to a folder with more room"
            )
        alone(write_rows, folder / "rows", sizes.rows, sizes.features)
        on_disk, in_memory = [], []
        for _ in range(sizes.turns):
            on_disk.append(alone(fit_from_disk, folder, sizes.steps))
            in_memory.append(alone(fit_in_memory, sizes.in_memory, sizes.features, sizes.steps))
        alone(write_rows, folder / "equal", sizes.equal_rows, sizes.equal_features)
        return {
            **sizes._asdict(),
            "gigabytes": 4 * sizes.rows * sizes.features / 1e9,
            "disk": _medians(on_disk),
            "memory": _medians(in_memory),
            "difference": alone(difference, folder / "equal", sizes),
        }


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def write_rows(folder: Path, rows: int, features: int) -> None:
    """Write the rows as a folder of Parquet files, a row group a chunk."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir()
    names = [f"x{number:04d}" for number in range(features)]
    schema = pa.schema([*((name, pa.float32()) for name in names), (LABEL, pa.int64())])
    chunks = dense_chunks(rows, features)
    for number in range(-(-rows // (CHUNK * _CHUNKS_A_FILE))):
        path = folder / f"part-{number:04d}.parquet"
        # Noise cannot be made smaller.
        with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
            for X, y in islice(chunks, _CHUNKS_A_FILE):
                columns = [pa.array(column) for column in np.ascontiguousarray(X.T)]
                group = pa.table([*columns, pa.array(y)], schema=schema)
                file.write_table(group, row_group_size=CHUNK)


def fit_from_disk(folder: Path, steps: int) -> dict[str, float]:
    """Fit the folder's rows and write predictions of them all; return seconds and peaks."""
    clock = StepClock()
    model = SetConvClassifier(max_steps=steps, progress=False, random_state=0, callbacks=[clock])
    fit = seconds_of(lambda: model.fit(folder / "rows", y=LABEL))
    fit_peak = peak_gigabytes()
    forget_peak()
    out = folder / "predictions.parquet"
    predict = seconds_of(lambda: model.predict_to(folder / "rows", out))
    return {
        "step": clock.seconds,
        "fit": fit,
        "fit_peak": fit_peak,
        "predict": predict,
        "predict_peak": peak_gigabytes(),
    }


def fit_in_memory(rows: int, features: int, steps: int) -> dict[str, float]:
    """Fit rows in an array; the time of a step does not depend on their number."""
    X, y = dense_rows(rows, features)
    clock = StepClock()
    model = SetConvClassifier(max_steps=steps, progress=False, random_state=0, callbacks=[clock])
    fit = seconds_of(lambda: model.fit(X, y))
    return {"step": clock.seconds, "fit": fit, "fit_peak": peak_gigabytes()}


def difference(folder: Path, sizes: Sizes) -> float:
    """Return the largest difference of the scores after fits from disk and from memory."""
    os.environ["SETCONV_IN_MEMORY"] = "0"  # else so small a folder is read into memory
    X, y = dense_rows(sizes.equal_rows, sizes.equal_features)
    scores = [
        SetConvClassifier(max_steps=sizes.equal_steps, progress=False, random_state=0)
        .fit(source, y=labels)
        .decision_function(source)  # rows with the names that it was fitted with
        for source, labels in ((folder, LABEL), (X, y))
    ]
    return float(np.abs(scores[0] - scores[1]).max())
