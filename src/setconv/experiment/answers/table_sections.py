"""All tables of a study, in the order in which they are read."""

from __future__ import annotations

from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.naming import metric_name
from setconv.experiment.answers.table_costs import cost_sheet, failure_sheet
from setconv.experiment.answers.table_curves import curve_sheets
from setconv.experiment.answers.table_entries import scores_by_split
from setconv.experiment.answers.table_ranks import rank_sheet
from setconv.experiment.answers.table_sheet import Section
from setconv.experiment.answers.table_standing import Standing, standing
from setconv.experiment.answers.tables import by_metric, by_unit, published_elsewhere

__all__ = ["sections"]


def sections(findings: Findings) -> list[Section]:
    """Return the tables of a study under their headings.

    Parameters
    ----------
    findings : Findings

    Returns
    -------
    list of Section
        Scores by unit, scores by metric (where there are several units), average ranks,
        metrics along a parameter, figures that others published on other data, time and memory,
        and failed cells. A section without tables says why in its text, or is left out where
        there is nothing to say.
    """
    found = []
    if findings.metrics and findings.units:
        found.append(Section("Scores by unit", "", tuple(one.sheet() for one in by_unit(findings))))
        if len(findings.units) > 1:
            sheets = tuple(one.sheet() for one in by_metric(findings))
            found.append(Section("Scores by metric", "", sheets))
        found.append(_ranks(findings))
    if curves := curve_sheets(findings):
        found.append(Section("Along a parameter", "", curves))
    if (elsewhere := published_elsewhere(findings)) is not None:
        found.append(Section("Published figures", "", (elsewhere.sheet(),)))
    if (costs := cost_sheet(findings)) is not None:
        found.append(Section("Cost", "", (costs,)))
        failures = failure_sheet(findings)
        text = "" if failures else "No cell failed."
        found.append(Section("Failed cells", text, (failures,) if failures else ()))
    return found


def _ranks(findings: Findings) -> Section:
    by_split = scores_by_split(findings)
    sheets, reasons = [], []
    for metric in findings.metrics:
        one = standing(findings, metric, by_split)
        if isinstance(one, Standing):
            sheets.append(rank_sheet(one))
        else:
            reasons.append(" ".join([f"{metric_name(metric)}: {one.reason}", *one.notes]))
    return Section("Average ranks", " ".join(reasons), tuple(sheets))
