"""How the methods stand over all units: average ranks, and what may be concluded from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from setconv.experiment.answers.findings import Findings
from setconv.experiment.answers.naming import higher_is_better
from setconv.experiment.answers.table_entries import ALPHA
from setconv.experiment.answers.table_sheet import joined
from setconv.experiment.statistics.evidence import Evidence
from setconv.experiment.statistics.omnibus import Friedman, friedman
from setconv.experiment.statistics.pairwise import WilcoxonHolm, wilcoxon_holm
from setconv.experiment.statistics.posthoc import Nemenyi, nemenyi
from setconv.experiment.statistics.ranks import Ranks, average_ranks
from setconv.needs import needed

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["NoStanding", "Standing", "standing"]

_DIGITS = 12


@dataclass(frozen=True)
class NoStanding:
    """Why there are no ranks for a metric, and what was left out before that was clear."""

    metric: str
    reason: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Standing:
    """Methods over units, for one metric; tests are made when they are asked for.

    Attributes
    ----------
    metric : str
    means : DataFrame
        One row a unit, one column a method: over the splits that all methods have.
    sources : mapping of str to str
        Unit to source.
    control : str or None
        The study's own method; None if it has no rank.
    notes : tuple of str
        What was left out.
    """

    metric: str
    means: pd.DataFrame
    sources: Mapping[str, str]
    control: str | None
    notes: tuple[str, ...] = ()

    @cached_property
    def ranks(self) -> Ranks:
        """Average ranks; 1 is best."""
        return average_ranks(self.means, self.sources, higher_is_better(self.metric))

    @property
    def n_units(self) -> int:
        """How many units the ranks rest on."""
        return len(self.means)

    @property
    def n_sources(self) -> int:
        """How many sources these units come from."""
        return len(self.ranks.by_source)

    @property
    def reason(self) -> str:
        """Why nothing is claimed; empty if there are sources enough."""
        if self.n_sources < 2:
            return "All units come from one source: there is nothing to test."
        return Evidence(self.n_sources, ALPHA).reason

    @cached_property
    def omnibus(self) -> Friedman | None:
        """Whether the methods differ at all; None for fewer than two sources or three methods."""
        if self.n_sources < 2 or self.means.shape[1] < 3:
            return None
        return friedman(self.ranks.by_source, ALPHA)

    @cached_property
    def all_pairs(self) -> Nemenyi | None:
        """All methods against each other; None for fewer than two sources."""
        return nemenyi(self.ranks.by_source, ALPHA) if self.n_sources > 1 else None

    @cached_property
    def against_ours(self) -> WilcoxonHolm | None:
        """The study's own method against each other; None without it or a second source."""
        if self.n_sources < 2 or self.control is None:
            return None
        higher = higher_is_better(self.metric)
        return wilcoxon_holm(self.means, self.control, self.sources, ALPHA, higher)


def standing(
    findings: Findings, metric: str, by_split: Mapping[tuple[str, str], pd.DataFrame]
) -> Standing | NoStanding:
    """Rank the methods on the splits that all of them have.

    A method with scores on half of the units or fewer has no rank, and a unit without a split that
    all other methods have does not count; the notes name both.

    Parameters
    ----------
    findings : Findings
    metric : str
    by_split : mapping of (unit, metric) to DataFrame
        As `scores_by_split` gives them.

    Returns
    -------
    Standing or NoStanding
    """
    tables = {
        unit.name: by_split[unit.name, metric]
        for unit in findings.units
        if (unit.name, metric) in by_split
    }
    if len(tables) < 2:
        return NoStanding(metric, "Ranks need at least two units with scores.")
    covered = {
        method: sum(method in table.columns for table in tables.values())
        for method in findings.methods
    }
    methods = [method for method in findings.methods if 2 * covered[method] > len(tables)]
    absent = [method for method in findings.methods if method not in methods]
    notes = []
    if absent:
        notes.append(f"Without a rank, for scores on half of the units or fewer: {joined(absent)}.")
    if len(methods) < 2:
        reason = "Ranks need two methods with scores on most units."
        return NoStanding(metric, reason, tuple(notes))
    means, remarks = _common_means(tables, methods)
    notes += remarks
    if len(means) < 2:
        reason = "Ranks need at least two units with a split that all methods have."
        return NoStanding(metric, reason, tuple(notes))
    sources = {unit.name: unit.source for unit in findings.units}
    control = next((name for name in findings.ours[:1] if name in methods), None)
    return Standing(metric, means, sources, control, tuple(notes))


def _common_means(
    tables: Mapping[str, pd.DataFrame], methods: list[str]
) -> tuple[pd.DataFrame, list[str]]:
    """Average over the splits that all methods have; say which units have none or not all."""
    with needed("ranks", "pandas", "experiment"):
        import pandas as pd
    common = {unit: table.reindex(columns=methods).dropna() for unit, table in tables.items()}
    empty = [unit for unit, table in common.items() if table.empty]
    cut = [unit for unit, table in common.items() if 0 < len(table) < len(tables[unit])]
    remarks = []
    if empty:
        remarks.append(f"Left out, for no split has all methods: {joined(empty)}.")
    if cut:
        remarks.append(f"Ranked on the splits that all methods have: {joined(cut)}.")
    means = {unit: table.mean() for unit, table in common.items() if not table.empty}
    # Equal means of decimal scores differ in the last bits, and would not be seen as ties.
    return pd.DataFrame(means, index=methods).T.round(_DIGITS), remarks
