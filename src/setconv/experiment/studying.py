"""A study from beginning to end: rows prepared, cells computed, findings collected."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Literal

from setconv.experiment.answers.findings import Findings
from setconv.experiment.collecting import collect
from setconv.experiment.errors import StudyError
from setconv.experiment.protocol.computing import StudyWork
from setconv.experiment.protocol.planning import check_methods, plan_cells
from setconv.experiment.protocol.prepared import known_data, prepare
from setconv.experiment.protocol.study import Study
from setconv.experiment.running.runner import Tally, run
from setconv.experiment.running.store import Store

__all__ = ["findings", "run_study"]

logger = logging.getLogger(__name__)

_STORE = "results.sqlite"
_ROWS = "rows"


def run_study(
    study: Study,
    folder: str | Path,
    *,
    data: str | Path = ".",
    jobs: int | None = None,
    threads: int | None = None,
    retry_failed: bool = False,
    progress: Literal["auto"] | bool = "auto",
) -> Tally:
    """Compute the cells of a study that are missing or whose definition has changed.

    Killed at any moment, the same call goes on where it was: a finished cell is never computed
    again, a half-finished one never counted. Call it under ``if __name__ == "__main__":``.

    Parameters
    ----------
    study : Study
    folder : str or Path
        Where results are kept: ``results.sqlite`` and the prepared rows.
    data : str or Path, default="."
        Where the paths of the study's data sets begin.
    jobs, threads, retry_failed, progress
        See `run`.

    Returns
    -------
    Tally
    """
    folder = Path(folder).resolve()
    check_methods(study)
    prepared = prepare(study, folder / _ROWS, Path(data))
    cells = plan_cells(study, prepared, folder / _ROWS)
    work = StudyWork(study, prepared, folder / _ROWS)
    with Store(folder / _STORE) as store:
        return run(
            cells,
            work,
            store,
            jobs=jobs,
            threads=threads,
            timeout=study.timeout,
            retry_failed=retry_failed,
            progress=progress,
        )


def findings(study: Study, folder: str | Path, command: str = "") -> Findings:
    """Return what the finished cells of a study say.

    Parameters
    ----------
    study : Study
    folder : str or Path
        The one that `run_study` was given.
    command : str, default=""
        Shown as what reproduces the study.
    """
    folder = Path(folder).resolve()
    if not (folder / _STORE).exists():
        raise StudyError(
            f"{folder} has no results of {study.name}: run it first (setconv experiment run)."
        )
    prepared = known_data(study, folder / _ROWS)
    if lacking := [one.name for one in study.data if one.name not in prepared]:
        raise StudyError(
            f"{folder} has no rows of {', '.join(lacking)}: the study was not run with them; run "
            "it, or choose the data sets that were."
        )
    cells = plan_cells(study, prepared, folder / _ROWS)
    with Store(folder / _STORE) as store:
        return collect(study, prepared, cells, store, command)
