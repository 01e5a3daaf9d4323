"""Files as users have them, and a model that was fitted from the command line."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # helpers that test modules share

INCIDENTS = ["fire in the {}", "crash on the {}", "the {} is burning", "accident near the {}"]
CHATTER = [
    "lovely {} today",
    "my cat sleeps on the {}",
    "reading about the {} again",
    "who wants to see the {}",
    "coffee first, then the {}",
]
PLACES = ["bridge", "market", "station", "school", "harbour", "museum", "tower", "park"]


def make_rows(n_chatter=90, n_incidents=24):
    """Texts with labels; the minority class has words of its own."""
    rows = []
    for number in range(n_chatter):
        text = CHATTER[number % len(CHATTER)].format(PLACES[number * 5 % len(PLACES)])
        rows.append((f"{text} no {number}", "chatter"))
    for number in range(n_incidents):
        text = INCIDENTS[number % len(INCIDENTS)].format(PLACES[number * 3 % len(PLACES)])
        rows.append((f"{text} no {number}", "incident"))
    np.random.default_rng(0).shuffle(rows)
    return rows


def write_csv(path, rows, head=("text", "label")):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)
    return path


def write_features(path, n_rows=160, seed=0):
    """Numbers with gaps, a category and an id; 20 rows are fraud."""
    rng = np.random.default_rng(seed)
    fraud = np.arange(n_rows) < 20
    amount = rng.normal(100 + 200 * fraud, 20)
    age = rng.integers(18, 80, n_rows).astype(object)
    age[::13] = ""
    country = np.where(rng.random(n_rows) < 0.5 + 0.4 * fraud, "XX", "NL")
    order = rng.permutation(n_rows)
    rows = [
        [f"id-{number}", f"{amount[i]:.3f}", age[i], country[i], "fraud" if fraud[i] else "fine"]
        for number, i in enumerate(order)
    ]
    return write_csv(path, rows, ("customer_id", "amount", "age", "country", "status"))


class Done:
    """What a command left: its exit code, and what it printed."""

    def __init__(self, code, out, err):
        self.returncode, self.stdout = code, out
        self.out, self.err = out.decode(), " ".join(err.decode().split())


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    return {**os.environ, "SETCONV_CACHE": str(cache), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="session")
def start_anew(environment):
    """Run the command line as a user would, in a new process."""

    def run(*arguments, stdin=None, cwd=None):
        command = [sys.executable, "-m", "setconv", *map(str, arguments)]
        done = subprocess.run(
            command, input=stdin, capture_output=True, timeout=240, cwd=cwd, env=environment
        )
        return Done(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def fork_off(environment, tmp_path_factory):
    """The same from a process that has imported torch already: most of the time of a command."""
    place = tmp_path_factory.mktemp("forked")
    files = [place / name for name in ("stdin", "stdout", "stderr")]
    (take_order, give_order), (take_answer, give_answer) = os.pipe(), os.pipe()
    program = Path(__file__).with_name("forking.py")
    server = subprocess.Popen(
        [sys.executable, str(program), str(take_order), str(give_answer)],
        stdin=subprocess.DEVNULL,
        env=environment,
        pass_fds=(take_order, give_answer),
    )
    os.close(take_order)
    os.close(give_answer)

    def run(*arguments, stdin=None, cwd=None):
        for path, content in zip(files, (stdin or b"", b"", b""), strict=True):
            path.write_bytes(content)
        order = {"arguments": [*map(str, arguments)], "cwd": str(cwd or Path.cwd())}
        orders.write(json.dumps({**order, "files": [*map(str, files)]}) + "\n")
        orders.flush()
        return Done(int(answers.readline()), *(path.read_bytes() for path in files[1:]))

    with os.fdopen(give_order, "w") as orders, os.fdopen(take_answer) as answers:
        yield run
    server.wait()


@pytest.fixture(scope="session")
def setconv(request):
    """Run a command and check its exit code."""
    run = request.getfixturevalue("fork_off" if hasattr(os, "fork") else "start_anew")

    def checked(*arguments, stdin=None, check=0, cwd=None):
        done = run(*arguments, stdin=stdin, cwd=cwd)
        assert check is None or done.returncode == check, (done.returncode, done.out, done.err)
        return done

    return checked


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """A folder with train.csv, test.csv and fraud.csv."""
    place = tmp_path_factory.mktemp("files")
    rows = make_rows()
    rare = [row for row in rows if row[1] == "incident"]
    common = [row for row in rows if row[1] == "chatter"]
    write_csv(place / "train.csv", common[:68] + rare[:18])
    write_csv(place / "test.csv", common[68:] + rare[18:])
    write_features(place / "fraud.csv")
    return place


@pytest.fixture(scope="session")
def fitted(start_anew, folder):
    """What `setconv fit` printed, and the folder of its model."""
    model = folder / "model"
    done = start_anew("fit", folder / "train.csv", "--encoder", "tfidf", "-o", model, "--json")
    assert done.returncode == 0, done.err
    return done, model


@pytest.fixture(scope="session")
def fraud_model(setconv, folder):
    model = folder / "fraud-model"
    done = setconv("fit", folder / "fraud.csv", "--label", "status", "-o", model)
    return done, model
