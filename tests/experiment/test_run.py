"""The run of a study: what is computed, what is recorded, and that nothing stops it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import study_work
from study_work import Unloadable, repaired, work

import setconv
from setconv.errors import ParameterError, StudyError
from setconv.experiment import runner
from setconv.experiment.runner import Tally, compute, environment, library_version, run, threads_for
from setconv.experiment.store import Cell, Store

posix = pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")

MIXED = [
    Cell("a", "good", 0),
    Cell("a", "threads", 0),
    Cell("a", "good", 1),
    Cell("a", "raise", 0),
    Cell("a", "exit", 0),
    Cell("a", "segfault", 0),
    Cell("a", "sleep", 0),
    Cell("b", "good", 2),
]


FAILURES = [
    ("raise", "error", "ValueError: the rows of a are bad"),
    ("exit", "error", "3"),
    ("segfault", "error", "SIGSEGV"),
    ("sleep", "timeout", "1.5 s"),
]


def noted(path):
    return path.read_text().splitlines() if path.exists() else []


def taken(queue):
    return iter(queue.take, None)


def gone(pid):
    """Whether the process ends within a moment; a zombie that nobody reaps has ended."""
    for _ in range(100):
        try:
            if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def notes(tmp_path, monkeypatch):
    monkeypatch.setenv("STUDY_NOTES", str(tmp_path / "notes"))
    return tmp_path / "notes"


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "study.sqlite") as opened:
        yield opened


@pytest.fixture
def interruptible():
    """Python's own answer to SIGINT: programs that a shell starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# ----------------------------------------------------------------------------- all that happens


@posix
def test_a_study_goes_on_whatever_a_cell_does(store, notes):
    tally = run(MIXED, work, store, jobs=1, timeout=1.5, threads=1, progress=False)
    good = {cell for cell in MIXED if cell.method in ("good", "threads")}
    assert tally == Tally(skipped=0, ok=4, failed=4)
    assert store.finished() == good
    assert store.failed() == set(MIXED) - good
    cells = store.cells().set_index("method")
    for method, status, error in FAILURES:
        assert cells.loc[method, "status"] == status
        assert error in cells.loc[method, "error"]
    # Only the time of the cell counts towards the limit, not the start of its worker.
    assert 1.5 <= cells.loc["sleep", "seconds"] < 10
    results = store.results().set_index(["method", "split", "metric"])["value"]
    assert set(results.index.levels[0]) == {"good", "threads"}
    assert results["good", 1, "f1"] == 1 / 3
    assert np.isnan(results["good", 1, "undefined"])
    assert results["threads", 0, "omp"] == results["threads", 0, "most"] == 1
    # A worker is used again after success and replaced after failure.
    pids = results["good"].xs("pid", level="metric")
    assert pids[0] == pids[1] != pids[2]
    assert all(gone(int(pid)) for pid in pids)
    versions = json.loads(cells.loc["threads", "versions"])
    assert versions["setconv"] == library_version()
    assert cells.loc["threads", "peak_mb"] > 5
    # What the store has is not computed again, failed or not.
    assert run(MIXED, work, store, jobs=1) == Tally(skipped=len(MIXED), ok=0, failed=0)
    assert noted(notes) == [str(cell) for cell in MIXED]


@pytest.mark.usefixtures("notes")
def test_failed_cells_are_repeated_when_asked(store, monkeypatch):
    # Computed in this process: what is asked of workers shows without them.
    monkeypatch.setattr(
        runner, "_outcomes", lambda queue, work, *_: (compute(work, c) for c in taken(queue))
    )
    cells = [Cell("a", "raise", 0), Cell("a", "good", 0), Cell("a", "good", 0)]
    assert run(cells, work, store) == Tally(0, 1, 1)
    assert run(cells, repaired, store) == Tally(2, 0, 0)
    assert run(cells, repaired, store, retry_failed=True) == Tally(1, 1, 0)
    assert store.finished() == set(cells)


# ------------------------------------------------------------------------------------ interrupts


@posix
@pytest.mark.usefixtures("notes", "interruptible")
def test_ctrl_c_keeps_what_is_finished_and_ends_the_workers(store):
    cells = [Cell("a", "good", 0), Cell("a", "interrupt", 0), Cell("a", "good", 1)]
    with pytest.raises(KeyboardInterrupt):
        run(cells, work, store, jobs=1, progress=False)
    assert store.finished() == {cells[0]}
    assert store.failed() == set()
    results = store.results()
    assert gone(int(results.loc[results["metric"] == "pid", "value"].iloc[0]))


@posix
def test_a_study_that_was_killed_goes_on_where_it_stopped(tmp_path, notes):
    path = tmp_path / "study.sqlite"
    source = str(Path(setconv.__file__).parents[1])
    killed = subprocess.run(
        [sys.executable, study_work.__file__, str(path), *["kill"] * 4],
        env={**os.environ, "STUDY_KILL": "1", "PYTHONPATH": source},
        capture_output=True,
        timeout=120,
    )
    assert killed.returncode == -9
    cells = [Cell("rows", "kill", split) for split in range(4)]
    with Store(path) as store:
        assert store.finished() == set(cells[:2])
        orphan = int(store.results().query("metric == 'pid'")["value"].iloc[0])
        assert gone(orphan)
        assert run(cells, work, store, jobs=2, progress=False) == Tally(2, 2, 0)
        assert store.finished() == set(cells)
    # Only the cell during which the study died was begun twice.
    assert sorted(noted(notes)) == [str(cells[number]) for number in (0, 1, 2, 2, 3)]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["notes", "study.sqlite"]


# ----------------------------------------------------------------------------------- wrong calls


def test_work_that_workers_cannot_load_stops_the_study_with_nothing_recorded(store):
    with pytest.raises(StudyError):
        run([Cell("a", "m", 0)], Unloadable(), store, jobs=1)
    assert store.cells().empty


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("work", lambda cell: {"f1": cell.split}),
        *(("jobs", value) for value in (0, 1.5)),
        ("threads", True),
        *(("timeout", value) for value in (0, float("inf"))),
        ("progress", "yes"),
    ],
)
def test_parameters_that_cannot_work_are_refused(store, parameter, value):
    with pytest.raises(ParameterError) as caught:
        run([Cell("a", "m", 0)], **{"work": repaired, "store": store, parameter: value})
    assert caught.value.parameter == parameter


@pytest.mark.parametrize("returned", ["abc", {}, {"f1": "high"}, {"f1": float("inf")}])
def test_work_that_returns_no_figures_is_an_error(returned):
    outcome = compute(lambda _: returned, Cell("a", "m", 0))
    assert (outcome.status, outcome.results) == ("error", {})


# --------------------------------------------------------------------------------------- threads


@pytest.mark.parametrize(
    ("cores", "jobs", "wish", "threads"),
    [(8, 8, None, 1), (8, 3, None, 2), (2, 5, None, 1), (8, 2, "3", 3), (8, 2, "9", 4)],
)
def test_workers_share_the_cores(monkeypatch, cores, jobs, wish, threads):
    monkeypatch.setattr(runner, "cpu_count", lambda: cores)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if wish is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", wish)
    assert threads_for(jobs) == threads
    before = dict(os.environ)
    with environment(threads):
        assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == str(threads)
    assert dict(os.environ) == before
