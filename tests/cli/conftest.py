"""Files as users have them, and a model that was fitted from the command line."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # helpers that test modules share

from user_files import make_rows, write_csv, write_features


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
