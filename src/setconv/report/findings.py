"""All that was found out about a model, before it is put into words and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from setconv.report.bootstrap import Answers, Measured
from setconv.report.evaluation import Evaluation
from setconv.report.explorer import Explorer
from setconv.report.learned_map import LearnedMap
from setconv.report.meanings import Meaning
from setconv.report.mistakes import Mistake
from setconv.report.sources import Sources


@dataclass(frozen=True)
class Findings:
    """What the page tells; in ``methods``, ``answers`` and ``measured`` the model comes first."""

    model: Any
    evaluation: Evaluation
    methods: Sequence[str]
    answers: Sequence[Answers]
    measured: Sequence[Measured]
    repeats: int
    explorers: Sequence[Explorer]
    map: LearnedMap
    meanings: Sequence[Meaning]
    mistakes: Sequence[Mistake]
    sources: Sources
    title: str | None
    data_name: str | None
