"""The classes of several data sets side by side, as in the paper's Tables 1 and 2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from setconv.datasets.dataset import Dataset
from setconv.errors import ParameterError


def distribution_table(datasets: Sequence[Dataset]) -> str:
    """Return a table as text: a line for each data set, with the rows of its classes and its IR.

    Parameters
    ----------
    datasets : sequence of Dataset
        Classes that only some of them have are "-" in the others.
    """
    if not datasets:
        raise ParameterError("datasets=[]: give at least one data set.")
    totals = Counter[str]()
    for one in datasets:
        totals.update({str(label): rows for label, rows in one.class_counts.items()})
    classes = [label for label, _ in totals.most_common()]
    lines = [["data set", *classes, "IR"]]
    for one in datasets:
        counts = {str(label): f"{rows:,}" for label, rows in one.class_counts.items()}
        cells = [counts.get(label, "-") for label in classes]
        lines.append([one.name, *cells, f"{one.imbalance_ratio:.2f}"])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join([name.ljust(widths[0]), *map(str.rjust, cells, widths[1:])])
        for name, *cells in lines
    )
