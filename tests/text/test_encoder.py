"""TextEncoder with a tiny random BERT: values, order, scikit-learn's conventions."""

import json
import pickle
from functools import partial
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from setconv.errors import ModelFileError, ParameterError
from setconv.text.cache import EmbeddingCache
from setconv.text.encoder import TextEncoder, plan_batches
from setconv.text.transformer import Network

pytest.importorskip("transformers", reason="TextEncoder needs transformers")

from tiny_bert import POSITIONS, WIDTH, make_texts, save_tiny_bert, states_by_hand

TEXTS = ["the dog runs", "a cat sleeps under the tree and then runs home", "home"]


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_pooling_is_that_of_the_last_hidden_states_of_the_tokens_that_are_read(tiny, make, pooling):
    by_hand = {"cls": lambda states: states[0], "mean": partial(np.mean, axis=0)}
    by_hand["max"] = partial(np.max, axis=0)
    read = ["the dog runs", "a cat sleeps under the tree", "home"]
    expected = np.stack([by_hand[pooling](states_by_hand(tiny, text)) for text in read])
    found = make(pooling=pooling, max_length=8, cache=False).transform(TEXTS)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_normalized_embeddings_have_length_one_and_the_same_direction(make, encode):
    plain = make().transform(TEXTS)
    normalized = encode(make(normalize=True), TEXTS)
    assert normalized.n_encoded == 0  # the cache has what comes before normalisation
    expected = plain / np.linalg.norm(plain, axis=1, keepdims=True)
    np.testing.assert_allclose(normalized.vectors, expected, rtol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("window", [4096, 8])
def test_an_embedding_depends_neither_on_order_nor_on_company_nor_on_the_cache(
    make, encode, pooling, dtype, window, monkeypatch
):
    texts = make_texts(64)
    settings = {"pooling": pooling, "dtype": dtype, "normalize": True}
    encoder = make(cache=False, **settings)
    alone = np.concatenate([encoder.transform([text]) for text in texts])
    shuffled = np.random.default_rng(1).permutation(len(texts))
    monkeypatch.setattr("setconv.text.encoder._WINDOW", window)
    together = encoder.transform([texts[row] for row in shuffled])
    np.testing.assert_array_equal(together, alone[shuffled])
    np.testing.assert_array_equal(encoder.transform(texts[:2]), alone[:2])
    torch.set_num_threads(3)
    try:
        np.testing.assert_array_equal(encoder.transform(texts), alone)
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(1)
    make(**settings).transform(texts[::3])
    halfway = encode(make(**settings), texts)
    assert halfway.n_cached == len(texts[::3])
    np.testing.assert_array_equal(halfway.vectors, alone)


def test_identical_texts_are_encoded_once(make, encode):
    done = encode(make(cache=False), ["the dog", "a cat", "the dog", "the dog"])
    assert (done.n_cached, done.n_encoded) == (0, 2)
    assert done.vectors.shape == (4, WIDTH)
    np.testing.assert_array_equal(done.vectors[[0, 0]], done.vectors[[2, 3]])
    assert not np.allclose(done.vectors[0], done.vectors[1])


def test_bfloat16_is_close_and_has_a_place_of_its_own_in_the_cache(make, encode):
    exact = make(normalize=True).transform(TEXTS)
    rough = encode(make(normalize=True, dtype="bfloat16"), TEXTS)
    assert rough.n_encoded == len(TEXTS)
    assert rough.vectors.dtype == np.float32
    assert ((exact * rough.vectors).sum(axis=1) > 0.99).all()


def test_a_max_length_beyond_what_the_model_reads_is_cut_with_one_warning(
    make, caplog, monkeypatch
):
    monkeypatch.setattr("setconv.text.encoder._warned", set())
    long = ["the dog runs under a tree " * 20]
    full, again = (make(max_length=1000, cache=False).transform(long) for _ in range(2))
    assert len(caplog.records) == 1
    np.testing.assert_array_equal(full, again)
    np.testing.assert_allclose(full, make(max_length=POSITIONS, cache=False).transform(long))


def test_what_was_encoded_before_an_interruption_is_kept(make, monkeypatch, encode):
    texts = make_texts(60)
    whole = Network.hidden_states
    calls = iter(range(100))

    def interrupted(*arguments):
        if next(calls) == 10:
            raise KeyboardInterrupt
        return whole(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Network, "hidden_states", interrupted)
        with pytest.raises(KeyboardInterrupt):
            make().transform(texts)
    done = encode(make(), texts)
    assert done.n_cached >= 10
    np.testing.assert_array_equal(done.vectors, make(cache=False).transform(texts))


BEGINNING = "the dog runs under a tree "


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("text", "like"),
    [
        ("x" * 2_000_000, "x"),
        ("\n" * 2_000_000 + "dog", "dog"),
        (BEGINNING * 80_000, BEGINNING * 60),
        ("\x00", "\x00"),
        ("a \ud83d b", "a \ufffd b"),
    ],
    ids=["one word", "leading lines", "prose", "null", "half a character"],
)
def test_strange_texts_are_encoded_and_of_long_ones_the_beginning(make, text, like):
    found = make(cache=False).transform([text, "the dog"])
    np.testing.assert_allclose(found, make(cache=False).transform([like, "the dog"]), atol=1e-5)


# --------------------------------------------------------------------------------------- batches


@given(st.lists(st.integers(1, 300), min_size=1), st.integers(1, 2048), st.booleans())
def test_batches_hold_every_text_once_by_length_and_never_too_many_tokens(lengths, most, alike):
    batches = plan_batches(lengths, most, alike=alike)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    found = [[lengths[row] for row in batch] for batch in batches]
    for one in found:
        assert len(one) == 1 or len(one) * max(one) <= most
        assert not alike or len(set(one)) == 1
    assert list(chain(*sorted(found, reverse=True))) == sorted(lengths, reverse=True)


# --------------------------------------------------------------------------- scikit-learn's rules


def test_clones_and_pickles_have_the_same_parameters_and_a_plain_state(make, tmp_path):
    encoder = make(pooling="max", cache=EmbeddingCache(tmp_path, max_bytes=2**24), normalize=True)
    restored = pickle.loads(pickle.dumps(encoder))
    assert restored.get_params() == clone(encoder).get_params() == encoder.get_params()
    assert encoder.__getstate__()["cache"] == {"folder": tmp_path, "max_bytes": 2**24}
    np.testing.assert_array_equal(restored.transform(TEXTS), encoder.transform(TEXTS))


def test_a_wrong_parameter_is_named(make):
    wrong = {"pooling": "first", "dtype": "float8", "max_length": 2}
    for name, value in (wrong | {"cache": 7, "device": "toaster", "model": None}).items():
        with pytest.raises(ParameterError) as caught:
            make().set_params(**{name: value}).transform(TEXTS)
        assert caught.value.parameter == name


# ------------------------------------------------------------------------------------- as data


def test_an_encoder_goes_through_json_and_another_model_in_its_place_is_refused(
    make, tiny, tmp_path
):
    encoder = make(pooling="cls", normalize=True, max_length=np.int64(9), cache=False)
    config, arrays = encoder.describe()
    restored = TextEncoder.restore(json.loads(json.dumps(config)), arrays)
    elsewhere = {"model": str(tiny), "cache": True, "device": "auto"}
    assert restored.get_params() == encoder.get_params() | elsewhere
    np.testing.assert_array_equal(restored.transform(TEXTS), encoder.transform(TEXTS))
    other = str(save_tiny_bert(tmp_path, seed=1))
    with pytest.raises(ModelFileError):
        TextEncoder.restore({**config, "model": other}, arrays)
