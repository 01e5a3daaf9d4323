"""Which cells the study has, long ones first."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.quality.peers import CALIBRATED, COST, OURS, PRESETS, peers
from benchmarks.quality.tasks import Kind, Spec, specs
from setconv.experiment import Cell

SPLITS: dict[Kind, int] = {"text": 3, "tabular": 2}

QUICK = (
    *("sms_spam/spam", "davidson_hate/hate"),
    *("abalone9_18", "car_vgood", "glass6", "pc1"),
    *("ecoli3", "new_thyroid1", "vowel0", "yeast_2_vs_4"),
)

ALL = (OURS, *peers(), *PRESETS, *CALIBRATED)


def cells(
    part: str = "all",
    splits: int | None = None,
    methods: Sequence[str] | None = None,
    quick: bool = False,
) -> list[Cell]:
    """Return the cells; ``quick`` is one split of a few tasks, without the slowest preset."""
    wanted = [m for m in (methods or ALL) if not (quick and m == "SetConv, REFERENCE")]
    if unknown := set(wanted) - set(ALL):
        raise ValueError(f"unknown methods {sorted(unknown)}; there are {', '.join(ALL)}")
    found = {}
    for spec in specs(part):
        if quick and spec.name not in QUICK:
            continue
        n_splits = 1 if quick else splits or SPLITS[spec.kind]
        for method in wanted:
            for split in range(_splits_of(method, spec, n_splits)):
                found[Cell(spec.name, method, split)] = _cost(method, spec)
    return sorted(found, key=lambda cell: -found[cell])


def _splits_of(method: str, spec: Spec, n_splits: int) -> int:
    """Presets run once because of their cost; probabilities are compared on text alone."""
    if method in CALIBRATED:
        return n_splits if spec.kind == "text" else 0
    return min(1, n_splits) if method in PRESETS else n_splits


def _cost(method: str, spec: Spec) -> float:
    # Presets take the same number of steps on any data; the others follow the size.
    share = 1.0 if spec.kind == "text" else 0.5 if method in PRESETS else spec.rows / 20_000
    return COST.get(method, 5.0) * share
