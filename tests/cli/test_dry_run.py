"""What --dry-run says of a fit, and that it leaves nothing behind."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from user_files import make_rows, write_csv

from setconv import fitting
from setconv.io.disk import GatheredRows

COMMON, RARE, WIDTH = 260, 40, 5


@pytest.fixture
def path(tmp_path):
    rows = np.random.default_rng(0).standard_normal((COMMON + RARE, WIDTH)).astype(np.float32)
    columns = {f"x{number}": column for number, column in enumerate(rows.T)}
    table = pa.table({**columns, "kind": ["common"] * COMMON + ["rare"] * RARE})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=90)
    return tmp_path / "rows.parquet"


def everything(folder):
    return sorted(str(one) for one in folder.rglob("*"))


def dry(setconv, path, *options, check=0):
    """Run it, and see that no file came or went."""
    before = everything(path.parent)
    fit = ("fit", path, "-o", path.parent / "model", "--dry-run")
    done = setconv(*fit, *options, check=check)
    assert everything(path.parent) == before
    return done


@pytest.fixture
def gathered(monkeypatch):
    """The bytes of each scratch file that a fit makes."""
    sizes = []

    class Watched(GatheredRows):
        def close(self):
            sizes.append(self._file.seek(0, 2))
            super().close()

    monkeypatch.setattr(fitting, "GatheredRows", Watched)
    return sizes


@pytest.mark.parametrize("steps", [2, 300])
def test_the_scratch_file_is_never_larger_than_it_says(setconv, path, monkeypatch, gathered, steps):
    monkeypatch.setenv("SETCONV_IN_MEMORY", "0")
    monkeypatch.setattr(fitting, "automatic_steps", lambda *_: steps)
    monkeypatch.setattr(fitting, "MOST_EVIDENCE", 30)
    monkeypatch.setattr(fitting, "_SCALING_ROWS", 20)
    found = json.loads(dry(setconv, path, "--label", "kind", "--json").out)
    assert found["in_memory"] is False
    assert (found["n_rows"], found["n_columns"]) == (COMMON + RARE, WIDTH)
    assert found["classes"] == {"common": COMMON, "rare": RARE}
    assert found["steps"] == steps
    assert 0 < found["seconds"] < 3600
    gathered.clear()  # the timed fits have their rows in memory
    model = path.parent / "model"
    setconv("fit", path, "--label", "kind", "-o", model)
    assert 0 < gathered[0] <= found["scratch_bytes"] <= (COMMON + RARE) * WIDTH * 4
    assert 0.3 < found["model_bytes"] / sum(one.stat().st_size for one in model.iterdir()) < 3


@pytest.mark.parametrize("kind", ["table", "tfidf"])
def test_rows_in_memory_need_no_scratch_file(setconv, path, tmp_path, kind):
    options = ("--label", "kind")
    if kind == "tfidf":
        path, options = write_csv(tmp_path / "texts.csv", make_rows()), ("--encoder", "tfidf")
    done = dry(setconv, path, *options)
    assert "read into memory" in done.out
    assert "scratch file: at most 0.0 MB" in done.out
    assert "time: about" in done.out
    counts = "'chatter' 90, 'incident' 24" if kind == "tfidf" else "'common' 260, 'rare' 40"
    assert counts in done.out


def test_what_a_fit_refuses_is_refused(setconv, path, tmp_path):
    assert "'nothing'" in dry(setconv, path, "--label", "nothing", check=3).err
    dry(setconv, path, "--label", "kind", "--objective", "best", check=2)
    alone = pq.read_table(path).set_column(WIDTH, "kind", pa.array(["one"] * (COMMON + RARE)))
    pq.write_table(alone, tmp_path / "alone.parquet")
    assert (
        "only one class" in dry(setconv, tmp_path / "alone.parquet", "--label", "kind", check=3).err
    )


@pytest.mark.parametrize("damage", ["cut off", "other columns"])
@pytest.mark.parametrize("limit", ["0", "256MB"])
def test_a_fit_from_a_bad_folder_names_the_file_and_leaves_nothing(
    setconv, path, tmp_path, monkeypatch, damage, limit
):
    monkeypatch.setenv("SETCONV_IN_MEMORY", limit)
    folder = tmp_path / "folder"
    folder.mkdir()
    table = pq.read_table(path)
    for number in range(3):
        pq.write_table(table, folder / f"part-{number}.parquet")
    bad: Path = folder / "part-1.parquet"
    if damage == "cut off":
        bad.write_bytes(bad.read_bytes()[:-300])
    else:
        pq.write_table(table.rename_columns(["y0", *table.column_names[1:]]), bad)
    before = everything(tmp_path)
    done = setconv("fit", folder, "--label", "kind", "-o", tmp_path / "model", check=3)
    assert "part-1.parquet" in done.err
    assert everything(tmp_path) == before
    # Damage inside, which only reading finds.
    pq.write_table(table, bad)
    content = bytearray(bad.read_bytes())
    content[4:40] = b"\xff" * 36  # the header of the first page
    bad.write_bytes(content)
    done = setconv("fit", folder, "--label", "kind", "-o", tmp_path / "model", check=3)
    assert "part-1.parquet" in done.err
    assert everything(tmp_path) == before
