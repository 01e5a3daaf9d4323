"""TfidfEncoder: rows without any download, and as plain data."""

import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer

from setconv.errors import DataError, ParameterError
from setconv.text.tfidf import TfidfEncoder

SUBJECTS = ["fire", "flood", "storm", "sunshine", "music", "dinner"]
TEXTS = [f"{a} and {b} on the {c} street!" for a in SUBJECTS for b in SUBJECTS for c in "xy"]


def test_rows_are_float32_and_as_wide_as_the_data_allow():
    for n_texts, n_components, width in [(72, 2, 2), (72, 256, 18), (4, 256, 4), (1, 256, 1)]:
        encoder = TfidfEncoder(n_components)
        rows = encoder.fit_transform(TEXTS[:n_texts])
        assert (rows.dtype, rows.shape) == (np.float32, (n_texts, width))
        assert len(encoder.get_feature_names_out()) == width


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


@pytest.mark.parametrize("characters", [(2, 3), None])
def test_a_fitted_encoder_goes_through_json_and_pickle_to_the_bit(characters):
    encoder = TfidfEncoder(8, words=(1, 1), characters=characters, max_terms=50).fit(TEXTS)
    config, arrays = encoder.describe()
    from_json = TfidfEncoder.restore(json.loads(json.dumps(config)), arrays)
    strange = [*TEXTS, "something else entirely"]
    for restored in (from_json, pickle.loads(pickle.dumps(encoder))):
        assert restored.get_params() == encoder.get_params()
        np.testing.assert_array_equal(restored.transform(strange), encoder.transform(strange))
        assert restored.describe()[0] == config


def test_a_wrong_parameter_is_named():
    wrong = {"n_components": 0, "max_terms": 1.5, "words": (2, 1), "characters": 3}
    for name, value in [*wrong.items(), ("words", None)]:
        with pytest.raises(ParameterError) as caught:
            TfidfEncoder(**{name: value}).fit(TEXTS)
        assert caught.value.parameter == name


def test_before_the_fit_and_with_empty_texts_the_error_is_clear():
    for method in (TfidfEncoder.transform, lambda encoder, _: encoder.describe()):
        with pytest.raises(NotFittedError):
            method(TfidfEncoder(), TEXTS)
    with pytest.raises(DataError):
        TfidfEncoder().fit(["a", " "])


def test_it_works_without_transformers_and_imports_no_torch(run_python):
    program = """
import sys

sys.modules["transformers"] = sys.modules["huggingface_hub"] = None
from setconv.text import EmbeddingCache, TextEncoder, TfidfEncoder

assert EmbeddingCache().info().entries == 0
assert TfidfEncoder(2).fit_transform(["a dog", "a cat"]).shape == (2, 2)
TextEncoder(pooling="cls")
assert "torch" not in sys.modules
"""
    assert run_python(program) == ""
