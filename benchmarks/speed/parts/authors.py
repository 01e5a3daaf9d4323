"""Against the authors' computation, written out literally: the layer and the training step."""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmarks.speed import layer, reference_step
from benchmarks.speed.processes import Alone


class Sizes(NamedTuple):
    rows: int = 64
    features: int = 1024
    out: int = 128
    turns: int = 5


FULL = Sizes()
QUICK = Sizes(turns=1)


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:
    """Return the seconds of ours and of the literal forms."""
    shape = {"rows": sizes.rows, "features": sizes.features, "out": sizes.out}
    return {
        "layer": {**shape, **alone(layer.measure, *shape.values(), sizes.turns)},
        "step": alone(reference_step.measure, sizes.turns),
    }
