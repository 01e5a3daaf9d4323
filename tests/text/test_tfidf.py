"""TfidfEncoder: rows without any download, and as plain data."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from setconv.errors import DataError, ModelFileError, NotFittedError, ParameterError
from setconv.text.tfidf import TfidfEncoder

SUBJECTS = ["fire", "flood", "storm", "sunshine", "music", "dinner"]
TEXTS = [f"{a} and {b} on the {c} street!" for a in SUBJECTS for b in SUBJECTS for c in "xy"]
LABELS = np.array([int("fire" in text) for text in TEXTS])


def test_rows_are_dense_float32_and_as_wide_as_the_data_allow():
    assert TfidfEncoder(5).fit_transform(TEXTS).shape == (len(TEXTS), 5)
    rows = TfidfEncoder().fit_transform(TEXTS[:4])
    assert rows.dtype == np.float32
    assert rows.shape == (4, 4)
    assert TfidfEncoder().fit(["one text"]).transform(["one text", "another"]).shape == (2, 1)


def test_with_all_components_distances_are_those_of_tf_idf():
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
    plain = ["fire in town", "flood in town", "music and dinner", "dinner in town"]
    expected = (counted := vectorizer.fit_transform(plain).toarray()) @ counted.T
    rows = TfidfEncoder(characters=None).fit_transform(plain)
    np.testing.assert_allclose(rows @ rows.T, expected, atol=1e-4)


def test_fit_then_transform_is_fit_transform_and_the_seed_decides():
    encoder = TfidfEncoder(8)
    rows = encoder.fit_transform(TEXTS)
    np.testing.assert_allclose(encoder.transform(TEXTS), rows, atol=1e-6)
    np.testing.assert_array_equal(clone(encoder).fit_transform(TEXTS), rows)


def test_a_model_learns_from_the_rows():
    pipeline = make_pipeline(TfidfEncoder(16), LogisticRegression(C=100))
    assert pipeline.fit(TEXTS[::2], LABELS[::2]).score(TEXTS[1::2], LABELS[1::2]) > 0.95


def test_columns_have_names():
    encoder = TfidfEncoder(2).fit(TEXTS)
    assert encoder.get_feature_names_out().tolist() == ["tfidfencoder0", "tfidfencoder1"]


def test_texts_without_a_word_or_with_unknown_ones_are_rows_too():
    encoder = TfidfEncoder().fit(["🐕!", "???", "犬", "\x00", "\ud83d"])
    assert np.isfinite(encoder.transform(["🐕", "unknown"])).all()
    assert not encoder.transform(["unknown"]).any()


def test_a_fitted_encoder_goes_through_json_and_arrays():
    encoder = TfidfEncoder(8, words=(1, 1), characters=(2, 3), max_terms=50).fit(TEXTS)
    config, arrays = encoder.describe()
    restored = TfidfEncoder.restore(json.loads(json.dumps(config)), arrays)
    assert restored.get_params() == encoder.get_params()
    strange = [*TEXTS, "something else entirely"]
    np.testing.assert_allclose(restored.transform(strange), encoder.transform(strange), atol=1e-6)
    again, same = restored.describe()
    assert again == config
    assert all(np.array_equal(same[name], arrays[name]) for name in arrays)


def test_a_damaged_description_is_refused():
    config, arrays = TfidfEncoder(4).fit(TEXTS).describe()
    with pytest.raises(ModelFileError, match="damaged: 'components'"):
        TfidfEncoder.restore(config, {k: v for k, v in arrays.items() if k != "components"})
    with pytest.raises(ModelFileError, match="terms, but components of shape"):
        TfidfEncoder.restore(config, arrays | {"components": arrays["components"][:, 1:]})
    with pytest.raises(ModelFileError, match="damaged"):
        TfidfEncoder.restore(config, arrays | {"words_weights": arrays["words_weights"][1:]})


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components=0.*at least 1"),
        ({"max_terms": 1.5}, "max_terms=1.5.*integer"),
        ({"words": (2, 1)}, r"words=\(2, 1\).*shortest"),
        ({"words": None}, "words=None"),
        ({"characters": 3}, "characters=3"),
    ],
)
def test_a_wrong_parameter_is_named(parameters, message):
    with pytest.raises(ParameterError, match=message):
        TfidfEncoder(**parameters).fit(TEXTS)


def test_before_the_fit_and_with_empty_texts_the_error_is_clear():
    for method in (lambda encoder: encoder.transform(TEXTS), TfidfEncoder.describe):
        with pytest.raises(NotFittedError, match="call fit"):
            method(TfidfEncoder())
    with pytest.raises(DataError, match=r"empty .*\(row 1\)"):
        TfidfEncoder().fit(["a", " "])
