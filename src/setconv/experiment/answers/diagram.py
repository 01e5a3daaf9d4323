"""The critical-difference diagram: average ranks on a line, bars over what does not differ."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setconv.errors import ParameterError
from setconv.experiment.statistics.evidence import MINIMUM_SOURCES
from setconv.experiment.statistics.posthoc import Nemenyi
from setconv.files import write_atomically
from setconv.needs import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["DiagramColours", "diagram", "diagram_height", "draw_diagram"]

_FORMATS = ("pdf", "png", "svg")
_ROW = 0.26  # inches between two names
_BAR = 0.13  # inches between two bars
_MARGIN = 0.9  # inches above the line, for its numbers and the critical difference
_COLOUR = "#c0392b"


@dataclass(frozen=True)
class DiagramColours:
    """Colours of lines and names, of notes, and of the methods that stand out."""

    ink: str = "black"
    note: str = "0.35"
    methods: Mapping[str, str] = field(default_factory=dict)


def diagram(
    comparison: Nemenyi,
    path: str | Path,
    *,
    highlight: str | None = None,
    title: str | None = None,
    width: float = 7.0,
) -> Path:
    """Draw a critical-difference diagram into a file, which is there whole or not at all.

    Methods hang from their average ranks, the best at the left; a bar joins methods that do not
    differ. With fewer than 10 sources nothing differs, and the diagram says so.

    Parameters
    ----------
    comparison : Nemenyi
    path : str or Path
        The ending says the format: svg, png or pdf.
    highlight : str, optional
        A method to draw in colour.
    title : str, optional
    width : float, default=7.0
        Width in inches; the height follows from the number of methods.

    Returns
    -------
    Path
        The file.
    """
    path = Path(path)
    form = path.suffix.lower().lstrip(".")
    if form not in _FORMATS:
        raise ParameterError(f"path={str(path)!r}: its name must end in .svg, .png or .pdf.")
    if highlight is not None and highlight not in comparison.ranks.index:
        raise ParameterError(
            f"highlight={highlight!r}: choose one of {', '.join(comparison.ranks.index)}."
        )
    with needed("diagram", "matplotlib", "experiment"):
        import matplotlib as mpl
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    colours = DiagramColours(methods={} if highlight is None else {highlight: _COLOUR})
    # Text stays text, names are no formulas, and the same diagram is the same file.
    style: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "setconv", "font.size": 9}
    with mpl.rc_context({**style, "text.parse_math": False}):
        figure = Figure(figsize=(width, diagram_height(comparison)))
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        draw_diagram(axes, comparison, width, colours, title)
        content = io.BytesIO()
        # The box grows around names that are too long for the margin.
        figure.savefig(
            content,
            format=form,
            dpi=200,
            bbox_inches="tight",
            pad_inches=0.08,
            metadata=_metadata(form),
        )
    write_atomically(path, content.getvalue())
    return path


def _metadata(form: str) -> dict[str, Any]:
    return {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[form]


def diagram_height(comparison: Nemenyi) -> float:
    """Return the height in inches that a diagram needs."""
    rows = (len(comparison.ranks) + 1) // 2
    return _MARGIN + _BAR * (len(comparison.groups) + 1) + _ROW * (rows + 1)


def draw_diagram(
    axes: Axes,
    comparison: Nemenyi,
    width: float,
    colours: DiagramColours,
    title: str | None = None,
) -> None:
    """Draw in inches, downwards from the top left."""
    axes.set(xlim=(0, width), ylim=(diagram_height(comparison), 0))
    axes.axis("off")
    k = len(comparison.ranks)
    left, right = width * 0.27, width * 0.73

    def at(rank: float) -> float:
        return left + (rank - 1) / (k - 1) * (right - left)

    if title:
        axes.text(width / 2, 0.16, title, ha="center", va="center", weight="bold")
    axes.plot([left, right], [_MARGIN, _MARGIN], color=colours.ink, lw=1)
    for tick in range(1, k + 1):
        axes.plot([at(tick)] * 2, [_MARGIN - 0.07, _MARGIN], color=colours.ink, lw=1)
        axes.text(at(tick), _MARGIN - 0.11, str(tick), ha="center", va="bottom")
    if comparison.claimed:
        ends = at(1), at(1 + comparison.critical_difference)
        _draw_critical_difference(axes, ends, comparison, colours.ink)
    else:
        note = f"{comparison.n_sources} sources: fewer than {MINIMUM_SOURCES}, nothing is claimed"
        axes.text(width / 2, 0.42, note, ha="center", va="center", style="italic", c=colours.note)
    for number, group in enumerate(comparison.groups):
        y = _MARGIN + _BAR * (number + 1)
        joined = [at(comparison.ranks[group[0]]) - 0.04, at(comparison.ranks[group[-1]]) + 0.04]
        axes.plot(joined, [y, y], color=colours.ink, lw=3.5, solid_capstyle="round", zorder=3)
    below = _MARGIN + _BAR * (len(comparison.groups) + 1)
    for place, (name, rank) in enumerate(comparison.ranks.items()):
        # The outer methods hang highest, so that no two lines cross.
        on_left = place < (k + 1) // 2
        y = below + _ROW * ((place if on_left else k - 1 - place) + 0.5)
        end = left - 0.12 if on_left else right + 0.12
        _draw_method(axes, f"{name}", rank, (at(rank), y), end, colours)


def _draw_method(
    axes: Axes,
    name: str,
    rank: float,
    corner: tuple[float, float],
    end: float,
    colours: DiagramColours,
) -> None:
    x, y = corner
    ours = name in colours.methods
    on_left = end < x
    colour = colours.methods.get(name, colours.ink)
    axes.plot([x, x, end], [_MARGIN, y, y], color=colour, lw=1.6 if ours else 0.9)
    axes.text(
        *(end - 0.06 if on_left else end + 0.06, y),
        f"{name}  {rank:.2f}" if on_left else f"{rank:.2f}  {name}",
        ha="right" if on_left else "left",
        va="center",
        color=colour,
        weight="bold" if ours else "normal",
    )


def _draw_critical_difference(
    axes: Axes, ends: tuple[float, float], comparison: Nemenyi, colour: str
) -> None:
    y = 0.5
    axes.plot(ends, [y, y], color=colour, lw=1.4)
    for x in ends:
        axes.plot([x, x], [y - 0.04, y + 0.04], color=colour, lw=1.4)
    text = f"CD = {comparison.critical_difference:.2f}"
    axes.text(sum(ends) / 2, y - 0.07, text, ha="center", va="bottom")
