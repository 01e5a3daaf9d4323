"""The figures of a study, like those of the paper, for a page or as files."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from setconv.checks import check_choice
from setconv.experiment.answers.bands import band_panel
from setconv.experiment.answers.bars import bar_panels, gap_panels
from setconv.experiment.answers.figure_files import FORMATS, compose
from setconv.experiment.answers.figure_panels import NARROW, StudyFigure, file_name
from setconv.experiment.answers.figure_ranks import rank_panels
from setconv.experiment.answers.figure_scores import curve_scores, unit_scores
from setconv.experiment.answers.figure_style import Look, method_looks
from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.naming import higher_is_better, metric_name
from setconv.experiment.answers.table_curves import curve_metrics
from setconv.files import write_atomically

__all__ = ["study_figures", "write_figures"]

logger = logging.getLogger(__name__)

_DIAGNOSIS = ("specificity", "sensitivity")
_SPREAD = "one standard deviation over the splits to either side"


def study_figures(findings: Findings) -> list[StudyFigure]:
    """Return the figures that the findings allow; the same findings give the same figures.

    These are grouped bars for each metric, the gap between specificity and sensitivity,
    critical-difference diagrams, and a metric along a parameter where the study has curves.
    """
    looks = method_looks(findings)
    return [
        *_bars(findings, looks),
        *_diagnosis(findings, looks),
        *_ranks(findings, looks),
        *_curves(findings, looks),
    ]


def write_figures(findings: Findings, folder: str | Path, form: str = "svg") -> list[Path]:
    """Write each figure to a file of its own, for a white page.

    Parameters
    ----------
    findings : Findings
    folder : str or Path
        It is made if it is not there.
    form : {"svg", "png", "pdf"}, default="svg"

    Returns
    -------
    list of Path
    """
    check_choice("form", form, FORMATS)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in study_figures(findings):
        path = folder / f"{figure.name}.{form}"
        write_atomically(path, compose(figure, form))
        paths.append(path)
    logger.info("%d figures written to %s", len(paths), folder)
    return paths


def _bars(findings: Findings, looks: dict[str, Look]) -> Iterator[StudyFigure]:
    diagnosed = set(_DIAGNOSIS) <= set(findings.metrics)
    panels = []
    for metric in findings.metrics:
        scores = unit_scores(findings, metric)
        if scores.empty or (diagnosed and metric in _DIAGNOSIS):
            continue
        name = file_name("scores", metric)
        label = metric_name(metric) + ("" if higher_is_better(metric) else " (lower is better)")
        panels += bar_panels(name, findings.units, scores, looks, label)
    if panels:
        yield StudyFigure(
            "scores",
            "Scores on each unit",
            f"Mean over the splits; a whisker reaches {_SPREAD}. In brackets is the imbalance "
            "ratio; a small cross means that there is no score.",
            tuple(panels),
            columns=2 if max(panel.size[0] for panel in panels) <= NARROW else 1,
            legend=looks,
            keys="bar",
        )


def _diagnosis(findings: Findings, looks: dict[str, Look]) -> Iterator[StudyFigure]:
    if not set(_DIAGNOSIS) <= set(findings.metrics):
        return
    specificity, sensitivity = (unit_scores(findings, metric) for metric in _DIAGNOSIS)
    if specificity.empty or sensitivity.empty:
        return
    yield StudyFigure(
        "diagnosis",
        "Spec and Sens",
        "A ring is the mean of Spec, a dot that of Sens. A long line means that one is bought "
        "with the other; a small cross, that there is no score.",
        tuple(gap_panels(findings.units, specificity, sensitivity, looks)),
        columns=2,
        legend={},
        keys="",
    )


def _ranks(findings: Findings, looks: dict[str, Look]) -> Iterator[StudyFigure]:
    panels = tuple(rank_panels(findings, looks))
    if panels:
        yield StudyFigure(
            "ranks",
            "Average ranks",
            "Critical-difference diagrams. Methods hang from their average rank over the sources; "
            "1 is best. A bar joins methods that do not differ.",
            panels,
            columns=1,
            legend={},
            keys="",
        )


def _curves(findings: Findings, looks: dict[str, Look]) -> Iterator[StudyFigure]:
    if findings.curves.empty:
        return
    titles = {unit.name: unit.title for unit in findings.units}
    groups = findings.curves.groupby(["curve", "unit"], sort=False)
    for number, ((curve, unit), rows) in enumerate(groups, 1):
        curve, unit = str(curve), str(unit)
        name = file_name("curve", str(number), curve, unit)[:80]
        present = set(rows.dropna(subset=["value"])["method"])
        drawn = {method: look for method, look in looks.items() if method in present}
        panels = tuple(
            band_panel(
                file_name(name, metric),
                curve_scores(rows[rows["metric"] == metric], tuple(drawn)),
                drawn,
                metric_name(metric),
                curve,
            )
            for metric in curve_metrics(rows, findings)
        )
        if panels:
            yield StudyFigure(
                name,
                f"Along {curve}: {titles.get(unit, unit)}",
                f"Mean over the splits at each setting; a band reaches {_SPREAD}.",
                panels,
                columns=2,
                legend=drawn,
                keys="line",
            )
