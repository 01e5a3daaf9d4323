"""The commands, run as a user runs them: what they print, write and return."""

import csv
import gzip
import io
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import setconv as library


def read_csv(text):
    return list(csv.DictReader(io.StringIO(text)))


# ------------------------------------------------------------------------------------------- fit


def test_fit_shows_the_classes_saves_a_model_and_prints_out_of_fold_figures(fitted):
    done, model = fitted
    facts = json.loads(done.out)
    assert facts["classes"] == {"chatter": 68, "incident": 18}
    assert facts["report_source"] == "out_of_fold"
    assert "incident 18 20.9%" in done.err
    loaded = library.load(model)
    assert loaded.predict(["fire in the harbour"]).tolist() == ["incident"]
    assert loaded.source_ == {"label": "label", "text": "text"}
    assert not model.with_name("model.checkpoint").exists()


def test_the_same_seed_gives_the_same_model(setconv, folder, fitted):
    again = folder / "again"
    fit = ("fit", folder / "train.csv", "--encoder", "tfidf", "-o", again)
    setconv(*fit)
    tensors = [one / "model.safetensors" for one in (again, fitted[1])]
    assert tensors[0].read_bytes() == tensors[1].read_bytes()
    setconv(*fit, "--objective", "recall>=0.9")
    assert library.load(again).objective_ == "recall>=0.9"


def test_fit_on_features_says_what_it_did_to_them(fraud_model):
    assert "age: 13 missing values" in fraud_model[0].err
    assert "customer_id: left out" in fraud_model[0].err


# --------------------------------------------------------------------------------------- predict


def test_predict_writes_labels_and_probabilities_beside_the_input(setconv, folder, fitted):
    out = folder / "out.csv"
    setconv("predict", fitted[1], folder / "test.csv", "-o", out)
    rows = read_csv(out.read_text())
    given = read_csv((folder / "test.csv").read_text())
    said = library.load(fitted[1]).predictions([row["text"] for row in given])
    shares = zip(said.probabilities.tolist(), said.labels, given, strict=True)
    names = ("predicted_label", "probability_chatter", "probability_incident")
    assert list(rows[0]) == ["text", "label", *names]
    for row, (share, label, before) in zip(rows, shares, strict=True):
        assert row["predicted_label"] == label
        assert [float(row[name]) for name in names[1:]] == pytest.approx(share, abs=1e-5)
        assert row.items() > before.items()


def test_predict_reads_gzip_and_writes_parquet(setconv, folder, fitted):
    packed, out = folder / "new.csv.gz", folder / "new.parquet"
    packed.write_bytes(gzip.compress((folder / "test.csv").read_bytes()))
    setconv("predict", fitted[1], packed, "-o", out, "--keep", "none")
    names = ["predicted_label", "probability_chatter", "probability_incident"]
    assert pq.read_table(out).column_names == names


def test_rows_without_a_text_get_no_prediction_if_asked_to_skip(setconv, fitted):
    data = b'text,n\n"fire in the park",1\n"  ",2\n'
    assert "row 2" in setconv("predict", fitted[1], "-", stdin=data, check=3).err
    rows = read_csv(setconv("predict", fitted[1], "-", "--empty", "skip", stdin=data).out)
    found = [(row["n"], row["predicted_label"]) for row in rows]
    assert found == [("1", "incident"), ("2", "")]


def test_a_feature_model_copies_all_columns_but_the_features(setconv, folder, fraud_model):
    out = setconv("predict", fraud_model[1], folder / "fraud.csv").out
    rows = read_csv(out)
    names = ["customer_id", "status", "predicted_label", "probability_fine", "probability_fraud"]
    assert list(rows[0]) == names
    assert sum(row["predicted_label"] == row["status"] for row in rows) > 0.9 * len(rows)


def test_a_failed_prediction_leaves_an_earlier_output_as_it_was(setconv, folder, fitted):
    out = folder / "kept.csv"
    out.write_text("precious\n")
    setconv("predict", fitted[1], "-", "-o", out, stdin=b'text\nfine\n\n\n""\n', check=3)
    assert out.read_text() == "precious\n"
    assert [one.name for one in folder.glob("*kept.csv*")] == ["kept.csv"]


# ----------------------------------------------------------------------------- evaluate, explain


def test_explain_names_the_words_and_the_nearest_rows(setconv, folder, fitted):
    done = setconv(
        *("explain", fitted[1], "--input", "fire near my house", "--json"),
        *("--train", folder / "train.csv", "--class", "incident"),
    )
    (one,) = json.loads(done.out)
    assert one["predicted"] == one["nearest"][0]["label"] == "incident"
    assert one["contributions"][0]["name"] == "fire"
    assert one["contributions"][0]["contribution"] > 0


# ---------------------------------------------------------------------------------- cache, version


def test_the_cache_can_be_looked_at_and_cleared(setconv):
    assert json.loads(setconv("cache", "info", "--json").out)["entries"] == 0
    assert "0 embeddings removed" in setconv("cache", "clear", "--yes").err


@pytest.mark.parametrize("command", [["info"], ["clear", "--yes"]])
def test_a_damaged_cache_can_be_looked_at_and_cleared(setconv, cache, command):
    from setconv.text.cache import EmbeddingCache, Space

    made = EmbeddingCache(cache)
    space = Space("some/model", "hub:some/model@1", "mean", 256, "float32")
    made.store(space, ["a text"], np.ones((1, 4), dtype=np.float32))
    content = bytearray(made.path.read_bytes())
    content[content.index(b"CREATE TABLE")] ^= 128
    made.path.write_bytes(content)
    done = setconv("cache", *command)
    assert done.err.count("is damaged") == 1
    assert "0 embeddings" in done.out + done.err


def test_the_version_with_more_names_the_other_packages(setconv):
    first, *others = setconv("--version", "-v").out.splitlines()
    assert first == setconv("--version").out.strip() == f"setconv {library.__version__}"
    found = dict(line.split(" ", 1) for line in others)
    assert found["torch"] == torch.__version__
    assert {"python", "scikit-learn", "transformers", "pyarrow"} <= set(found)
