"""What rows are called: their number in the file, counted from 1, whatever was left out."""

import json
from itertools import pairwise

import numpy as np
import pytest
from printed import read_rows
from user_files import make_rows, write_csv, write_features

import setconv as library


def write_rows(path, rows):
    return write_csv(path, [list(row.values()) for row in rows], list(rows[0]))


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Texts with names; row 3 has no text, row 7 no label."""
    rows = [
        {"name": f"T-{number}", "text": text, "label": label}
        for number, (text, label) in enumerate(make_rows(), 1)
    ]
    rows[2]["text"], rows[6]["label"] = "  ", ""
    return write_rows(tmp_path_factory.mktemp("texts") / "texts.csv", rows)


@pytest.fixture(scope="module")
def text_model(setconv, texts):
    model = texts.with_name("model")
    setconv(*("fit", texts, "--encoder", "tfidf", "--empty", "skip", "-o", model))
    return model


@pytest.fixture(scope="module")
def gaps(tmp_path_factory):
    """Features of customers; rows 2 and 5 have no label."""
    path = tmp_path_factory.mktemp("gaps") / "gaps.csv"
    rows = read_rows(write_features(path))
    rows[1]["status"] = rows[4]["status"] = ""
    return write_rows(path, rows)


@pytest.fixture(scope="module")
def gap_model(setconv, gaps):
    model = gaps.with_name("model")
    setconv(
        *("fit", gaps, "--label", "status", "--empty", "skip", "--id", "customer_id", "-o", model)
    )
    return model


# -------------------------------------------------------------------------------------- messages


def test_a_value_that_cannot_be_used_is_named_by_its_row_of_the_file(
    setconv, gaps, gap_model, tmp_path
):
    rows = read_rows(gaps)
    rows[8]["amount"] = "1e400"
    path = write_rows(tmp_path / "spoilt.csv", rows)
    fit = ("fit", path, "--label", "status", "-o", tmp_path / "m", "--empty", "skip")
    for command in (
        fit,
        ("evaluate", gap_model, path, "--empty", "skip"),
        ("evaluate", gap_model, gaps, "--empty", "skip", "--train", path, "--report", "x.html"),
        ("predict", gap_model, path),
        ("explain", gap_model, path, "--rows", "1,9"),
        ("explain", gap_model, gaps, "--rows", "1", "--train", path),
    ):
        done = setconv(*command, check=3, cwd=tmp_path)
        assert "'amount' has no number in row 9," in done.err, command


def test_rows_of_a_later_batch_count_on(setconv, gaps, gap_model, tmp_path):
    many = [dict(row) for row in read_rows(gaps) * 52]
    many[8249]["amount"] = "much"
    done = setconv("predict", gap_model, write_rows(tmp_path / "many.csv", many), check=3)
    assert "'much' in row 8250," in done.err


def test_a_model_of_plain_numbers_names_the_row_too(setconv, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0.7, "yes", "no")
    model = library.SetConvClassifier(max_steps=20, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    rows = [{"p": f"{p:.5f}", "q": f"{q:.5f}", "label": k} for (p, q), k in zip(X, y, strict=True)]
    rows[0]["label"] = ""
    path = write_rows(tmp_path / "rows.csv", rows)
    command = ("evaluate", tmp_path / "model", path, "--empty", "skip")
    right = model.predict(np.round(X, 5))[1:] == y[1:]
    accuracy = json.loads(setconv(*command, "--json").out)["report"]["accuracy"]
    assert accuracy == pytest.approx(right.mean())
    rows[11]["q"] = ""
    write_rows(path, rows)
    done = setconv(*command, check=3)
    assert "'q' has no number in row 12," in done.err


# ------------------------------------------------------------------------------------ duplicates


def test_a_duplicate_is_named_by_its_rows_in_both_files(setconv, texts, text_model, tmp_path):
    rows = read_rows(texts)
    new = [{"text": f"nothing like it {n}", "label": "chatter"} for n in range(9)]
    new[1]["text"] = ""
    new[5]["text"] = f"  {rows[9]['text'].upper()} http://example.org/{1}"
    new[7]["text"] = rows[2]["text"] + rows[11]["text"]
    path = write_rows(tmp_path / "new.csv", new)
    done = setconv("evaluate", text_model, path, "--empty", "skip", "--train", texts)
    said = "2 of 8 rows are in the training file too (first: row 6, which is row 10 there)"
    assert said in done.err


# --------------------------------------------------------------------------------------- explain


def test_explain_with_ids(setconv, gaps, gap_model, texts, text_model):
    command = ("explain", gap_model, gaps, "--rows", "9", "--train", gaps, "--id", "customer_id")
    (one,) = json.loads(setconv(*command, "--json").out)
    names = [row["customer_id"] for row in read_rows(gaps)]
    assert (one["row"], one["id"], one["nearest"][0]["row"]) == (9, names[8], 9)
    assert [near["id"] for near in one["nearest"]] == [names[n["row"] - 1] for n in one["nearest"]]
    assert setconv(*command).out.splitlines()[0] == f"{names[8]} (row 9)"
    done = setconv("explain", text_model, texts, "--rows", "17", "--id", "name")
    assert done.out.splitlines()[0] == f"T-17 (row 17): {read_rows(texts)[16]['text']}"
    assert setconv("explain", text_model, "--input", "a fire").out.splitlines()[0] == "a fire"


# -------------------------------------------------------------------------------------------- id


def test_an_id_is_never_a_feature(setconv, gaps, tmp_path):
    rows = read_rows(gaps)
    for row in rows:  # not an id by its looks: it tells the label
        row["batch"] = "7" if row["status"] == "fraud" else "8"
    path = write_rows(tmp_path / "telling.csv", rows)
    common = ("fit", path, "--label", "status", "--empty", "skip", "--id", "batch")
    for number, options in enumerate(([], ["--features", "all"])):
        setconv(*common, "-o", tmp_path / f"m{number}", *options)
        encoder = library.load(tmp_path / f"m{number}").encoder_
        assert set(encoder.feature_names_in_) == {"amount", "age", "country"}
    done = setconv(*common, "-o", tmp_path / "m", "--features", "age,batch", check=3)
    assert "'batch' holds labels, groups, ids or times" in done.err


def test_a_row_without_a_group_is_no_member_of_one(setconv, gaps, tmp_path):
    rows = [{**row, "shop": f"s{number % 30}"} for number, row in enumerate(read_rows(gaps))]
    rows[9]["shop"] = ""
    path = write_rows(tmp_path / "shops.csv", rows)
    common = ("fit", path, "--label", "status", "--group", "shop", "-o", tmp_path / "m")
    done = setconv(*common, "--empty", "skip")
    assert "1 row without a group left out" in done.err
    for row in rows:
        row["status"] = row["status"] or "ok"
    write_rows(path, rows)
    assert "The group in row 10, column 'shop', is missing" in setconv(*common, check=3).err


@pytest.mark.parametrize("wrong", [None, "", "yesterday"])
def test_a_time_is_no_feature_and_a_wrong_one_is_named_by_its_row_of_the_file(
    setconv, gaps, tmp_path, wrong
):
    rows = read_rows(gaps)  # rows 2 and 5 have no label
    days = np.datetime64("2024-01-31T08:00") + 7 * np.random.default_rng(0).permutation(len(rows))
    for row, day in zip(rows, days.astype(str), strict=True):
        row["seen"] = day
    if wrong is not None:
        rows[8]["seen"] = wrong
    path, model = write_rows(tmp_path / "timed.csv", rows), tmp_path / "model"
    fit = ("fit", path, "--label", "status", "--empty", "skip", "--time", "seen", "-o", model)
    if wrong is not None:
        done = setconv(*fit, check=None)
        assert f"time is {wrong or 'empty'} in row 9" in done.err
        assert not model.exists()
        return
    done = setconv(*fit, "--report", tmp_path / "page.html")
    assert "Rows are judged forward in time" in " ".join((done.out + done.err).split())
    assert "can promise" not in done.err
    fitted = library.load(model)
    assert not [name for name in fitted.encoder_.get_feature_names_out() if "seen" in name]
    kept = np.delete(days, [1, 4])
    found = fitted.predict_out_of_fold()
    parts = [kept[found.rows[out]] for out in found.left_out if out.any()]
    assert all(one.max() < other.min() for one, other in pairwise(parts))
    for text in (model / "README.md", tmp_path / "page.html"):
        assert "judged forward in time" in text.read_text(encoding="utf-8")
