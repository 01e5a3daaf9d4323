"""Peaks of fits and predictions from a gigabyte of Parquet, by columns, and from half of it.

Each has a process of its own, for what a fit leaves behind would count as the prediction's.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.speed.parts.disk import LABEL, write_rows
from benchmarks.speed.processes import Alone, peak_gigabytes
from benchmarks.speed.timing import seconds_of
from setconv import SetConvClassifier, load


class Sizes(NamedTuple):
    megabytes: int = 1100
    columns: tuple[int, ...] = (64, 280, 384, 1024)


FULL = Sizes()
QUICK = Sizes(megabytes=270, columns=(1024,))


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:
    """Return rows, peaks, seconds and the size of the model for all and for half of the rows."""
    found = {}
    for columns in sizes.columns:
        n_rows = sizes.megabytes * 10**6 // (4 * columns)
        pair = {}
        for name, rows in (("half", n_rows // 2), ("all", n_rows)):
            with tempfile.TemporaryDirectory(prefix="setconv-speed-") as folder:
                alone(write_rows, Path(folder) / "rows", rows, columns)
                pair[name] = {"rows": rows}
                for measure in (fit, predict):
                    pair[name] |= alone(measure, Path(folder))
        found[str(columns)] = pair
    return {"megabytes": sizes.megabytes, "columns": found}


def fit(folder: Path) -> dict[str, float]:
    """Fit with the defaults, and save the model."""
    model = SetConvClassifier(progress=False, random_state=0)
    seconds = seconds_of(lambda: model.fit(folder / "rows", y=LABEL))
    peak = peak_gigabytes()
    model.save(folder / "model")
    size = (folder / "model" / "model.safetensors").stat().st_size
    return {"fit": seconds, "fit_peak": peak, "model": size / 1e6}


def predict(folder: Path) -> dict[str, float]:
    """Write predictions of all rows by the saved model."""
    model = load(folder / "model")
    seconds = seconds_of(lambda: model.predict_to(folder / "rows", folder / "out.parquet"))
    return {"predict": seconds, "predict_peak": peak_gigabytes()}
