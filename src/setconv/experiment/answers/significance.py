"""Which methods differ from the study's own on the splits of one unit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from setconv.experiment.statistics.holm import holm
from setconv.experiment.statistics.resampled import corrected_t_test

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ALPHA", "BETTER", "WORSE", "Comparison", "compare"]

ALPHA = 0.05
BETTER = "▲"
WORSE = "▼"


class Comparison(NamedTuple):
    """A method against the study's own.

    Attributes
    ----------
    p_value : float
        Two-sided, after Holm; nan if the two share fewer than two splits.
    mark : str
        ``BETTER`` or ``WORSE`` where the method differs, else empty.
    """

    p_value: float
    mark: str


def compare(
    by_split: pd.DataFrame, control: str, test_share: float, higher_is_better: bool
) -> dict[str, Comparison]:
    """Compare every other method with one, on the splits that both have.

    Parameters
    ----------
    by_split : DataFrame
        Scores of one unit and metric: one row a split, one column a method; nan where there is
        none.
    control : str
        The method that the others are compared with.
    test_share : float
        Rows for testing over rows for training.
    higher_is_better : bool

    Returns
    -------
    dict of str to Comparison
        Empty if the control has no scores.
    """
    if control not in by_split.columns:
        return {}
    others = [str(method) for method in by_split.columns if method != control]
    differences = {
        method: (by_split[method] - by_split[control]).dropna().to_numpy() for method in others
    }
    p_values = holm([corrected_t_test(differences[method], test_share) for method in others])
    found = {}
    for method, p_value in zip(others, p_values, strict=True):
        mark = ""
        if not math.isnan(p_value) and p_value <= ALPHA:
            more = differences[method].mean() > 0
            mark = BETTER if more == higher_is_better else WORSE
        found[method] = Comparison(p_value, mark)
    return found
