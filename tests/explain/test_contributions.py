"""Contributions by occlusion: each is the score minus the score without."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setconv.classifier import SetConvClassifier
from setconv.errors import DataError, ParameterError
from setconv.explain import feature_contributions, occlude_words, word_contributions


class WordSum:
    """A model that adds up the weights of words: contributions are known exactly."""

    classes_ = np.array(["no", "yes"])

    def __init__(self):
        self.weights = {"good": 2.0, "bad": -3.0, "very": 0.5}
        self.largest_batch = 0

    def predictions(self, texts):
        self.largest_batch = max(self.largest_batch, len(texts))
        scores = [sum(self.weights.get(w, 0.0) for w in t.split()) for t in texts]
        labels = self.classes_[(np.array(scores) > 0).astype(int)]
        return SimpleNamespace(scores=np.array(scores), labels=labels)


# ------------------------------------------------------------------------------------- features


@pytest.mark.parametrize("which", ["binary", "multiclass"])
def test_a_feature_contributes_the_score_minus_that_with_its_usual_value(which, request):
    X, _ = request.getfixturevalue(which)
    model = request.getfixturevalue("fitted" if which == "binary" else "fitted_multiclass")
    usual = np.median(X, axis=0)
    label = model.classes_[1]
    found = feature_contributions(model, X[:3], background=usual, class_=label)

    def score(rows):
        scores = model.predictions(rows).scores
        return scores if scores.ndim == 1 else scores[:, 1]

    for feature in range(X.shape[1]):
        changed = X[:3].copy()
        changed[:, feature] = usual[feature]
        np.testing.assert_allclose(
            found.values[:, feature], score(X[:3]) - score(changed), atol=1e-6
        )
    np.testing.assert_allclose(found.scores, score(X[:3]))
    assert found.classes == (label,) * 3
    by_default = feature_contributions(model, X[:20], background=usual)
    assert by_default.classes == tuple(model.predict(X[:20]).tolist())
    assert by_default.names == tuple(f"feature {number}" for number in range(X.shape[1]))


def test_batches_do_not_change_contributions(fitted, binary, monkeypatch):
    X, _ = binary
    whole = feature_contributions(fitted, X[:5], background=X.mean(axis=0))
    monkeypatch.setattr("setconv.explain._CELLS", 1)
    parts = feature_contributions(fitted, X[:5], background=X.mean(axis=0))
    assert np.array_equal(whole.values, parts.values)


@pytest.mark.filterwarnings("error")
def test_a_model_of_named_columns_is_asked_with_named_columns(binary):
    X, y = binary
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = SetConvClassifier(n_members=1, max_steps=0, random_state=0).fit(frame, y)
    usual = frame.median().to_numpy()
    assert feature_contributions(model, frame[:1], background=usual).names == tuple("abcdefgh")
    from_pandas = feature_contributions(model, frame[:2], background=usual)
    from_polars = feature_contributions(model, pl.from_pandas(frame[:2]), background=usual)
    assert np.array_equal(from_pandas.values, from_polars.values)
    assert feature_contributions(model, frame[:0], background=usual).values.shape == (0, 8)


def test_bad_features_are_named(fitted, binary):
    X, _ = binary
    cases = [
        ("background", X[:2], {"background": np.zeros(3)}),
        ("x_rows", X[0], {}),
        ("feature_names", X, {"feature_names": ["a", "b"]}),
        ("class_", X, {"class_": "1"}),
    ]
    for parameter, rows, changed in cases:
        with pytest.raises(DataError) as refused:
            feature_contributions(fitted, rows, **{"background": np.zeros(8), **changed})
        assert refused.value.parameter == parameter


# ---------------------------------------------------------------------------------------- words


def test_words_contribute_what_they_add():
    text = "very  good\nbut bad"
    found = word_contributions(WordSum(), text, class_="yes")
    assert found.words == ("very", "good", "but", "bad")
    np.testing.assert_allclose(found.values, [0.5, 2.0, 0.0, -3.0])
    assert [text[a:b] for a, b in found.spans] == list(found.words)
    assert (found.class_, found.score, found.words_per_piece) == ("yes", -0.5, 1)


def test_the_other_class_sees_the_same_words_with_the_other_sign():
    found = word_contributions(WordSum(), "very good")
    assert found.class_ == "yes"
    other = word_contributions(WordSum(), "very good", class_="no")
    np.testing.assert_allclose(other.values, -found.values)
    assert word_contributions(WordSum(), " \n ").values.shape == (0,)


def test_a_long_text_is_cut_into_pieces_of_equally_many_words():
    text = " ".join(["very"] * 1000 + ["bad"])
    model = WordSum()
    found = word_contributions(model, text, class_="yes")
    assert found.words_per_piece == 6
    assert len(found.words) == 167
    np.testing.assert_allclose(found.values[:-1], 3.0)
    np.testing.assert_allclose(found.values.sum(), 1000 * 0.5 - 3)
    assert model.largest_batch <= 200


def test_a_text_of_one_word_is_compared_with_nothing_but_never_asks_about_an_empty_text(text_model):
    found = word_contributions(text_model, "smoke", class_="fire")
    word, nothing = text_model.predictions(["smoke", "."]).scores
    assert text_model.classes_.tolist() == ["calm", "fire"]
    assert found.values[0] == pytest.approx(word - nothing)


def test_several_texts_are_scored_together(text_model, reports):
    texts, labels = reports
    hot = [text for text, label in zip(texts, labels, strict=True) if label == "fire"][:4]
    text_model.batches.clear()
    found = occlude_words(text_model, hot, np.ones(4, dtype=int), None, max_pieces=200)
    assert [n for name, n in text_model.batches if name == "predictions"] == [4, 24]
    for text, of in zip(hot, found, strict=True):
        assert of.words[int(np.argmax(of.values))] in ("smoke", "flames", "burning")
        alone = word_contributions(text_model, text, "fire")
        np.testing.assert_allclose(of.values, alone.values, atol=1e-9)


@given(st.text(max_size=60), st.integers(1, 5))
def test_pieces_cover_all_words_of_any_text(text, max_pieces):
    found = word_contributions(WordSum(), text, class_="yes", max_pieces=max_pieces)
    assert len(found.words) <= max_pieces
    assert " ".join(" ".join(found.words).split()) == " ".join(text.split())
    assert all(text[a:b] == word for (a, b), word in zip(found.spans, found.words, strict=True))


def test_bad_words_are_named():
    cases = [("text", b"smoke", {}), ("max_pieces", "smoke", {"max_pieces": 0})]
    for parameter, text, changed in [*cases, ("class_", "smoke", {"class_": "maybe"})]:
        with pytest.raises((DataError, ParameterError)) as refused:
            word_contributions(WordSum(), text, **changed)
        assert refused.value.parameter == parameter
