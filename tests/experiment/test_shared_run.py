"""Processes that run one study at the same time share its cells, whatever happens to one."""

import errno
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import study_work
from study_work import repaired, work

import setconv
from setconv.experiment import data as rows
from setconv.experiment import runner
from setconv.experiment.data import prepare
from setconv.experiment.runner import Tally, compute, library_version, run
from setconv.experiment.store import Cell, Outcome, Store
from setconv.experiment.study import DataSpec, MethodSpec, Study

posix = pytest.mark.skipif(os.name != "posix", reason="locks and signals are those of POSIX")

# The first two are at work until they are permitted to end.
METHODS = ["hold", "hold", "good", "good", "good"]
CELLS = [Cell("rows", method, split) for split, method in enumerate(METHODS)]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("STUDY_NOTES", str(tmp_path / "notes"))
    monkeypatch.setenv("STUDY_GO", str(tmp_path / "go"))
    monkeypatch.setenv("STUDY_FORK", "1")
    monkeypatch.setenv("PYTHONPATH", str(Path(setconv.__file__).parents[1]))
    return tmp_path


def begin(place, methods=METHODS):
    command = [sys.executable, study_work.__file__, str(place / "s.sqlite"), *methods]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def lines(path):
    return path.read_text().splitlines() if path.exists() else []


def wait_until(done, *processes):
    while not done():
        assert [process.poll() for process in processes] == [None] * len(processes)
        time.sleep(0.01)


def outcome(process):
    """Return the exit code of a study and its tally."""
    output, _ = process.communicate(timeout=120)
    return process.returncode, output.rpartition("Tally")[2].strip()


@contextmanager
def when_it_waits(act):
    """Do something, once, when a process says that it waits for others."""

    class Handler(logging.Handler):
        said = ()

        def emit(self, record):
            if "waiting" in record.getMessage() and not self.said:
                self.said = (record.getMessage(),)
                act()

    handler, logger = Handler(), logging.getLogger("setconv")
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)


def outside(place):
    """All that a study leaves beside its store."""
    return sorted({path.name for path in place.iterdir()} - {"s.sqlite", "notes", "go"})


def waits(process):
    """Wait until a process says that it waits; return what it says."""
    return process.stdout.readline().strip()


@posix
def test_three_processes_compute_each_cell_once_and_wait_for_each_other(place):
    notes, others = place / "notes", []
    for number in (1, 2):  # each begins while those before are at work
        others.append(begin(place))
        wait_until(lambda number=number: len(lines(notes)) == number, *others)
    third = begin(place)
    assert waits(third) == "other processes are at 2 cells: waiting for them"
    (place / "go").touch()
    assert outcome(third) == (0, "(skipped=0, ok=3, failed=0, elsewhere=2)")
    for other in others:
        assert outcome(other) == (0, "(skipped=0, ok=1, failed=0, elsewhere=4)")
    assert sorted(lines(notes)) == sorted(map(str, CELLS))
    with Store(place / "s.sqlite") as store:
        assert store.finished() == set(CELLS)
    assert outside(place) == []


@posix
@pytest.mark.parametrize("kind", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_cell_of_a_process_that_was_stopped_is_taken_over(place, kind):
    notes, methods = place / "notes", ["hold", "good", "good"]
    stopped = begin(place, methods)
    wait_until(lambda: len(lines(notes)) == 1, stopped)
    other = begin(place, methods)
    assert waits(other) == "other processes are at 1 cell: waiting for them"
    stopped.send_signal(kind)
    assert outcome(stopped)[0] != 0
    (place / "go").touch()
    assert outcome(other) == (0, "(skipped=0, ok=3, failed=0, elsewhere=0)")
    cells = [Cell("rows", method, split) for split, method in enumerate(methods)]
    assert sorted(lines(notes)) == sorted(map(str, [cells[0], *cells]))
    with Store(place / "s.sqlite") as store:
        assert store.finished() == set(cells)
    assert outside(place) == []


# ------------------------------------------------------------------- what others did meanwhile


def here(monkeypatch, meanwhile):
    """Compute in this process, after another process has done something."""

    def outcomes(queue, work, *_):
        meanwhile()
        for cell in iter(queue.take, None):
            yield compute(work, cell)
            queue.release(cell)

    monkeypatch.setattr(runner, "_outcomes", outcomes)


@pytest.mark.parametrize("option", ["retry_failed", "recompute_outdated"])
def test_what_was_to_be_repeated_is_not_if_another_process_has_done_so(place, monkeypatch, option):
    path, cells = place / "s.sqlite", CELLS[2:]
    old = Outcome(cells[0], "ok", "2020-01-01", 1.0, {"f1": 0.1}, versions={"setconv": "0.0.9"})
    if option == "retry_failed":
        old = replace(old, status="error", results={})

    def meanwhile():
        with Store(path) as other:
            other.record(replace(old, seconds=2.0))

    with Store(path) as store:
        store.record(old)
        here(monkeypatch, meanwhile)
        assert run(cells, repaired, store, **{option: True}) == Tally(0, 2, 0, elsewhere=1)
        here(monkeypatch, lambda: None)
        assert run(cells, repaired, store, **{option: True}) == Tally(2, 1, 0)
        assert run(cells, repaired, store, **{option: True}) == Tally(3, 0, 0)


def test_where_files_cannot_be_locked_each_computes_all_and_says_so(place, monkeypatch, caplog):
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    here(monkeypatch, lambda: None)
    with Store(place / "s.sqlite") as store:
        assert run(CELLS[2:], work, store) == Tally(0, 3, 0)
    assert [one.message for one in caplog.records if "locked" in one.message] == [
        f"files in {place} cannot be locked: other processes that run this study at the same time "
        "compute the same cells"
    ]
    assert outside(place) == []


@posix
def test_rows_are_prepared_by_one_process_and_the_other_waits_for_it(tmp_path, monkeypatch):
    study = Study("s", (DataSpec("digits", "digits", {"digit": 3}),), (MethodSpec("SetConv"),))
    prepared, waits, prepares = [], threading.Event(), rows._prepare

    def counted(*arguments):
        prepared.append(arguments)
        assert waits.wait(60)
        return prepares(*arguments)

    monkeypatch.setattr(rows, "_prepare", counted)
    found = []
    # Locks of one process do not let its own threads in either.
    threads = [
        threading.Thread(target=lambda: found.append(prepare(study, tmp_path / "r", tmp_path)))
        for _ in range(2)
    ]
    with when_it_waits(waits.set) as waiting:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert waiting.said == (f"another process is at work in {tmp_path / 'r'}: waiting for it",)
    assert len(prepared) == 1
    assert found[0] == found[1]


# ---------------------------------------------------------------------------------- the version


def test_the_version_of_a_cell_tells_two_states_of_the_code_apart(tmp_path, monkeypatch):
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "runner.py").write_bytes(b"one\r\n")
    monkeypatch.setattr(runner, "__file__", str(tmp_path / "experiment" / "runner.py"))
    found = []
    for content in (b"one\r\n", b"one\n", b"another\n"):
        (tmp_path / "experiment" / "runner.py").write_bytes(content)
        found.append(library_version.__wrapped__())
    assert found[0] == found[1] != found[2]
    assert all(one.startswith(f"{setconv.__version__}+") for one in found)


def test_cells_of_another_version_are_computed_again_when_asked(place, monkeypatch):
    here(monkeypatch, lambda: None)
    with Store(place / "s.sqlite") as store:
        for cell, version in zip(CELLS[:3], ("0.0.9", library_version(), None), strict=True):
            versions = {} if version is None else {"setconv": version}
            store.record(Outcome(cell, "ok", "2020-01-01", 1.0, {"f1": 0.1}, versions=versions))
        assert run(CELLS[:3], repaired, store) == Tally(3, 0, 0)
        assert run(CELLS[:3], repaired, store, recompute_outdated=True) == Tally(1, 2, 0)
        values = store.results().set_index("split")["value"]
        assert values.to_dict() == {0: 1.0, 1: 0.1, 2: 1.0}
