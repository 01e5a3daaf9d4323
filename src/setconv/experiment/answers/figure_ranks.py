"""The critical-difference diagram of each metric, in the style of the other figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from setconv.experiment.answers.diagram import DiagramColours, diagram_height, draw_diagram
from setconv.experiment.answers.figure_panels import Panel, PanelDrawing, file_name
from setconv.experiment.answers.figure_style import Look, Palette, short
from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.naming import metric_name
from setconv.experiment.answers.table_entries import scores_by_split
from setconv.experiment.answers.table_standing import NoStanding, standing
from setconv.experiment.statistics.posthoc import Nemenyi

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 8.9  # inches
_PIXELS = 72  # an inch
_FEWEST_METHODS = 3


def rank_panels(findings: Findings, looks: Mapping[str, Look]) -> Iterator[Panel]:
    """Draw the average ranks of each metric that has them for three methods over two sources."""
    by_split = scores_by_split(findings)
    for metric in findings.metrics:
        found = standing(findings, metric, by_split)
        comparison = None if isinstance(found, NoStanding) else found.all_pairs
        if comparison is None or len(comparison.ranks) < _FEWEST_METHODS:
            continue
        order = ", ".join(f"{method} {rank:.2f}" for method, rank in comparison.ranks.items())
        label = metric_name(metric)
        alt = f"Critical-difference diagram of {label}. Average ranks: {order}."
        size = (_WIDTH * _PIXELS, diagram_height(comparison) * _PIXELS)
        yield Panel(file_name("ranks", metric), "", alt, _diagram(comparison, looks, label), size)


def _diagram(comparison: Nemenyi, looks: Mapping[str, Look], title: str) -> PanelDrawing:
    methods = list(comparison.ranks.index)
    shown = dict(zip(methods, short(methods), strict=True))
    renamed = replace(
        comparison,
        ranks=comparison.ranks.rename(index=shown),
        p_values=comparison.p_values.rename(index=shown, columns=shown),
    )

    def drawing(axes: Axes, palette: Palette) -> None:
        strong = {
            shown[method]: palette[look.colour]
            for method, look in looks.items()
            if look.ours and method in shown
        }
        colours = DiagramColours(palette["ink"], palette["muted"], strong)
        draw_diagram(axes, renamed, _WIDTH, colours, title)

    return drawing
