"""A default fit in bfloat16 against float32."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from benchmarks.speed.fits import compare
from benchmarks.speed.made import dense_split
from benchmarks.speed.parts.peers import setconv
from benchmarks.speed.processes import Alone


class Sizes(NamedTuple):
    rows: int = 6_000
    features: int = 1024
    new: int = 20_000
    turns: int = 1
    steps: int = 200


FULL = Sizes()
QUICK = Sizes(rows=600, features=120, new=300, turns=1, steps=5)

PRECISIONS = ("float32", "bfloat16")


def run(sizes: Sizes, alone: Alone) -> dict[str, Any]:
    """Return the costs in each precision."""
    draw = partial(dense_split, sizes.rows, sizes.features, sizes.new)
    methods = {name: partial(setconv, precision=name, max_steps=sizes.steps) for name in PRECISIONS}
    return {**sizes._asdict(), "methods": compare(methods, draw, sizes.turns, alone)}
