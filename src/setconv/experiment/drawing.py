"""The critical-difference diagram: average ranks on a line, bars over what does not differ."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setconv.errors import ParameterError
from setconv.experiment.evidence import MINIMUM_SOURCES
from setconv.experiment.posthoc import Nemenyi
from setconv.files import write_atomically
from setconv.needs import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["diagram"]

_FORMATS = ("pdf", "png", "svg")
_ROW = 0.26  # inches between two names
_BAR = 0.13  # inches between two bars
_MARGIN = 0.9  # inches above the line, for its numbers and the critical difference
_COLOUR = "#c0392b"


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
    rows = (len(comparison.ranks) + 1) // 2
    height = _MARGIN + _BAR * (len(comparison.groups) + 1) + _ROW * (rows + 1)
    # Text stays text, and the same diagram is the same file.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "setconv", "font.size": 9}):
        figure = Figure(figsize=(width, height))
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, width), ylim=(height, 0))
        axes.axis("off")
        _draw(axes, comparison, width, highlight, title)
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


def _draw(
    axes: Axes,
    comparison: Nemenyi,
    width: float,
    highlight: str | None,
    title: str | None,
) -> None:
    """Draw in inches, downwards from the top left."""
    k = len(comparison.ranks)
    left, right = width * 0.27, width * 0.73

    def at(rank: float) -> float:
        return left + (rank - 1) / (k - 1) * (right - left)

    if title:
        axes.text(width / 2, 0.16, title, ha="center", va="center", weight="bold")
    axes.plot([left, right], [_MARGIN, _MARGIN], color="black", lw=1)
    for tick in range(1, k + 1):
        axes.plot([at(tick)] * 2, [_MARGIN - 0.07, _MARGIN], color="black", lw=1)
        axes.text(at(tick), _MARGIN - 0.11, str(tick), ha="center", va="bottom")
    if comparison.claimed:
        _draw_critical_difference(axes, at(1), at(1 + comparison.critical_difference), comparison)
    else:
        note = f"{comparison.n_sources} sources: fewer than {MINIMUM_SOURCES}, nothing is claimed"
        axes.text(width / 2, 0.42, note, ha="center", va="center", style="italic", color="0.35")
    for number, group in enumerate(comparison.groups):
        y = _MARGIN + _BAR * (number + 1)
        ends = [at(comparison.ranks[group[0]]) - 0.04, at(comparison.ranks[group[-1]]) + 0.04]
        axes.plot(ends, [y, y], color="0.25", lw=3.5, solid_capstyle="round", zorder=3)
    below = _MARGIN + _BAR * (len(comparison.groups) + 1)
    for place, (name, rank) in enumerate(comparison.ranks.items()):
        # The outer methods hang highest, so that no two lines cross.
        on_left = place < (k + 1) // 2
        y = below + _ROW * ((place if on_left else k - 1 - place) + 0.5)
        edge = left if on_left else right
        _draw_method(axes, f"{name}", rank, (at(rank), y), edge, name == highlight)


def _draw_method(
    axes: Axes, name: str, rank: float, corner: tuple[float, float], edge: float, ours: bool
) -> None:
    x, y = corner
    on_left = edge < x
    out = -1 if on_left else 1
    colour = _COLOUR if ours else "black"
    end = edge + 0.12 * out
    axes.plot([x, x, end], [_MARGIN, y, y], color=colour, lw=1.6 if ours else 0.9)
    axes.text(
        *(end + 0.06 * out, y),
        f"{name}  {rank:.2f}" if on_left else f"{rank:.2f}  {name}",
        ha="right" if on_left else "left",
        va="center",
        color=colour,
        weight="bold" if ours else "normal",
    )


def _draw_critical_difference(axes: Axes, start: float, end: float, comparison: Nemenyi) -> None:
    y = 0.5
    axes.plot([start, end], [y, y], color="black", lw=1.4)
    for x in (start, end):
        axes.plot([x, x], [y - 0.04, y + 0.04], color="black", lw=1.4)
    text = f"CD = {comparison.critical_difference:.2f}"
    axes.text((start + end) / 2, y - 0.07, text, ha="center", va="bottom")
