"""SetConvTextClassifier: encoder and classifier in one, saved as one folder."""

import io
import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer
from small_models import tamper
from tiny_bert import save_tiny_bert

import setconv
from setconv import persistence
from setconv.classifier import SetConvClassifier
from setconv.errors import ModelFileError, ParameterError
from setconv.pipelines import SetConvTextClassifier
from setconv.text.cache import EmbeddingCache
from setconv.text.encoder import TextEncoder

FAST = SetConvClassifier(max_steps=20, n_members=2, random_state=0, progress=False)
TEXTS = [f"{word} in the {place}" for word in ("fire", "smoke") for place in "abcde"]
TEXTS += [f"lovely {thing} {n}" for thing in ("cat", "tea", "day") for n in range(10)]
LABELS = ["incident"] * 10 + ["chatter"] * 30


@pytest.fixture(scope="module")
def model():
    return SetConvTextClassifier("tfidf", FAST).fit(TEXTS, LABELS)


@pytest.fixture
def bert_model(tmp_path):
    """A model whose encoder's files are in a folder of its own."""
    encoder = TextEncoder(str(save_tiny_bert(tmp_path / "bert")), cache=EmbeddingCache())
    return SetConvTextClassifier(encoder, FAST).fit(TEXTS, LABELS)


def test_it_is_the_classifier_on_the_rows_of_its_encoder(model):
    rows, inner = model.encode(TEXTS), model.classifier_
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        np.testing.assert_array_equal(getattr(model, name)(TEXTS), getattr(inner, name)(rows))
    assert model.score(TEXTS, LABELS) > 0.8
    assert model.classes_.tolist() == ["chatter", "incident"]


def test_the_encoder_is_named_or_copied_into_the_folder(bert_model, tmp_path):
    bert_model.save(tmp_path / "named")
    bert_model.save(tmp_path / "whole", copy_encoder=True)
    expected = bert_model.predict_proba(TEXTS)
    named, whole = (setconv.load(tmp_path / one) for one in ("named", "whole"))
    np.testing.assert_allclose(named.predict_proba(TEXTS), expected, atol=1e-6)
    assert not copies(tmp_path / "named")
    (tmp_path / "bert" / "config.json").unlink()
    np.testing.assert_allclose(whole.predict_proba(TEXTS), expected, atol=1e-6)
    with pytest.raises(ModelFileError):
        setconv.load(tmp_path / "named")


def copies(folder):
    return {path.name for path in folder.glob("encoder-*")}


def test_copies_are_checked_and_those_of_the_model_before_stay_until_the_next_save(
    bert_model, tmp_path
):
    other = TextEncoder(str(save_tiny_bert(tmp_path / "other", seed=1)), cache=EmbeddingCache())
    models = [bert_model, SetConvTextClassifier(other, FAST).fit(TEXTS, LABELS)]
    place = tmp_path / "model"
    (place / "encoder-mine").mkdir(parents=True)
    seen = []
    for model in (*models, models[1]):
        model.save(place, copy_encoder=True)
        seen.append(copies(place))
    assert [len(names) for names in seen] == [2, 3, 2]  # "encoder-mine" is not ours
    assert seen[0] < seen[1]
    assert not seen[0] & seen[2] - {"encoder-mine"}
    (copied,) = seen[2] - {"encoder-mine"}
    for path in (place / copied).iterdir():
        content = path.read_bytes()
        for damage in (content[:-1] + bytes([content[-1] ^ 1]), content[:-1], content + b" ", None):
            path.unlink() if damage is None else path.write_bytes(damage)
            with pytest.raises(ModelFileError, match=path.name):
                setconv.load(place)
        path.write_bytes(content)
    assert setconv.load(place).predict(TEXTS).tolist() == models[1].predict(TEXTS).tolist()


def test_a_reader_whose_copies_two_saves_took_away_reads_again(bert_model, tmp_path, monkeypatch):
    place, find = tmp_path / "model", persistence._find_copies
    bert_model.save(place, copy_encoder=True)

    def overtaken(folder, copied):
        monkeypatch.undo()
        bert_model.save(place)
        bert_model.save(place)
        return find(folder, copied)

    monkeypatch.setattr(persistence, "_find_copies", overtaken)
    assert setconv.load(place).predict(TEXTS).tolist() == bert_model.predict(TEXTS).tolist()
    assert copies(place) == set()


class Reader(pickle.Unpickler):
    """Unpickles, and takes down what it imports."""

    def __init__(self, content):
        super().__init__(io.BytesIO(content))
        self.imported = set()

    def find_class(self, module, name):
        self.imported.add((module.split(".")[0], name))
        return super().find_class(module, name)


@pytest.mark.parametrize(
    ("which", "encoder"), [("model", "TfidfEncoder"), ("bert_model", "TextEncoder")]
)
def test_a_pickle_is_plain_data_but_for_three_classes(which, encoder, request):
    fitted = request.getfixturevalue(which)
    reader = Reader(pickle.dumps(fitted))
    again = reader.load()
    ours = {name for package, name in reader.imported if package in ("setconv", "torch")}
    assert ours == {"SetConvTextClassifier", "SetConvClassifier", encoder}
    np.testing.assert_array_equal(again.predict_proba(TEXTS), fitted.predict_proba(TEXTS))


def dense(texts):
    return HashingVectorizer(n_features=64).transform(texts).toarray()


def test_any_function_of_texts_will_do_but_is_not_saved(tmp_path):
    model = SetConvTextClassifier(dense, FAST).fit(TEXTS, LABELS)
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


@pytest.mark.parametrize("part", ["kind", "terms", "parameters"])
def test_a_damaged_description_of_the_encoder_is_a_model_file_error(model, tmp_path, part):
    model.save(tmp_path / "model")
    change = {part: {"words": ["one"]}}
    tamper(tmp_path / "model", config=lambda config: config["encoder"].update(change))
    with pytest.raises(ModelFileError):
        setconv.load(tmp_path / "model")
