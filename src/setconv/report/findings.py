"""All that was found out about a model, before it is put into words and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from setconv.report.bootstrap import Answers, Measured
from setconv.report.curves import Bin
from setconv.report.evaluation import Evaluation
from setconv.report.explorer import Explorer
from setconv.report.learned_map import LearnedMap
from setconv.report.meanings import Meaning
from setconv.report.mistakes import Mistake
from setconv.report.similarity import Compared
from setconv.report.sources import Sources


@dataclass(frozen=True)
class Findings:
    """What the page tells; in ``methods``, ``answers`` and ``measured`` the model comes first.

    ``bins`` is empty where probabilities cannot be judged, ``explorers`` where no class can.
    ``compared`` are the rows that ``meanings`` were found among.
    """

    model: Any
    evaluation: Evaluation
    methods: Sequence[str]
    answers: Sequence[Answers]
    measured: Sequence[Measured]
    repeats: int
    explorers: Sequence[Explorer]
    bins: Sequence[Bin]
    map: LearnedMap
    meanings: Sequence[Meaning]
    compared: Compared
    mistakes: Sequence[Mistake]
    sources: Sources
    command: str | None
    title: str | None
    data_name: str | None
