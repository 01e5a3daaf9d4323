"""The table of average ranks: who leads over all units, and with what certainty."""

from __future__ import annotations

from setconv.experiment.answers.naming import metric_name
from setconv.experiment.answers.significance import ALPHA, BETTER, WORSE
from setconv.experiment.answers.table_sheet import (
    Sheet,
    SheetRow,
    Shown,
    aligned,
    counted,
    number,
    p_value,
)
from setconv.experiment.answers.table_standing import Standing
from setconv.experiment.statistics.pairwise import WilcoxonHolm

__all__ = ["rank_sheet"]


def rank_sheet(standing: Standing) -> Sheet:
    """Return the average ranks of a metric, the best first."""
    pairs = standing.against_ours
    average = standing.ranks.average.sort_values(kind="stable")
    shown = {str(method): f"{rank:.2f}" for method, rank in average.items()}
    best = next(iter(shown.values()))
    rows = []
    for method, rank in shown.items():
        cells = [Shown(method), Shown(rank, rank == best)]
        if pairs is not None:
            cells += _against(pairs, method)
        rows.append(SheetRow(tuple(cells)))
    head: tuple[str, ...] = ("method", "rank")
    if pairs is not None:
        head += ("difference", "won/tied/lost", "p (Holm)")
    title = f"{metric_name(standing.metric)}: average ranks"
    alignment = aligned(1, len(head) - 1)
    return Sheet(title, _caption(standing), head, alignment, tuple(rows), standing.notes)


def _against(pairs: WilcoxonHolm, method: str) -> list[Shown]:
    if method == pairs.control:
        return [Shown(""), Shown(""), Shown("")]
    one = pairs.comparisons.loc[method].astype(float).to_dict()
    mark = ""
    if pairs.significant[method]:
        mark = WORSE if one["wins"] > one["losses"] else BETTER
    return [
        Shown(number(one["difference"], sign=True)),
        Shown(f"{one['wins']:.0f}/{one['ties']:.0f}/{one['losses']:.0f}"),
        Shown(p_value(one["p_holm"]), after=mark),
    ]


def _caption(standing: Standing) -> str:
    level = number(ALPHA, 2)
    parts = [
        f"{counted(standing.n_units, 'unit')} of {counted(standing.n_sources, 'source')}. "
        "Rank 1 is best; ranks are averaged within a source, then over sources."
    ]
    if (test := standing.omnibus) is not None:
        parts.append(
            f"Friedman's test, as corrected by Iman and Davenport: F = {test.f_statistic:.2f}, "
            f"p {_equals(test.f_p_value)}."
        )
    if (every := standing.all_pairs) is not None:
        parts.append(f"Nemenyi's critical difference at {level}: {every.critical_difference:.2f}.")
    if (pairs := standing.against_ours) is not None:
        parts.append(
            f"Difference: median over sources of {pairs.control} minus the method; won, tied and "
            f"lost by {pairs.control}; p-value of Wilcoxon's signed-rank test, corrected by Holm."
        )
        if pairs.claimed:
            parts.append(
                f"{WORSE} significantly worse than {pairs.control}, {BETTER} better (p ≤ {level})."
            )
    return " ".join(filter(None, [*parts, standing.reason]))


def _equals(value: float) -> str:
    text = p_value(value)
    return text if text.startswith("<") else f"= {text}"
