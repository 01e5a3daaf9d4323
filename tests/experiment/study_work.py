"""Work for the tests of studies: what a cell does is the name of its method."""

import logging
import math
import multiprocessing
import os
import signal
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

FOREVER = 60


def work(cell):
    """Do what the method's name says; every cell that begins is noted in a file first."""
    with Path(os.environ["STUDY_NOTES"]).open("a") as notes:
        notes.write(f"{cell}\n")
    return globals()[f"do_{cell.method}"](cell)


def do_good(cell):
    return {"f1": cell.split / 3, "undefined": math.nan, "pid": os.getpid()}


def do_threads(_):
    # numpy has long been loaded here, so its BLAS tells what the environment said at that time.
    from threadpoolctl import threadpool_info

    used = [library["num_threads"] for library in threadpool_info()]
    return {"omp": int(os.environ["OMP_NUM_THREADS"]), "most": max(used, default=1)}


def do_raise(cell):
    raise ValueError(f"the rows of {cell.dataset} are bad")


def do_exit(_):
    os._exit(3)


def do_segfault(_):
    os.kill(os.getpid(), signal.SIGSEGV)
    time.sleep(FOREVER)


def do_sleep(_):
    time.sleep(FOREVER)


def do_interrupt(_):
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(FOREVER)


def do_kill(cell):
    """Kill the study at split 2, once."""
    if cell.split == 2 and "STUDY_KILL" in os.environ:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(FOREVER)
    return do_good(cell)


def do_hold(cell):
    """Work until the file of the study's permission is there."""
    while not Path(os.environ["STUDY_GO"]).exists():
        time.sleep(0.01)
    return do_good(cell)


def repaired(_):
    return {"f1": 1.0}


class Saturated(LogisticRegression):
    """A classifier whose probabilities are all 0 or 1; its decision function still ranks."""

    def predict_proba(self, X):
        return np.round(super().predict_proba(X))


class Unloadable:
    """Work that can be pickled, but not loaded."""

    def __call__(self, _):
        return {"f1": 1.0}

    def __reduce__(self):
        return (fail_to_load, ())


def fail_to_load():
    raise ModuleNotFoundError("No module named 'gone'")


def main():
    """Run a study in a process of its own: the store and the cells are the arguments."""
    import sys

    from setconv.experiment import runner
    from setconv.experiment.store import Cell, Store

    if "STUDY_FORK" in os.environ:
        # Workers start at once; they do not see that a pipe ends of which they have both sides.
        runner._PATIENCE = 0.0
        forked = multiprocessing.get_context("fork")
        multiprocessing.get_context = lambda _: forked
    says = logging.StreamHandler(sys.stdout)
    says.addFilter(lambda record: "waiting" in record.getMessage())
    logging.getLogger("setconv").addHandler(says)
    # A shell that starts programs in the background has them ignore it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cells = [Cell("rows", method, split) for split, method in enumerate(sys.argv[2:])]
    with Store(sys.argv[1]) as store:
        tally = runner.run(cells, work, store, jobs=1, progress=False)
    sys.stdout.write(f"{tally}\n")


if __name__ == "__main__":
    main()
