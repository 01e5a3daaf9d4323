"""Curves with bands: a metric along a parameter, mean and standard deviation over the splits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from setconv.experiment.answers.figure_panels import NARROW, Panel, PanelDrawing
from setconv.experiment.answers.figure_scores import Summary
from setconv.experiment.answers.figure_style import Look, Palette
from setconv.report.wording import readable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIZE = (NARROW, 290)
_PLOT = 320  # pixels between the axes' ends
_CHARACTER = 7.5  # pixels
_LOGARITHMIC_FROM = 20
_LEAST_SPAN = 0.1  # a smaller one would make noise look like a trend


def band_panel(
    name: str, scores: Summary, looks: Mapping[str, Look], metric: str, parameter: str
) -> Panel:
    """Draw one metric along a parameter.

    Parameters
    ----------
    name : str
        Unique in the page.
    scores : Summary
        Settings by methods.
    looks : mapping of str to Look
    metric, parameter : str
        Names of the axes.
    """
    settings = _settings(scores)
    ends = [
        f"{method} from {known.iloc[0]:.3f} to {known.iloc[-1]:.3f}"
        for method in looks
        if len(known := scores.means[method].dropna())
    ]
    alt = (
        f"{metric} along {parameter}, from {_number(settings[0])} to {_number(settings[-1])}. "
        + ("; ".join(ends) or "No score")
        + "."
    )
    return Panel(name, metric, alt, _bands(scores, looks, metric, parameter), _SIZE)


def is_logarithmic(settings: Sequence[float]) -> bool:
    """Whether settings span so much that a logarithmic axis shows them better."""
    return min(settings) > 0 and max(settings) / min(settings) > _LOGARITHMIC_FROM


def _bands(scores: Summary, looks: Mapping[str, Look], metric: str, parameter: str) -> PanelDrawing:
    settings = _settings(scores)

    def drawing(axes: Axes, palette: Palette) -> None:
        if is_logarithmic(settings):
            axes.set_xscale("log")
        # Ours are drawn last, over the others.
        for method, look in sorted(looks.items(), key=lambda one: one[1].ours):
            means = scores.means[method].to_numpy()
            deviations = scores.deviations[method].to_numpy()
            colour = palette[look.colour]
            axes.fill_between(
                settings,
                means - deviations,
                means + deviations,
                color=colour,
                alpha=0.2 if look.ours else 0.13,
                linewidth=0,
            )
            axes.plot(
                settings,
                means,
                color=colour,
                ls=look.dash,
                lw=2.2 if look.ours else 1.5,
                marker=look.marker,
                ms=5.5 if look.ours else 5,
                mec=palette["card"],
                mew=0.6,
            )
        _label_settings(axes, settings)
        _widen(axes, scores)
        axes.set(xlabel=readable(parameter, 50), ylabel=metric)
        axes.grid(True)

    return drawing


def _settings(scores: Summary) -> list[float]:
    return [float(setting) for setting in scores.means.index]


def _label_settings(axes: Axes, settings: Sequence[float]) -> None:
    """Put a tick at each setting, and a label where it does not run into the one before."""
    places = np.log(settings) if is_logarithmic(settings) else np.asarray(settings)
    span = np.ptp(places) or 1.0
    labels, free_from = [], -np.inf
    for place, setting in zip((places - places[0]) / span * _PLOT, settings, strict=True):
        half = len(_number(setting)) * _CHARACTER / 2
        fits = place - half >= free_from
        labels.append(_number(setting) if fits else "")
        free_from = place + half if fits else free_from
    axes.set_xticks(settings, labels)
    axes.minorticks_off()


def _widen(axes: Axes, scores: Summary) -> None:
    low, high = scores.reach
    margin = max(0.05 * (high - low), (_LEAST_SPAN - (high - low)) / 2)
    axes.set_ylim(low - margin, high + margin)


def _number(value: float) -> str:
    return f"{value:.6g}"
