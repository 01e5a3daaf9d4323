"""Labels that cannot be meant so, and labels that the outputs must not take for something else."""

import csv
import io
import json

import numpy as np
import pytest
from printed import read_rows
from user_files import make_rows, write_csv

import setconv as library


def respelled(path, rows):
    """Write rows of which some labels are spelled in another way."""
    changed = list(rows)
    for number, spelled in ((3, "Chatter"), (4, "chatter "), (9, "CHATTER")):
        place = [n for n, (_, label) in enumerate(rows) if label == "chatter"][number]
        changed[place] = (rows[place][0], spelled)
    return write_csv(path, changed)


def test_labels_that_differ_by_case_or_spaces_are_joined_only_if_asked(setconv, fitted, tmp_path):
    path = respelled(tmp_path / "mixed.csv", make_rows())
    fit = ("fit", path, "--encoder", "tfidf", "-o", tmp_path / "model")
    done = setconv(*fit, check=3)
    said = "'CHATTER' (1 row), 'Chatter' (1 row), 'chatter' (87 rows), 'chatter ' (1 row)"
    assert said in done.err
    assert "--strip-labels" in done.err
    assert "rename them" in done.err
    setconv(*fit, "--strip-labels")
    assert library.load(tmp_path / "model").class_counts_.tolist() == [90, 24]
    assert library.load(tmp_path / "model").classes_.tolist() == ["chatter", "incident"]
    evaluate = ("evaluate", fitted[1], path, "--json")
    done = setconv(*evaluate, check=3)
    assert "'CHATTER' (1 row), 'Chatter' (1 row), 'chatter ' (1 row) of 'chatter'" in done.err
    expected = write_csv(tmp_path / "plain.csv", make_rows())
    joined = json.loads(setconv(*evaluate, "--strip-labels").out)
    assert joined == json.loads(setconv("evaluate", fitted[1], expected, "--json").out)


def test_the_most_frequent_spelling_is_kept_without_its_spaces(setconv, tmp_path):
    spelled = ["Rare "] * 12 + ["rare"] * 7 + [" 0"] * 30 + ["0"] * 5
    rows = [[n % 7, n * n % 11, label] for n, label in enumerate(spelled)]
    path, model = write_csv(tmp_path / "rows.csv", rows, ("a", "b", "kind")), tmp_path / "model"
    setconv("fit", path, "--label", "kind", "--strip-labels", "-o", model)
    assert library.load(model).classes_.tolist() == ["0", "Rare"]


@pytest.mark.parametrize("n_rows", [10, 200])
@pytest.mark.parametrize("values", ["ids", "numbers", "whole numbers", "texts", "ids in pairs"])
def test_a_column_of_ids_is_no_label(setconv, tmp_path, values, n_rows):
    made = {
        "ids": lambda n: f"id-{n}",
        "numbers": lambda n: n * 0.37,
        "whole numbers": lambda n: n * 7,
        "texts": lambda n: f"a free text about number {n}",
        "ids in pairs": lambda n: f"id-{n // (1 if n_rows == 10 else 2)}",
    }[values]
    rows = [[n % 5, "xy"[n % 2], made(n)] for n in range(n_rows)]
    path = write_csv(tmp_path / "rows.csv", rows, ("a", "kind", "mine"))
    done = setconv("fit", path, "--label", "mine", "-o", tmp_path / "model", check=3)
    assert f"'mine' has {n_rows // (1 + (values == 'ids in pairs' and n_rows > 10))}" in done.err
    assert "'kind'" in done.err.partition("look like labels")[2]
    assert "--label" in done.err
    assert "promise" not in done.err


@pytest.mark.parametrize("labels", ["xy", "xxxxxxxxxy", "aabbccddee", "xxxxxyyabc"])
def test_few_rows_may_have_few_classes(setconv, tmp_path, labels):
    rows = [[n % 7, n * n % 11, label] for n, label in enumerate(labels)]
    path = write_csv(tmp_path / "rows.csv", rows, ("a", "b", "label"))
    setconv("fit", path, "--features", "a,b", "-o", tmp_path / "model")


# ------------------------------------------------------------------------------ empty texts


@pytest.mark.parametrize("blank", ["", "   ", "\t", "\u00a0\u2003"])
def test_a_text_of_spaces_is_an_empty_one(setconv, fitted, tmp_path, blank, monkeypatch):
    rows = [(blank, "incident"), *make_rows()]
    path = write_csv(tmp_path / "rows.csv", rows)
    embedded = tmp_path / "embedded.csv"

    class Files:
        width = 2

    class Encoder:
        def __init__(self, *_, **__):
            pass

        def find_files(self):
            return Files

        def transform(self, texts):
            assert all(map(str.strip, texts))
            return np.ones((len(texts), 2), np.float32)

    monkeypatch.setattr("setconv.text.encoder.TextEncoder", Encoder)
    for command in (
        ("fit", path, "--encoder", "tfidf", "-o", tmp_path / "model"),
        ("predict", fitted[1], path, "-o", tmp_path / "out.csv"),
        ("evaluate", fitted[1], path),
        ("embed", path, "-o", embedded),
    ):
        assert "row 1," in setconv(*command, check=3).err
        setconv(*command, "--empty", "skip")
    assert read_rows(tmp_path / "out.csv")[0]["predicted_label"] == ""
    first, second, *others = read_rows(embedded)
    assert (first["embedding_0"], second["embedding_0"]) == ("", "1")
    assert len(others) == len(rows) - 2


# --------------------------------------------------------------------------- hostile labels


RARE, COMMON = "[red]<b>|`=1+1`:fire:\x1b[31m", "[/red] *x* & y"


@pytest.fixture(scope="module")
def hostile(setconv, tmp_path_factory):
    place = tmp_path_factory.mktemp("hostile")
    kinds = {"incident": RARE, "chatter": COMMON}
    rows = [(text, kinds[label], "=cmd()") for text, label in make_rows()]
    path = write_csv(place / "rows.csv", rows, ("text", "label", "=note"))
    options = ("--text", "text", "--label", "label", "--report", place / "page.html")
    done = setconv("fit", path, "--encoder", "tfidf", "-o", place / "model", *options)
    return place, done


def test_labels_are_shown_as_they_are_and_do_nothing(setconv, hostile):
    place, done = hostile
    explained = setconv(
        "explain", place / "model", place / "rows.csv", "--train", place / "rows.csv"
    )
    judged = setconv("evaluate", place / "model", place / "rows.csv")
    for text in (done.out, done.err, judged.out, explained.out):
        assert "\x1b" not in text
        assert "[red]" in text  # a narrow column breaks the rest into several lines
    assert "[red]<b>|`=1+1`:fire:\\x1b[31m" in done.err
    assert "[red]<b>|`=1+1`:fire:\\x1b[31m" in explained.out
    page = (place / "page.html").read_text(encoding="utf-8")
    assert "<b>|" not in page
    assert "[red]&lt;b&gt;|`=1+1`:fire:" in page
    card = (place / "model" / "README.md").read_text(encoding="utf-8")
    assert "<b>|" not in card
    facts = json.loads(setconv("evaluate", place / "model", place / "rows.csv", "--json").out)
    assert set(facts["report"]["classes"]) == {RARE, COMMON}


def test_formulas_are_escaped_if_asked(setconv, hostile):
    place, _ = hostile
    command = ("predict", place / "model", place / "rows.csv")
    given, escaped = (
        list(csv.reader(io.StringIO(setconv(*command, *options).out)))
        for options in ([], ["--escape-formulas"])
    )
    assert given[0][2:4] == ["=note", "predicted_label"]
    assert escaped[0][2:4] == ["'=note", "predicted_label"]
    assert {row[2] for row in given[1:]} == {"=cmd()"}
    assert {row[2] for row in escaped[1:]} == {"'=cmd()"}
    assert [row[3:] for row in escaped] == [row[3:] for row in given]
