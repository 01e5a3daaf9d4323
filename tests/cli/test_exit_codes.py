"""Every command and what can fail: the exit code that docs/cli.md lists, in words of flags."""

import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from user_files import make_rows, write_csv, write_features

import setconv as library

# Python in a message to someone who typed a command; what stands in quotes is the user's own.
PYTHON = re.compile(
    r"\b[a-z_]+=(?!$)\S|\bnp\.|\w\(\.\.\.|\w\.\w+\(|"
    r"\b(None(?! looks)|True|False|dict|X_val|y_true|X|y)\b|"
    r"\b(support_size|checkpoint_dir|resume_from|random_state|sample_weight|n_members|max_steps)\b|"
    r"SetConv[A-Z]\w+|TextEncoder|setconv\.[a-z]+|\[Errno|Traceback|parameter="
)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Files as users have them, most of them wrong, and links to a disk that is full."""
    place = tmp_path_factory.mktemp("messy")
    write_csv(place / "train.csv", make_rows())
    write_features(place / "fraud.csv")
    rows = make_rows()
    write_csv(place / "ids.csv", [(text, f"T-{n}") for n, (text, _) in enumerate(rows)])
    write_csv(place / "case.csv", [(text, label.upper()) for text, label in rows[:9]] + rows)
    write_csv(place / "other.csv", [(text, "thing") for text, _ in rows])
    write_csv(place / "one.csv", [(text, "thing") for text, _ in rows])
    write_csv(place / "blank.csv", [("   ", "chatter"), *rows])
    (place / "taken.csv").write_text("text,predicted_label\na fire,b\n")
    (place / "twice.csv").write_text("a,a\n1,2\n")
    (place / "ragged.csv").write_text("text,label\na,b,c\n")
    (place / "empty.csv").write_text("")
    (place / "broken.parquet").write_bytes(b"PAR1 nothing PAR1")
    (place / "broken.jsonl").write_text('{"text": "a"}\nno\n')
    (place / "sheet.xlsx").write_bytes(b"PK\x03\x04")
    (place / "unknown.dat").write_text("text\na\n")
    (place / "page").mkdir()
    for name in ("full.csv", "full.parquet", "full.html"):
        (place / name).symlink_to("/dev/full")
    return place


@pytest.fixture(scope="module")
def models(setconv, place):
    setconv("fit", "train.csv", "--encoder", "tfidf", "-o", "texts", cwd=place)
    setconv("fit", "fraud.csv", "--label", "status", "-o", "table", cwd=place)
    (place / "damaged").mkdir()
    (place / "damaged" / "model.safetensors").write_bytes(b"no")
    X, y = [[n, n % 7] for n in range(60)], ["abc"[n % 3] for n in range(60)]
    library.SetConvClassifier(max_steps=5, random_state=0).fit(X, y).save(place / "three")
    return place


FIT = "fit train.csv --encoder tfidf -o new"
TABLE = "fit fraud.csv --label status -o new"
CASES = [
    # An input that is missing, an output that cannot be written: the system refused.
    (4, "fit nothing.csv -o new", "no file nothing.csv"),
    (4, "fit nowhere/nothing.csv -o new", "no folder nowhere"),
    (4, "predict texts nothing.csv", "no file"),
    (4, "evaluate texts nothing.csv", "no file"),
    (4, "evaluate texts train.csv --train nothing.csv", "no file"),
    (4, "explain texts nothing.csv", "no file"),
    (4, "explain texts train.csv --train nothing.csv", "no file"),
    (4, "embed nothing.csv -o out.csv", "no file"),
    (4, "predict nothing train.csv", "not a folder"),
    (4, "evaluate damaged train.csv", "damaged"),
    (4, "explain page --input fire", "not a setconv model"),
    (4, "predict texts train.csv -o nowhere/out.csv", "no folder nowhere"),
    (4, "predict texts train.csv -o page", "is a folder"),
    (4, "predict texts train.csv -o full.csv", "the disk is full"),
    (4, "predict texts train.csv -o full.parquet", "the disk is full"),
    (4, "embed train.csv -o nowhere/out.csv", "no folder nowhere"),
    (4, "embed train.csv -o page", "is a folder"),
    (4, "embed train.csv -o out.csv --encoder ./nothing", "no folder nothing"),
    (4, "embed train.csv -o out.csv --encoder page", "has no config.json"),
    (4, "evaluate texts train.csv --report full.html", "the disk is full"),
    (4, "evaluate texts train.csv --report page", "is a folder"),
    (4, f"{FIT} --report page", "is a folder"),
    (4, "fit train.csv --encoder tfidf -o train.csv", "is a file"),
    (4, "fit train.csv --encoder tfidf -o train.csv/new", "train.csv"),
    (4, "fit train.csv --encoder ./nothing -o new", "no folder nothing"),
    (4, f"{FIT} --resume", "without --resume"),
    (4, "experiment run nothing.yaml", "nothing.yaml"),
    # What cannot be meant.
    (2, "fit", "DATA|data"),
    (2, "predicted", "predicted"),
    (2, f"{FIT} --seed -1", "--seed"),
    (2, f"{FIT} --objective best", "--objective 'best'.*'recall>=0.95'"),
    (2, f"{FIT} --objective recall>=2", "--objective 'recall>=2'"),
    (2, f"{FIT} --objective recall>=0.99@99%", "takes 459 rows"),
    (2, f"{FIT} --device quantum", "--device 'quantum'"),
    (2, f"{FIT} --format xls", "--format"),
    (2, f"{FIT} --encoding klingon", "--encoding 'klingon'"),
    (2, "predict texts train.csv --prior 2", "--prior 2"),
    (2, "evaluate three fraud.csv --prior 0.1", "has 3 classes"),
    (2, "evaluate texts train.csv --objective best", "--objective 'best'"),
    (2, "predict texts train.csv --output-format xls", "--output-format"),
    (2, "explain texts", "--input"),
    (2, "explain texts train.csv --rows 0", "--rows 0"),
    (2, "explain texts train.csv --top 0", "--top"),
    (2, "explain table --input fire", "--input"),
    (2, "explain texts --input=", "--input"),
    (2, "embed train.csv -o out.csv --encoder tfidf", "--encoder tfidf"),
    (2, "embed train.csv -o out.csv --max-length 0", "--max-length"),
    (2, "experiment run stand-in", "stand-ins"),
    # What the files hold.
    (3, "fit empty.csv -o new", "is empty"),
    (3, "fit twice.csv -o new", "both called 'a'"),
    (3, "fit ragged.csv -o new", "line 2"),
    (3, "fit broken.parquet -o new", "not a whole Parquet file"),
    (3, "fit broken.jsonl -o new", "line 2"),
    (3, "fit sheet.xlsx -o new", "save it as CSV"),
    (3, "fit unknown.dat -o new", "Give --format csv"),
    (3, "fit page -o new", "without Parquet files"),
    (3, "fit fraud.csv -o new", "'country'.*--label"),
    (3, "fit ids.csv --encoder tfidf -o new", "114 different values"),
    (3, "fit case.csv --encoder tfidf -o new", "--strip-labels"),
    (3, "fit one.csv --encoder tfidf -o new", r"--label has only one class \('thing'\)"),
    (3, "fit blank.csv --encoder tfidf -o new", "row 1.*--empty skip"),
    (3, f"{TABLE} --group nothing", "--group"),
    (3, f"{TABLE} --time nothing", "--time"),
    (3, f"{TABLE} --time country", "--time is XX|--time is NL"),
    (3, f"{TABLE} --id nothing", "--id"),
    (3, f"{TABLE} --features amount,nothing", "--features"),
    (3, f"{TABLE} --features customer_id", "left out"),
    (3, f"{TABLE} --features status", "--features"),
    (3, "predict texts train.csv -o out.xyz", "--output-format"),
    (3, "predict texts unknown.dat", "--format"),
    (3, "predict texts train.csv --text nothing", "--text"),
    (3, "predict texts train.csv --keep nothing", "--keep"),
    (3, "predict texts fraud.csv", "--text"),
    (3, "predict texts taken.csv", "'predicted_label', which the output needs.*--keep"),
    (3, "predict texts blank.csv", "row 1.*--empty skip"),
    (3, "predict table train.csv", "no column 'amount'.*'text', 'label'"),
    (3, "evaluate texts other.csv", "'thing' in row 1 is none.*'chatter', 'incident'"),
    (3, "evaluate texts case.csv", "'CHATTER'.*--strip-labels"),
    (3, "evaluate texts train.csv --label text", "--text"),
    (3, "evaluate texts blank.csv", "row 1.*--empty skip"),
    (3, "explain texts train.csv --rows 999", "no row 999"),
    (3, "explain texts train.csv --class thing", "--class thing"),
    (3, "explain texts train.csv --train fraud.csv", "--label"),
    (3, "explain texts blank.csv", "row 1"),
    (3, "embed fraud.csv -o out.csv", "--text"),
    (3, "embed blank.csv -o out.csv", "row 1.*--empty skip"),
    (1, "cache clear", "Aborted"),
]


@pytest.mark.parametrize(("code", "command", "said"), CASES, ids=[one[1] for one in CASES])
def test_what_fails_ends_with_its_code_and_words_of_flags(setconv, models, code, command, said):
    done = setconv(*command.split(" "), check=code, cwd=models)
    assert re.search(said, done.err), done.err
    error = re.sub(r"""(?<!\w)('[^']*'|"[^"]*")""", "", done.err.partition("error: ")[2])
    assert not PYTHON.search(error), PYTHON.search(error)
    assert not [one for one in models.iterdir() if ".new-" in one.name]
    assert not (models / "new").exists()
    assert (models / "full.html").is_symlink()


@pytest.fixture
def start(cache):
    """Start the command line in a process of its own, with limits."""
    started = []

    def begin(*arguments, limit=None, **given):
        def limits():
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        command = [sys.executable, "-m", "setconv", *map(str, arguments)]
        env = {**os.environ, "SETCONV_CACHE": cache, "OMP_NUM_THREADS": "1"}
        running = subprocess.Popen(
            command, stderr=subprocess.PIPE, env=env, preexec_fn=limits, **given
        )
        started.append(running)
        return running

    yield begin
    for running in started:
        running.kill()
        running.wait()
        running.stderr.close()


def ended(running):
    """Return the exit code of a process and what it said."""
    _, err = running.communicate(timeout=120)
    return running.returncode, " ".join(err.decode().split())


def wait_for(condition, running):
    deadline = time.monotonic() + 120
    while not condition():
        assert running.poll() is None, running.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize(("output", "limit"), [("out.csv", 2000), ("page.html", 4096)])
def test_a_disk_that_runs_full(start, models, tmp_path, output, limit):
    place = tmp_path / output
    place.write_text("precious")
    command = ("evaluate", "texts", "train.csv", "--report", place)
    if output != "page.html":
        command = ("predict", "texts", "train.csv", "-o", place)
    code, said = ended(start(*command, cwd=models, limit=limit, stdout=subprocess.DEVNULL))
    assert code == 4, said
    assert "the disk is full" in said
    assert place.read_text() == "precious"
    assert [one.name for one in tmp_path.iterdir()] == [output]


def test_standard_output_that_is_full(start, models):
    with Path("/dev/full").open("wb") as full:
        code, said = ended(start("predict", "texts", "train.csv", cwd=models, stdout=full))
    assert code == 4, said
    assert "standard output cannot be written: the disk is full" in said


def feed(running):
    """Give a process more than one block and one batch of rows, and not the end of them."""
    lines = "".join(f"fire in the harbour {'-' * 400},{n},50,NL\n" for n in range(12_000))
    running.stdin.write(f"text,amount,age,country\n{lines}".encode())
    running.stdin.flush()


def half_written(folder, name, least=1):
    return lambda: any(one.stat().st_size >= least for one in folder.glob(f".{name}.new-*"))


def test_an_interrupted_prediction_leaves_nothing(start, models, tmp_path):
    out = tmp_path / "out.csv"
    running = start("predict", models / "table", "-", "-o", out, stdin=subprocess.PIPE)
    feed(running)
    wait_for(half_written(tmp_path, "out.csv"), running)
    running.send_signal(signal.SIGINT)
    code, said = ended(running)
    assert code == 130, said
    assert f"interrupted after 8,192 rows; nothing was written to {out}" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["predict", "embed"])
def test_the_next_run_removes_what_a_killed_one_left(start, setconv, models, tmp_path, command):
    out = tmp_path / "out.csv"
    out.write_text("private")
    out.chmod(0o600)
    given = (models / "table",) if command == "predict" else ()
    running = start(command, *given, "-", "-o", out, stdin=subprocess.PIPE)
    feed(running)
    # The texts of an embedding are encoded for minutes: its file is there before the first row.
    wait_for(half_written(tmp_path, "out.csv", least=command == "predict"), running)
    running.kill()
    running.wait()
    (left,) = tmp_path.glob(".out.csv.new-*")
    assert left.stat().st_mode & 0o777 == 0o600
    assert out.read_text() == "private"
    new = b"text,amount,age,country\nfire in the harbour,1,50,NL\n"
    setconv(command, *given, "-", "-o", out, stdin=new)
    assert [one.name for one in tmp_path.iterdir()] == ["out.csv"]
    assert out.stat().st_mode & 0o777 == 0o600
    assert len(out.read_text().splitlines()) == 2
