"""Files as users have them, and a model that was fitted from the command line."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from threadpoolctl import threadpool_limits

from setconv.cli import main

sys.path.insert(0, str(Path(__file__).parent))  # helpers that test modules share

from user_files import make_rows, write_csv, write_features


class Done:
    """What a command printed."""

    def __init__(self, out, err):
        self.out, self.err = out.decode(), " ".join(err.decode().split())


@pytest.fixture(scope="session")
def cache(tmp_path_factory):
    return str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def start_anew(cache):
    """Run the command line as a user would, in a new process."""

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "setconv", *map(str, arguments)],
            capture_output=True,
            timeout=240,
            env={**os.environ, "SETCONV_CACHE": cache, "OMP_NUM_THREADS": "1"},
        )
        assert done.returncode == 0, done.stderr
        return Done(done.stdout, done.stderr)

    return run


@pytest.fixture(scope="session")
def setconv(cache):
    """Run a command in this process, which has imported torch already; check its exit code."""

    def run(*arguments, stdin=b"", check=0, cwd="."):
        given, out, err = (io.BytesIO(content) for content in (stdin, b"", b""))
        with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):
            for name, file in (("stdin", given), ("stdout", out), ("stderr", err)):
                patch.setattr(sys, name, io.TextIOWrapper(file, "utf-8", write_through=True))
            patch.setattr(sys, "argv", ["setconv", *map(str, arguments)])
            patch.setenv("SETCONV_CACHE", cache)
            patch.chdir(cwd)
            with pytest.raises(SystemExit) as stop:
                main()
            done = Done(out.getvalue(), err.getvalue())
        assert check is None or (stop.value.code or 0) == check, (done.out, done.err)
        return done

    return run


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
    return done, model


@pytest.fixture(scope="session")
def fraud_model(setconv, folder):
    model = folder / "fraud-model"
    done = setconv("fit", folder / "fraud.csv", "--label", "status", "-o", model)
    return done, model
