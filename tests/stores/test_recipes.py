"""What docs/model-stores.md says of skops, MLflow, TensorBoard, Optuna and the hub is so."""

import copy
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hub_stub import running
from scipy.sparse import random as random_sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from small_models import make_rows, small

import setconv
from setconv import SetConvTableClassifier, SetConvTextClassifier, load

pd = pytest.importorskip("pandas")
for package in ("mlflow", "optuna", "skops", "tensorboard"):
    pytest.importorskip(package)
# MLflow's own.
pytestmark = pytest.mark.filterwarnings("default::sqlalchemy.exc.SADeprecationWarning")

LABELS = ["usual", "usual", "usual", "rare"] * 15


def vectors(_, **made):
    X, y = make_rows(**made)
    return small().fit(X, y), X


def sparse(_):
    X = random_sparse(240, 600, 0.1, format="csr", random_state=0)
    return small().fit(X, make_rows()[1]), X


def pipeline(_):
    X, y = make_rows()
    return make_pipeline(StandardScaler(), small()).fit(X, y), X


def texts(_, encoder="tfidf"):
    from tiny_bert import make_texts

    rows = make_texts(60)
    return SetConvTextClassifier(encoder, small()).fit(rows, LABELS), rows


def embedded(place):
    pytest.importorskip("transformers")
    from tiny_bert import save_tiny_bert

    from setconv.text import TextEncoder

    tiny = str(save_tiny_bert(place / "tiny"))
    return texts(place, TextEncoder(tiny, device="cpu", max_length=30, cache=False))


def table(_):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    columns = {"amount": rng.normal(size=60).round(3), "country": ["NL", "BE", "XX"] * 20}
    rows = pd.DataFrame(columns | {"paid": [True, False, None] * 20})
    rows.loc[::7, "amount"] = None
    return SetConvTableClassifier(classifier=small()).fit(rows, LABELS), rows


# What makes a model and rows for it, and under which name the document says what is to be trusted.
KINDS = {
    "vectors": (vectors, "SetConvClassifier"),
    "five classes": (partial(vectors, n=400, classes=5, minority=0.4), "SetConvClassifier"),
    "sparse": (sparse, "SetConvClassifier"),
    "pipeline": (pipeline, "SetConvClassifier"),
    "table": (table, "SetConvTableClassifier"),
    "texts": (embedded, "SetConvTextClassifier"),
    "TF-IDF": (texts, "TF-IDF"),
}


@pytest.fixture(params=KINDS)
def kept(request, tmp_path, names):
    """A model, rows for it, and the names that the document says to trust."""
    make, trusted = KINDS[request.param]
    return *make(tmp_path), names["TRUSTED"][trusted]


def assert_predicts_alike(one, other, rows):
    assert np.array_equal(one.predict_proba(rows), other.predict_proba(rows))
    assert np.array_equal(one.decision_function(rows), other.decision_function(rows))
    assert np.array_equal(one.predict(rows), other.predict(rows))


def files_of(folder):
    paths = [path for path in folder.rglob("*") if path.is_file()]
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return {name: content for name, content in found.items() if "__pycache__" not in name}


@pytest.fixture
def predict(tmp_path, monkeypatch):
    """Predict digits with the command line; return what it writes."""
    pytest.importorskip("typer")
    from setconv.cli import main

    digits = load_digits()
    rows = pd.DataFrame(digits.data[:20], columns=digits.feature_names)
    rows.to_csv(tmp_path / "new.csv", index=False)

    def run(folder):
        given = ("predict", folder, tmp_path / "new.csv", "-o", tmp_path / "said.csv")
        monkeypatch.setattr(sys, "argv", ["setconv", *map(str, given)])
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code
        return (tmp_path / "said.csv").read_text("utf-8")

    return run


# ---------------------------------------------------------------------------- skops and MLflow


def test_the_names_to_trust_are_exactly_those_of_the_document(kept):
    import skops.io

    model, rows, trusted = kept
    content = skops.io.dumps(model)
    assert skops.io.get_untrusted_types(data=content) == sorted(trusted)
    assert_predicts_alike(model, skops.io.loads(content, trusted=trusted), rows)


def test_a_scikit_learn_model_in_mlflow_predicts_the_same_to_the_bit(kept, tmp_path):
    import mlflow

    model, rows, trusted = kept
    save = partial(mlflow.sklearn.save_model, model, pip_requirements=["setconv"])
    save(tmp_path / "kept", skops_trusted_types=trusted)
    assert_predicts_alike(model, mlflow.sklearn.load_model(str(tmp_path / "kept")), rows)
    with pytest.raises(mlflow.exceptions.MlflowException, match="untrusted types"):
        save(tmp_path / "refused", skops_trusted_types=trusted[1:])


@pytest.mark.parametrize("make", [vectors, table, texts, embedded])
@pytest.mark.usefixtures("names")
def test_a_folder_in_mlflow_predicts_the_same_to_the_bit_without_a_pickle(
    make, place, tmp_path, monkeypatch
):
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    model, rows = make(tmp_path)
    before, kept = tmp_path / "model", tmp_path / "kept"
    model.save(before, **({"copy_encoder": True} if make is embedded else {}))
    mlflow.pyfunc.save_model(
        kept,
        loader_module="setconv_mlflow",
        code_paths=[str(place / "setconv_mlflow.py")],
        data_path=str(before),
        pip_requirements=["setconv", "pandas"],
    )
    said = model.predictions(rows)
    if make is embedded:
        (tmp_path / "tiny").rename(tmp_path / "gone")  # the folder has a copy
    served = mlflow.pyfunc.load_model(str(kept))
    for given in (rows, pd.DataFrame(rows)):
        answer = served.predict(given)
        assert answer["predicted_label"].tolist() == said.labels.tolist()
        columns = [f"probability_{label}" for label in model.classes_]
        assert np.array_equal(answer[columns], said.probabilities)
    again = load(kept / "data" / "model").predictions(rows)
    assert np.array_equal(again.probabilities, said.probabilities)
    assert np.array_equal(again.decision_values, said.decision_values)
    of_mlflow = ["MLmodel", "conda.yaml", "python_env.yaml", "requirements.txt"]
    ours = {f"data/model/{name}" for name in files_of(before)} | {"code/setconv_mlflow.py"}
    assert files_of(kept).keys() == ours.union(of_mlflow)


@pytest.mark.usefixtures("names")
def test_mlflow_refuses_scikit_learn_models_where_pickles_are_not_allowed(monkeypatch):
    import mlflow

    monkeypatch.setenv("MLFLOW_ALLOW_PICKLE_DESERIALIZATION", "false")
    with pytest.raises(mlflow.exceptions.MlflowException, match="disallowed"):
        mlflow.sklearn.load_model("models:/scaled-eights/1")


def test_a_run_in_mlflow_has_the_parameters_and_figures_of_the_classifier(names):
    import mlflow

    clf = names["clf"]
    (found,) = mlflow.search_runs(output_format="list", filter_string="metrics.auc > 0")
    report = clf.oof_report_[True]
    assert found.data.metrics == {"auc": report.auc, "f1": report.f1}
    assert found.data.params == {name: str(value) for name, value in clf.get_params().items()}


def test_the_command_line_takes_the_folder_that_came_back_from_mlflow(names, place, predict):
    assert predict(names["folder"]) == predict(place / "model")


# --------------------------------------------------------------------------------- callbacks


def test_tensorboard_has_the_history_of_the_fit_and_the_classifier_can_be_copied(names, place):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    clf = names["watched"]
    found = EventAccumulator(str(place / "runs" / "first")).Reload()
    assert sorted(found.Tags()["scalars"]) == ["loss", "lr"]
    for name in ("loss", "lr"):
        expected = [(one["step"], np.float32(one[name])) for one in clf.history_]
        assert [(one.step, one.value) for one in found.Scalars(name)] == expected
    assert len(clf.history_) == 20
    assert vars(copy.deepcopy(clf).callbacks[0]) == {"folder": "runs/first"}


def test_tensorboard_has_what_validation_rows_say(names, binary, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    clf = small(callbacks=[names["TensorBoard"](tmp_path)], early_stopping=True, max_steps=30)
    looks = [one for one in clf.fit(*binary).history_ if "validation" in one]
    found = EventAccumulator(str(tmp_path)).Reload().Scalars("validation")
    expected = [(one["step"], np.float32(one["validation"])) for one in looks]
    assert [(one.step, one.value) for one in found] == expected
    assert 0 < len(looks) < len(clf.history_)


def test_optuna_is_told_what_validation_rows_say_and_prunes_the_worse_trial(names):
    import optuna

    pruner = optuna.pruners.MedianPruner(n_startup_trials=1)
    study = optuna.create_study(direction="maximize", pruner=pruner)
    for lr in (0.01, 1e-5):
        study.enqueue_trial({"lr": lr})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setconv.fitting, "automatic_steps", lambda *_: 20)
        study.optimize(names["objective"], n_trials=2)
        again = clone(names["clf"]).set_params(lr=0.01, monitor="auc")
        rows = {"X_val": names["X_val"], "y_val": names["y_val"]}
        again.fit(names["X_fit"], names["y_fit"], **rows)
    good, bad = study.trials
    assert [good.state.name, bad.state.name] == ["COMPLETE", "PRUNED"]
    assert len(bad.intermediate_values) < len(good.intermediate_values)
    looks = {one["step"]: one["validation"] for one in again.history_}
    assert good.intermediate_values == looks
    assert len(looks) == 20
    assert good.value == again.oof_report_[True].auc


# ---------------------------------------------------------------------------- the hub, and back

QUICK = "from setconv import fitting\nfitting.automatic_steps = lambda *_: 5\n"


def test_a_folder_goes_to_the_hub_and_comes_back_as_it_was(blocks, tmp_path, predict):
    pytest.importorskip("huggingface_hub")
    recipe = "\n".join([QUICK, *blocks[""], *blocks["Hugging Face hub"], "print(folder)"])
    # Of a model that was there before, with an encoder.
    earlier = {"encoder-0123456789abcdef0123/vocab.txt": (False, b"old")}
    with running("someone/eights", earlier) as hub:
        # Read by huggingface_hub at its import: a process of its own.
        given = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "home"), "HF_TOKEN": "hf_stub"}
        given |= {"HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1", "OMP_NUM_THREADS": "1"}
        given["PYTHONPATH"] = str(Path(setconv.__file__).parent.parent)
        done = subprocess.run(
            [sys.executable, "-c", recipe],
            cwd=tmp_path,
            env=os.environ | given,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        stored = {name: content for name, (_, content) in hub.commits[-1][1].items()}
    folder = Path(done.stdout.splitlines()[-1])
    assert files_of(folder) == stored
    del stored[".gitattributes"]
    assert files_of(tmp_path / "model") == stored
    assert predict(folder) == predict(tmp_path / "model")
