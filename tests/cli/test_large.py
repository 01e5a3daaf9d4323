"""A Parquet file of numbers that is too large for memory is fitted from disk, no other is."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import setconv as library
from setconv.cli.app import app

N_ROWS = 300
WIDE = 101  # columns from which on rows in memory are only standardised, as those on disk


def make_table(width):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((N_ROWS, width)).astype(np.float32)
    y = np.where(rows[:, 0] + rng.normal(size=N_ROWS) > 1.3, "rare", "common")
    columns = {f"x{number}": column for number, column in enumerate(rows.T)}
    return pa.table({"customer_id": np.arange(N_ROWS), **columns, "kind": y})


@pytest.fixture
def table():
    return make_table(4)


def call(*arguments):
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done


def fit(path, name, *options):
    folder = path.with_name(name)
    call("fit", path, "--label", "kind", "-o", folder, *options)
    return folder, library.load(folder)


@pytest.fixture
def write(tmp_path):
    def one(table, name="rows.parquet"):
        pq.write_table(table, tmp_path / name, row_group_size=70)
        return tmp_path / name

    return one


@pytest.fixture
def limit(monkeypatch):
    """Set how many bytes of rows are read into memory."""
    return lambda size: monkeypatch.setenv("SETCONV_IN_MEMORY", str(size))


def test_the_model_is_that_of_the_rows_in_memory_to_the_bit(write, limit):
    table = make_table(WIDE)
    path = write(table)
    whole = fit(path, "whole")[1]
    limit(0)
    folder, streamed = fit(path, "streamed")
    assert streamed.encoder_.get_feature_names_out().tolist() == [f"x{n}" for n in range(WIDE)]
    assert streamed.source_ == whole.source_ == {"label": "kind"}
    expected, found = whole.predictions(table), streamed.predictions(table)
    assert np.array_equal(found.scores, expected.scores)
    assert np.array_equal(found.labels, expected.labels)
    assert streamed.report_.to_dict() == whole.report_.to_dict()
    # Its folder works as any other.
    out = path.with_name("out.parquet")
    call("predict", folder, path, "-o", out)
    written = pq.read_table(out)
    assert written.column_names[:3] == ["customer_id", "kind", "predicted_label"]
    assert written["predicted_label"].to_pylist() == expected.labels.tolist()
    judged = json.loads(call("evaluate", folder, path, "--json").stdout)
    assert judged["rows"] == N_ROWS
    gap = table.set_column(2, "x1", pa.array([None] * N_ROWS, pa.float32()))
    refused = CliRunner().invoke(app, ["predict", str(folder), str(write(gap, "gap.parquet"))])
    assert refused.exception.column == "x1"


def test_rows_that_stay_on_disk_are_fitted_as_the_library_does(write, table, limit):
    path = write(table)
    limit(0)
    _, streamed = fit(
        path, "streamed", "--seed", 3, "--id", "customer_id", "--group", "customer_id"
    )
    alone = write(table.drop(["customer_id"]), "alone.parquet")
    groups = np.arange(N_ROWS).astype(str)
    clf = library.SetConvClassifier(random_state=3).fit(alone, "kind", groups=groups)
    assert np.array_equal(streamed.predict_proba(table), clf.predict_proba(alone))
    assert streamed.report_.to_dict() == clf.report_.to_dict()
    days = pa.array(np.datetime64("2024-01-31") + np.random.default_rng(1).permutation(N_ROWS))
    timed = write(table.drop(["customer_id"]).append_column("day", days), "timed.parquet")
    _, forward = fit(timed, "forward", "--time", "day")
    clf = library.SetConvClassifier(random_state=0).fit(timed, "kind", time="day")
    assert np.array_equal(forward.predict_proba(table), clf.predict_proba(alone))
    assert "forward in time" in forward.report_.remarks()[0]


@pytest.mark.parametrize("change", [None, "a gap", "a category", "csv", "small"])
def test_other_files_go_through_the_table(write, table, limit, tmp_path, change):
    limit("256MB" if change == "small" else 0)
    if change == "a gap":
        gap = pa.array([None, *table["x1"].to_pylist()[1:]], pa.float32())
        table = table.set_column(2, "x1", gap)
    elif change == "a category":
        table = table.append_column("colour", pa.array(["red", "green", "blue"] * 100))
    path = write(table)
    if change == "csv":
        path = tmp_path / "rows.csv"
        pa.csv.write_csv(table, path)
    columns = fit(path, "model")[1].encoder_.describe()[0]["columns"]
    # An encoder of rows that stayed on disk knows no medians.
    assert (columns[0]["median"] is None) == (change is None)


def spelled(table, change):
    labels, groups = table["kind"].to_pylist(), ["a", "b", "c"] * 100
    if change == "missing":
        labels[5], labels[250] = None, " "
    elif change == "no group":
        groups[7] = None
    elif change == "numbers":
        labels = [n / 3 for n in range(N_ROWS)]
    elif change == "spelling":
        labels[4], labels[8] = " Common", "common "
    return table.set_column(5, "kind", pa.array(labels)).append_column("site", pa.array(groups))


@pytest.mark.parametrize("change", ["missing", "no group", "numbers", "spelling"])
def test_labels_are_refused_as_those_in_memory_are(write, table, limit, change):
    path, said = write(spelled(table, change)), []
    for size in ("256MB", "0"):
        limit(size)
        fit = ("fit", path, "--label", "kind", "--group", "site", "-o", path.with_name("model"))
        done = CliRunner().invoke(app, [*map(str, fit)])
        error = done.exception
        said.append((type(error), error.parameter, getattr(error, "row", None)))
        # Of other columns that could be the labels only those are known that were read.
        said[-1] += (str(error).partition(" These look like")[0],)
    assert said[0] == said[1]
    assert not path.with_name("model").exists()


def test_labels_of_a_file_on_disk_are_joined_as_those_in_memory_are(write, table, limit):
    path = write(spelled(table, "spelling"))
    options = ("--group", "site", "--strip-labels")
    whole = fit(path, "whole", "--features", "x0,x1", *options)[1]
    limit(0)
    streamed = fit(path, "streamed", "--features", "x0,x1", *options)[1]
    assert streamed.classes_.tolist() == whole.classes_.tolist() == ["common", "rare"]
    assert streamed.class_counts_.tolist() == whole.class_counts_.tolist()
