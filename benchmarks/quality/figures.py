"""Out-of-fold estimates against test results, and average ranks, drawn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.quality.peers import OURS
from setconv.experiment import Nemenyi

if TYPE_CHECKING:
    import pandas as pd


def estimate_figure(points: Mapping[str, pd.DataFrame], path: Path) -> None:
    """Draw one panel a metric: the estimate to the right, the test result upwards."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Text stays text, and the same figure is the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "setconv", "font.size": 9}):
        figure = Figure(figsize=(2.6 * len(points), 2.8), layout="constrained")
        for axes, (name, found) in zip(
            figure.subplots(1, len(points), squeeze=False)[0], points.items(), strict=True
        ):
            low = min(0.9, found.to_numpy().min())
            axes.plot([low, 1], [low, 1], color="0.6", lw=0.8)
            axes.scatter(found["estimate"], found["test"], s=9, alpha=0.6, lw=0, color="#c0392b")
            axes.set(title=name, xlabel="out-of-fold", ylabel="test", aspect="equal")
        figure.savefig(path, format="svg", metadata={"Date": None})


def rank_figure(comparison: Nemenyi, path: Path, title: str) -> None:
    """Draw the critical-difference diagram of a metric."""
    from setconv.experiment.figures import INK, STRONG, rank_diagrams

    colours = {name: STRONG[0] if name == OURS else INK for name in comparison.ranks.index}
    path.write_bytes(rank_diagrams("", {title: comparison}, colours))
