"""Forked children of a process that has worked with several threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import setconv

TESTS = Path(__file__).parents[1]


def outcomes(kind, folder):
    """What became of each child of `fork_work`."""
    paths = (Path(setconv.__file__).parents[1], TESTS, TESTS / "text")
    environment = {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "OMP_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin on a busy core take seconds
        "TOKENIZERS_PARALLELISM": "true",
    }
    done = subprocess.run(
        [sys.executable, TESTS / "fork_work.py", kind, str(folder)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split() for line in done.stdout.splitlines())


pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")


def test_children_of_a_process_with_threads_work_and_say_the_same(tmp_path):
    found = outcomes("numbers", tmp_path)
    assert len(found) == 8
    assert set(found.values()) == {"right"}, found


def test_children_encode_texts_whatever_another_thread_does(tmp_path):
    pytest.importorskip("transformers", reason="TextEncoder needs transformers")
    from tiny_bert import save_tiny_bert

    found = outcomes("texts", save_tiny_bert(tmp_path))
    assert len(found) == 2
    assert set(found.values()) == {"right"}, found
