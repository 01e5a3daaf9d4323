"""``setconv export``: what it writes and says, and how it fails."""

import re
import sys

import pytest

import setconv as library

for package in ("onnx", "onnxruntime", "tokenizers"):
    pytest.importorskip(package, reason=f"{package} is not installed")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with rows, and a model of numbers."""
    here = tmp_path_factory.mktemp("exports")
    X, y = [[n, n % 7] for n in range(60)], ["abc"[n % 3] for n in range(60)]
    library.SetConvClassifier(max_steps=5, random_state=0).fit(X, y).save(here / "three")
    lines = [f"{n},{n % 7}" for n in range(60)]
    (here / "rows.csv").write_text("\n".join(["a,b", *lines]))
    return here


def test_an_export_is_compared_with_the_model(setconv, folder, fraud_model, tmp_path):
    out = tmp_path / "out"
    done = setconv("export", fraud_model[1], "-o", out, "--verify", folder / "fraud.csv")
    assert "float32, 160 rows: 0 decisions differ" in done.err
    assert "0 decisions differ" in (out / "README.md").read_text()
    names = ["README.md", "model.onnx", "predict.py", "setconv.json"]
    assert sorted(one.name for one in out.iterdir()) == names


def test_a_model_of_numbers_is_compared_with_the_columns_of_a_file(setconv, place, tmp_path):
    done = setconv(
        "export", place / "three", "-o", tmp_path / "out", "--verify", place / "rows.csv"
    )
    assert "60 rows: 0 decisions differ" in done.err


@pytest.mark.parametrize(
    ("code", "arguments", "expected"),
    [
        (4, "export {place}/nothing -o {new}", "not a folder"),
        (4, "export {place} -o {new}", "not a setconv model"),
        (4, "export {fraud} -o {place}", "is there already"),
        (4, "export {fraud} -o {new} --verify {place}/none.csv", "no file"),
        (3, "export {fraud} -o {new} --verify {place}/rows.csv", "There is no column 'amount'"),
        (2, "export {fraud} -o {new} --int8", "--int8.*measure the loss"),
        (2, "export {tfidf} -o {new}", "TfidfEncoder cannot be exported"),
    ],
)
def test_what_cannot_be_exported_ends_with_a_sentence(
    code, arguments, expected, setconv, place, fitted, fraud_model, tmp_path
):
    names = {"place": place, "fraud": fraud_model[1], "tfidf": fitted[1], "new": tmp_path / "out"}
    done = setconv(*arguments.format(**names).split(), check=code)
    assert re.search(expected, done.err), done.err
    assert list(tmp_path.iterdir()) == []


def test_without_the_extra_the_pip_line_is_said(setconv, fraud_model, tmp_path, monkeypatch):
    for name in [one for one in sys.modules if one.startswith("setconv.export")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnx", None)
    done = setconv("export", fraud_model[1], "-o", tmp_path / "out", check=5)
    assert "pip install 'setconv[onnx]'" in done.err
