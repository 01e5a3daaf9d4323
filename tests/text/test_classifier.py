"""SetConvTextClassifier: encoder and classifier in one, saved as one folder."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tiny_bert import save_tiny_bert

import setconv
from setconv.classifier import SetConvClassifier
from setconv.errors import DataError, ModelFileError, NotFittedError, ParameterError
from setconv.pipelines import SetConvTextClassifier
from setconv.text.encoder import TextEncoder

FAST = SetConvClassifier(max_steps=20, n_members=2, random_state=0, progress=False)
TEXTS = [f"{word} in the {place}" for word in ("fire", "smoke") for place in "abcde"]
TEXTS += [f"lovely {thing} {n}" for thing in ("cat", "tea", "day") for n in range(10)]
LABELS = ["incident"] * 10 + ["chatter"] * 30


def bert(folder):
    (folder / "bert").mkdir()
    return save_tiny_bert(folder / "bert")


@pytest.fixture(scope="module")
def model():
    return SetConvTextClassifier("tfidf", FAST).fit(TEXTS, LABELS)


def test_it_is_the_classifier_on_the_rows_of_its_encoder(model):
    rows = model.encode(TEXTS)
    inner = model.classifier_
    assert (model.predict(TEXTS) == inner.predict(rows)).all()
    for name in ("predict_proba", "decision_function", "transform"):
        np.testing.assert_array_equal(getattr(model, name)(TEXTS), getattr(inner, name)(rows))
    said = model.predictions(TEXTS)
    labels, probabilities = said.labels, said.probabilities
    assert (labels == model.predict(TEXTS)).all()
    np.testing.assert_array_equal(probabilities, model.predict_proba(TEXTS))
    assert model.score(TEXTS, LABELS) > 0.8
    assert model.oof_report_ is inner.oof_report_


def test_the_decision_moves_without_training(model):
    moved = SetConvTextClassifier("tfidf", FAST).fit(TEXTS, LABELS)
    assert moved.set_objective("recall>=0.95").objective_ == "recall>=0.95"
    assert moved.set_prior(0.5).predict_proba(TEXTS)[0, 1] > model.predict_proba(TEXTS)[0, 1]


def test_a_saved_model_gives_the_same_predictions(model, tmp_path):
    model.save(tmp_path / "model")
    again = setconv.load(tmp_path / "model")
    assert type(again) is SetConvTextClassifier
    np.testing.assert_array_equal(again.predict_proba(TEXTS), model.predict_proba(TEXTS))
    assert again.threshold_ == model.threshold_
    clone(again).fit(TEXTS, LABELS)


def test_the_encoder_is_named_or_copied_into_the_folder(tmp_path):
    encoder = TextEncoder(bert(tmp_path), cache=tmp_path / "cache")
    model = SetConvTextClassifier(encoder, FAST).fit(TEXTS, LABELS)
    model.save(tmp_path / "named")
    model.save(tmp_path / "whole", copy_encoder=True)
    expected = model.predict_proba(TEXTS)
    named, whole = (setconv.load(tmp_path / one) for one in ("named", "whole"))
    np.testing.assert_allclose(named.predict_proba(TEXTS), expected, atol=1e-6)
    assert (tmp_path / "whole" / "encoder" / "model.safetensors").exists()
    assert not (tmp_path / "named" / "encoder").exists()
    (tmp_path / "bert" / "config.json").unlink()
    np.testing.assert_allclose(whole.predict_proba(TEXTS), expected, atol=1e-6)
    with pytest.raises(ModelFileError):
        setconv.load(tmp_path / "named")


def dense(texts):
    return HashingVectorizer(n_features=64).transform(texts).toarray()


@pytest.mark.parametrize(
    "encoder",
    [dense, make_pipeline(FunctionTransformer(dense))],
    ids=["function", "transformer"],
)
def test_any_function_or_transformer_of_texts_will_do_but_is_not_saved(encoder, tmp_path):
    model = SetConvTextClassifier(encoder, FAST).fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) > 0.8
    with pytest.raises(ModelFileError):
        model.save(tmp_path / "model")
    model.classifier_.save(tmp_path / "model")


def test_bad_input_is_named():
    with pytest.raises(NotFittedError):
        SetConvTextClassifier("tfidf").predict(["a"])
    with pytest.raises(ParameterError) as caught:
        SetConvTextClassifier(7, FAST).fit(TEXTS, LABELS)
    assert caught.value.parameter == "encoder"
    with pytest.raises(DataError):
        SetConvTextClassifier("tfidf", FAST).fit([*TEXTS[:-1], ""], LABELS)


@pytest.mark.parametrize("part", ["kind", "terms", "parameters"])
def test_a_damaged_description_of_the_encoder_is_a_model_file_error(model, tmp_path, part):
    model.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    config["encoder"][part] = {"words": ["one"]}
    path.write_text(json.dumps(config))
    with pytest.raises(ModelFileError):
        setconv.load(tmp_path / "model")
