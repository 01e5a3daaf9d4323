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
