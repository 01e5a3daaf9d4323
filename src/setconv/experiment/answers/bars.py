"""Grouped bars, one group a unit, and the gap between specificity and sensitivity."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from setconv.experiment.answers.figure_panels import NARROW, Panel, PanelDrawing
from setconv.experiment.answers.figure_scores import Summary
from setconv.experiment.answers.figure_style import Look, Palette, short, wrapped
from setconv.experiment.answers.findings import Unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDEST, _NARROWEST = 960, 300
_MARGIN = 64  # pixels for the numbers at the left
_BAR = 14  # pixels a bar takes if there is room
_GAP = 1.6  # bars between two groups
_BARS_A_ROW = (_WIDEST - _MARGIN) / _BAR
_CHARACTER = 6.6  # pixels


def bar_panels(
    name: str, units: Sequence[Unit], scores: Summary, looks: Mapping[str, Look], label: str
) -> list[Panel]:
    """Draw one metric: a group of bars for each unit, in as many rows as they need.

    Parameters
    ----------
    name : str
        Unique in the page.
    units : sequence of Unit
    scores : Summary
        Units by methods.
    looks : mapping of str to Look
        The methods, in the order of the bars.
    label : str
        Name of the metric.
    """
    limits = _limits(scores)
    panels = []
    rows = _rows(units, len(looks))
    groups = max(map(len, rows), default=1)
    # All rows have the room of the longest one, so that a bar is as wide in each.
    bars = groups * (len(looks) + _GAP)
    width = min(_WIDEST, max(_NARROWEST, _MARGIN + _BAR * bars))
    characters = max(7, int((width - _MARGIN) / groups / _CHARACTER))
    for number, row in enumerate(rows, 1):
        titles = [_unit_label(unit, characters) for unit in row]
        height = 190 + 14 * max(title.count("\n") + 1 for title in titles)
        names = [unit.name for unit in row]
        part = Summary(scores.means.loc[names], scores.deviations.loc[names])
        drawing = _grouped(part, titles, looks, label, (bars, limits))
        alt = f"Bars of {label}, mean over the splits. {_best(part, label)}"
        title = label if number == 1 else ""
        panels.append(Panel(f"{name}-{number}", title, alt, drawing, (width, height)))
    return panels


def gap_panels(
    units: Sequence[Unit], specificity: Summary, sensitivity: Summary, looks: Mapping[str, Look]
) -> list[Panel]:
    """Draw how far specificity and sensitivity are apart: one panel a unit, one line a method."""
    panels = []
    for number, unit in enumerate(units, 1):
        spec, sens = specificity.means.loc[unit.name], sensitivity.means.loc[unit.name]
        gaps = (spec - sens).abs().dropna()
        alt = f"Specificity and sensitivity on {unit.title}."
        if len(gaps):
            alt += (
                f" The gap is smallest for {gaps.idxmin()} ({gaps.min():.3f}) and largest for "
                f"{gaps.idxmax()} ({gaps.max():.3f})."
            )
        drawing = _dumbbells([*map(float, spec)], [*map(float, sens)], looks)
        size = (NARROW, 74 + 19 * len(looks))
        panels.append(Panel(f"diagnosis-{number}", unit.title, alt, drawing, size))
    return panels


def _rows(units: Sequence[Unit], n_methods: int) -> list[Sequence[Unit]]:
    most = max(1, int(_BARS_A_ROW / (n_methods + _GAP)))
    n_rows = math.ceil(len(units) / most)
    # Rows of about the same length look better than a full one and a remnant.
    each = math.ceil(len(units) / n_rows) if n_rows else 1
    return [units[start : start + each] for start in range(0, len(units), each)]


def _unit_label(unit: Unit, characters: int) -> str:
    return f"{wrapped(unit.name, characters, 3)}\n({unit.imbalance_ratio:.2f})"


def _limits(scores: Summary) -> tuple[float, float]:
    """Bars start at 0, and all rows of a metric have one scale."""
    low, high = scores.reach
    below = math.floor(low * 10) / 10 if (scores.means < 0).to_numpy().any() else 0.0
    return below, max(0.1, math.ceil(round(high, 6) * 10) / 10)


def _grouped(
    scores: Summary,
    titles: Sequence[str],
    looks: Mapping[str, Look],
    label: str,
    room: tuple[float, tuple[float, float]],
) -> PanelDrawing:
    bars, limits = room

    def drawing(axes: Axes, palette: Palette) -> None:
        starts = np.arange(len(titles)) * (len(looks) + _GAP)
        for place, (method, look) in enumerate(looks.items()):
            x = starts + place + 0.5
            means, deviations = scores.means[method], scores.deviations[method]
            there = means.notna().to_numpy()
            axes.bar(
                x[there],
                means[there],
                width=0.88,
                color=palette[look.colour],
                edgecolor=palette["card"],
                linewidth=0,
                hatch=look.hatch or None,
            )
            for at in x[~there]:
                axes.plot(at, 0, "x", color=palette["muted"], ms=4, clip_on=False)
            spread = there & deviations.notna().to_numpy()
            axes.errorbar(
                x[spread],
                means[spread],
                deviations[spread],
                fmt="none",
                ecolor=palette["ink"],
                elinewidth=0.9,
                capsize=1.8,
                capthick=0.9,
            )
        axes.set_xticks(starts + len(looks) / 2, titles)
        axes.tick_params(axis="x", length=0, labelcolor=palette["ink"])
        axes.set(xlim=(-_GAP / 2, bars - _GAP / 2), ylim=limits, ylabel=label)
        axes.grid(True, axis="y")
        if limits[0] < 0:
            axes.axhline(0, color=palette["muted"], lw=0.8)

    return drawing


def _dumbbells(
    specificity: Sequence[float], sensitivity: Sequence[float], looks: Mapping[str, Look]
) -> PanelDrawing:
    def drawing(axes: Axes, palette: Palette) -> None:
        for y, (look, spec, sens) in enumerate(
            zip(looks.values(), specificity, sensitivity, strict=True)
        ):
            colour = palette[look.colour]
            axes.plot([spec, sens], [y, y], color=colour, lw=3.2 if look.ours else 2.4, alpha=0.6)
            axes.plot(
                *(spec, y, "o"), ms=8, mfc=palette["card"], mec=colour, mew=1.8, clip_on=False
            )
            axes.plot(sens, y, "o", ms=5.5, color=colour, mew=0, clip_on=False, zorder=3)
            if math.isnan(spec) or math.isnan(sens):
                axes.plot(0.02, y, "x", color=palette["muted"], ms=4)
        axes.set_yticks(range(len(looks)), short(list(looks)))
        axes.tick_params(axis="y", length=0, labelcolor=palette["ink"])
        for text, look in zip(axes.get_yticklabels(), looks.values(), strict=True):
            text.set_fontweight("bold" if look.ours else "normal")
        axes.set(xlim=(0, 1), ylim=(len(looks) - 0.4, -0.6), xlabel="Spec (ring) and Sens (dot)")
        axes.grid(True, axis="x")
        axes.spines["left"].set_visible(False)

    return drawing


def _best(scores: Summary, label: str) -> str:
    """Say in words what a reader who does not see the bars would look for."""
    parts = []
    for unit, means in scores.means.iterrows():
        known = means.dropna()
        if len(known):
            parts.append(f"{unit}: highest {label} {known.max():.3f} ({known.idxmax()})")
        else:
            parts.append(f"{unit}: no score")
    return "; ".join(parts) + "."
