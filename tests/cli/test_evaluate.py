"""A file that is judged batch by batch has the figures of one that is read as a whole."""

import json

import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from user_files import make_rows, write_csv

from setconv.cli import data


def write_as(path, kind):
    """Write a CSV file again in a format."""
    if kind == "csv":
        return path
    table = pyarrow.csv.read_csv(path)
    pq.write_table(table, path.with_suffix(".parquet"), row_group_size=17)
    return path.with_suffix(".parquet")


@pytest.fixture
def both_ways(setconv, monkeypatch):
    """Judge a file in small batches, and as a whole, which --empty skip asks for."""
    monkeypatch.setattr(data, "_BATCH", 23)

    def call(*arguments):
        printed = [setconv("evaluate", *arguments, *extra) for extra in ((), ("--empty", "skip"))]
        assert printed[0].out == printed[1].out
        return printed[0].out

    return call


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.usefixtures("fraud_model")
def test_a_model_of_a_table_has_the_same_figures(both_ways, folder, tmp_path, kind):
    lines = (folder / "fraud.csv").read_text().splitlines()
    for place in range(1, len(lines), 6):  # not all of them are easy
        lines[place] = lines[place].rpartition(",")[0] + (",fine" if place % 4 else ",fraud")
    copy = tmp_path / "fraud.csv"
    copy.write_text("\n".join(lines))
    path, model = write_as(copy, kind), folder / "fraud-model"
    found = json.loads(both_ways(model, path, "--json"))
    assert found["rows"] == 160
    weighted = json.loads(both_ways(model, path, "--json", "--prior", 0.02))
    assert weighted["prior"] != found["prior"]
    assert weighted["report"]["accuracy"] != found["report"]["accuracy"]
    assert "160 rows" in both_ways(model, path, "--objective", "recall>=0.9")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_model_of_texts_has_the_same_figures(both_ways, fitted, tmp_path, kind):
    rows = [(f"row {n}", label) for n, (_, label) in enumerate(make_rows())]
    rows[::3] = make_rows()[::3]  # not all of them are easy
    path = write_as(write_csv(tmp_path / "rows.csv", rows), kind)
    found = json.loads(both_ways(fitted[1], path, "--json"))
    assert found["rows"] == len(rows)
    both_ways(fitted[1], path, "--prior", 0.3)


def test_of_three_classes_each_has_the_same_figures(both_ways, setconv, tmp_path):
    rows = [[n * 7 % 11, n * n % 13, "abc"[(n * n) % 13 // 5]] for n in range(120)]
    path = write_csv(tmp_path / "rows.csv", rows, ("p", "q", "kind"))
    setconv("fit", path, "--label", "kind", "-o", tmp_path / "model")
    both_ways(tmp_path / "model", path, "--json")


@pytest.mark.parametrize("bad", ["label", "text", "unknown"])
def test_what_cannot_be_judged_is_refused_before_anything_is(
    setconv, fitted, tmp_path, monkeypatch, bad
):
    """As of a file that is read whole: the first such row is named, and all are counted."""
    monkeypatch.setattr(data, "_BATCH", 10)
    monkeypatch.setattr(data, "_answers", None)
    rows = [list(row) for row in make_rows()]
    for place in (31, 52):
        rows[place][bad != "text"] = "other" if bad == "unknown" else ""
    path = write_csv(tmp_path / "rows.csv", rows)
    done = setconv("evaluate", fitted[1], path, check=3)
    assert "row 32" in done.err
    assert f"(2 such rows) of {len(rows)}" in done.err or f"2 such rows of {len(rows)}" in done.err
