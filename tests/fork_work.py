"""A process that has worked with two threads, and what its forked children then do.

``python fork_work.py numbers FOLDER`` prints what became of each child: "right", "wrong" or
"hangs". With ``texts`` the folder is that of an encoder.
"""

import multiprocessing
import os
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path

import numpy as np
import torch

LIMIT = 40.0  # seconds; on an idle machine a child takes one at most


def outcomes(kind, folder):
    """What becomes of each child of such a process."""
    import setconv

    tests = Path(__file__).parent
    paths = (Path(setconv.__file__).parents[1], tests, tests / "text")
    environment = {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "OMP_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "PASSIVE",  # threads that spin on a busy core take seconds
        "TOKENIZERS_PARALLELISM": "true",
    }
    done = subprocess.run(
        [sys.executable, __file__, kind, str(folder)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split() for line in done.stdout.splitlines())


def in_child(work):
    """Return what becomes of a function in a forked child, which is killed if it takes long."""
    child = os.fork()
    if not child:
        try:
            os.setsid()  # so that its own children are killed with it
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return "wrong" if status else "right"
        time.sleep(0.01)
    os.killpg(child, 9)
    os.waitpid(child, 0)
    return "hangs"


def numbers(folder):
    import pyarrow as pa
    import pyarrow.parquet as pq
    from sklearn.cluster import KMeans
    from small_models import make_rows, small

    import setconv
    from setconv.nn import forks

    # Wide enough that torch shares out its products.
    X, y = make_rows(3000, features=256)
    X = X.astype(np.float32)
    classifier = small(encoder=(256,)).fit(X, y)
    expected = classifier.predict_proba(X)
    again = small().fit(X, y).predict_proba(X)
    KMeans(2, n_init=1, random_state=0).fit(X)
    classifier.save(f"{folder}/before")

    def predict(rows=X):
        assert classifier.predict_proba(rows).tobytes() == expected.tobytes()

    def fit():
        assert small().fit(X, y).predict_proba(X).tobytes() == again.tobytes()

    def update():
        classifier.partial_fit(X[:200], y[:200]).set_objective("f1").predict(X)

    def save_and_load():
        classifier.save(f"{folder}/child")
        for name in ("before", "child"):
            found = setconv.load(f"{folder}/{name}").predict_proba(X)
            assert found.tobytes() == expected.tobytes()

    def cluster():
        KMeans(2, n_init=1, random_state=0).fit(X)

    table = f"{folder}/rows.parquet"
    columns = {f"c{number}": column for number, column in enumerate(X.T[:20])}
    pq.write_table(pa.table(columns | {"label": y}), table)
    os.environ["SETCONV_IN_MEMORY"] = "0"
    stored = small().fit(table, "label").predict_proba(table)

    def work_on_disk():
        found = small().fit(table, "label").predict_proba(table)
        assert found.tobytes() == stored.tobytes()

    def predict_in_a_pool_of_a_pool():
        global _predict  # a pool finds its work by name
        _predict = predict
        with multiprocessing.get_context("fork").Pool(1) as workers:
            workers.apply(_predict_of_pool)

    def predict_with_threads_that_stay():
        assert torch.get_num_threads() == 1
        np.testing.assert_allclose(classifier.predict_proba(X), expected, atol=1e-5)

    yield from (predict, fit, update, save_and_load, cluster, work_on_disk)
    yield predict_in_a_pool_of_a_pool
    forks._pauses = lambda: [None]  # as of a libgomp that cannot end its threads
    yield predict_with_threads_that_stay


def _predict_of_pool():
    _predict()


def texts(folder):
    from tiny_bert import make_texts

    from setconv.text import transformer
    from setconv.text.encoder import TextEncoder

    given = make_texts(600)
    encoder = TextEncoder(folder, device="cpu", cache=False)
    expected = encoder.transform(given)

    def encode():
        assert encoder.transform(given).tobytes() == expected.tobytes()

    yield encode
    load, begun = transformer._load, threading.Event()

    def load_slowly(*arguments):
        begun.set()
        time.sleep(0.5)
        return load(*arguments)

    transformer._load = load_slowly
    other = threading.Thread(target=encode)
    other.start()
    begun.wait()

    def encode_while_another_thread_loads():
        encode()

    yield encode_while_another_thread_loads
    other.join()


if __name__ == "__main__":
    torch.set_num_threads(2)
    kind, folder = sys.argv[1:]
    for work in {"numbers": numbers, "texts": texts}[kind](folder):
        print(work.__name__, in_child(work), flush=True)  # noqa: T201
